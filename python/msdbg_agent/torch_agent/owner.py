"""The thread of the program that trains; what the others do is not followed."""

import threading
from threading import get_ident

import torch

_MOST_OTHERS = 3  # steps of other threads, without one of ours, before one of those is followed

current_node = getattr(torch._C, "_current_autograd_node", lambda: None)


class Owner:
    def __init__(self):
        self.ident = None  # of the thread; None until a step begins
        self._choosing = threading.Lock()
        self._others = 0  # steps of other threads since its last one

    def is_another(self):
        """Whether this thread is another one; the backward pass of a GPU has one of its own."""
        if get_ident() == self.ident or self.ident is None:
            return False
        return current_node() is None

    def choose(self):
        """This thread begins a step. False: another one was faster, and is the one that trains."""
        with self._choosing:
            if self.ident is None:
                self.ident = get_ident()
        return not self.is_another()

    def begins(self):
        self.ident, self._others = get_ident(), 0

    def forget(self):
        """The next step may begin in any thread."""
        self.ident = None

    def lives(self):
        return any(each.ident == self.ident for each in threading.enumerate())

    def another_trained(self):
        """Another thread has run an optimizer. True: enough of them for it to be followed."""
        self._others += 1
        return self._others > _MOST_OTHERS
