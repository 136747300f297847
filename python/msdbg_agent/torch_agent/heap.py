"""The allocator of the C library, while steps are traced.

The values of a traced step are let go of together, when it ends. glibc then gives their memory back
to the system, and the next step gets it again, page by page, which takes a tenth of what tracing
costs, on some machines more. With other allocators, nothing happens here.
"""

import ctypes
import os

# Of mallopt(), from <malloc.h>.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_LARGEST = 32 << 20  # glibc's limits for itself: it maps larger blocks one by one,
_LARGEST_FREE = 2 * _LARGEST  # and gives back more free memory than this
_ALL = (1 << 31) - 1


def _is_set_by_user():
    return "glibc.malloc" in os.environ.get("GLIBC_TUNABLES", "") or any(
        name.startswith("MALLOC_") and name.endswith("_") for name in os.environ
    )


class Heap:
    def __init__(self):
        self._library = None
        self._traced = self._keeps = False
        try:
            library = ctypes.CDLL(None)
            if not _is_set_by_user() and library.mallopt and library.malloc_trim:
                self._library = library
        except (OSError, AttributeError):
            pass

    def step_begins(self, traced):
        """Memory that is let go of stays with the process as long as traced steps follow each other:
        a single one, as the first step of a training, changes nothing."""
        keeps, self._traced = traced and self._traced, traced
        if self._library is None or keeps == self._keeps:
            return
        self._keeps = keeps
        if keeps:
            self._library.mallopt(_MMAP_THRESHOLD, _LARGEST)
            self._library.mallopt(_TRIM_THRESHOLD, _ALL)
        else:
            self._library.mallopt(_TRIM_THRESHOLD, _LARGEST_FREE)
            self._library.malloc_trim(0)
