"""How much memory the values of a step may hold.

They keep their memory until the step ends, though the program may have let go of it. That must not
take what the training needs: beyond a share of what is free, those of a GPU that somebody watches
are copied to the processor's memory, within a share of that, and the others go. Of what is gone,
NaN and Inf are known.
"""

import collections

import torch

from .tensors import extent_of, is_readable, storage_of

_SHARE = 4  # a fourth of the free memory
_LEAST_ROOM = 1 << 26  # bytes
_TINY = 256  # bytes of a value that is kept in any case, such as a loss

OutOfMemory = getattr(torch, "OutOfMemoryError", None) or torch.cuda.OutOfMemoryError
_users_of = getattr(torch._C, "_storage_Use_Count", None)


class _Held:
    """Values of a step on one device."""

    __slots__ = ("values", "storages", "bytes", "most", "room")

    def __init__(self, room):
        self.values, self.storages, self.bytes = [], set(), 0
        self.most = self.room = room


class Room:
    """Keeps count, and lets go of values that only we hold."""

    def __init__(self, devices):
        self._devices = devices
        self._held = {}  # by device
        self._host = None  # bytes of the processor's memory that are left for this step

    def end(self):
        self._held, self._host = {}, None

    def keep(self, value):
        """Notes a value; may let go of others. Returns those."""
        tensor = value.tensor
        held = self._held.get(tensor.device)
        if held is None:
            held = self._held[tensor.device] = _Held(_room_of(tensor.device))
        held.values.append(value)
        storage = tensor.untyped_storage()
        if storage._cdata not in held.storages:  # views share one
            held.storages.add(storage._cdata)
            held.bytes += storage.nbytes()
        del storage  # the next line counts who holds it
        if held.bytes <= held.most:
            return ()
        with torch._C._DisableTorchDispatch():  # it is no operator of the program
            return self._let_go(held)

    def copy(self, values):
        """Their memory is about to be overwritten or given back."""
        if any([value.flagged and self._devices.is_waiting(value) for value in values]):
            self._devices.flag_waiting()
        groups, blocks = collections.defaultdict(list), {}
        for value in values:
            tensor = value.tensor
            readable = is_readable(tensor)
            if readable:
                block = blocks.get((tensor.data_ptr(), tensor.dtype))
                if block is not None and _is_within(tensor, block):
                    value.tensor = block.as_strided(tensor.shape, tensor.stride())
                    continue
            held = self._held.get(tensor.device)
            if held is not None:
                size = tensor.numel() * tensor.element_size()
                held.storages.discard(storage_of(tensor))
                if held.bytes + size > held.most:
                    self._move(value)
                    continue
                held.bytes += size
            if tensor.is_cpu:
                value.tensor = tensor.clone()
                if readable and value.tensor.stride() == tensor.stride():  # as it lies in memory
                    blocks[tensor.data_ptr(), tensor.dtype] = value.tensor
            else:
                groups[tensor.device, tensor.dtype].append(value)
        for group in groups.values():
            old = [value.tensor for value in group]
            if len(old) == 1 or not hasattr(torch, "_foreach_copy_"):
                copies = [each.clone() for each in old]
            else:
                copies = [torch.empty_like(each) for each in old]
                torch._foreach_copy_(copies, old)
            for value, copied in zip(group, copies):
                value.tensor = copied

    def free(self):
        """The program needs memory of a GPU. False: nothing is to be had."""
        held = [each for device, each in self._held.items() if device.type != "cpu"]
        return any([self._let_go(each) for each in held])

    def _let_go(self, held):
        """Drops the values whose memory nobody else holds. Returns them."""
        self._devices.flag_waiting()
        ours = collections.Counter(storage_of(value.tensor) for value in held.values)
        kept, storages, dropped = [], {}, []
        for value in held.values:
            storage = value.tensor.untyped_storage()
            size = storage.nbytes()
            users = 0 if _users_of is None else _users_of(storage._cdata) - 1
            if size > _TINY and users <= ours[storage._cdata]:
                self._move(value)
                dropped.append(value)
            else:
                kept.append(value)
                storages[storage._cdata] = size
            del storage
        held.values, held.storages, held.bytes = kept, set(storages), sum(storages.values())
        held.most = held.bytes + held.room
        return dropped

    def _move(self, value):
        """Out of its memory."""
        if is_readable(value.tensor):
            value.flag, value.flagged = self._devices.flag(value.tensor), True
            value.let_go()
            return
        size = value.tensor.numel() * value.tensor.element_size()
        if self._host is None:
            self._host = _host_room()
        if value.watched and not value.tensor.is_meta and size <= self._host:
            value.tensor = self._devices.read(value.tensor)
            self._host -= size
        else:
            value.let_go()


def _is_within(tensor, block):
    """Whether a copy of the memory at its address has all of its elements."""
    first, last = extent_of(tensor)
    return last - first <= block.numel() * block.element_size()


def _host_room():
    """How many bytes of the processor's memory values may hold."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024 // _SHARE
    except (OSError, ValueError, IndexError):
        pass
    return 0


def _room_of(device):
    """How many bytes may be held for values that the program has let go of."""
    if device.type == "cpu":
        return max(_LEAST_ROOM, _host_room())
    of = getattr(torch, device.type, None)
    try:
        free, _ = of.mem_get_info(device)
        cached = of.memory_reserved(device) - of.memory_allocated(device)
        return max(_LEAST_ROOM, (free + cached) // _SHARE)
    except (AttributeError, RuntimeError):
        return 1 << 40  # no GPU
