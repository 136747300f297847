"""Ctrl-C, fork, exit, and the ways in, without a framework."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from unittest import mock

from fake_library import FakeLibrary
from msdbg_agent import _c, _process

HERE = os.path.dirname(os.path.abspath(__file__))


def run(code, **variables):
    """A program in a Python of its own, which finds the package and the tests."""
    environment = dict(os.environ, **variables)
    return subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        cwd=HERE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        universal_newlines=True,
        timeout=120,
    )


class Rank(unittest.TestCase):
    """What launchers tell a process."""

    def test_of_each_launcher(self):
        for told, rank in (
            ({}, ""),
            ({"RANK_ID": "3", "RANK": "1"}, "3"),
            ({"RANK": "07", "LOCAL_RANK": "1"}, "7"),  # torchrun
            ({"OMPI_COMM_WORLD_RANK": "2"}, "2"),  # mpirun
            ({"SLURM_NTASKS": "4", "SLURM_PROCID": "2", "LOCAL_RANK": "0"}, "2"),  # srun
            ({"SLURM_NTASKS": "1", "SLURM_PROCID": "0"}, ""),
            ({"LOCAL_RANK": "1"}, "1"),  # Lightning
            ({"LOCAL_RANK": "1", "NODE_RANK": "2"}, ""),
            ({"RANK": "first"}, ""),
        ):
            with mock.patch.dict(os.environ, told, clear=True):
                with _process.rank_told():
                    self.assertEqual(os.environ.get("RANK_ID", ""), rank, told)
                self.assertEqual(dict(os.environ), told)

    def test_of_the_framework(self):
        """It is known after the launcher's, and more exact."""
        for told, rank in (({}, "5"), ({"RANK": "1"}, "5"), ({"RANK_ID": "3"}, "3")):
            ranks = []
            library = FakeLibrary(
                from_environment=lambda *_: ranks.append(os.environ.get("RANK_ID")) or 1
            )
            with mock.patch.dict(os.environ, told, clear=True):
                connection = _c.Connection(library, at_once=False)
                connection.set_option("program", "PyTorch")
                self.assertEqual(library.calls, [])
                with _process.rank_told("5"):
                    connection.renew()
            self.assertEqual(ranks, [rank])
            self.assertEqual(library.named("set_option"), [(b"program", b"PyTorch")])


class Ended(unittest.TestCase):
    """What a program ends with."""

    def test_of_each_kind(self):
        caught = "try: 1 / 0\nexcept ArithmeticError: sys.exit(%d)"
        for code, told in (
            ("pass", ""),
            ("raise ValueError('no loss\\nmore')", "ValueError: no loss"),
            ("sys.exit(3)", "sys.exit(3)"),
            ("sys.exit('bad')", "sys.exit('bad')"),
            ("exit(3)", "exit(3)"),
            ("quit('bad')", "quit('bad')"),
            ("exit()", ""),
            (caught.replace("sys.exit", "exit") % 1, "ZeroDivisionError: division by zero"),
            ("sys.exit()", ""),
            ("sys.exit(0)", ""),
            (caught % 1, "ZeroDivisionError: division by zero"),
            (caught % 0, ""),
            # A program that goes on ends with what comes last.
            ("try: sys.exit(1)\nexcept SystemExit: pass\nsys.exit(0)", ""),
            ("raise KeyboardInterrupt", ""),
        ):
            begin = (
                "import atexit, sys\nfrom msdbg_agent import _process\n_process._note_exits()\n"
                "atexit.register(lambda: print('ended by <%s>' % _process.ended_by()))\n"
            )
            self.assertEqual(run(begin + code).stdout, "ended by <%s>\n" % told, code)


class CtrlC(unittest.TestCase):
    def test_ends_a_hold(self):
        held, released = threading.Event(), threading.Event()

        def end_step(_):
            held.set()
            # As in the library: Python code runs on this thread only when the call
            # returns. The wait is one C call.
            released.wait(60)
            return _c.STOP

        library = FakeLibrary(end_step=end_step, finish=lambda _: released.set())
        connection = _c.Connection(library)
        guard = _process.Guard(connection, lambda: None)
        before = signal.signal(signal.SIGINT, lambda *_: None)

        def interrupt():
            held.wait(60)
            os.kill(os.getpid(), signal.SIGINT)

        try:
            threading.Thread(target=interrupt).start()
            self.assertEqual(connection.end_step(), _c.STOP)
            self.assertTrue(released.is_set())
        finally:
            signal.signal(signal.SIGINT, before)
            guard.finish()
            _process._guards.remove(guard)

    def test_between_calls_leaves_the_conversation_alone(self):
        library = FakeLibrary()
        guard = _process.Guard(_c.Connection(library), lambda: None)
        seen = threading.Event()
        before = signal.signal(signal.SIGINT, lambda *_: seen.set())
        try:
            os.kill(os.getpid(), signal.SIGINT)
            self.assertTrue(seen.wait(60))
            time.sleep(0.05)
            self.assertEqual(library.named("finish"), [])
        finally:
            signal.signal(signal.SIGINT, before)
            guard.finish()
            _process._guards.remove(guard)

    def test_the_former_descriptor_is_served(self):
        receiver, sender = os.pipe()
        os.set_blocking(sender, False)
        former = signal.set_wakeup_fd(sender)
        guard = _process.Guard(_c.Connection(FakeLibrary()), lambda: None)
        before = signal.signal(signal.SIGUSR1, lambda *_: None)
        try:
            os.kill(os.getpid(), signal.SIGUSR1)
            self.assertEqual(os.read(receiver, 8), bytes([signal.SIGUSR1]))
        finally:
            signal.signal(signal.SIGUSR1, before)
            guard.finish()
            _process._guards.remove(guard)
            self.assertEqual(signal.set_wakeup_fd(former), sender)
            os.close(receiver)
            os.close(sender)


class Fork(unittest.TestCase):
    def test_the_child_calls_nothing(self):
        ran = run("""
import os
from fake_library import FakeLibrary
from msdbg_agent import _c, _process
library = FakeLibrary()
connection = _c.Connection(library)
told = []
_process.Guard(connection, lambda: told.append("forgotten"))
child = os.fork()
if child == 0:
    connection.finish()
    assert told == ["forgotten"] and connection.handle is None and not connection.attached()
    os._exit(0 if library.named("finish") == [] else 1)
assert os.waitpid(child, 0)[1] == 0 and told == []
print("parent", connection.handle)
""")
        self.assertEqual((ran.returncode, ran.stdout.strip()), (0, "parent 1"), ran.stderr)

    def test_goodbye_at_exit(self):
        for how, status in (("", 0), ("os._exit(3)", 3), ("os.fork() or os._exit(4)", 0)):
            ran = run("""
import os
from fake_library import FakeLibrary
from msdbg_agent import _c, _process
library = FakeLibrary(finish=lambda _: print("goodbye", flush=True))
_process.Guard(_c.Connection(library), lambda: None)
%s
""" % how)
            told = (ran.returncode, ran.stdout.strip())
            self.assertEqual(told, (status, "goodbye"), (how, ran.stderr))

    def test_a_thread_that_the_debugger_ends(self):
        ran = run("""
import threading
from fake_library import FakeLibrary
from msdbg_agent import Terminated, _c, _process

def ends(kind):
    raise kind(0)

_process.Guard(_c.Connection(FakeLibrary()), lambda: None)
for kind in Terminated, ValueError:
    thread = threading.Thread(target=ends, args=(kind,))
    thread.start()
    thread.join()
""")
        self.assertEqual(ran.stderr.count("Traceback"), 1, ran.stderr)
        self.assertIn("ValueError: 0", ran.stderr)


class WaysIn(unittest.TestCase):
    def setUp(self):
        # A framework of its own, so that none is needed.
        self.place = tempfile.TemporaryDirectory()
        os.mkdir(os.path.join(self.place.name, "torch"))
        with open(
            os.path.join(self.place.name, "torch", "__init__.py"), "w", encoding="utf-8"
        ) as file:
            file.write("loaded = True\n")
        self.path = os.pathsep.join([self.place.name] + sys.path)

    def tearDown(self):
        self.place.cleanup()

    def test_the_switch_attaches_behind_the_import(self):
        ran = run(
            """
import msdbg_agent, msdbg_agent._bootstrap
msdbg_agent.attach = lambda: print("attached")
import torch
print(torch.loaded, type(torch.__spec__.loader).__name__)
""",
            PYTHONPATH=self.path,
            ENABLE_MS_DEBUGGER="1",
        )
        self.assertEqual(ran.stdout.split(), ["attached", "True", "SourceFileLoader"], ran.stderr)

    def test_a_library_that_is_missing_costs_one_line(self):
        program = os.path.join(self.place.name, "train.py")
        with open(program, "w", encoding="utf-8") as file:
            file.write("import sys, torch\nprint(__name__, sys.argv[1:])\n")
        ran = subprocess.run(
            [sys.executable, "-m", "msdbg_agent", "--port", "50999", program, "--port", "x"],
            env=dict(os.environ, PYTHONPATH=self.path, MSDBG_AGENT_LIBRARY="/nonexistent.so"),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            universal_newlines=True,
            timeout=120,
        )
        self.assertEqual(ran.stdout.strip(), "__main__ ['--port', 'x']")
        lines = ran.stderr.strip().splitlines()
        self.assertEqual(len(lines), 1, ran.stderr)
        self.assertIn("MSDBG_AGENT_LIBRARY", lines[0])
        self.assertEqual(ran.returncode, 0)

    def test_without_the_variable_nothing_is_loaded(self):
        package = os.path.dirname(os.path.abspath(_c.__file__))
        with open(
            os.path.join(os.path.dirname(package), "msdbg_agent.pth"), encoding="utf-8"
        ) as file:
            line = file.read()
        ran = run(
            "import sys\nexec(%r)\nprint('msdbg_agent' in sys.modules, len(sys.meta_path))" % line,
            ENABLE_MS_DEBUGGER="0",
        )
        self.assertEqual(ran.stdout.split()[0], "False")
        ran = run(
            "import sys\nexec(%r)\nprint('msdbg_agent._bootstrap' in sys.modules)" % line,
            ENABLE_MS_DEBUGGER="1",
        )
        self.assertEqual(ran.stdout.strip(), "True", ran.stderr)

    def test_a_wrong_variable_is_named(self):
        ran = run(
            "import msdbg_agent; print(msdbg_agent.Settings().trace)", MSDBG_AGENT_TRACE="all"
        )
        self.assertEqual(ran.stdout.strip(), "auto")
        self.assertIn("MSDBG_AGENT_TRACE is 'all'", ran.stderr)


if __name__ == "__main__":
    unittest.main()
