"""MindSpore trainings in PyNative mode whose operators the dispatch mode shows only in part;
mindspore_live.py runs them."""

import re

from live import FIND, NOT_FINITE, LiveTest, line_of, under_debugger

PARTS = "mindspore_parts.py"


class Parts(LiveTest):
    def found(self, case, *patterns):
        ran = under_debugger(NOT_FINITE, PARTS, case)
        self.holds(ran, *patterns)
        # One fault is one story.
        self.assertNotRegex(ran.debugger, r"\n  also ", ran.debugger)

    def test_unchanged(self):
        self.unchanged(PARTS, "plain")

    def test_operators_and_what_they_read(self):
        script = """
            s:watch { name = "w", on = "**", when = "TO" } s:step(2)
            for _, op in ipairs { "Getitem", "Concat", "Exp", "Softmax", "Split", "LayerNorm", "MatMul*" } do
              for node in s:nodes("Default/network-Net/**/" .. op .. "-op*"):each() do
                print(op .. " reads " .. #node.inputs .. " has " .. tostring(node:output(0) ~= nil))
              end
            end
            s:terminate()
        """
        ran = under_debugger(script, PARTS, "plain")
        told = re.findall(r"(\S+) reads (\d) has (\w+)", ran.debugger)
        kinds = {kind for kind, _, _ in told}
        self.assertLessEqual({"Getitem", "Concat", "Exp", "Softmax", "Split"}, kinds, ran.debugger)
        self.assertTrue(all(int(count) > 0 and has == "true" for _, count, has in told), told)

    def test_data_that_an_operator_made(self):
        self.found("data", r"step 3 +rank 0", r"first bad +parameter data\.x")

    def test_logarithm_of_zero(self):
        self.found("log0", r"Log-op0", re.escape(line_of(PARTS, "parts_log0")))

    def test_logarithm_of_zero_in_one_of_three_passes(self):
        self.found(
            "summed_log0", "step 2 +rank 0", r"Log-op0", re.escape(line_of(PARTS, "parts_log0"))
        )

    def test_gradient_that_the_program_changes_once(self):
        self.found("gradient", r"step 3 +rank 0", re.escape(line_of(PARTS, "parts_gradient")))

    def test_weight_that_is_broken_between_steps(self):
        for case in ("weight", "twins"):
            with self.subTest(case):
                self.found(
                    case,
                    "step 3  HIT  1 hit, before its first operator",
                    r"first bad +parameter norm\.gamma",
                    "step 2 left it good",
                )
                # Nobody watches the weight.
                loss = FIND % ("@loss", '"TO"')
                self.holds(
                    under_debugger(loss, PARTS, case, MSDBG_AGENT_TRACE="operator"),
                    r"step 3 +rank 0",
                    r"first bad +Default/between_steps/norm\.gamma/SetData-op0",
                    r"input:0  parameter norm\.gamma   finite",
                )
