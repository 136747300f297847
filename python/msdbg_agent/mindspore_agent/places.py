"""Which value a tensor is that an operator reads: by address, because Python's objects differ from
call to call."""

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


class Places:
    def __init__(self, parameters, aliases):
        self._known, self._views = dict(aliases), []
        for name, known in parameters.items():
            if known.pointer:
                self._known[known.pointer] = (name, 0)

    def made(self, node, slot, tensor):
        """From here on, this is the output of a node."""
        address = tensor.data_ptr()
        if address and not node.light:
            self._known[address] = (node.name, slot)
            if node.kind in _VIEWS:
                self._views.append((node.name, slot, tensor))

    def is_at(self, address, node, slot):
        self._known[address] = (node.name, slot)

    def find(self, tensor):
        """(name, slot), or None."""
        if isinstance(tensor, tuple):
            return tensor  # known by name already
        found = self._known.get(tensor.data_ptr())
        if found is not None:
            return found
        for name, slot, view in reversed(self._views):
            if same_content(view, tensor):
                return name, slot
        return None
