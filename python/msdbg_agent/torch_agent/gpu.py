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
from .tensors import has_memory, own_part, storage_of

_FLAGS = 4096  # of one buffer
_NARROW = (torch.float16, torch.bfloat16, torch.float32)
_SHARE = 4  # of the free memory of a device may hold values that the program has let go of
_LEAST_ROOM = 1 << 26  # bytes

OutOfMemory = getattr(torch, "OutOfMemoryError", None) or torch.cuda.OutOfMemoryError
_users_of = getattr(torch._C, "_storage_Use_Count", None)


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
            _wait(self.flags)
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
            self.host = self.flags.tolist()
        return self.host[place]


def _norm_type(tensor):
    """The type in which the largest magnitude is computed."""
    if tensor.is_complex():
        return tensor.dtype
    return torch.float32 if tensor.dtype in _NARROW else torch.float64


def _wait(tensor):
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
        self._fetch = _c.FETCH(self._read)
        self.room = Room()

    def end(self):
        self._published, self._full = [], []
        self.room.end()
        for buffer in self._buffers.values():
            buffer.count, buffer.host = 0, None

    def flag(self, tensor):
        """Begins to look for NaN and Inf. Returns what state() takes."""
        if not _has_flag(tensor):
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
            try:
                batch = _Batch([tensors[place] for place in places])
            except RuntimeError:
                for place in places:
                    found[place] = self.flag(tensors[place])
                continue
            for number, place in enumerate(places):
                found[place] = batch, number
        return found

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
        return _copy_elements(self._published[number - 1], into, size)


class Parameters:
    """Parameters of the graph that the processor cannot read at their address."""

    def __init__(self, devices):
        self._devices = devices
        self._known = []  # what the recorder knows of them, by the number that the callbacks get
        self._numbers = {}  # by name
        self._flags = {}  # by number: those that nobody has asked for yet
        self._asked, self._asked_before = set(), set()
        self._state, self._fetch = _c.STATE(self._ask), _c.FETCH(self._read)

    def place(self, connection, graph, name, known):
        number = self._numbers.get(name)
        if number is None:
            self._known.append(known)
            number = self._numbers[name] = len(self._known)
        self._known[number - 1] = known
        return connection.set_parameter_remote(
            graph, name, known.dtype, known.shape, self._state, self._fetch, number
        )

    def changed(self):
        """The program has run on."""
        self._flags = {}
        if self._asked:
            self._asked, self._asked_before = set(), self._asked

    def _ask(self, number):
        """Whoever asks for one will ask for all that were asked for in the last step."""
        try:
            with torch.no_grad(), torch._C._DisableTorchDispatch():
                if number not in self._flags:
                    numbers = sorted((self._asked_before - self._asked) | {number})
                    tensors = [self._tensor(each) for each in numbers]
                    there = [each for each in zip(numbers, tensors) if each[1] is not None]
                    flags = self._devices.flags([each[1] for each in there])
                    self._flags = {each[0]: flag for each, flag in zip(there, flags)}
                self._asked.add(number)
                tensor, flag = self._tensor(number), self._flags.pop(number, (None, 0))
                return _c.STATE_UNKNOWN if tensor is None else self._devices.state(flag, tensor)
        except Exception:
            return _c.STATE_UNKNOWN  # the elements decide

    def _tensor(self, number):
        held = self._known[number - 1].keep
        if held is None:
            return None
        tensor = own_part(held).detach()
        return tensor if has_memory(tensor) else None

    def _read(self, number, _node, _slot, into, size):
        tensor = self._tensor(number)
        return 1 if tensor is None else _copy_elements(tensor, into, size)


def _has_flag(tensor):
    return (tensor.is_floating_point() or tensor.is_complex()) and tensor.numel() > 0


def _copy_elements(tensor, into, size):
    """What a FETCH does: 0, or 1 if there are no such elements."""
    try:
        if not has_memory(tensor):
            return 1
        with torch.no_grad(), torch._C._DisableTorchDispatch():
            _wait(tensor)
            here = tensor.resolve_conj().resolve_neg().to("cpu").contiguous()
        if here.numel() * here.element_size() != size:
            return 1
        ctypes.memmove(into, here.data_ptr(), size)
        return 0
    except Exception:  # the debugger is told that there is no such value
        return 1


class _Held:
    """Values of a step on one device."""

    __slots__ = ("values", "bytes", "most", "room")

    def __init__(self, room):
        self.values, self.bytes = [], 0
        self.most = self.room = room


class Room:
    """Values of a step keep their memory until it ends, though the program has let go of it. In a
    GPU that must not take what the training needs: beyond a share of what is free, they go."""

    def __init__(self):
        self._held = {}  # by device

    def end(self):
        self._held = {}

    def keep(self, value):
        """Notes a value; may let go of others."""
        tensor = value.tensor
        held = self._held.get(tensor.device)
        if held is None:
            held = self._held[tensor.device] = _Held(_room_of(tensor.device))
        held.values.append(value)
        held.bytes += tensor.untyped_storage().nbytes()
        if held.bytes > held.most:
            self._let_go(held)

    def copy(self, value):
        """Its memory is about to be overwritten or given back."""
        held = self._held.get(value.tensor.device)
        size = value.tensor.numel() * value.tensor.element_size()
        if held is not None and held.bytes + size > held.most:
            value.let_go()
            return
        value.tensor = value.tensor.clone()
        if held is not None:
            held.bytes += size

    def free(self):
        """The program needs memory. False: nothing is to be had."""
        return any([self._let_go(held) for held in self._held.values()])

    @staticmethod
    def _let_go(held):
        """Drops the values whose memory nobody else holds."""
        ours = collections.Counter(storage_of(value.tensor) for value in held.values)
        kept, storages = [], {}
        for value in held.values:
            storage = value.tensor.untyped_storage()
            if _users_of is None or _users_of(storage._cdata) - 1 <= ours[storage._cdata]:
                value.let_go()
            else:
                kept.append(value)
                storages[storage._cdata] = storage.nbytes()
            del storage
        dropped = len(kept) < len(held.values)
        held.values, held.bytes = kept, sum(storages.values())
        held.most = held.bytes + held.room
        return dropped


def _room_of(device):
    """How many bytes may be held for values that the program has let go of."""
    of = getattr(torch, device.type, None)
    try:
        free, _ = of.mem_get_info(device)
        cached = of.memory_reserved(device) - of.memory_allocated(device)
        return max(_LEAST_ROOM, (free + cached) // _SHARE)
    except (AttributeError, RuntimeError):
        return 1 << 40  # no GPU
