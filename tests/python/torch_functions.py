"""PyTorch trainings that compute by other means than plain operators, under msdbg listen;
torch_live.py runs them."""

import os
import re
import unittest
from importlib.metadata import version

from live import NOT_FINITE, RECOMMENDED, LiveTest, line_of, main, several, under_debugger

PROGRAM = "torch_functions.py"
IS_OLD = version("torch").startswith("2.4.")


class Functions(LiveTest):
    def finds(self, case, operator, *patterns):
        """The case as it is, and broken, where the operator is the first bad one."""
        self.unchanged(PROGRAM, case)
        found = under_debugger(NOT_FINITE, PROGRAM, case, "broken")
        first = "first bad +Default/.*/%s-op0:output:0" % operator
        self.holds(found, first, re.escape(line_of(PROGRAM, case)), *patterns)

    def test_custom_functions(self):
        zeros = "inputs +input:0 .*zeros? at the same place"
        for case, operator in (("by_numpy", "Log"), ("by_kernel", "Kernel")):
            with self.subTest(case):
                self.finds(case, operator, "-Inf, none NaN", zeros)

    @unittest.skipIf(IS_OLD, "not for trainings there")
    def test_functions_of_higher_order_operators(self):
        for case, operator in (("branches", "cond"), ("loops", "log")):
            with self.subTest(case):
                self.finds(case, operator)

    @unittest.skipIf(IS_OLD, "not for trainings there")
    def test_nested_tensors(self):
        self.finds("nested", "log")

    def test_products(self):
        self.finds("products", "log")

    def test_sparse_gradients(self):
        self.unchanged(PROGRAM, "sparse")
        found = under_debugger(NOT_FINITE, PROGRAM, "sparse", "broken")
        self.holds(
            found, "first bad +parameter data_.* +float32.8,3.", "it came into the step like this"
        )

    def test_lengths_of_sequences(self):
        self.finds("lengths", "log")

    @unittest.skipUnless(os.environ.get("DEVICE"), "not on the processor")
    def test_attention_of_sequences_of_different_lengths(self):
        self.unchanged(PROGRAM, "attention")

    def test_overflows_that_the_scaler_answers(self):
        ended = self.unchanged(PROGRAM, "scaled", script=RECOMMENDED)
        self.assertNotIn("HIT", ended.debugger)
        found = under_debugger(RECOMMENDED, PROGRAM, "scaled", "broken")
        self.holds(
            found, "reason hit\\s+step 21 ", r"loss_scale:output:0 +TS +max_lt 1 \(actual 0\.5\)"
        )

    def test_loss_is_told_without_its_scale(self):
        script = """
s:watch { name = "w", on = "@loss", when = "TL max_gt=1e30" }
s:step(1)
print(("loss %.6g"):format(s:tensor("Loss-op0").stats.mean), ("scale %g"):format(s:tensor("loss_scale").stats.mean))
s:terminate()
"""
        found = under_debugger(script, PROGRAM, "scaled")
        told = float(re.search(r"loss ([\d.]+)", found.debugger).group(1))
        self.assertLess(told, 10, found.debugger)
        self.holds(found, r"scale 1\.?0?4")


if __name__ == "__main__":
    main(several(), "torch", "torch._dynamo")
