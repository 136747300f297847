"""Ratios of a PyTorch step with the agent to one without: tools/bench python."""

from live import under_debugger

CASES = (
    ("attached, nothing watched", "s:continue()"),
    (
        "weights and gradients watched",
        's:watch { name = "w", on = "@weight or **/Gradient-op0", when = "TO" } s:continue()',
    ),
    ("watch ** TO", 's:watch { name = "w", on = "**", when = "TO" } s:continue()'),
)

if __name__ == "__main__":
    for label, script in CASES:
        ran = under_debugger(script, "torch_bench.py", label)
        lines = [line for line in ran.training.splitlines() if line.startswith("RATIO")]
        print("\n".join(lines) or "failed:\n%s\n%s" % (ran.training, ran.debugger), flush=True)
