"""Runs a training under `msdbg listen --script` for the end-to-end tests.

MSDBG_PROGRAM is the program, MSDBG_AGENT_LIBRARY the agent's library; the trainings run in the
Python of the tests.
"""

import atexit
import concurrent.futures
import functools
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from preloaded import Starter

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.join(os.path.dirname(os.path.dirname(HERE)), "python")
PROGRAMS = os.path.join(HERE, "programs")
LONGEST = 240

# Steps until something is found, tells the origin, and ends the training.
FIND = """
local w = s:watch { name = "found", on = "%s", when = %s }
local r
for _ = 1, 30 do
  r = s:step(1)
  if r.reason ~= "done" and r.reason ~= "cut short" then break end
end
print("reason " .. r.reason)
print(r)
if r.held and r.reason == "hit" then
  for _, hit in ipairs(r.hits) do print("hit at " .. hit.node) end
  print(msdbg.origin(s))
end
if r.held then s:terminate() end
"""
NOT_FINITE = FIND % ("**", '"TO"')
# The default rules, after each step.
RULES = """
s:watch { name = "all", on = "**", when = "TO" }
for _ = 1, 9 do
  if not s:step(1).held then break end
  print("step " .. s.current_step .. " held", s:check { rules = "default" })
end
"""
RECOMMENDED = """
for _, watch in ipairs(s:watch_recommended()) do print("recommended " .. watch.name) end
local r = s:continue()
print("reason " .. r.reason, r)
if r.held then s:terminate() end
"""


class Outcome:
    """What both sides printed."""

    def __init__(self, training, status, debugger):
        self.training, self.status, self.debugger = training, status, debugger
        self.results = [
            line for line in training.splitlines() if line.startswith(("losses", "digest"))
        ]


def program():
    return os.environ.get("MSDBG_PROGRAM", "msdbg")


def line_of(name, mark):
    """The line of a program in `programs` that is marked `# LINE mark`, as file:line."""
    with open(os.path.join(PROGRAMS, name), encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if line.rstrip().endswith("# LINE " + mark):
                return "%s:%d" % (name, number)
    raise KeyError(mark)


_starter = None  # of the trainings; None: each is a Python of its own


def _started(arguments, environment, starter=None):
    if starter is not None:
        return starter.start(arguments, environment, _work())
    return subprocess.Popen(
        [sys.executable] + arguments,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        universal_newlines=True,
        cwd=_work(),
    )


_running = {}


def alone(name, *arguments):
    """A training without the agent. One run serves all tests: it is the same each time."""
    key = (name, arguments, os.environ.get("PYTHONPATH"))
    with _running.setdefault(key, threading.Lock()):
        return _alone(*key)


@functools.lru_cache(maxsize=None)
def _alone(name, arguments, _path):
    command = [os.path.join(PROGRAMS, name)] + list(arguments)
    training = _started(command, os.environ, _starter)
    text, _ = training.communicate(timeout=LONGEST)
    return Outcome(text, training.returncode, "")


def _work():
    # Frameworks leave files where they run.
    folder = tempfile.mkdtemp(prefix="msdbg-agent-test-")
    atexit.register(shutil.rmtree, folder, True)
    return folder


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


class Debugger:
    """`msdbg listen --script` with this text, until the training has connected and ended."""

    def __init__(self, script, *options):
        self.port = free_port()
        self._script = tempfile.NamedTemporaryFile("w", suffix=".lua", delete=False)
        self._script.write(script)
        self._script.close()
        self._output = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            [program(), "listen", "--port", str(self.port), "--script", self._script.name]
            + list(options),
            stdout=self._output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
        )
        end = time.monotonic() + LONGEST
        while "listening on" not in self.text():
            if self.process.poll() is not None or time.monotonic() > end:
                raise unittest.SkipTest("msdbg listen does not start: %s" % self.text())
            time.sleep(0.02)

    def text(self):
        self._output.flush()
        with open(
            "/proc/self/fd/%d" % self._output.fileno(), encoding="utf-8", errors="replace"
        ) as file:
            return file.read()

    def wait_for(self, pattern):
        """Until it has printed something."""
        end = time.monotonic() + LONGEST
        while not re.search(pattern, self.text()):
            if time.monotonic() > end:
                raise AssertionError("'%s' was not printed:\n%s" % (pattern, self.text()))
            time.sleep(0.02)

    def start(self, name, *arguments, starter=None, **variables):
        """The training, as a process."""
        environment = dict(
            os.environ,
            PYTHONPATH=PACKAGE,
            ENABLE_MS_DEBUGGER="1",
            MS_DEBUGGER_PORT=str(self.port),
            PYTHONUNBUFFERED="1",
            **variables,
        )
        command = ["-m", "msdbg_agent", os.path.join(PROGRAMS, name)] + list(arguments)
        return _started(command, environment, starter)

    def end(self, training):
        """Waits for both."""
        text, _ = training.communicate(timeout=LONGEST)
        if self.process.poll() is None and "connected" not in self.text():
            self.process.terminate()
        self.process.wait(timeout=LONGEST)
        said = self.text()
        self.close()
        return Outcome(text, training.returncode, said)

    def close(self):
        """Ends it, whatever it does."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self._output.close()
        if os.path.exists(self._script.name):
            os.unlink(self._script.name)


def under_debugger(script, name, *arguments, **variables):
    debugger = Debugger(script)
    return debugger.end(debugger.start(name, *arguments, starter=_starter, **variables))


def losses_of_ranks(kind, ranks="01", *options, debugger=None):
    """What each rank of torch_ddp.py prints, in order of the ranks."""
    # Another program could take a free port before the ranks do.
    folder = tempfile.TemporaryDirectory()
    place = {"STORE": os.path.join(folder.name, "store")}
    running = []
    for rank in ranks:
        if debugger is not None:
            running.append(
                debugger.start("torch_ddp.py", kind, *options, starter=_starter, RANK=rank, **place)
            )
        else:
            command = [os.path.join(PROGRAMS, "torch_ddp.py"), kind] + list(options)
            running.append(_started(command, dict(os.environ, RANK=rank, **place), _starter))
    texts = [rank.communicate(timeout=200)[0] for rank in running]
    folder.cleanup()
    return sorted(line for text in texts for line in text.splitlines() if "losses of" in line)


class LiveTest(unittest.TestCase):
    """Assertions that show both sides when they fail."""

    def holds(self, outcome, *patterns):
        for pattern in patterns:
            self.assertRegex(outcome.debugger, pattern, "\n-- training --\n%s" % outcome.training)

    def unchanged(self, name, *arguments, script=NOT_FINITE, **variables):
        """Equal losses and parameters, bit for bit, and no hit."""
        plain = alone(name, *arguments)
        self.assertEqual(plain.status, 0, plain.training)
        watched = under_debugger(script, name, *arguments, **variables)
        self.assertEqual(watched.status, 0, watched.training)
        self.assertEqual(watched.results, plain.results, watched.debugger)
        self.holds(watched, "reason ended")
        self.assertNotIn("msdbg_agent:", watched.training)
        return watched


def several():
    """How many trainings run side by side. Many of them wait; the CI server has two processors."""
    return max(2, (os.cpu_count() or 2) * 3 // 4)


def main(jobs, *modules):
    """Runs the tests of the program, or those that its command line names, `jobs` at a time. Most
    of their trainings are forks of a process that has imported `modules`, if there are any."""
    global _starter
    # What a shell starts in the background ignores it, and so would the trainings.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    loader = unittest.defaultTestLoader
    module = sys.modules["__main__"]
    names = sys.argv[1:]
    wanted = (
        loader.loadTestsFromNames(names, module) if names else loader.loadTestsFromModule(module)
    )
    begun = time.monotonic()
    _starter = Starter(*modules) if modules else None
    failed = []
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        running = [pool.submit(_ran, test) for test in _tests(wanted)]
        for done in concurrent.futures.as_completed(running):
            test, result, seconds = done.result()
            problems = result.failures + result.errors
            failed += problems
            said = "FAILED" if problems else "ok"
            if result.skipped and not problems:
                said = "skipped: " + result.skipped[0][1]
            print("%s ... %s (%.1f s)" % (test.id(), said, seconds), flush=True)
    if _starter is not None:
        _starter.close()
    for test, text in failed:
        print("\nFAILED: %s\n%s" % (test.id(), text))
    print(
        "\nRan %d tests in %.0f s: %s"
        % (len(running), time.monotonic() - begun, "FAILED" if failed else "OK")
    )
    sys.exit(1 if failed else 0)


def _ran(test):
    result = unittest.TestResult()
    begun = time.monotonic()
    test(result)
    return test, result, time.monotonic() - begun


def _tests(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from _tests(test)
        else:
            yield test
