"""What the schema of an operator says, and what a call of it returns."""

import torch

from . import collectives
from .tensors import dtype_name, own_part, shape_of, tensors_in

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
_VIEWS_TOO = {"_unsafe_view"}  # their schemas do not say it
# Names of outputs that are no result: the state of random numbers, and what was not asked for.
_NO_RESULTS = {"philox_seed", "philox_offset", "rng_state", "unused", "debug_attn_mask"}
# Their schemas do not say that they change two of their arguments if the flag behind these is set.
_CHANGES_STATISTICS = {"native_batch_norm", "cudnn_batch_norm", "miopen_batch_norm"}
_STATISTICS = 3
# The table that it makes for its derivative: rows of short targets are written in part.
_PARTLY_WRITTEN = {"_ctc_loss": 1}
_SKIPPED_SPACES = {"profiler", "prims_debug"}


def operator_of(func):
    schema = func._schema
    space, _, name = schema.name.partition("::")
    operator = Operator(space, name, schema)
    operator.func = func  # so that it stays: it is known by its id
    return operator


class Operator:
    """What the schema of an operator says."""

    __slots__ = (
        *("kind", "skip", "alias", "empty", "view", "rearranges", "in_place", "writes"),
        *("keywords", "flag", "func"),
        *("later", "waits", "foreign", "outs", "first", "no_results", "partly", "_schema"),
    )

    def __init__(self, space, name, schema=None):
        """Without a schema: a function of the program, which returns what it computes."""
        returns = schema.returns if schema else ()
        self.kind = name
        self.alias = name in _ALIASES
        self.empty = name in _EMPTY
        self.skip = name in _SKIPPED or self.alias or space in _SKIPPED_SPACES
        # It computes nothing: its output is a part of its first argument.
        self.view = any(
            each.alias_info is not None and not each.alias_info.is_write for each in returns
        )
        # The elements of its outputs are elements of its first argument, in the same memory.
        self.rearranges = self.view or name in _VIEWS_TOO
        # Its outputs are arguments that it has changed.
        self.in_place = bool(schema) and (
            not returns
            or any(each.alias_info is not None and each.alias_info.is_write for each in returns)
        )
        self.no_results = {place for place, each in enumerate(returns) if each.name in _NO_RESULTS}
        self.partly = _PARTLY_WRITTEN.get(name)  # the place of an output
        self.writes, self.keywords = [], []
        self.outs = set()  # names of the arguments that it writes without a look, as `out`
        self.first = 0  # the first argument that it reads, of those without a name
        for place, argument in enumerate(schema.arguments if schema else ()):
            if argument.alias_info is not None and argument.alias_info.is_write:
                self.writes.append(place)
                self.keywords.append(argument.name)
                if argument.kwarg_only:
                    self.outs.add(argument.name)
        # Its outputs arrive later: whoever reads them waits before.
        self.waits = name == "wait_tensor"
        self.later = space in collectives.NAMESPACES and not self.waits
        if space == "c10d" and name.endswith("_") and name != "monitored_barrier_":
            self.in_place, self.writes, self.keywords = True, [0], [schema.arguments[0].name]
            self.first = 0 if name in collectives.READS_FIRST else 1
        self._schema = schema if self.later else None
        self.foreign = space != "aten"  # its schema may hide that an output is an argument
        self.flag = None
        if name in _CHANGES_STATISTICS:
            self.writes = [_STATISTICS, _STATISTICS + 1]
            self.keywords = [schema.arguments[place].name for place in self.writes]
            self.flag = _STATISTICS + 2

    def attributes(self, args, kwargs):
        """[(name, value)] of a call that nothing else shows."""
        if not self.later:
            return ()
        try:
            return collectives.attributes_of(self._schema, args, kwargs)
        except (AttributeError, RuntimeError, TypeError, ValueError):
            return ()  # a group of a kind that this release does not tell about

    def results(self, args, kwargs, out):
        """The tensors that a call computes; None where it left one out, so that the others keep
        their places."""
        if self.no_results:
            out = [None if at in self.no_results else each for at, each in enumerate(out)]
        return outputs_of(out) or self.written(args, kwargs)

    def read(self, args, kwargs):
        """The tensors that a call reads, each in the same place as in another call."""
        found = tensors_in(args[self.first :])
        if kwargs:
            read = (value for name, value in kwargs.items() if name not in self.outs)
            tensors_in(read, found)
        return found

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
    if out is None or out.is_nested:  # that has a shape for each of its rows
        return "float32", ()
    return dtype_name(out) or "uint8", shape_of(out)
