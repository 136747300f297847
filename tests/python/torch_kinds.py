"""PyTorch trainings with branches, with tensors of other kinds, and that call parts of a network
before they train it, under msdbg listen; torch_live.py runs them."""

import re

from live import FIND, NOT_FINITE, RECOMMENDED, LiveTest, alone, line_of, under_debugger

PROGRAM = "torch_kinds.py"


class Kinds(LiveTest):
    def finds(self, case, node, *patterns, script=NOT_FINITE):
        """The case as it is, and broken, where this value is the first bad one."""
        self.unchanged(PROGRAM, case)
        found = under_debugger(script, PROGRAM, case, "broken")
        self.holds(found, "first bad +%s" % node, *patterns)
        return found

    def test_an_operator_of_several_lines(self):
        for case, operator in (("two_places", "log"), ("two_losses", "pow")):
            with self.subTest(case):
                line = r"source +\S*" + re.escape(line_of(PROGRAM, case)) + " "
                self.finds(case, r"Default/_loss_fn-Loss/%s-op0:output:0" % operator, line)

    def test_a_forked_child_that_trains(self):
        ended = self.unchanged(PROGRAM, "two_places", "forked", script=RECOMMENDED)
        self.holds(ended, "it counts 6 steps")
        found = under_debugger(NOT_FINITE, PROGRAM, "two_places", "broken", "forked")
        self.holds(found, "step 4 ", "first bad +Default/_loss_fn-Loss/log-op0:output:0")

    def test_updates_in_threads_of_rpc(self):
        line = r"source +\S*" + re.escape(line_of(PROGRAM, "rpc")) + " "
        found = self.finds("rpc", "Default/_loss_fn-Loss/log-op0:output:0", line)
        self.holds(found, "step 3 ")

    def test_tensors_of_other_classes(self):
        for case in ("subclass", "strided", "jagged"):
            with self.subTest(case):
                line = r"source +\S*" + re.escape(line_of(PROGRAM, case)) + " "
                self.finds(case, "Default/_loss_fn-Loss/log-op0:output:0", line)
        self.unchanged(PROGRAM, "forward_mode")

    def test_complex_numbers(self):
        """They are pairs of real ones, and an optimizer changes them through a view."""
        line = r"source +\S*" + re.escape(line_of(PROGRAM, "complexes")) + " "
        found = self.finds(
            "complexes", r"Default/_loss_fn-Loss/log-op0:output:0 +float32.8,2,2.", line
        )
        self.holds(found, "-> parameter mixed")
        self.assertNotIn("when the step began", found.debugger)
        # Where the elements are in a device.
        found = under_debugger(NOT_FINITE, "torch_far.py", "complexes")
        self.assertEqual(found.results, alone(PROGRAM, "complexes").results)
        found = under_debugger(NOT_FINITE, "torch_far.py", "complexes", "broken")
        self.holds(found, "first bad +Default/_loss_fn-Loss/log-op0:output:0 +float32.8,2,2.", line)
        script = FIND % ("@weight", '"TO"')
        found = under_debugger(script, PROGRAM, "complexes", "broken", "gradient")
        self.holds(found, "hit at mixed", "step 3  HIT")
        script = FIND % ("op:Gradient", '"TO"')
        found = under_debugger(script, PROGRAM, "complexes", "broken", "gradient")
        self.holds(found, r"mixed/Gradient-op0:output:0 .*of 32", "step 3  HIT")
        script = """
        s:step(2)
        for _, name in ipairs { "mixed", "moments.exp_avg.mixed" } do
          local t = s:tensor(name) print("told", name, t.dtype, table.concat(t.shape, "x"))
        end
        s:detach()
        """
        found = under_debugger(script, PROGRAM, "complexes")
        self.holds(found, *(n + r"\s+float32\s+4x4x2" for n in ("mixed", "exp_avg.mixed")))

    def test_gradients_that_the_program_assigns(self):
        line = r"source +\S*" + re.escape(line_of(PROGRAM, "assigned")) + " "
        found = self.finds(
            "assigned", "Gradients/Default/_loss_fn-Loss/Grad_sqrt/div-op0:output:0", line
        )
        self.holds(found, r"(add-op\d|\.\.\.) -> \S*Gradient-op0 .*-> parameter weight")
        script = """
        s:watch { name = "all", on = "**", when = "TO" }
        for step = 1, 4 do
          s:step(1)
          print("inputs", s:node("Gradients/Default/network-Linear/Grad_weight/Gradient-op0").inputs[1].name)
        end
        s:detach()
        """
        found = under_debugger(script, PROGRAM, "assigned")
        self.assertEqual(len(re.findall(r"inputs\s+\S*add-op0", found.debugger)), 4, found.debugger)

    def test_an_update_that_is_left_out(self):
        """It is a step; of the gradients that an optimizer takes back, its own are looked at."""
        script = FIND % ("op:Gradient", '"TO"')
        self.unchanged(PROGRAM, "left_out", script=script)
        found = under_debugger(script, PROGRAM, "left_out", "broken")
        self.holds(found, "step 3  HIT", r"Gradient-op0:output:0 +TO  .*NaN")
        found = under_debugger(NOT_FINITE, PROGRAM, "left_out", "broken", "early")
        self.holds(found, "step 3 ", "first bad +Default/_loss_fn-Loss/div-op0")
        found = under_debugger("s:continue()", PROGRAM, "left_out", "broken", "early")
        self.holds(found, "counts 6 steps")
        self.unchanged(PROGRAM, "crossed", script=script)

    def test_calls_while_a_network_is_made(self):
        """They are no step."""
        script = """
        for node in s:nodes("**"):each() do print("known", node.name) end
        s:watch { name = "all", on = "**", when = "TO" }
        s:step(1)
        for node in s:nodes("**"):each() do print("first", node.name) end
        print("reason " .. s:continue().reason)
        """
        layer = "0-ParametrizedLinear/parametrizations-ModuleDict/weight-ParametrizationList"
        for case, names in (
            ("sized", ("front.0.weight", "Default/network-Sized/front-Sequential/2-Flatten/")),
            ("parametrized", ("2.parametrizations", "Default/network-Sequential/" + layer)),
        ):
            with self.subTest(case):
                ended = self.unchanged(PROGRAM, case, script=script)
                self.holds(ended, "it counts 6 steps")
                for when, name in zip(("known", "first"), names):
                    self.holds(ended, r"%s\s+%s" % (when, re.escape(name)))
                self.assertNotRegex(ended.debugger, "network-(ParametrizationList|Sized_1)")
                if case == "sized":
                    self.assertNotIn("network-Sequential", ended.debugger)

    def test_a_fault_with_one_operator(self):
        plain = alone(PROGRAM, "faulty")
        for case in ((), ("often",)):
            with self.subTest(case=case):
                ended = under_debugger(NOT_FINITE, PROGRAM, "faulty", *case)
                self.assertEqual(ended.results, plain.results)
                self.holds(ended, "reason ended", "it counts 6 steps")
                said = ended.training.count("msdbg_agent:")
                self.assertEqual(said, 8 if case else 1, ended.training)
        found = under_debugger(NOT_FINITE, PROGRAM, "faulty", "broken")
        self.holds(found, "first bad +Default/_loss_fn-Loss/log-op0:output:0")
        self.assertIn("the operator sin is not shown: ValueError: a fault", found.training)

    def test_lines_that_alternate(self):
        """Nothing is told anew where no operator is wanted."""
        found = under_debugger(
            's:watch { name = "w", on = "@weight", when = "TO" } s:step(8) '
            'print("reason " .. s:continue().reason)',
            PROGRAM,
            "two_losses",
        )
        self.holds(found, "reason ended")
        self.assertLessEqual(found.debugger.count("graph kernel_graph_1: "), 4, found.debugger)
