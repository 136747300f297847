"""Parameters of the graph that the processor cannot read at their address."""

import ctypes

import torch

from .. import _c
from .gpu import copy_elements, wait
from .tensors import alias_of, has_memory, own_part

_MOST_READ = 1 << 25  # bytes that are read with one copy


class Parameters:
    """Whoever asks for one will ask for all that were asked for in the last step: they are looked at,
    or read, together."""

    def __init__(self, devices):
        self._devices = devices
        self._known = []  # what the recorder knows of them, by the number that the callbacks get
        self._numbers = {}  # by name
        # By number: flags and elements that nobody has asked for yet.
        self._flags, self._asked, self._asked_before = {}, set(), set()
        self._elements, self._read_now, self._read_before = {}, set(), set()
        self._buffer = None
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
        self._flags, self._elements = {}, {}
        if self._asked:
            self._asked, self._asked_before = set(), self._asked
        if self._read_now:
            self._read_now, self._read_before = set(), self._read_now

    def _ask(self, number):
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
        tensor = alias_of(own_part(held))
        return tensor if has_memory(tensor) else None

    def _read(self, number, _node, _slot, into, size):
        tensor = self._tensor(number)
        if tensor is None:
            return 1
        try:
            if tensor.device.type == "cuda":
                if number not in self._elements:
                    with torch.no_grad(), torch._C._DisableTorchDispatch():
                        self._read_together(number, tensor)
                self._read_now.add(number)
                here = self._elements.pop(number, None)
                if here is not None and here.numel() == size:
                    ctypes.memmove(into, here.data_ptr(), size)
                    return 0
        except Exception:
            self._elements = {}
        return copy_elements(tensor, into, size)

    def _read_together(self, number, first):
        """This one, and those of its device that will be asked for."""
        parts = {}
        for each in (self._read_before - self._read_now) | {number}:
            tensor = self._tensor(each)
            if tensor is not None and tensor.device == first.device and tensor.numel():
                parts[each] = tensor.reshape(-1).view(torch.uint8)
        sizes = [part.numel() for part in parts.values()]
        self._elements = {}
        if len(parts) < 2 or sum(sizes) > _MOST_READ:
            return
        if self._buffer is None or self._buffer.numel() < sum(sizes):
            self._buffer = torch.empty(sum(sizes), dtype=torch.uint8, pin_memory=True)
        here = self._buffer[: sum(sizes)]
        wait(first)
        here.copy_(torch.cat(list(parts.values())), non_blocking=True)
        wait(first)
        self._elements = dict(zip(parts, here.split(sizes)))
