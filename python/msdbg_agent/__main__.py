"""python -m msdbg_agent [--port P] [--host A] [--trace T] [--step S] train.py ARGUMENTS..."""

import argparse
import os
import linecache
import runpy
import sys

from . import STEPS, TRACES


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m msdbg_agent",
        description="Runs a training so that msdbg listen can hold, step and watch it. Start msdbg listen first.",
    )
    parser.add_argument("--port", help="where msdbg listens (MS_DEBUGGER_PORT, 50051)")
    parser.add_argument("--host", help="its IPv4 address (MS_DEBUGGER_HOST, 127.0.0.1)")
    parser.add_argument(
        "--trace", choices=TRACES, help="how much is seen of a step (MSDBG_AGENT_TRACE, auto)"
    )
    parser.add_argument(
        "--step", choices=STEPS, help="where a step ends (MSDBG_AGENT_STEP, optimizer)"
    )
    parser.add_argument(
        "-m", dest="module", action="store_true", help="the program is a module's name"
    )
    parser.add_argument("program", help="the training")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")
    given = parser.parse_args(arguments)
    for variable, value in (
        ("MS_DEBUGGER_PORT", given.port),
        ("MS_DEBUGGER_HOST", given.host),
        ("MSDBG_AGENT_TRACE", given.trace),
        ("MSDBG_AGENT_STEP", given.step),
    ):
        if value:
            os.environ[variable] = value
    os.environ["ENABLE_MS_DEBUGGER"] = "1"
    from . import _bootstrap

    _bootstrap.install()
    _show_frozen()
    sys.argv = [given.program] + given.arguments
    # As `python train.py` does it; __main__ is the training, so that spawned
    # workers import the right file.
    if given.module:
        sys.path[0] = os.getcwd()
        runpy.run_module(given.program, run_name="__main__", alter_sys=True)
    else:
        if not os.path.exists(given.program):
            parser.error("%s does not exist" % given.program)
        sys.path[0] = os.path.dirname(os.path.abspath(given.program))
        runpy.run_path(given.program, run_name="__main__")


def _show_frozen():
    """Python 3.11 and later run us from a module without lines, and MindSpore's
    jit(capture_mode="trace") fails where a caller has none."""
    file = os.path.join(os.path.dirname(os.__file__), "runpy.py")
    if runpy.run_path.__code__.co_filename == "<frozen runpy>":
        lines = linecache.getlines(file)
        if lines:
            linecache.cache["<frozen runpy>"] = (len(lines), None, lines, "<frozen runpy>")


if __name__ == "__main__":
    main()
