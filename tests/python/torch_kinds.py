"""PyTorch trainings with branches, with tensors of other kinds, and that call parts of a network
before they train it, under msdbg listen; torch_live.py runs them."""

import re

from live import NOT_FINITE, LiveTest, line_of, under_debugger

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
