"""Ratios of a step with the agent to one without: tools/bench python. With the framework of this
Python."""

import importlib.util

from live import under_debugger

CASES = (
    ("attached, nothing watched", "s:continue()"),
    (
        "weights and gradients watched",
        's:watch { name = "w", on = "@weight or **/Gradient-op0", when = "TO" } s:continue()',
    ),
    ("watch ** TO", 's:watch { name = "w", on = "**", when = "TO" } s:continue()'),
)


def programs():
    """(program, arguments) for each framework that is installed."""
    if importlib.util.find_spec("torch"):
        yield "torch_bench.py", ()
    if importlib.util.find_spec("mindspore"):
        yield "mindspore_bench.py", ("graph",)
        yield "mindspore_bench.py", ("pynative",)


if __name__ == "__main__":
    for name, arguments in programs():
        for label, script in CASES:
            ran = under_debugger(script, name, label, *arguments)
            lines = [line for line in ran.training.splitlines() if line.startswith("RATIO")]
            print("\n".join(lines) or "failed:\n%s\n%s" % (ran.training, ran.debugger), flush=True)
