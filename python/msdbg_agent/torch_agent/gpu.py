"""Values that the processor cannot read at their address, such as those in a GPU: a flag for each,
computed where it is, and the elements only when somebody asks.

A flag is the largest magnitude of a tensor: NaN if it holds a NaN, Inf if it holds an Inf. It is
computed on the device, and nothing waits for it. All flags of a step are read together when it
ends; the debugger then goes through its operators.
"""

import collections
import ctypes
import math

import torch

from .. import _c
from .room import Room
from .tensors import has_memory

_FLAGS = 4096  # of one buffer
_NARROW = (torch.float16, torch.bfloat16, torch.float32)
_TOGETHER = 64  # values whose flags are computed with one kernel

_stream_of = getattr(torch._C, "_cuda_getCurrentRawStream", None)


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
            wait(self.flags)
            self.host = self.flags[: self.count].tolist()
        return self.host[place]


class _Batch:
    """Flags of many tensors of one device, computed together."""

    __slots__ = ("flags", "host")

    def __init__(self, tensors):
        norms = torch._foreach_norm(tensors, math.inf)
        wide = any(each.dtype is torch.float64 for each in norms)
        self.flags = torch.stack([each.double() if wide else each.float() for each in norms])
        self.host = None

    def read(self, place):
        if self.host is None:
            wait(self.flags)
            self.host = self.flags.tolist()
        return self.host[place]


class _Waiting:
    """Values of one device and type that one stream has computed, and whose flags are not."""

    __slots__ = ("number", "stream", "values")

    def __init__(self, device):
        on_gpu = device.type == "cuda"
        self.number = _stream_of(device.index) if on_gpu else None
        self.stream = torch.cuda.current_stream(device) if on_gpu else None
        self.values = []


def _norm_type(tensor):
    """The type in which the largest magnitude is computed."""
    return torch.float32 if tensor.dtype in _NARROW else torch.float64


def wait(tensor):
    """Another stream may have computed it."""
    if not tensor.is_cpu:
        wait = getattr(getattr(torch, tensor.device.type, None), "synchronize", None)
        if wait is not None:
            wait(tensor.device)


class Devices:
    """Publishes tensors that the processor cannot read at their address."""

    def __init__(self):
        self._published = []  # tensors of this step, by the number that fetch() gets
        self._full = []  # buffers of this step without room
        self._buffers = {}  # by device and type
        self._waiting = {}  # by device and type
        self._fetch = _c.FETCH(self._read)
        self.room = Room(self)

    def end(self):
        self._published, self._full, self._waiting = [], [], {}
        self.room.end()
        for buffer in self._buffers.values():
            buffer.count, buffer.host = 0, None

    def note(self, value):
        """An operator has made this value. Its flag is computed with those of others, before
        anything changes it."""
        tensor = value.tensor
        value.flagged = True
        self.room.keep(value)
        if tensor.dtype not in _NARROW or not tensor.is_contiguous() or not tensor.numel():
            value.flag = self.flag(tensor)
            return
        device = tensor.device
        waiting = self._waiting.get((device, tensor.dtype))
        if waiting is None:
            waiting = self._waiting[device, tensor.dtype] = _Waiting(device)
        if waiting.stream is not None and waiting.number != _stream_of(device.index):
            value.flag = self.flag(tensor)
            return
        value.flag = waiting
        waiting.values.append(value)
        if len(waiting.values) >= _TOGETHER:
            self._flag(waiting)

    @staticmethod
    def is_waiting(value):
        return isinstance(value.flag, _Waiting)

    def flag_waiting(self):
        for waiting in self._waiting.values():
            if waiting.values:
                self._flag(waiting)

    def _flag(self, waiting):
        """Computes flags on the stream that has computed the values."""
        values, waiting.values = waiting.values, []
        stream = waiting.stream
        if stream is None or waiting.number == _stream_of(stream.device.index):
            flags = self._together([value.tensor for value in values])
        else:
            with torch.cuda.stream(stream):
                flags = self._together([value.tensor for value in values])
            stream.synchronize()  # what follows on this stream may change them
        for value, flag in zip(values, flags):
            value.flag = flag

    def flag(self, tensor):
        """Begins to look for NaN and Inf. Returns what state() takes."""
        if not _has_flag(tensor):
            return None
        if not has_memory(tensor):
            return None, 0
        wide = tensor.dtype is torch.float64
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

    def flags(self, tensors):
        """flag() of each, with few kernels in all."""
        found = [None] * len(tensors)
        groups = collections.defaultdict(list)
        for place, tensor in enumerate(tensors):
            if tensor.dtype in _NARROW and tensor.numel() and has_memory(tensor):
                groups[tensor.device, tensor.dtype].append(place)
            else:
                found[place] = self.flag(tensor)
        for places in groups.values():
            for place, flag in zip(places, self._together([tensors[place] for place in places])):
                found[place] = flag
        return found

    def _together(self, tensors):
        """The flags of tensors of one device and type, which have memory."""
        try:
            batch = _Batch(tensors)
        except RuntimeError:  # no such kernel for this element type
            return [self.flag(tensor) for tensor in tensors]
        return [(batch, number) for number in range(len(tensors))]

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
            there = not tensor.is_meta and has_memory(tensor)
            infinite = there and bool(torch.isinf(tensor).any())
            return _c.STATE_NAN | (_c.STATE_INF if infinite else 0)
        return _c.STATE_INF if math.isinf(largest) else _c.STATE_FINITE

    @staticmethod
    def read(tensor):
        """A copy that the processor can read."""
        wait(tensor)
        return tensor.resolve_conj().resolve_neg().to("cpu").contiguous()

    def publish(self, connection, value, dtype, wanted):
        """`wanted`: somebody judges it, so its flag is read. Otherwise its state stays open."""
        node, tensor = value.node.number, value.tensor
        if wanted and not value.flagged:
            value.flag, value.flagged = self.flag(tensor), True
        state = self.state(value.flag, tensor) if value.flagged else _c.STATE_UNKNOWN
        self._published.append(tensor)
        number = len(self._published)
        connection.publish_remote(
            node, value.slot, dtype, tuple(tensor.shape), state, self._fetch, number
        )

    def _read(self, number, _node, _slot, into, size):
        return copy_elements(self._published[number - 1], into, size)


def _has_flag(tensor):
    return tensor.is_floating_point() and tensor.numel() > 0


def copy_elements(tensor, into, size):
    """What a FETCH does: 0, or 1 if there are no such elements."""
    try:
        if not has_memory(tensor):
            return 1
        with torch.no_grad(), torch._C._DisableTorchDispatch():
            here = Devices.read(tensor)
        if here.numel() * here.element_size() != size:
            return 1
        ctypes.memmove(into, here.data_ptr(), size)
        return 0
    except Exception:  # the debugger is told that there is no such value
        return 1
