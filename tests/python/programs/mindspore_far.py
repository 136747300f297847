"""mindspore_train.py, mindspore_more.py or mindspore_jit.py with a fake device: the agent must not
read any tensor at its address. mindspore_far.py PROGRAM CASE..."""

import os
import runpy
import sys

import mindspore  # noqa: F401 (the agent attaches behind it)

import msdbg_agent
from msdbg_agent.mindspore_agent import memory

msdbg_agent.attach()
memory._host = False
memory.ctypes.string_at = None
sys.argv.pop(0)
sys.argv[0] = os.path.join(os.path.dirname(os.path.abspath(__file__)), sys.argv[0])
runpy.run_path(sys.argv[0], run_name="__main__")
