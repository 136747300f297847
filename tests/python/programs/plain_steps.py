"""A training without a framework, for the wheel's library: a weight that halves, and an operator whose value is infinite in step 3."""

import ctypes
import os

from msdbg_agent import _c

library = _c.load()
connection = _c.Connection(library)
weight = (ctypes.c_float * 4)(1, 2, 3, 4)
value = (ctypes.c_float * 4)()
graph = connection.description(0)
graph.parameter("weight", "Float32", (4,), ctypes.addressof(weight))
node = graph.node("Default/net/Scale-op0", "Scale")
graph.input(node, "weight", 0)
graph.output(node, "Float32", (2, 2))
connection.send_graph(graph)
steps = 0
for step in range(6):
    if connection.begin_step() == _c.STOP:
        break
    for i in range(4):
        value[i] = float("inf") if step == 3 and i == 1 else weight[i] * 2
        weight[i] /= 2
    connection.publish(node, 0, ctypes.addressof(value), ctypes.sizeof(value), (2, 2))
    connection.node_done(node)
    steps += 1
    if connection.end_step() == _c.STOP:
        break
attached = connection.attached()
connection.finish()
# The library that runs is that of the package, and the C library is the one that the test wants.
(place,) = {line.split()[-1] for line in open("/proc/self/maps") if "libmsdbg-agent" in line}
print("steps %d, attached %s, %s" % (steps, attached, connection.problem() or "no problem"))
print(
    "library %s, with %s"
    % (os.path.relpath(place, os.path.dirname(_c.__file__)), os.confstr("CS_GNU_LIBC_VERSION"))
)
