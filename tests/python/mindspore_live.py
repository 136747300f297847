"""MindSpore trainings under msdbg listen. Needs MindSpore: tools/test python."""

import os
import re
import signal
import tempfile
import time
import unittest

from live import LONGEST, NOT_FINITE, PACKAGE, Debugger, LiveTest, alone, line_of, under_debugger

PROGRAM = "mindspore_train.py"
MORE = "mindspore_more.py"
JIT = "mindspore_jit.py"

# Of an iteration that never comes.
DUMP = """{
  "common_dump_settings": {
    "dump_mode": 0, "path": "%s", "net_name": "Net", "iteration": "1000000000", "saved_data": "tensor",
    "input_output": 2, "kernels": [], "support_device": [0], "op_debug_mode": 0
  },
  "e2e_dump_settings": {"enable": true, "trans_flag": true}
}"""


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

    def test_transformer(self):
        self.unchanged(MORE, "transformer")

    def test_transformer_in_pynative(self):
        self.unchanged(MORE, "transformer", "pynative")

    def test_half_precision_with_loss_scale(self):
        self.unchanged(MORE, "transformer_half", "pynative")

    def test_control_flow(self):
        plain = alone(MORE, "branches")
        watched = under_debugger(NOT_FINITE, MORE, "branches")
        self.assertEqual(watched.results, plain.results, watched.debugger)
        self.holds(watched, "statistics of 6 weights", "reason ended")
        said = [line for line in watched.training.splitlines() if "msdbg_agent:" in line]
        self.assertEqual(len(said), 1, said)
        self.assertIn("graphs; the largest one is shown", said[0])

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

    def test_learning_rate_too_large(self):
        self.holds(under_debugger(NOT_FINITE, MORE, "rate"), "reason hit")

    def test_bad_gradient_in_pynative(self):
        self.finds_in_pynative("Gradients/Default/network-Net/Grad_Sqrt/", "root0")

    def test_logarithm_of_zero_in_a_compiled_part(self):
        self.finds_in_pynative("Default/network-Net/b-Block/Log-op0", "jit_log0")

    def finds_in_pynative(self, where, case):
        """The case's marked line, at a node whose name begins with `where`."""
        found = under_debugger(NOT_FINITE, MORE, case, "pynative")
        self.holds(found, "first bad +" + where, re.escape(line_of(MORE, case)))


class CompiledSteps(LiveTest):
    """One call of a function under @jit is one step."""

    def tearDown(self):
        self.assertEqual(left_in_memory(), [])

    def unchanged_steps(self, *case):
        ended = self.unchanged(JIT, *case)
        self.holds(
            ended,
            "1 graph, [1-9][0-9]{2} nodes. The training is held before its first step",
            "statistics of [1-9][0-9]* weights",
            "it counts 6 steps",
        )

    def test_function(self):
        self.unchanged_steps("function")

    def test_function_in_graph_mode(self):
        self.unchanged_steps("function", "graph")

    def test_function_that_jit_wraps_by_call(self):
        self.unchanged_steps("wrapped")

    def test_method_of_a_cell(self):
        self.unchanged_steps("method")

    def test_method_of_another_object(self):
        self.unchanged_steps("object")

    def test_update_without_optimizer(self):
        self.unchanged_steps("own")

    def test_compiled_again(self):
        self.unchanged_steps("shapes")
        self.unchanged_steps("epochs")

    def test_compiled_evaluation_is_no_step(self):
        self.unchanged_steps("evaluate")

    def test_logarithm_of_zero(self):
        for case, scope in (
            ("log0", "network-Net"),
            ("method_log0", "network-Trainer/network-Net"),
        ):
            self.holds(
                under_debugger(NOT_FINITE, JIT, case),
                "step 3 +rank 0",
                "first bad +Default/%s/Log-op0" % scope,
                re.escape(line_of(JIT, "log0")),
                "hit at Default/.*optimizer-Momentum/ApplyMomentum-op0",
                "_loss_fn-CrossEntropyLoss/",
            )

    def test_values_between_steps(self):
        script = """
            for _ = 1, 3 do
              print("weight " .. s:tensor("out.weight").stats.max)
              s:step(1)
              local products = s:tensors { on = "Default/network-Net/b-Block/fc-Dense/MatMul-op*" }
              print(s.completed_steps .. " done, products " .. #products)
            end
            s:terminate()
        """
        ran = under_debugger(script, JIT, "function", MSDBG_AGENT_TRACE="operator")
        self.holds(ran, "3 done, products 1")
        self.assertEqual(len(set(re.findall("weight (.*)", ran.debugger))), 3, ran.debugger)
        self.assertEqual(ran.results, [])

    def test_dump_of_somebody_else(self):
        directory = tempfile.mkdtemp(prefix="msdbg-dump-")
        config = os.path.join(directory, "config.json")
        with open(config, "w", encoding="utf-8") as file:
            file.write(DUMP % directory)
        ran = under_debugger(NOT_FINITE, JIT, "log0", MINDSPORE_DUMP_CONFIG=config)
        self.holds(ran, "reason hit", "hit at out.weight")
        self.assertIn("operators are not seen", ran.training)


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
    unittest.main(verbosity=2)
