#!/usr/bin/env python3
"""How much faster are five expressions than numpy, and than a loop in LuaJIT?

    python3 -m venv SCRATCH && SCRATCH/bin/pip install numpy
    SCRATCH/bin/python tests/bench/expr_peers.py build/release/tests/bench/bench_expr [luajit]

All three work on as many float32 in one thread, in turn, several rounds; the ratio is the median of the rounds' ratios.
"""
import os
import statistics
import subprocess
import sys
import time

import numpy as np

ELEMENTS = 64 << 20
ROUNDS = 7


class Peer:
    """A program that answers each line with the seconds it took."""

    def __init__(self, *command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.seconds()

    def seconds(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())


def with_numpy(x):
    start = time.perf_counter()
    answers = (
        np.any(np.abs(x) * 2 > 20),
        np.count_nonzero(x * x > 4) > 100,
        np.mean(np.abs(x - 0.5)) > 1,
        np.count_nonzero(np.abs(x - 1) < 0.01) * 100 / x.size > 5,
        np.max(x * 3 - 1) > 100,
    )
    assert len(answers) == 5
    return time.perf_counter() - start


def report(name, target, ours, theirs):
    ratio = statistics.median(b / a for a, b in zip(ours, theirs))
    print(f"RATIO expr_{name} {ratio:.1f} target >= {target} "
          f"({statistics.median(ours) * 1e3:.0f} ms against {statistics.median(theirs) * 1e3:.0f} ms)")


def main():
    bench, luajit = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "luajit"
    ours = Peer(bench, "--serve")
    lua = Peer(luajit, os.path.join(os.path.dirname(os.path.abspath(__file__)), "expr_peer.lua"))
    pattern = np.random.default_rng(1).standard_normal(1 << 20, dtype=np.float32)
    x = np.tile(pattern, ELEMENTS // pattern.size)
    with_numpy(x)
    rounds = [(ours.seconds(), with_numpy(x), lua.seconds()) for _ in range(ROUNDS)]
    mine, numpy_times, lua_times = zip(*rounds)
    report("five_expressions_faster_than_numpy", 20, mine, numpy_times)
    report("five_expressions_faster_than_a_luajit_loop", 10, mine, lua_times)


if __name__ == "__main__":
    main()
