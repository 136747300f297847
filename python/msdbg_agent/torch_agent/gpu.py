"""Values that are in a GPU: a flag for each, computed there, and the elements only when somebody
asks.

A flag is the largest magnitude of a tensor: NaN if it holds a NaN, Inf if it holds an Inf. One
reduction on the current stream puts it into a buffer on the device, and nothing waits for it. All
flags of a step are read together when it ends; the debugger then goes through its operators.
"""

import ctypes
import math

import torch

from .. import _c
from .tensors import has_memory

_FLAGS = 4096  # of one buffer
_NARROW = (torch.float16, torch.bfloat16, torch.float32)


class _Buffer:
    """Flags on one device. float64 only for elements whose magnitudes do not fit into float32."""

    __slots__ = ("flags", "count", "host")

    def __init__(self, device, dtype):
        self.flags = torch.zeros(_FLAGS, dtype=dtype, device=device)
        self.count, self.host = 0, None

    def add(self, tensor):
        torch.linalg.vector_norm(
            tensor, math.inf, dtype=_norm_type(tensor), out=self.flags[self.count]
        )
        self.count, self.host = self.count + 1, None
        return self.count - 1

    def read(self, place):
        if self.host is None:
            self.host = self.flags[: self.count].tolist()  # waits for the device
        return self.host[place]


def _norm_type(tensor):
    """The type in which the largest magnitude is computed."""
    if tensor.is_complex():
        return tensor.dtype
    return torch.float32 if tensor.dtype in _NARROW else torch.float64


class Devices:
    """Publishes tensors that the processor cannot read at their address."""

    def __init__(self):
        self._calls = []  # FETCH objects, kept until the step has ended
        self._full = []  # buffers of this step without room
        self._buffers = {}  # by device and type

    def end(self):
        self._calls, self._full = [], []
        for buffer in self._buffers.values():
            buffer.count, buffer.host = 0, None

    def flag(self, tensor):
        """Begins to look for NaN and Inf. Returns what state() takes."""
        if not (tensor.is_floating_point() or tensor.is_complex()) or tensor.numel() == 0:
            return None
        if not has_memory(tensor):
            return None, 0
        wide = tensor.dtype in (torch.float64, torch.complex128)
        key = (tensor.device, torch.float64 if wide else torch.float32)
        try:
            buffer = self._buffers.get(key)
            if buffer is None or buffer.count == _FLAGS:
                if buffer is not None:
                    self._full.append(buffer)
                buffer = self._buffers[key] = _Buffer(*key)
            return buffer, buffer.add(tensor)
        except RuntimeError:
            return None, 0  # no such kernel for this element type

    def state(self, flag, tensor):
        """Whether there is a NaN or an Inf. Waits for the device where it must."""
        if flag is None:
            return _c.STATE_FINITE
        buffer, place = flag
        if buffer is None:
            return _c.STATE_UNKNOWN
        largest = buffer.read(place)
        if math.isnan(largest):
            # An Inf beside a NaN does not show in the largest magnitude.
            infinite = has_memory(tensor) and bool(torch.isinf(tensor).any())
            return _c.STATE_NAN | (_c.STATE_INF if infinite else 0)
        return _c.STATE_INF if math.isinf(largest) else _c.STATE_FINITE

    def publish(self, connection, value, dtype, wanted):
        """`wanted`: somebody judges it, so its flag is read. Otherwise its state stays open."""
        node, tensor = value.node.number, value.tensor
        if wanted and not value.flagged:
            value.flag, value.flagged = self.flag(tensor), True
        state = self.state(value.flag, tensor) if value.flagged else _c.STATE_UNKNOWN
        fetch = _c.FETCH(_fetcher(tensor))
        self._calls.append(fetch)
        connection.publish_remote(node, value.slot, dtype, tuple(tensor.shape), state, fetch)


def _fetcher(tensor):
    def fetch(_user, _node, _slot, into, size):
        try:
            if not has_memory(tensor):
                return 1
            here = tensor.resolve_conj().resolve_neg().to("cpu").contiguous()
            if here.numel() * here.element_size() != size:
                return 1
            ctypes.memmove(into, here.data_ptr(), size)
            return 0
        except Exception:  # the debugger is told that there is no such value
            return 1

    return fetch
