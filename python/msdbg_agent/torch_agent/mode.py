"""Sees every operator of a step: a dispatch mode, entered only for steps in which operators are
wanted."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from .. import _c
from .._names import infinite_argument, library_folder, user_frames
from .tensors import dtype_name, is_plain, tensors_in

# Their outputs are unwritten memory, or nothing that anyone computed.
_SKIPPED = {
    "empty",
    "empty_like",
    "empty_strided",
    "new_empty",
    "new_empty_strided",
    "empty_permuted",
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
_HIDDEN = (library_folder(torch),)
MOST_OPERATORS = 400000  # of one step: a loop that never ends its step must not fill the memory

_current_node = getattr(torch._C, "_current_autograd_node", None)
_sequence = getattr(getattr(torch._C, "_autograd", None), "_get_sequence_nr", None)


def missing():
    """Private names that this release of PyTorch lacks, and what is lost without them."""
    lost = []
    if _current_node is None:
        lost.append(
            "torch._C._current_autograd_node: operators of the backward pass are shown as forward ones"
        )
    elif _sequence is None:
        lost.append(
            "torch._C._autograd._get_sequence_nr: gradients are not shown below the operator that they belong to"
        )
    return lost


class _Operator:
    """What the schema of an operator says."""

    __slots__ = ("kind", "skip", "alias", "view", "writes", "keywords", "flag")

    def __init__(self, func):
        schema = func._schema
        space, _, name = schema.name.partition("::")
        self.kind = name
        self.alias = name in _ALIASES
        self.skip = name in _SKIPPED or self.alias or space in _SKIPPED_SPACES
        # It computes nothing: its output is a part of its first argument.
        self.view = any(
            each.alias_info is not None and not each.alias_info.is_write for each in schema.returns
        )
        self.writes, self.keywords = [], []
        for place, argument in enumerate(schema.arguments):
            if argument.alias_info is not None and argument.alias_info.is_write:
                self.writes.append(place)
                self.keywords.append(argument.name)
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


class Trace:
    """What the operators of one step were, and their values."""

    def __init__(self, recorder, modules, values, scopes):
        self.recorder, self.modules, self.values, self.scopes = recorder, modules, values, scopes
        self.sequences = {}  # sequence number of autograd -> the forward node
        self.all_wanted = False
        self.count = 0
        self._operators = {}
        self._unknown = set()  # names of views of memory that nobody was seen to write
        self._backward = {}  # (scope, kind) of a forward node -> scope of its gradients
        self._data = {}  # id -> (name, the tensor): inputs that nothing computed

    def begin(self):
        self.sequences.clear()
        self._data, self._unknown = {}, set()
        self.count = 0
        self.all_wanted = self.recorder.wants() == _c.WANTS_ALL

    def operator(self, func):
        found = self._operators.get(func)
        if found is None:
            found = self._operators[func] = _Operator(func)
        return found

    def note(self, operator, args, kwargs, out):
        """The operator has run."""
        self.count += 1
        if self.count > MOST_OPERATORS:
            return
        node = self._node(operator.kind)
        if isinstance(out, torch.Tensor):
            outs = (out,)
        else:
            outs = tensors_in(out) if isinstance(out, (list, tuple)) else ()
            if not outs and operator.writes:
                outs = operator.written(args, kwargs)
        unknown = operator.view and self._is_unknown(args)
        if node.inputs is None:
            self._describe(node, operator, args, kwargs, outs, not unknown)
        elif node.data and not unknown:
            self._refresh_data(node, args, kwargs)
        if unknown:
            self._unknown.add(node.name)
            self.values.note_unread(node, outs)
        else:
            self.values.note(node, outs)

    def _is_unknown(self, args):
        """A view of memory that nobody was seen to write, such as the buckets of a distributed
        training before they are filled."""
        if not args or not isinstance(args[0], torch.Tensor):
            return False
        source = self.values.source(args[0])
        return source is None or source[0] in self._unknown

    def _node(self, kind):
        recorder = self.recorder
        current = _current_node() if _current_node is not None else None
        path = self.scopes.path()
        if current is None:
            node = recorder.node(path or self.scopes.outside(), kind)
            if _sequence is not None:
                self.sequences.setdefault(_sequence() - 1, node)
            return node
        if path is not None:
            node = recorder.node("Recompute/" + path, kind)
            if _sequence is not None:
                self.sequences.setdefault(_sequence() - 1, node)
            return node
        forward = self.sequences.get(current._sequence_nr())
        if forward is None:
            node = recorder.node(self._unknown_backward(current), kind)
        else:
            key = (forward.scope, forward.kind)
            scope = self._backward.get(key)
            if scope is None:
                scope = self._backward[key] = "Gradients/%s/Grad_%s" % key
            node = recorder.node(scope, kind)
            if not node.frames:
                node.frames = forward.frames
        return node

    def _unknown_backward(self, current):
        variable = getattr(current, "variable", None)
        entry = self.modules.by_id.get(id(variable)) if variable is not None else None
        if entry is not None:
            return "Gradients/%s/Grad_accumulate" % entry[1]
        name = current.name().rpartition("::")[2].rpartition("Backward")
        return "Gradients/Default/Grad_%s" % (name[0] or name[2] or "unknown")

    def _describe(self, node, operator, args, kwargs, outs, readable):
        if not node.frames:
            node.frames = user_frames(_HIDDEN, 4)
        inputs, data, updates = [], [], set()
        written = {id(each) for each in operator.written(args, kwargs)} if operator.writes else ()
        flat = tensors_in(args)
        if kwargs:
            tensors_in(kwargs.values(), flat)
        for place, tensor in enumerate(flat):
            source = self.values.source(tensor)
            if source is None:
                name = self._data_name(tensor, readable)
                if name is None:
                    continue
                source = (name, 0)
                data.append((place, name))
            if source[0] != node.name:
                inputs.append(source)
                if id(tensor) in written:
                    updates.add(source)
        node.inputs, node.data, node.updates = inputs, data, updates
        node.infinite = infinite_argument(args, kwargs)
        node.outputs = [(dtype_name(out) or "uint8", tuple(out.shape)) for out in outs]

    def _data_name(self, tensor, readable):
        """A name for an input that nothing computed, and its value."""
        known = self._data.get(id(tensor))
        if known is not None:
            return known[0]
        if not is_plain(tensor):
            return None
        name = "data_%d" % sum(1 for key in self.recorder.parameters if key.startswith("data_"))
        self._data[id(tensor)] = (name, tensor)
        if readable:
            self.values.data(self.recorder, name, tensor)
        else:
            self.recorder.parameter(name, dtype_name(tensor), tuple(tensor.shape), None, False)
        return name

    def name_state(self, tensor, name):
        """Parameter `name`, which this step made: the first operator that changes it in place reads
        the parameter, as in all later steps."""
        source = self.values.source(tensor)
        made = {node.name: node for node in self.recorder.ran}
        reader = None
        while source is not None:
            node = made.get(source[0])
            changes = [each for each in node.inputs or () if each in node.updates] if node else []
            if source[1] >= len(changes):
                break
            reader, source = node, changes[source[1]]
        if reader is None or reader.number >= 0:
            return
        for node in self.recorder.ran:
            if source in (node.inputs or ()):
                node.inputs = [(name, 0) if each == source else each for each in node.inputs]
                node.data = [each for each in node.data if each[1] != source[0]]
                if source in node.updates:
                    node.updates = (node.updates - {source}) | {(name, 0)}

    def _refresh_data(self, node, args, kwargs):
        flat = tensors_in(args)
        if kwargs:
            tensors_in(kwargs.values(), flat)
        for place, name in node.data:
            if place < len(flat) and is_plain(flat[place]):
                self.values.data(self.recorder, name, flat[place])


class Mode(TorchDispatchMode):
    """Runs each operator once, and notes it. `trace` is None in a forked child and after a fault of
    ours."""

    def __init__(self, trace, on_fault):
        super().__init__()
        self.trace, self._on_fault = trace, on_fault

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        trace = self.trace
        if trace is None:
            return func(*args, **kwargs)
        operator = trace.operator(func)
        if operator.skip:
            out = func(*args, **kwargs)
            if operator.alias:
                trace.values.alias(out, args)
            return out
        if operator.writes:
            try:
                trace.values.before_write(operator.written(args, kwargs))
            except Exception as fault:
                self._fault(fault)
        out = func(*args, **kwargs)
        if self.trace is not None:
            try:
                trace.note(operator, args, kwargs, out)
            except Exception as fault:
                self._fault(fault)
        return out

    def _fault(self, fault):
        self.trace = None
        self._on_fault(fault)
