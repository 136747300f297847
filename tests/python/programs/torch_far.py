"""torch_train.py, or another one for its cases, with a fake device: the agent must not read any
tensor at its address. torch_far.py CASE [near] [narrow]: no fake device; nothing is kept that the
program lets go of."""

import os
import runpy
import sys

import torch  # noqa: F401 (the agent attaches behind it)

import msdbg_agent
from msdbg_agent.torch_agent import room, tensors, values

msdbg_agent.attach()
if "near" in sys.argv:
    sys.argv.remove("near")
else:
    tensors.is_readable = values.is_readable = room.is_readable = lambda tensor: False
if "narrow" in sys.argv:
    sys.argv.remove("narrow")
    room._room_of = lambda device: 1
    room._host_room = lambda: 0
programs = {"lent": "torch_more.py", "complexes": "torch_kinds.py"}
program = programs.get(sys.argv[1], "torch_train.py")
sys.argv[0] = os.path.join(os.path.dirname(os.path.abspath(__file__)), program)
runpy.run_path(sys.argv[0], run_name="__main__")
