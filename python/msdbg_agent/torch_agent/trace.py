"""What the operators of a traced step were: their names, what they read, and what they made."""

import itertools

import torch

from .. import _c
from .._names import MOST_FRAMES, infinite_argument, library_folder, moved_frames, user_frames
from .schemas import Operator, described, operator_of, outputs_of
from .tensors import (
    dtype_name,
    fills_storage,
    is_plain,
    own_part,
    shape_of,
    storage_of,
    tensors_in,
)

_HIDDEN = (library_folder(torch),)
_ENGINE = "_engine_run_backward"
# Copies a rank's shards to their place in fresh memory, and returns that place and the memory.
_COPIES_SHARDS = "all_gather_copy_in"
MOST_CHANGES = 4  # of what an operator reads, until all of it is shown
_TENSORS = {torch.Tensor, torch.nn.Parameter}
MOST_OPERATORS = 400000  # of one step: a loop that never ends its step must not fill the memory

_current_node = getattr(torch._C, "_current_autograd_node", None)
_sequence = getattr(getattr(torch._C, "_autograd", None), "_get_sequence_nr", None)


def _is_distributed():
    return torch.distributed.is_available() and torch.distributed.is_initialized()


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


def _holds_no_tensor(value):
    """Surely: a number, a name, or a shape."""
    if isinstance(value, (list, tuple)):
        return not value or type(value[0]) is int
    return not isinstance(value, dict)


def _is_told_nan(operator, args):
    """A number that is NaN by request: one side of a choice, as in logdet(). Whoever takes it shows
    it."""
    return operator.kind == "scalar_tensor" and args[0] != args[0]


def _copies_to_itself(to, source):
    """What Python does behind a change of a part: `x[:, 0] /= 2`."""
    same = to.shape == source.shape and to.stride() == source.stride()
    return same and is_plain(to) and is_plain(source) and to.data_ptr() == source.data_ptr()


class Trace:
    """What the operators of one step were, and their values."""

    def __init__(self, recorder, modules, values, scopes):
        self.recorder, self.modules, self.values, self.scopes = recorder, modules, values, scopes
        self.sequences = {}  # sequence number of autograd -> the forward node
        self.all_wanted = False
        self.count = 0
        self._distributed = False
        self._any_new = False  # an operator of this step was never seen before
        self._operators = {}
        self._views = set()  # kinds of those that compute nothing
        self._unknown = set()  # names of views of memory that nobody was seen to write
        self._backward = {}  # (scope, kind) of a forward node -> scope of its gradients
        self._data = {}  # id -> (name, the tensor): inputs that nothing computed
        self._numbers = itertools.count()  # of their names
        self._failed = None  # the last operator, if it raised an exception

    def begin(self):
        self.sequences.clear()
        self._data, self._unknown = {}, set()
        self._distributed = _is_distributed()
        self.count, self._any_new, self._failed = 0, False, None
        self.all_wanted = self.recorder.wants() == _c.WANTS_ALL

    def operator(self, func):
        found = self._operators.get(id(func))  # its own hash is a function of Python's
        if found is None:
            found = self._operators[id(func)] = operator_of(func)
            if found.view:
                self._views.add(found.kind)
        return found

    def note(self, operator, args, kwargs, out, later=False):
        """The operator has run. `later`: the elements of its output still come."""
        self._note(operator, args, kwargs, operator.results(args, kwargs, out), later=later)

    def note_function(self, kind, args, out, backward=None):
        """A function of the program has run, which may compute by other means than operators, such
        as NumPy or a kernel of its own. It is the operator of what no other one has made.
        `backward`: autograd's number of a function that computes gradients."""
        given = {storage_of(each) for each in tensors_in(args) if is_plain(each)}
        outs = [each if self._is_made_unseen(each, given) else None for each in outputs_of(out)]
        if all(each is None for each in outs):
            return
        operator = self._operators.get(kind)
        if operator is None:
            operator = self._operators[kind] = Operator("", kind)
        self._note(operator, args, {}, outs, () if backward is None else self._read_by(backward))

    def _is_made_unseen(self, tensor, given):
        if not is_plain(tensor) or storage_of(tensor) in given:
            return False
        values = self.values
        if values.is_unwritten(tensor):
            return not values.is_written(tensor)
        return values.known(tensor) is None

    def _read_by(self, backward):
        """What a function that computes gradients may have kept since the forward pass."""
        forward = self.sequences.get(backward)
        if forward is None:
            return ()
        return [
            *(forward.inputs or ()),
            *((forward.name, slot) for slot in range(len(forward.outputs))),
        ]

    def failed(self, operator, args, kwargs):
        """The operator raised an exception, which may end the program. Derivatives are left out:
        their place is known only while they are computed."""
        if _current_node is None or _current_node() is None:
            scope = self.scopes.path() or self.scopes.outside()
            self._failed = (operator, args, kwargs, scope, user_frames(_HIDDEN, 2))

    def note_failed(self):
        """The program ends with the exception of the last operator, which has inputs and no
        output."""
        if self._failed is None or self.count >= MOST_OPERATORS:
            return
        operator, args, kwargs, scope, frames = self._failed
        node, readable = self.recorder.node(scope, operator.kind), not operator.view
        self._called_from(node, frames)
        if node.inputs is None:
            self._describe(node, operator, args, kwargs, (), (), readable)
            self._changed()
        else:
            self._describe_again(node, operator, args, kwargs, (), readable)
        self.values.stopped = node

    def _note(self, operator, args, kwargs, outs, kept=(), later=False):
        self.count += 1
        self._failed = None
        if self.count > MOST_OPERATORS:
            return
        node = self._node(operator.kind)
        unknown = self._is_unknown(args) if operator.view else _is_told_nan(operator, args)
        if node.inputs is None:
            self._describe(node, operator, args, kwargs, outs, kept, not unknown)
            self._any_new = True
            if node.number >= 0:  # a fault of ours has left it without inputs and outputs
                self._changed()
        elif self.all_wanted or self._any_new:  # it may read what is new
            if kept or not self._reads_as_before(node, operator, args, kwargs):
                self._describe_again(node, operator, args, kwargs, kept, not unknown)
        elif node.data and not unknown:
            self._refresh_data(node, operator, args, kwargs)
        if len(outs) > len(node.outputs):
            node.outputs.extend(described(out) for out in outs[len(node.outputs) :])
            self._changed()
        if unknown:
            self._unknown.add(node.name)
            self.values.note_unread(node, outs)
        else:
            if operator.foreign and not operator.later:
                outs = self._without_unwritten(node, operator, outs, args)
            if operator.partly is not None:
                at = operator.partly
                self.values.note_unread(node, [None] * at + outs[at : at + 1])
                outs = outs[:at] + [None] + outs[at + 1 :]
            later = later or operator.later
            of = None
            if operator.rearranges and args and type(args[0]) in _TENSORS:
                of = self.values.unchanged(args[0])
            self.values.note(node, outs, operator.in_place, operator.view, later, of)

    def _without_unwritten(self, node, operator, outs, args):
        """Leaves out fresh memory that the operator returns as it is, beside the part of it that it
        has filled."""
        storages = [storage_of(out) if is_plain(out) else None for out in outs]
        fresh = {storage_of(each) for each in tensors_in(args) if self.values.is_unwritten(each)}
        if operator.kind == _COPIES_SHARDS and outs:
            fresh.add(storages[-1])  # older releases allocate it themselves
        if not fresh:
            return outs
        whole, parts, others = [], [], []
        for out, storage in zip(outs, storages):
            filled = storage in fresh and not fills_storage(out)
            whole.append(out if storage in fresh and not filled else None)
            parts.append(out if filled else None)
            others.append(None if storage in fresh else out)
        self.values.note_unread(node, whole)
        for out in whole:
            if out is not None:
                self.values.unwritten(out)
        if any(out is not None for out in parts):
            self.values.note(node, parts, in_place=True)
        return others

    def _is_unknown(self, args):
        """A view of memory that nobody was seen to write: it is fresh, or one of the buckets of a
        distributed training before they are filled."""
        if not (self._unknown or self._distributed or self.values.has_unwritten()):
            return False
        if not args or not isinstance(args[0], torch.Tensor):
            return False
        first = own_part(args[0])
        if self.values.is_unwritten(first):
            return True
        source = self.values.source(first)
        return self._distributed if source is None else source[0] in self._unknown

    def _node(self, kind):
        recorder = self.recorder
        current = _current_node() if _current_node is not None else None
        path = self.scopes.path()
        in_optimizer = path is None and self.scopes.optimizer is not None
        if current is None or in_optimizer:  # an optimizer may run within a backward pass
            node = recorder.node(path or self.scopes.outside(), kind)
            self._called_from(node, moved_frames(node.frames, _HIDDEN, 4))
            if _sequence is not None:
                self.sequences.setdefault(_sequence() - 1, node)
            return node
        if path is not None:
            node = recorder.node("Recompute/" + path, kind)
            self._called_from(node, moved_frames(node.frames, _HIDDEN, 4))
            if _sequence is not None:
                self.sequences.setdefault(_sequence() - 1, node)
            return node
        forward = self.sequences.get(current._sequence_nr())
        if forward is None:
            node = recorder.node(self._unknown_backward(current), kind)
            self._called_from(node, moved_frames(node.frames, _HIDDEN, 4))
        else:
            key = (forward.scope, forward.kind)
            scope = self._backward.get(key)
            if scope is None:
                scope = self._backward[key] = "Gradients/%s/Grad_%s" % key
            node = recorder.node(scope, kind)
            if not node.frames or node.frames_of is not forward.frames:
                frames = (user_frames(_HIDDEN, 4, _ENGINE) + forward.frames)[:MOST_FRAMES]
                self._called_from(node, frames)
                node.frames_of = forward.frames  # another list where it is reached from elsewhere
        return node

    def _called_from(self, node, frames):
        """The operator is reached from here in this step; `frames` is None if that is where it was
        reached before."""
        if frames and frames != node.frames:
            node.frames = frames
            if node.number >= 0:
                self._changed()

    def _unknown_backward(self, current):
        variable = getattr(current, "variable", None)
        entry = self.modules.by_id.get(id(variable)) if variable is not None else None
        if entry is not None:
            return "Gradients/%s/Grad_accumulate" % entry[1]
        name = current.name().rpartition("::")[2].rpartition("Backward")
        return "Gradients/Default/Grad_%s" % (name[0] or name[2] or "unknown")

    def _describe(self, node, operator, args, kwargs, outs, kept, readable):
        inputs, node.data, node.updates = self._inputs(node, operator, args, kwargs, readable)
        node.inputs = inputs + [each for each in kept if each not in inputs]
        node.infinite = infinite_argument(args, kwargs)
        node.attributes = operator.attributes(args, kwargs)
        node.outputs = [described(out) for out in outs]

    def _describe_again(self, node, operator, args, kwargs, kept, readable):
        """A program with branches: an operator may read something else than in earlier steps."""
        inputs, data, updates = self._inputs(node, operator, args, kwargs, readable)
        if kept:
            inputs += [each for each in kept if each not in inputs]
        if inputs == node.inputs:
            return
        node.changes += 1
        if node.changes > MOST_CHANGES:
            # It alternates, as in the two steps of a GAN: show all that it may read.
            inputs = node.inputs + [each for each in inputs if each not in node.inputs]
            data, updates = data or node.data, updates | node.updates
            if inputs == node.inputs:
                return
        node.inputs, node.data, node.updates = inputs, data, updates
        node.infinite = infinite_argument(args, kwargs)
        self._changed()

    def _reads_as_before(self, node, operator, args, kwargs):
        """Whether it is sure that the operator reads what it did in earlier steps, as most do."""
        if node.data or kwargs or operator.first or operator.later:
            return False
        values, inputs = self.values, node.inputs
        place, most = 0, len(inputs)
        for value in args:
            if type(value) in _TENSORS:
                source = values.unchanged(value)
                if place == most or (source is not inputs[place] and source != inputs[place]):
                    return False
                place += 1
            elif isinstance(value, torch.Tensor) or not _holds_no_tensor(value):
                return False
        return place == most

    def _changed(self):
        self.recorder.dirty = True
        self.values.defer()

    def _inputs(self, node, operator, args, kwargs, readable):
        """(inputs, which of them are data, which of them it changes in place)."""
        inputs, data, updates, whole = [], [], set(), []
        written = {id(each) for each in operator.written(args, kwargs)} if operator.writes else ()
        values, names = self.values, dict(node.data) if node.data else {}
        own, changes = node.name, values.parts if operator.later else values.changes
        for place, tensor in enumerate(operator.read(args, kwargs)):
            known = values.known(tensor)
            if known is None:
                overwritten = id(tensor) in written or (operator.foreign and not operator.later)
                if overwritten and values.is_unwritten(tensor):
                    continue  # what was in it does not matter
                name = self._data_name(tensor, readable, names.get(place))
                if name is None:
                    continue
                source = (name, 0)
                data.append((place, name))
                known = values.known(tensor)
            else:
                source = known[0]
                if names and names.get(place) == source[0]:
                    data.append((place, source[0]))
            if source[0] != own:
                inputs.append(source)
                if written and id(tensor) in written:
                    updates.add(source)
                    if operator.kind != "copy_" or not _copies_to_itself(*args[:2]):
                        whole.extend(self._changed_with(tensor, source))
            for each in changes(tensor, known):
                if each[0] != own:
                    inputs.append(each)
        if whole:
            # Behind the others: the outputs are the first of what is changed.
            inputs.extend(each for each in whole if each not in inputs)
            updates.update(whole)
        return inputs, data, updates

    def _changed_with(self, tensor, source):
        """[(name, slot)] of a parameter, or of data, that is changed through a view of it, as
        optimizers change complex ones, and programs a part: `x[:, 0] /= 2`."""
        name, whole = self.values.named_around(tensor)
        if name is None or name == source[0]:
            return []
        # What changes all of it again is known from the one that it changes.
        kind = source[0].rpartition("/")[2].rpartition("-op")[0]
        return [] if whole and kind not in self._views else [(name, 0)]

    def _data_name(self, tensor, readable, name=None):
        """A name for an input that nothing computed, and its value. `name`: the one it had."""
        known = self._data.get(id(tensor))
        if known is not None:
            return known[0]
        if not is_plain(tensor):
            return None
        if name is None:
            name = "data_%d" % next(self._numbers)
        self._data[id(tensor)] = (name, tensor)
        if readable:
            self.values.data(self.recorder, name, tensor)
        else:
            self.recorder.parameter(name, dtype_name(tensor), shape_of(tensor), None, False)
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
        self._rename(source, name)

    def name_parameter(self, tensor, name):
        """Parameter `name`, which operators of this step took for data."""
        known = self._data.pop(id(own_part(tensor)), None)
        if known is not None:
            self.values.name(tensor, name)
            self._rename((known[0], 0), name)

    def _rename(self, source, name):
        """What operators of this step have read is a parameter."""
        readers = [node for node in self.recorder.ran if source in (node.inputs or ())]
        if any(node.number >= 0 for node in readers):
            return  # the debugger knows it by its other name
        for node in readers:
            node.inputs = [(name, 0) if each == source else each for each in node.inputs]
            node.data = [each for each in node.data if each[1] != source[0]]
            if source in node.updates:
                node.updates = (node.updates - {source}) | {(name, 0)}
        if source[0].startswith("data_"):
            self.recorder.parameters.pop(source[0], None)

    def _refresh_data(self, node, operator, args, kwargs):
        flat = operator.read(args, kwargs)
        for place, name in node.data:
            if place < len(flat) and is_plain(flat[place]):
                self.values.data(self.recorder, name, flat[place])
