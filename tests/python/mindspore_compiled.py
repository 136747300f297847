"""MindSpore trainings with compiled functions (@jit) under msdbg listen; mindspore_live.py runs them."""

import os
import re
import tempfile

from live import NOT_FINITE, LiveTest, alone, line_of, under_debugger

JIT = "mindspore_jit.py"
APART = "mindspore_apart.py"

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


class Watched(LiveTest):
    """Trainings of six steps, and their faults."""

    def tearDown(self):
        self.assertEqual(left_in_memory(), [])

    def six_steps(self, *case, said=(), **variables):
        """Six steps, the training as it is alone, and these lines on its standard error stream."""
        plain = alone(APART, *case)
        self.assertEqual(plain.status, 0, plain.training)
        watched = under_debugger(NOT_FINITE, APART, *case, **variables)
        self.assertEqual(watched.status, 0, watched.training)
        self.assertEqual(watched.results, plain.results, watched.debugger)
        self.assertEqual(lines_of_ours(watched), list(said))
        self.holds(watched, "reason ended", "it counts 6 steps")
        return watched

    def found(self, *case, step=3, **variables):
        """The marked line is found, and what the step itself broke was not bad before."""
        ran = under_debugger(NOT_FINITE, APART, *case, **variables)
        self.holds(
            ran,
            "step %d +rank 0" % step,
            "first bad +Default/network-Net/Log-op0",
            re.escape(line_of(APART, "log0")),
        )
        self.assertNotIn("already", ran.debugger)
        return ran


class Apart(Watched):
    """The gradients are compiled, and the optimizer is called outside: each update ends a step."""

    def test_functions(self):
        for case in (["apart"], ["apart", "adam"], ["wrapped"], ["method"]):
            ended = self.six_steps(*case)
            self.holds(ended, "statistics of [1-9]", "graph kernel_graph_1: 1[0-9]{2} nodes")

    def test_optimizers(self):
        for case in ("python", "python_plain", "update", "mutable", "own_update"):
            self.six_steps(case)
        # The framework compiles its update from functions that are replaced in a traced step.
        self.six_steps("plain", "rprop")

    def test_half_precision(self):
        # MindSpore computes it in float32, and writes that as float16.
        self.six_steps("half")

    def test_functions_in_one_step(self):
        self.six_steps("two")
        self.six_steps("twice")
        script = """
            local names = {}
            s:step(2)
            for _, each in ipairs { "MatMul", "BatchNorm", "ClampScalar", "ClampTensor" } do
              local found = s:nodes("Default/**/" .. each .. "-op*", { optional = true })
              local count, twice = 0, 0
              for node in found:each() do
                count = count + 1
                if names[node.name] then twice = twice + 1 end
                names[node.name] = true
              end
              print(each .. " " .. count .. " times, " .. twice .. " names again")
            end
            s:terminate()
        """
        ran = under_debugger(script, APART, "two", MSDBG_AGENT_TRACE="operator")
        self.holds(ran, "MatMul 6 times, 0 names again", "BatchNorm 4 times, 0 names again")
        self.holds(ran, "Clamp[A-Za-z]* 10 times, 0 names again")

    def test_values_between_steps(self):
        script = """
            for _ = 1, 3 do
              print("weight " .. s:tensor("out.weight").stats.max)
              s:step(1)
              local made = s:tensors { on = "Default/network-Net/b-Block/fc-Dense/MatMul-op*" }
              local gradient = "Gradients/Default/network-Net/out-Dense/Grad_weight/Gradient-op0:0"
              print(s.completed_steps .. " done, products " .. #made)
              print("gradient " .. s:tensor(gradient).stats.max)
            end
            s:terminate()
        """
        ran = under_debugger(script, APART, "apart", MSDBG_AGENT_TRACE="operator")
        self.holds(ran, "3 done, products 1")
        self.assertEqual(len(set(re.findall("weight (.*)", ran.debugger))), 3, ran.debugger)
        self.assertEqual(len(set(re.findall("gradient (.*)", ran.debugger))), 3, ran.debugger)

    def test_logarithm_of_zero(self):
        for optimizer in ("momentum", "adam"):
            self.found("log0_first", optimizer, step=0)
            ran = self.found("log0", optimizer)
            kind = optimizer.capitalize()
            self.holds(ran, "hit at Default/optimizer-%s/.*/Apply%s-op0" % (kind, kind))
            self.holds(ran, "hit at moment")

    def test_logarithm_of_zero_with_other_updates(self):
        self.found("python_log0")
        ran = self.found("update_log0")
        self.holds(ran, "hit at Default/optimizer-Momentum/ApplyMomentum-op0")

    def test_logarithm_of_zero_without_compiled_functions(self):
        for optimizer in ("momentum", "adam"):
            self.found("plain_log0", optimizer)
            self.found("plain_log0_first", optimizer, step=0)

    def test_state_when_parameters_alone_are_seen(self):
        for optimizer in ("momentum", "adam"):
            ran = under_debugger(NOT_FINITE, APART, "log0", optimizer, MSDBG_AGENT_TRACE="step")
            self.holds(ran, "hit at moment", "first bad +Default/_loss_fn-Loss/Loss-op0")
            self.assertNotIn("already", ran.debugger)

    def test_other_steps_in_the_same_training(self):
        for case in ("plain_whole", "whole_plain", "apart_whole_plain", "plain_apart"):
            self.six_steps(case)
        for case in ("apart_cell", "cell_plain"):  # in graph mode
            self.six_steps(case)
        for case in ("plain_whole_log0", "whole_plain_log0"):
            self.found(case)

    def test_captured_data_is_unknown(self):
        self.six_steps("captured")
        script = """
            s:step(2)
            for node in s:nodes("Default/Mul-op*"):each() do
              for _, input in ipairs(node.inputs) do print("reads " .. input.name) end
            end
            s:terminate()
        """
        ran = under_debugger(script, APART, "captured", MSDBG_AGENT_TRACE="operator")
        read = re.findall("reads (.*)", ran.debugger)
        self.assertEqual(len(read), 1, ran.debugger)
        self.assertRegex(read[0], "out-Dense/")

    def test_function_that_cannot_be_compiled(self):
        self.six_steps("broken")

    def test_exception_in_a_step(self):
        given_up = "the training goes on without the debugger: "
        for case, counted, line in (
            ("fails", 2, given_up),
            ("whole_fails", 6, "step 2 was cut short: "),
        ):
            plain = alone(APART, case)
            self.assertEqual(plain.status, 0, plain.training)
            ran = under_debugger(NOT_FINITE, APART, case)
            self.assertEqual(ran.status, 0, ran.training)
            self.assertEqual(ran.results, plain.results, ran.debugger)
            self.holds(ran, "it counts %d steps" % counted)
            (said,) = lines_of_ours(ran)
            self.assertIn(line, said)

    def test_other_captures(self):
        line = 'msdbg_agent: @jit(capture_mode="%s"): its operators are not seen, and gradients that it makes begin no step'
        for how in ("trace", "bytecode"):
            self.six_steps(how + "_part", said=[line % how])
        plain = alone(APART, "trace")
        ran = under_debugger(NOT_FINITE, APART, "trace")
        self.assertEqual(ran.results, plain.results, ran.training)
        self.assertEqual(lines_of_ours(ran), [line % "trace"])


def lines_of_ours(outcome):
    return [line for line in outcome.training.splitlines() if "msdbg_agent:" in line]
