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
        self._keeps = False
        try:
            library = ctypes.CDLL(None)
            if not _is_set_by_user() and library.mallopt and library.malloc_trim:
                self._library = library
        except (OSError, AttributeError):
            pass

    def keep(self):
        """A traced step begins: memory that is let go of stays with the process."""
        if not self._keeps and self._library is not None:
            self._keeps = True
            self._library.mallopt(_MMAP_THRESHOLD, _LARGEST)
            self._library.mallopt(_TRIM_THRESHOLD, _ALL)

    def give_back(self):
        """A step begins that is not traced."""
        if self._keeps:
            self._keeps = False
            self._library.mallopt(_TRIM_THRESHOLD, _LARGEST_FREE)
            self._library.malloc_trim(0)
