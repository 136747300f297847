"""PyTorch trainings with branches, with tensors of other kinds, and that call parts of a network
before they train it, under msdbg listen; torch_live.py runs them."""

import re

from live import NOT_FINITE, RECOMMENDED, LiveTest, alone, line_of, under_debugger

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

    def test_tensors_without_memory_of_their_own(self):
        for case in ("strided", "jagged"):
            with self.subTest(case):
                line = r"source +\S*" + re.escape(line_of(PROGRAM, case)) + " "
                self.finds(case, "Default/_loss_fn-Loss/log-op0:output:0", line)
        self.unchanged(PROGRAM, "forward_mode")

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
