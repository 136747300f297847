"""What concerns the process: Ctrl-C while the training is held, fork, exit, the rank."""

import atexit
import builtins
import contextlib
import functools
import os
import signal
import socket
import sys
import threading

from . import _c
from ._recorder import Terminated

_guards = []  # at most one per agent; emptied in a forked child
_left = []  # there, those of its parent


class Guard:
    """Ends a hold on Ctrl-C, lets go of the agent in forked children, and says goodbye at exit.

    While the training waits inside the library no Python code runs on its thread, so Python's own
    handler of SIGINT would run only when the debugger lets go. The wake-up descriptor tells a
    helper thread at once, which calls finish(): the wait ends, and Python's handler runs.
    """

    def __init__(self, connection, on_fork):
        self._connection, self._on_fork = connection, on_fork
        self._pair, self._before = None, -1
        _register()
        self.begin()

    def begin(self):
        """Also once more: see guard_again()."""
        _guards.append(self)
        self._listen()

    def _listen(self):
        if threading.current_thread() is not threading.main_thread():
            return  # only the main thread may set the descriptor; it is not the one that waits, either
        receiver, sender = socket.socketpair()
        sender.setblocking(False)
        try:
            self._before = signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
        except (ValueError, OSError):
            receiver.close()
            sender.close()
            return
        self._pair = (receiver, sender)
        threading.Thread(
            target=self._run, args=(receiver,), name="msdbg-agent-signals", daemon=True
        ).start()

    def _run(self, receiver):
        while True:
            try:
                signals = receiver.recv(64)
            except OSError:
                signals = b""
            if not signals:
                receiver.close()
                return
            if self._before >= 0:
                try:
                    os.write(self._before, signals)
                except OSError:
                    pass  # whoever had the descriptor before has closed it
            if signal.SIGINT in signals and self._connection.in_call:
                self._connection.finish()

    def leave(self):
        """In a forked child: nothing of the parent's conversation may be used."""
        self._connection.abandon()
        self._on_fork()
        if self._pair:
            try:
                signal.set_wakeup_fd(-1)
            except ValueError:
                pass  # forked from another thread
            for end in self._pair:
                end.close()
            self._pair = None

    def finish(self):
        if self._pair:
            try:
                signal.set_wakeup_fd(self._before)
            except (ValueError, OSError):
                pass  # not the main thread, or the former descriptor is closed
            self._pair[1].close()
            self._pair = None
        self._connection.finish()


_exits = []  # how the program called sys.exit(), exit() or quit(), the last one


def _note_exit(call, status):
    fault = sys.exc_info()[1]
    if status is None or status == 0:
        _exits[:] = []
    elif fault is not None or not _exits:
        _exits[:] = [_c.line_of(fault) if fault is not None else "%s(%r)" % (call, status)]


def _note_exits():
    real = sys.exit

    @functools.wraps(real)
    def noting(status=None, /):
        _note_exit("sys.exit", status)
        return real(status)

    sys.exit = noting
    quitter = type(getattr(builtins, "exit", None))
    if quitter.__name__ != "Quitter":
        return  # Python runs without the module site, or another program has its own
    leave = quitter.__call__

    @functools.wraps(leave)
    def leaving(self, code=None):
        _note_exit(self.name, code)
        return leave(self, code)

    quitter.__call__ = leaving


def _note_hard_exit():
    """os._exit() calls no function of atexit: says goodbye before, with the number of steps."""
    real = os._exit

    @functools.wraps(real)
    def leaving(status):
        # A watchdog in another thread does not wait for a debugger.
        if threading.current_thread() is threading.main_thread():
            finish()
        real(status)

    os._exit = leaving


def _end_threads_silently():
    """The debugger may end a training that runs in a thread of the program."""
    real = threading.excepthook

    @functools.wraps(real)
    def silent(args, /):
        if not isinstance(args.exc_value, Terminated):
            real(args)

    threading.excepthook = silent


def ended_by():
    """Once the process ends: the exception or the status that it ends with, in one line; "" if it
    ends well, or with Ctrl-C."""
    fault = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    fault = fault or sys.exc_info()[1]  # of a child that multiprocessing has forked
    if isinstance(fault, KeyboardInterrupt):
        return ""
    if isinstance(fault, SystemExit) and not fault.code:
        return ""
    return _c.line_of(fault) if fault is not None else "".join(_exits)


def _in_child():
    for guard in _guards:
        guard.leave()
    _left[:] = _guards
    del _guards[:]


def guard_again():
    """In a forked child that has a conversation of its own."""
    for guard in _left:
        guard.begin()
    del _left[:]


def finish():
    for guard in _guards:
        guard.finish()


_registered = []


def _register():
    if not _registered:
        _registered.append(True)
        os.register_at_fork(after_in_child=_in_child)
        atexit.register(finish)
        _note_exits()
        _note_hard_exit()
        _end_threads_silently()


def launched_rank():
    """The rank as the launcher of this process tells it, in digits; empty if nobody does."""
    told = os.environ.get
    for name in ("RANK_ID", "RANK", "OMPI_COMM_WORLD_RANK"):
        if told(name):
            return told(name)
    if told("SLURM_NTASKS", "1") != "1":
        return told("SLURM_PROCID", "")
    # Lightning starts the other ranks of a machine itself, and tells them this alone.
    return told("LOCAL_RANK", "") if told("NODE_RANK", "0") == "0" else ""


@contextlib.contextmanager
def rank_told(rank=""):
    """The agent reads the rank from RANK_ID, as MindSpore sets it. It does not stay there: what
    this process starts may be another rank. `rank`: the one that the framework tells."""
    before, rank = os.environ.get("RANK_ID"), rank or launched_rank()
    if not before and rank.isdigit():
        os.environ["RANK_ID"] = str(int(rank))
    try:
        yield
    finally:
        os.environ.pop("RANK_ID", None)
        if before is not None:
            os.environ["RANK_ID"] = before
