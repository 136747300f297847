"""The conversation begins with the first step: until then, the process may have become a child that
was forked, or a rank that no launcher has told."""

import multiprocessing
import multiprocessing.util

import torch

from .. import _c, _process
from .unmarked import has_optimizer

_MOST_LOOKS = 16  # for an optimizer; each looks at everything that the program holds


def rank_of_group():
    """The rank in torch.distributed, in digits; empty if there is one process."""
    distributed = torch.distributed
    if not (distributed.is_available() and distributed.is_initialized()):
        return ""
    return str(distributed.get_rank()) if distributed.get_world_size() > 1 else ""


class Late:
    def __init__(self, connection):
        self._connection = connection
        self._at_exit, self._looks = None, 0  # of a forked child

    def forked(self, at_exit):
        """In a child, before the parent's first step: it may be the one that trains. `at_exit` ends
        its conversation."""
        self._at_exit = at_exit

    def settle(self):
        """Before the first step. False: it begins elsewhere, or later."""
        if self._at_exit is not None and not self._trains():
            return False
        try:
            with _process.rank_told(rank_of_group()):
                self._connection.renew()
        except _c.LibraryProblem as problem:
            self._connection.over = True
            _c.say("the training runs without the debugger: %s" % problem)
            return False
        if self._at_exit is not None:
            _process.guard_again()
            # multiprocessing ends such a child without the functions of atexit.
            multiprocessing.util.Finalize(None, self._at_exit, exitpriority=0)
            self._at_exit = None
        return True

    def _trains(self):
        """Workers of a DataLoader or a pool may call networks, too."""
        self._looks += 1
        worker = multiprocessing.current_process().daemon
        found = not worker and has_optimizer()
        if worker or (self._looks >= _MOST_LOOKS and not found):
            self._connection.over = True
        return found
