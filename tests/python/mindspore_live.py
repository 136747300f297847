"""MindSpore trainings under msdbg listen. Needs MindSpore: tools/test python."""

import os
import re
import signal
import time

from live import (
    LONGEST,
    NOT_FINITE,
    PACKAGE,
    Debugger,
    LiveTest,
    alone,
    line_of,
    main,
    under_debugger,
)
from mindspore_compiled import Apart, CompiledSteps, left_in_memory
from mindspore_ends import Ends
from mindspore_parts import Parts
from mindspore_ranks import Ranks

# Those of the other files run with these.
__all__ = [
    "Apart",
    "CompiledSteps",
    "Ends",
    "FakeDevice",
    "Found",
    "Parts",
    "Ranks",
    "Unchanged",
    "Ways",
]
PROGRAM = "mindspore_train.py"
MORE = "mindspore_more.py"


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

    def test_transformer(self):
        self.unchanged(MORE, "transformer")

    def test_transformer_in_pynative(self):
        self.unchanged(MORE, "transformer", "pynative")

    def test_masks_in_pynative(self):
        self.unchanged(MORE, "transformer_masked", "pynative")

    def test_half_precision_with_loss_scale(self):
        self.unchanged(MORE, "transformer_half", "pynative")

    def test_control_flow(self):
        plain = alone(MORE, "branches")
        watched = under_debugger(NOT_FINITE, MORE, "branches")
        self.assertEqual(watched.results, plain.results, watched.debugger)
        self.holds(watched, "statistics of 6 weights", "reason ended")
        self.assertNotIn("msdbg_agent:", watched.training)
        # The loss is in another graph than what it reads.
        found = under_debugger(NOT_FINITE, MORE, "branches_log0")
        self.holds(
            found,
            "findings follow from .*/?Log-op0, step 0, %s: logarithm of 0"
            % line_of(MORE, "branches_log0"),
            "first bad +Default/.*/Log-op0:output:0",
        )

    def test_frozen_layer(self):
        self.unchanged(MORE, "frozen")
        self.unchanged(MORE, "frozen", "pynative")

    def test_compiled_parts_of_pynative(self):
        self.unchanged(MORE, "jit", "pynative")

    def test_steps_by_hand(self):
        ended = self.unchanged(MORE, "steps", "pynative", MSDBG_AGENT_STEP="manual")
        self.holds(ended, "it counts 6 steps")
        found = under_debugger(
            NOT_FINITE, MORE, "steps_root0", "pynative", MSDBG_AGENT_STEP="manual"
        )
        self.holds(found, "first bad +Gradients/Default/network-Net/Grad_Sqrt/")

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

    def test_logarithm_of_zero_in_pynative(self):
        found = under_debugger(NOT_FINITE, PROGRAM, "pynative_log0")
        self.holds(
            found, "first bad +Default/network-Net/Log-op0", re.escape(line_of(PROGRAM, "log0"))
        )

    def test_bad_image_in_pynative(self):
        self.holds(
            under_debugger(NOT_FINITE, PROGRAM, "pynative_nan"), "first bad +parameter data.x"
        )

    def test_overflow_in_half_precision(self):
        self.holds(
            under_debugger(NOT_FINITE, MORE, "half"),
            "first bad +Default/network-WithLossCell/_backbone-Net/Mul-op",
            re.escape(line_of(MORE, "half")),
        )

    def test_overflow_in_half_precision_in_pynative(self):
        self.finds_in_pynative("Default/network-Net/Mul-op0", "half")

    def test_weight_broken_between_two_steps(self):
        for mode in (), ("pynative",):
            self.holds(
                under_debugger(NOT_FINITE, MORE, "broken", *mode),
                "step 3  HIT  1 hit, before its first operator",
                r"first bad +parameter b\.fc\.weight",
                "step 2 left it good",
            )

    def test_learning_rate_too_large(self):
        self.holds(under_debugger(NOT_FINITE, MORE, "rate"), "reason hit")

    def test_bad_gradient_in_pynative(self):
        found = self.finds_in_pynative("Gradients/Default/network-Net/Grad_Sqrt/", "root0")
        self.holds(found, r"follows? from Grad_Sqrt/Sqrt-op0.*division by the square root of 0")

    def test_line_of_a_derivative_by_hand(self):
        self.finds_in_pynative("Gradients/", "bprop_div0")

    def test_recurrent_network(self):
        """Its backward pass writes to what the forward one has kept for it."""
        found = self.finds_in_pynative("Default/network-Net/Div-op0", "lstm_div0")
        self.assertNotIn("LSTM-op0:output:3", found.debugger)

    def test_logarithm_of_zero_in_a_compiled_part(self):
        self.finds_in_pynative("Default/network-Net/b-Block/Log-op0", "jit_log0")

    def finds_in_pynative(self, where, case):
        """The case's marked line, at a node whose name begins with `where`."""
        found = under_debugger(NOT_FINITE, MORE, case, "pynative")
        self.holds(found, "first bad +" + where, re.escape(line_of(MORE, case)))
        return found


class FakeDevice(LiveTest):
    """As on an Ascend: the address of a tensor is one of the device."""

    FAR = "mindspore_far.py"

    def test_unchanged(self):
        for program, *case in (
            (PROGRAM, "lenet"),
            (PROGRAM, "pynative"),
            (MORE, "transformer_half", "pynative"),
            (MORE, "frozen", "pynative"),
            (MORE, "jit", "pynative"),
        ):
            with self.subTest(" ".join(case)):
                ended = under_debugger(NOT_FINITE, self.FAR, program, *case)
                self.holds(ended, "reason ended")
                self.assertEqual(ended.results, alone(program, *case).results)
                self.assertNotIn("msdbg_agent:", ended.training)

    def test_found(self):
        for program, case, where in (
            (PROGRAM, ("log0",), "Default/network-WithLossCell/_backbone-Net/Log-op0"),
            (PROGRAM, ("nan",), "parameter inputs0"),
            (PROGRAM, ("pynative_log0",), "Default/network-Net/Log-op0"),
            (PROGRAM, ("pynative_nan",), "parameter data.x"),
            (MORE, ("root0", "pynative"), "Gradients/Default/network-Net/Grad_Sqrt/"),
            (MORE, ("jit_log0", "pynative"), "Default/network-Net/b-Block/Log-op0"),
        ):
            with self.subTest(" ".join(case)):
                found = under_debugger(NOT_FINITE, self.FAR, program, *case)
                self.holds(found, "first bad +" + where)

    def test_weights_of_each_step(self):
        for case in ("lenet", "pynative"):
            with self.subTest(case):
                near = under_debugger(self.WEIGHTS, PROGRAM, case)
                far = under_debugger(self.WEIGHTS, self.FAR, PROGRAM, case)
                told = [re.findall("told .*", each.debugger) for each in (near, far)]
                self.assertGreater(len(set(told[0])), 4, near.debugger)
                self.assertEqual(told[0], told[1])

    WEIGHTS = """
local weights = s:nodes("@weight"):names()
for _ = 1, 4 do
  s:step(1)
  for _, name in ipairs(weights) do
    local now = s:node(name):value()
    print(("told %s %s %.9g"):format(name, table.concat(now.shape, "x"), now.stats.mean))
  end
end
s:terminate()
"""


class Ways(LiveTest):
    """Ways to attach, and to end."""

    def tearDown(self):
        self.assertEqual(left_in_memory(), [])

    def test_callback(self):
        self.holds(self.unchanged_by_hand("callback"), "it counts 6 steps|reason ended")

    def test_session(self):
        self.unchanged_by_hand("session")

    def unchanged_by_hand(self, case):
        environment = dict(os.environ, PYTHONPATH=PACKAGE)
        try:
            os.environ["PYTHONPATH"] = PACKAGE
            return self.unchanged(MORE, case)
        finally:
            os.environ.clear()
            os.environ.update({k: v for k, v in environment.items() if k != "PYTHONPATH"})

    def test_killed_training_leaves_nothing_after_the_next_start(self):
        debugger = Debugger('s:step(2) os.execute("sleep 8")')
        try:
            training = debugger.start(PROGRAM, "lenet", "50")
            end = time.monotonic() + LONGEST
            while not left_in_memory() and time.monotonic() < end:
                time.sleep(0.05)
            self.assertNotEqual(left_in_memory(), [])
            training.kill()
            training.communicate()
        finally:
            debugger.close()
        self.assertNotEqual(left_in_memory(), [])
        under_debugger("s:step(1) s:terminate()", PROGRAM, "lenet")

    def test_interrupted_while_held(self):
        debugger = Debugger('s:step(1) print("waiting") os.execute("sleep 20") s:terminate()')
        try:
            training = debugger.start(PROGRAM, "lenet", "50")
            debugger.wait_for("\nwaiting\n")
            begin = time.monotonic()
            training.send_signal(signal.SIGINT)
            training.communicate(timeout=LONGEST)
            self.assertLess(time.monotonic() - begin, 15)
            self.assertNotEqual(training.returncode, 0)
        finally:
            debugger.close()
        # MindSpore itself ends the process, so that nothing is tidied up before the next start.
        under_debugger("s:step(1) s:terminate()", PROGRAM, "lenet")


if __name__ == "__main__":
    # One at a time: they look for what others left in the memory file system.
    main(1, "mindspore")
