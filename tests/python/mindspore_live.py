"""MindSpore trainings under msdbg listen. Needs MindSpore: tools/test python."""

import os
import re
import sys
import unittest

from live import NOT_FINITE, PACKAGE, LiveTest, alone, line_of, under_debugger

sys.path.insert(0, PACKAGE)
from msdbg_agent.mindspore_agent.versions import find  # noqa: E402

PROGRAM = "mindspore_train.py"


def left_in_memory():
    return [name for name in os.listdir("/dev/shm") if name.startswith("msdbg-agent-")]


class Unchanged(LiveTest):
    """Losses and parameters are those without the agent, and a healthy training has no hit."""

    def tearDown(self):
        self.assertEqual(left_in_memory(), [])

    def test_graph_mode(self):
        ended = self.unchanged(PROGRAM, "lenet")
        self.holds(
            ended,
            "connected: MindSpore",
            "1 graph, [3-9][0-9] nodes. The training is held before its first step",
        )

    def test_model_train(self):
        self.unchanged(PROGRAM, "model")

    def test_evaluation_between(self):
        ended = self.unchanged(PROGRAM, "evaluate")
        self.holds(ended, "it counts 5 steps")

    def test_compiled_again_for_another_shape(self):
        self.unchanged(PROGRAM, "shapes")

    def test_pynative(self):
        self.unchanged(PROGRAM, "pynative")

    def test_parameters_alone(self):
        self.unchanged(PROGRAM, "lenet", MSDBG_AGENT_TRACE="step")

    def test_terminated_and_detached(self):
        self.assertEqual(
            under_debugger("s:step(2) s:terminate()", PROGRAM, "lenet", "50").results, []
        )
        detached = under_debugger("s:step(2) s:detach()", PROGRAM, "lenet")
        self.assertEqual(detached.results, alone(PROGRAM, "lenet").results)


class Found(LiveTest):
    def test_logarithm_of_zero(self):
        found = under_debugger(NOT_FINITE, PROGRAM, "log0")
        self.holds(
            found,
            "first bad +Default/network-WithLossCell/_backbone-Net/Log-op0",
            re.escape(line_of(PROGRAM, "log0")),
        )

    def test_bad_image(self):
        self.holds(under_debugger(NOT_FINITE, PROGRAM, "nan"), "first bad +parameter inputs0")

    @unittest.skipUnless(find("mindspore.utils:MsDispatchMode"), "operators are seen from 2.9 on")
    def test_logarithm_of_zero_in_pynative(self):
        found = under_debugger(NOT_FINITE, PROGRAM, "pynative_log0")
        self.holds(
            found, "first bad +Default/network-Net/Log-op0", re.escape(line_of(PROGRAM, "log0"))
        )

    @unittest.skipUnless(find("mindspore.utils:MsDispatchMode"), "operators are seen from 2.9 on")
    def test_bad_image_in_pynative(self):
        self.holds(
            under_debugger(NOT_FINITE, PROGRAM, "pynative_nan"), "first bad +parameter data.x"
        )


if __name__ == "__main__":
    unittest.main(verbosity=2)
