"""What the schema of an operator says, and what a call of it returns."""

import torch

from .tensors import dtype_name, own_part, tensors_in

# Their outputs are unwritten memory, or nothing that anyone computed.
_EMPTY = {
    "empty",
    "empty_like",
    "empty_strided",
    "new_empty",
    "new_empty_strided",
    "empty_permuted",
}
_SKIPPED = _EMPTY | {
    "lift_fresh",
    "_local_scalar_dense",
    "set_",
    "record_stream",
    "is_pinned",
    "_pin_memory",
    "resize_",
}
_ALIASES = {"detach", "alias", "lift_fresh"}
# Their schemas do not say that they change two of their arguments if the flag behind these is set.
_CHANGES_STATISTICS = {"native_batch_norm", "cudnn_batch_norm", "miopen_batch_norm"}
_STATISTICS = 3
_SKIPPED_SPACES = {"profiler", "prims_debug"}
_COLLECTIVES = {"c10d", "_c10d_functional", "_c10d_functional_autograd"}


class Operator:
    """What the schema of an operator says."""

    __slots__ = (
        *("kind", "skip", "alias", "empty", "view", "in_place", "writes", "keywords", "flag"),
        *("later", "waits", "foreign"),
    )

    def __init__(self, func):
        schema = func._schema
        space, _, name = schema.name.partition("::")
        self.kind = name
        self.alias = name in _ALIASES
        self.empty = name in _EMPTY
        self.skip = name in _SKIPPED or self.alias or space in _SKIPPED_SPACES
        # It computes nothing: its output is a part of its first argument.
        self.view = any(
            each.alias_info is not None and not each.alias_info.is_write for each in schema.returns
        )
        # Its outputs are arguments that it has changed.
        self.in_place = not schema.returns or any(
            each.alias_info is not None and each.alias_info.is_write for each in schema.returns
        )
        self.writes, self.keywords = [], []
        for place, argument in enumerate(schema.arguments):
            if argument.alias_info is not None and argument.alias_info.is_write:
                self.writes.append(place)
                self.keywords.append(argument.name)
        # Its outputs arrive later: whoever reads them waits before.
        self.waits = name == "wait_tensor"
        self.later = space in _COLLECTIVES and not self.waits
        self.foreign = space != "aten"  # its schema may hide that an output is an argument
        self.flag = None
        if name in _CHANGES_STATISTICS:
            self.writes = [_STATISTICS, _STATISTICS + 1]
            self.keywords = [schema.arguments[place].name for place in self.writes]
            self.flag = _STATISTICS + 2

    def written(self, args, kwargs):
        """The arguments that a call changes in place."""
        found = []
        if self.flag is not None and not (self.flag < len(args) and args[self.flag]):
            return found
        for place, name in zip(self.writes, self.keywords):
            value = args[place] if place < len(args) else kwargs.get(name)
            tensors_in((value,), found)
        return found


def outputs_of(out):
    """What an operator returns; None where it left an output out, so that the others keep their
    places."""
    if isinstance(out, torch.Tensor):
        return [own_part(out)]
    found = []
    for each in out if isinstance(out, (list, tuple)) else ():
        if each is None:
            found.append(None)
        elif isinstance(each, torch.Tensor):
            found.append(own_part(each))
        elif isinstance(each, (list, tuple)):
            tensors_in(each, found)
    while found and found[-1] is None:
        found.pop()
    return found


def described(out):
    if out is None:
        return "float32", ()
    return dtype_name(out) or "uint8", tuple(out.shape)
