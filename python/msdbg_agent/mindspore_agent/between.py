"""Weights that something other than the training has broken between two steps.

The debugger looks when a step has ended, and the update has changed the weights then. So steps whose
operators are wanted look at them when they begin, and what was finite when the step before ended, and
is not any more, is shown as what an operator has written.
"""

import ctypes

import numpy

from .._names import part
from .memory import on_host
from .tensors import TYPES

_FLOATS = {
    "float16": (ctypes.c_uint16, numpy.float16),
    "float32": (ctypes.c_uint32, numpy.float32),
    "float64": (ctypes.c_uint64, numpy.float64),
}


def _is_finite(parameter):
    """True as well of types that cannot be looked at cheaply."""
    known = _FLOATS.get(TYPES.get(str(parameter.dtype)))
    if known is None or not parameter.size or not on_host() or not parameter.data_ptr():
        return True
    memory = (known[0] * parameter.size).from_address(parameter.data_ptr())
    values = numpy.frombuffer(memory, known[1])
    with numpy.errstate(all="ignore"):
        # Much faster than looking at each element; too large numbers make it infinite, too.
        if values.itemsize > 2 and numpy.isfinite(numpy.dot(values, values)):
            return True
    return bool(numpy.isfinite(values).all())


class Between:
    def __init__(self, recorder, operators, cells):
        self._recorder, self._operators, self._cells = recorder, operators, cells
        self._sound = set()  # names of those that were finite when the last step ended
        self._read = []  # (node, its inputs): what was told of another node in this step

    def step_begins(self):
        """Before the first operator of a step whose operators are wanted."""
        for node, inputs in self._read:
            node.inputs = inputs
            self._recorder.dirty = True
        self._read = []
        for parameter in self._cells.get_parameters():
            if parameter.name in self._sound and not _is_finite(parameter):
                self._changed(parameter)

    def step_ends(self, looked_at):
        self._sound = set()
        if looked_at:
            self._sound.update(
                each.name for each in self._cells.get_parameters() if _is_finite(each)
            )

    def _changed(self, parameter):
        from mindspore import Tensor

        name = parameter.name
        node = self._recorder.node("Default/between_steps/%s" % part(name), "SetData")
        self._operators.add(node, [(name, 0)], [Tensor(parameter.asnumpy().copy())])
        node.updates = {(name, 0)}
        self._operators.alias(parameter, node, 0)
        for reader in self._recorder.order:
            if (name, 0) not in (reader.inputs or ()) or reader is node:
                continue
            self._read.append((reader, reader.inputs))
            now = (node.name, 0)
            if (name, 0) in reader.updates:
                reader.inputs = reader.inputs + [now]
            else:
                reader.inputs = [now if each == (name, 0) else each for each in reader.inputs]
        self._recorder.dirty = True
