"""Trainings as forks of one process that has imported the framework: to import PyTorch and its
optimizers takes longer than most of the trainings.

preloaded.py SOCKET MODULE...: each connection asks for one training, and gets the number of its
process and then its exit status, a line each. See Starter.
"""

import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
import types


class Starter:
    """The other side: starts that process, and trainings in it."""

    def __init__(self, *modules):
        self._folder = tempfile.TemporaryDirectory()
        self._path = os.path.join(self._folder.name, "socket")
        self._process = subprocess.Popen(
            [sys.executable, "-u", os.path.abspath(__file__), self._path] + list(modules),
            stdin=subprocess.PIPE,  # closed with this process: that ends it
            stdout=subprocess.PIPE,
        )
        if self._process.stdout.readline() != b"ready\n":
            raise RuntimeError("%s cannot be imported" % ", ".join(modules))

    def start(self, arguments, environment, folder):
        """Like `python ARGUMENTS`, of which the first is a program or `-m`. Returns a Training."""
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(self._path)
        read, write = os.pipe()
        request = {"arguments": arguments, "environment": dict(environment), "folder": folder}
        with os.fdopen(write):
            socket.send_fds(connection, [b"\n"], [write])
        connection.sendall(json.dumps(request).encode() + b"\n")
        return Training(connection, read)

    def close(self):
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()
        self._folder.cleanup()


class Training:
    """What the tests use of subprocess.Popen."""

    def __init__(self, connection, output):
        self._answers, self._output = connection.makefile("rb"), output
        connection.close()
        self.pid, self.returncode = int(self._answers.readline()), None

    def communicate(self, timeout):
        """Waits until it has ended and its output is closed."""
        text, end = b"", time.monotonic() + timeout
        while select.select([self._output], [], [], max(0, end - time.monotonic()))[0]:
            more = os.read(self._output, 1 << 16)
            if not more:
                self.returncode = int(self._answers.readline())
                self._answers.close()
                os.close(self._output)
                return text.decode(errors="replace"), None
            text += more
        os.kill(self.pid, signal.SIGKILL)
        raise subprocess.TimeoutExpired("process %d" % self.pid, timeout, text)


def _asked(path):
    """Waits for connections. Returns the request in the process that is to be the training."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that wait
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen()
    print("ready")
    while True:
        ready, _, _ = select.select([server, sys.stdin], [], [])
        if sys.stdin in ready:
            sys.exit()
        connection, _ = server.accept()
        if os.fork():
            connection.close()
            continue
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        server.close()
        _, (output,), _, _ = socket.recv_fds(connection, 1, 1)
        with connection.makefile("rb") as lines:
            request = json.loads(lines.readline())
        training = os.fork()
        if not training:
            connection.close()
            os.dup2(output, 1)
            os.dup2(output, 2)
            os.close(output)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            return request
        os.close(output)
        os.dup2(2, 1)
        connection.sendall(b"%d\n" % training)
        status = os.waitpid(training, 0)[1]
        connection.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
        os._exit(0)


def _run(arguments, environment, folder):
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.path[1:1] = [each for each in environment.get("PYTHONPATH", "").split(":") if each]
    sys.argv = arguments
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        # Not runpy.run_path(): MindSpore's jit(capture_mode="trace") fails below a frame without
        # lines.
        sys.path[0] = os.path.dirname(arguments[0])
        program = sys.modules["__main__"] = types.ModuleType("__main__")
        program.__file__ = arguments[0]
        with open(arguments[0], "rb") as file:
            exec(compile(file.read(), arguments[0], "exec"), program.__dict__)


if __name__ == "__main__":
    for name in sys.argv[2:]:
        importlib.import_module(name)
    _run(**_asked(sys.argv[1]))
