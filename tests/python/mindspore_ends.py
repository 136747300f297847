"""MindSpore trainings whose steps end in unusual ways under msdbg listen; mindspore_live.py runs them."""

import importlib.metadata
import re

from live import NOT_FINITE, RECOMMENDED, RULES, alone, line_of, under_debugger
from mindspore_compiled import APART, Watched

RELEASE = importlib.metadata.version("mindspore").split(".")
# Without a dispatch mode: few operators of the backward pass are seen.
IS_OLD = [int(each) for each in RELEASE[:2]] < [2, 9]


class Ends(Watched):
    """Steps that end without an optimizer, or with one that is not like the others."""

    def test_update_by_hand(self):
        for case in ("by_hand", "graph_by_hand"):
            self.six_steps(case)

    def test_weights_that_no_cell_holds(self):
        script = """
        s:step(1)
        local weights = s:nodes("@weight")
        s:step(1)
        print("weights", #weights, s:tensor("W_x").shape[1])
        print("reason " .. s:continue().reason)
        """
        ran = under_debugger(script, APART, "loose")
        self.assertEqual(ran.results, alone(APART, "loose").results)
        self.holds(ran, "weights\\s+2\\s+8", "it counts 6 steps")

    def test_functions_in_graph_mode(self):
        self.six_steps("graph_plain")

    def test_optimizer_of_another_base(self):
        ended = self.six_steps("groups")
        self.holds(ended, "statistics of [1-9]")

    def test_update_that_is_left_out(self):
        ran = under_debugger(NOT_FINITE, APART, "skipped")
        self.holds(ran, "step 2 +rank 0", "first bad +parameter data.x")
        steps = under_debugger("s:continue() print('reason ended')", APART, "skipped")
        self.assertEqual(steps.results, alone(APART, "skipped").results)
        self.holds(steps, "it counts 6 steps")

    def test_training_that_ends_itself(self):
        ran = under_debugger(NOT_FINITE, APART, "stops")
        self.assertIn("step 2 was cut short: ArithmeticError: the loss is", ran.training)
        self.holds(ran, "step 2 +rank 0", "first bad +parameter data.x", "it counts 3 steps")

    def test_what_ended_the_training(self):
        look_up = "Gather-op0:input:1 +index 12, but embed.embedding_table has 10 rows"
        loss = "SparseSoftmaxCrossEntropyWithLogits-op0:input:1 +label 9, but .* has 5 classes"
        for way, what, found in (("graph", "word", look_up), ("jit", "label", loss)):
            with self.subTest(way):
                ended = under_debugger(RULES, "mindspore_indexed.py", way, what)
                self.assertIn("step 2 was cut short: RuntimeError: For '", ended.training)
                self.holds(ended, "step 2 +held.*\n(.*\n)*.*" + found, "it counts 3 steps")

    def test_exception_that_is_caught(self):
        # Before 2.9, tracing after such an exception changes the last digit of a loss.
        self.six_steps("caught", **({"MSDBG_AGENT_TRACE": "step"} if IS_OLD else {}))

    def test_state_with_other_names(self):
        self.found("renamed_log0")

    def test_evaluation_before_the_update(self):
        script = """
            s:step(2)
            local made = s:nodes("Default/network-Net/a-Block/fc-Dense/MatMul-op*")
            print("products " .. #made)
            s:terminate()
        """
        ran = under_debugger(script, APART, "evaluated", MSDBG_AGENT_TRACE="operator")
        self.holds(ran, "products 1\n")

    def test_overflows_that_the_scaler_answers(self):
        scaled = "mindspore_scaled.py"
        look = 's:watch { name = "all", on = "**", when = "TO" } s:step(1) print(msdbg.origin(s))'
        script = RECOMMENDED.replace("if r.held then", "if r.held then %s" % look)
        for way, operator in (("jit", r"Grad_Sqrt/SqrtGrad-op0"), ("pynative", r"\w+/\w+-op0")):
            with self.subTest(way):
                sound = under_debugger(script, scaled, "sound", way)
                self.holds(sound, "reason ended", "recommended tensor_all_zero")
                self.assertEqual(sound.results, alone(scaled, "sound", way).results)
                broken = under_debugger(script, scaled, "broken", way)
                held = "scale_value:output:0 +loss_scale_too_small"
                self.holds(broken, r"reason hit\s+step 3 ", held)
                if way == "pynative" and IS_OLD:
                    continue
                self.holds(
                    broken,
                    "first bad +Gradients/Default/network-Net/%s:output:0" % operator,
                    re.escape(line_of(scaled, "sqrt")),
                )

    def test_inputs_of_a_function_that_takes_a_tuple(self):
        script = """
            s:step(1)
            for node in s:nodes("**/_all_finite/IsFinite-op*"):each() do
              print("takes " .. node.inputs[1].name)
            end
            s:terminate()
        """
        variables = {"MSDBG_AGENT_TRACE": "operator"}
        ran = under_debugger(script, "mindspore_scaled.py", "sound", "pynative", **variables)
        taken = re.findall(r"takes \S+/(Mul-op\d)\n", ran.debugger)
        self.assertEqual(taken, ["Mul-op1", "Mul-op2", "Mul-op3", "Mul-op4"], ran.debugger)

    def test_every_operator_of_the_loss_has_inputs(self):
        script = """
            s:step(2)
            for node in s:nodes("**/_loss_fn-*/**"):each() do
              if node.kind == "operator" and #node.inputs == 0 then print("no input: " .. node.name) end
            end
            print("done")
            s:terminate()
        """
        ran = under_debugger(script, APART, "plain", MSDBG_AGENT_TRACE="operator")
        self.holds(ran, "done")
        self.assertNotIn("no input", ran.debugger)

    def test_outputs_that_no_operator_writes(self):
        """Adam changes the parameters alone: its outputs hold what another operator left there."""
        script = """
            s:step(2)
            for node in s:nodes("Default/optimizer-Adam/Adam-op*"):each() do
              local values = node:output(0)
              local weight = s:tensor(node.inputs[1].name)
              if values and values.stats.max ~= weight.stats.max then print("other values") end
              print("updates " .. node.inputs[1].name)
            end
            s:terminate()
        """
        for case in (["whole_plain", "adam"], ["update", "adam"]):
            ran = under_debugger(script, APART, *case, MSDBG_AGENT_TRACE="operator")
            self.holds(ran, "updates a.fc.weight")
            self.assertNotIn("other values", ran.debugger)
        self.found("update_log0", "adam")
