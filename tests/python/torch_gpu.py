"""PyTorch trainings in a GPU under msdbg listen. Needs PyTorch and a GPU: tools/test-python torch
runs these where there is one."""

import os
import re
import unittest

import torch

import torch_functions
import torch_live
from live import (
    FIND,
    NOT_FINITE,
    Debugger,
    LiveTest,
    alone,
    line_of,
    losses_of_ranks,
    main,
    several,
    under_debugger,
)

PROGRAM = "torch_train.py"
MORE = "torch_more.py"
GPU = "torch_gpu.py"
EVERY_ELEMENT = "s:watch { name = 'w', on = '**', when = 'max(x) > 1e30' } "


class Unchanged(LiveTest):
    """Losses and parameters are those without the agent, and a healthy training has no hit."""

    def test_nothing_watched(self):
        self.unchanged(PROGRAM, "gpt", script='print("reason " .. s:continue().reason)')

    def test_every_element_read(self):
        # A condition that no flag can tell.
        script = EVERY_ELEMENT + "print('reason ' .. s:continue().reason)"
        self.unchanged(PROGRAM, "gpt", script=script)

    def test_degrees(self):
        for degree in ("step", "operator", "module", "never"):
            with self.subTest(degree):
                self.unchanged(PROGRAM, "lenet", MSDBG_AGENT_TRACE=degree)

    def test_captured_steps(self):
        ended = under_debugger(NOT_FINITE, GPU, "graph")
        self.assertEqual(ended.results, alone(GPU, "graph").results, ended.training)
        self.holds(ended, "reason ended", "it counts 11 steps")
        self.assertIn("operators inside of a CUDA graph are not seen", ended.training)


def _training(program, case):
    return lambda test: test.unchanged(program, case)


for program, cases in (
    (PROGRAM, "lenet sgd fused channels_last gpt bfloat16 checkpoint compile"),
    (PROGRAM, "accumulate evaluate gan lbfgs functional fork"),
    (MORE, "eval_mode by_hand own_backward folds gan moved lent"),
    (GPU, "streams images callables"),
):
    for case in cases.split():
        name = "test_%s_%s" % (program[len("torch_") : -len(".py")], case)
        setattr(Unchanged, name, _training(program, case))


class Memory(LiveTest):
    def test_little_memory(self):
        ended = self.unchanged(GPU, "teacher", "tight")
        self.assertIn("peak", ended.training)

    def test_values_are_let_go_of(self):
        ended = self.unchanged(GPU, "teacher")
        used, there = re.search(r"peak ([\d.]+) GiB of ([\d.]+)", ended.training).groups()
        print("peak %s GiB of %s" % (used, there))
        self.assertLess(float(used), 0.3 * float(there))


class Found(LiveTest):
    def test_logarithm_of_zero(self):
        found = under_debugger(NOT_FINITE, PROGRAM, "log0")
        self.holds(
            found,
            "hit at Default/network-LeNet/log-op0",
            r"elements are -Inf(?s:.*)input:0 +_softmax-op0:output:0 +finite.* zeros",
            re.escape(line_of(PROGRAM, "log0")),
        )
        self.assertNotIn("when the step began", found.debugger)

    def test_overflow_with_a_scaler(self):
        found = under_debugger(NOT_FINITE, GPU, "images", "broken")
        self.holds(
            found, "first bad +Default/network-Images/mul-op0", re.escape(line_of(GPU, "images"))
        )

    def test_mask(self):
        found = under_debugger(NOT_FINITE, PROGRAM, "masked")
        self.holds(
            found,
            "hit at Default/network-GPT/blocks-ModuleList/1-Block/_softmax-op0",
            re.escape(line_of(PROGRAM, "masked")),
        )

    def test_broken_weights(self):
        found = under_debugger(FIND % ("@weight", '"TO"'), PROGRAM, "log0")
        self.holds(
            found, "hit at conv1.weight", r"first bad +Default/_loss_fn-Loss/div-op0:output:0"
        )
        found = under_debugger(FIND % ("@weight", '"TO"'), GPU, "graph", "broken")
        self.holds(found, "reason hit", "hit at 0.weight")

    def test_a_backward_pass_of_the_user(self):
        found = under_debugger(NOT_FINITE, MORE, "own_backward", "broken")
        self.holds(
            found,
            r"first bad +Gradients/Default/_loss_fn-Loss/Grad_round/div-op0",
            re.escape(line_of(MORE, "own_backward")),
        )

    def test_another_stream(self):
        found = under_debugger(NOT_FINITE, GPU, "streams", "broken")
        self.holds(found, "first bad +Default/.*log-op0", re.escape(line_of(GPU, "streams")))

    def test_weights_of_each_step(self):
        script = """
s:watch { name = "w", on = "**", when = "TO" }
for _ = 1, 4 do
  s:step(1)
  print(("mean %.9g"):format(s:tensor("fc2.weight").stats.mean))
end
local fc1 = s:tensor "fc1.weight"
print("shape", table.concat(fc1.shape, "x"), fc1.stats.nan_count)
for _, user in ipairs(s:nodes("fc2.weight")[1].users) do print("read by " .. user.node.name) end
s:terminate()
"""
        found = under_debugger(script, PROGRAM, "lenet")
        means = re.findall("mean .*", found.debugger)
        self.assertEqual(len(set(means)), 4, found.debugger)
        self.holds(
            found,
            r"shape\s+120x256\s+0",
            "read by Default/network-LeNet/fc2-Linear/",
            "read by Default/optimizer-AdamW/",
        )


def borrow(case, *names):
    """Tests that are the same on the processor."""
    for name in names:
        setattr(Found, name, getattr(case, name))


borrow(
    torch_live.Found,
    "test_bad_image",
    "test_exploding",
    "test_overflow_in_float16",
    "test_step_that_the_scaler_skipped",
)
borrow(
    torch_live.Held,
    "test_recommended_watchpoints_let_healthy_trainings_run",
    "test_stop_behind_an_operator",
)


class Functions(torch_functions.Functions):
    """The same in a GPU."""


class Ranks(LiveTest):
    def test_two_ranks_of_one_training(self):
        self._unchanged("replicas", "01")

    def test_one_rank_with_nccl(self):
        for kind in ("replicas", "fully_shard", "fsdp", "tensor_parallel"):
            with self.subTest(kind):
                self._unchanged(kind, "0", "nccl")

    def _unchanged(self, kind, ranks, *options):
        debugger = Debugger(NOT_FINITE, "--ranks", str(len(ranks)))
        plain = losses_of_ranks(kind, ranks, *options)
        watched = losses_of_ranks(kind, ranks, *options, debugger=debugger)
        self.assertEqual(plain, watched, debugger.text())
        self.assertEqual(len(plain), len(ranks))
        debugger.process.wait(timeout=200)
        self.assertIn("reason ended", debugger.text())
        debugger.close()


def load_tests(loader, tests, pattern):
    if not torch.cuda.is_available():
        print("no GPU: nothing was tested")
        return unittest.TestSuite()
    return tests


if __name__ == "__main__":
    os.environ["DEVICE"] = "cuda"
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
    main(several())
