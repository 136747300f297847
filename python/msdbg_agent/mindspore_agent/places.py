"""Which value a tensor is that an operator reads: by address, because Python's objects differ from
call to call."""

import bisect

from .tensors import same_content

# MindSpore copies what these return before an operator reads it, each time to another address.
_VIEWS = (
    "BroadcastTo",
    "Chunk",
    "ExpandDims",
    "Reshape",
    "SelectExtView",
    "SliceExt",
    "Split",
    "SplitTensor",
    "Squeeze",
    "Transpose",
    "View",
)


def writes_in_place(node):
    """Whether it changes the value of its first argument, and returns that."""
    return node.kind.startswith("Assign") or node.kind == "Setitem"


class Places:
    def __init__(self, parameters, aliases):
        # address -> [(shape or None, name, slot)], the last one to be made at the end: a part of a
        # tensor, or its elements in another shape, can begin where the whole one does
        self._known, self._views = {}, []
        # Of weights and the optimizer's state: the update changes what is there, and what shares it.
        self._kept = []  # (first address, behind the last one, name), by address
        self._kept_views = []
        for name, known in parameters.items():
            if known.pointer:
                self._known[known.pointer] = [(tuple(known.shape), name, 0)]
                if known.weight:
                    behind = known.pointer + getattr(known.keep, "nbytes", 0)
                    self._kept.append((known.pointer, behind, name))
        self._kept.sort()
        for address, (name, slot) in aliases.items():
            self._known[address] = [(None, name, slot)]

    def parameter_at(self, address):
        """The name of the weight or state that has this memory, or None."""
        at = bisect.bisect_right(self._kept, (address, float("inf"), "")) - 1
        if at < 0 or address >= self._kept[at][1]:
            return None
        return self._kept[at][2]

    def made(self, node, slot, tensor):
        """From here on, this is the output of a node."""
        address = tensor.data_ptr()
        if not address or node.light:
            return
        view = node.kind in _VIEWS or not tensor.is_contiguous()
        parameter = None if writes_in_place(node) else self.parameter_at(address)
        if parameter is not None:
            if view:
                self._kept_views.append((parameter, tensor))
            return
        self.is_at(address, node, slot, tuple(tensor.shape))
        if view:
            self._views.append((node.name, slot, tensor))

    def is_at(self, address, node, slot, shape=None):
        self._known.setdefault(address, []).append((shape, node.name, slot))

    def find(self, tensor, copied=True):
        """(name, slot), or None; `copied` if it can be a copy of a view."""
        if isinstance(tensor, tuple):
            return tensor  # known by name already
        found = self._known.get(tensor.data_ptr())
        if found:
            shape = tuple(tensor.shape)
            same = [each for each in found if each[0] == shape or each[0] is None]
            return (same or found)[-1][1:]
        parameter = self.parameter_at(tensor.data_ptr())
        if parameter is not None:
            return parameter, 0
        if not copied:
            return None
        for name, slot, view in reversed(self._views):
            if same_content(view, tensor):
                return name, slot
        for name, view in reversed(self._kept_views):
            # The content is what it was before the update.
            if view.shape == tensor.shape and view.dtype == tensor.dtype:
                return name, 0
        return None
