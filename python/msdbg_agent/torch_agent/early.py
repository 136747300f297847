"""The first hold of a rank that waits for another one.

A later stage of a pipeline receives before it calls its network, and the rank that would send is
held already. So that all ranks are held together, another thread begins the first step of a rank
whose program has an optimizer and does not move."""

import multiprocessing
import sys
import threading

import torch

from .._process import launched_rank
from .unmarked import has_optimizer

SECONDS = 1  # between two looks at the program
STILL = 4  # looks at which it was at the same place


def _has_ranks():
    distributed = torch.distributed
    return (
        distributed.is_available()
        and distributed.is_initialized()
        and distributed.get_world_size() > 1
    )


class Early:
    def __init__(self, begin):
        """`begin` holds the training, in another thread than that of the program."""
        self._begin = begin
        self._over, self._lock = threading.Event(), threading.Lock()
        self._program = threading.main_thread().ident
        if launched_rank() or multiprocessing.parent_process():
            threading.Thread(target=self._run, name="msdbg-agent-early", daemon=True).start()

    def finish(self):
        """The program begins its first step: waits until a hold has ended."""
        self._over.set()
        with self._lock:
            pass

    def forget(self):
        """In a forked child, where the thread does not run."""
        self._over.set()
        self._lock = threading.Lock()

    def _place(self):
        frame = sys._current_frames().get(self._program)
        return (id(frame), frame.f_lasti) if frame is not None else None

    def _run(self):
        place, still = None, 0
        while not self._over.wait(SECONDS):
            last, place = place, self._place()
            still = still + 1 if place == last else 0
            if still < STILL or not _has_ranks():
                continue
            still = 0
            if has_optimizer():
                break
        with self._lock:
            if not self._over.is_set():
                self._begin()
