"""The values of one traced step: which operator made a tensor, what is published, and copies of
what is overwritten."""

import torch

from .tensors import (
    address_of,
    alias_of,
    dtype_name,
    extent_of,
    fills_storage,
    has_memory,
    is_plain,
    is_readable,
    own_part,
    shape_of,
    storage_of,
    tensors_in,
)

MOST_CHANGES = 8  # of one tensor that are shown as inputs of its reader


class _Value:
    __slots__ = ("node", "slot", "tensor", "published", "flag", "flagged", "watched", "of")

    def __init__(self, node, slot, tensor, watched=False):
        self.node, self.slot, self.tensor, self.published = node, slot, tensor, False
        self.flag, self.flagged = None, False  # of a value in a GPU
        self.watched = watched  # not kept only because the debugger does not know its node yet
        self.of = None  # (node, slot) of what has all of its elements

    def let_go(self):
        """Its elements are not kept; whether there is a NaN or an Inf is."""
        gone = self.tensor
        self.tensor = torch.empty_strided(
            gone.shape, gone.stride(), dtype=gone.dtype, device="meta"
        )


class Values:
    """Keeps an alias of each output that is wanted until the step has ended, never the tensor
    itself: a second reference to a gradient makes autograd copy it. An operator that writes into
    kept memory is announced by before_write(), memory that is given back by before_resize()."""

    def __init__(self, recorder, devices):
        self.recorder, self.devices = recorder, devices
        self._connection = recorder.connection
        # id(tensor) -> ((name, slot), time, address): valid while the address is the same
        self._by_id = {}
        self._by_address = {}  # address -> the same
        self._by_storage = {}  # storage -> values in it
        self._named = {}  # storage -> (first, last byte, name) of parameters and data in it
        self._writes = {}  # storage -> in-place changes of it: (time, source, first, last byte)
        self._unwritten = set()  # storages that nobody has written wholly
        self._time = 0
        # Values of nodes that the debugger does not know yet, and those in a GPU.
        self._waiting = []
        self.arriving = []  # values of collectives, until somebody reads one of them
        self._kept = []
        self.stopped = None  # the operator whose exception ended the program
        self._unflagged = []  # values in a GPU of which nothing is known yet
        self.all_wanted = False
        self._traced = False  # operators of this step are seen
        self._deferred = False

    def begin(self, all_wanted, traced):
        self.end()
        self.all_wanted, self._traced, self._deferred = all_wanted, traced, False
        if not traced:
            return
        for name, known in self.recorder.parameters.items():
            if known.address and known.weight:
                self.name(known.keep, name)

    def name(self, tensor, name):
        """`tensor` is parameter `name` when an operator reads it."""
        tensor = own_part(tensor)
        if is_plain(tensor):
            address = tensor.data_ptr()
            self._by_id[id(tensor)] = self._by_address[address] = ((name, 0), self._time, address)
            self._named.setdefault(storage_of(tensor), []).append((*extent_of(tensor), name))

    def named_around(self, tensor):
        """(the name of the parameter, or the data, that has all of its elements; whether it has no
        others), or (None, False)."""
        if not is_plain(tensor):
            return None, False
        first, last = extent_of(tensor)
        size, found = None, None
        for start, end, name in self._named.get(storage_of(tensor), ()):
            if start <= first and last <= end and (size is None or end - start <= size):
                size, found = end - start, name
        return found, size == last - first

    def data(self, recorder, name, tensor):
        """`tensor` is the value of data input `name` in this step."""
        if is_plain(tensor):
            if self._traced:
                self.name(tensor, name)
            recorder.parameter(
                name, dtype_name(tensor), shape_of(tensor), address_of(tensor), False, tensor
            )

    def alias(self, out, tensor):
        """`out` is what `tensor` is."""
        if hasattr(out, "data_ptr"):
            known = self._by_id.get(id(tensor))
            if known is not None and is_plain(out):
                self._by_id[id(out)] = known

    def source(self, tensor):
        """(name, slot) of what made the tensor, or None."""
        known = self.known(tensor)
        return known[0] if known is not None else None

    def known(self, tensor):
        """((name, slot), time, address) of what made the tensor, or None."""
        if not self._by_id or not is_plain(tensor):
            return None
        address = tensor.data_ptr()
        known = self._by_id.get(id(tensor))
        if known is not None and known[2] == address:
            return known
        return self._by_address.get(address) if address and tensor.numel() else None

    def unchanged(self, tensor):
        """source(), if nothing else has changed the tensor since; or None."""
        known = self._by_id.get(id(tensor))
        try:
            if known is None or known[2] != tensor.data_ptr():
                known = self.known(tensor)
        except RuntimeError:  # a tensor of another kind, without an address
            return None
        if known is None:
            return None
        if self._writes:
            writes = self._writes.get(storage_of(tensor))
            if writes and writes[-1][0] > known[1]:
                return None
        return known[0]

    def changes(self, tensor, known):
        """[(name, slot)] of what changed the tensor in place through another one that shares its
        memory, since it was made: `scores[:, 0] = value`. `known`: what known() returns."""
        if not self._writes or known is None:
            return ()
        writes = self._writes.get(storage_of(tensor))
        if not writes or writes[-1][0] <= known[1]:
            return ()
        first, last = extent_of(tensor)
        found = [
            source
            for time, source, start, end in writes
            if time > known[1] and start < last and first < end and source[0] != known[0][0]
        ]
        return found[-MOST_CHANGES:]

    def parts(self, tensor, known):
        """[(name, slot)] of all that wrote into the tensor since something wrote all of it, such as
        the gradients in a bucket of DistributedDataParallel. `known`: what known() returns."""
        writes = (
            self._writes.get(storage_of(tensor)) if known is not None and self._writes else None
        )
        if not writes:
            return ()
        first, last = extent_of(tensor)
        found = []
        for _, source, start, end in writes:
            if start <= first and last <= end:
                found.clear()
            if start < last and first < end and source[0] != known[0][0] and source not in found:
                found.append(source)
        return found

    def unwritten(self, tensor):
        """The tensor is fresh memory, which nobody computed."""
        if is_plain(tensor):
            self._unwritten.add(storage_of(tensor))

    def has_unwritten(self):
        """Whether any memory is fresh, or written in parts alone."""
        return bool(self._unwritten)

    def is_unwritten(self, tensor):
        """Whether its memory is fresh, or written in parts alone."""
        return bool(self._unwritten) and is_plain(tensor) and storage_of(tensor) in self._unwritten

    def is_written(self, tensor):
        """Whether an operator has changed its memory in place."""
        return storage_of(tensor) in self._writes

    def _wrote(self, source, out):
        """An operator has changed `out` in place. True: all of its memory."""
        storage = storage_of(out)
        first, last = extent_of(out)
        self._writes.setdefault(storage, []).append((self._time, source, first, last))
        whole = fills_storage(out)
        if whole:
            self._unwritten.discard(storage)
        return whole

    def defer(self):
        """The graph is another one than the debugger has: from here on everything is told when the
        step ends, in order, so that the first bad value comes first."""
        self._deferred = True

    def note(self, node, outs, in_place=False, view=False, later=False, of=None):
        """The outputs of an operator that has just run: written by it `in_place`, a `view` of an
        older tensor, or new. `later`: their elements come while the program goes on. `of`: the
        (name, slot) that has all of their elements, if there is one and it has not changed."""
        self._time += 1
        described = node.number >= 0
        wanted = not described or self.all_wanted or self._connection.wants_node(node.number)
        if not described:
            self.defer()
        # What a GPU computes is told when the step ends: nothing waits for it here.
        now = not self._deferred
        for slot, out in enumerate(outs):
            if not is_plain(out) or (view and not has_memory(out)):
                continue
            address, storage = out.data_ptr(), storage_of(out)
            if not in_place and not view and (self._writes or self._unwritten):
                # The number of a storage that is gone may be used again.
                self._writes.pop(storage, None)
                self._unwritten.discard(storage)
            known = (node.source(slot), self._time, address)
            if not out.numel():  # its address is none, or one in the memory of another tensor
                self._by_id[id(out)] = known
            elif address:
                self._by_id[id(out)] = known
                if not in_place or self._wrote(known[0], out):
                    self._by_address[address] = known
                else:
                    self._by_address.setdefault(address, known)
            if not wanted:
                continue
            value = _Value(node, slot, alias_of(out), described or self.all_wanted)
            self._set_of(value, of)
            self._kept.append(value)
            held = self._by_storage.get(storage)
            if held is None:
                self._by_storage[storage] = [value]
            else:
                held.append(value)
            if later:
                self.arriving.append(value)
                continue
            self._flag(value)
            now = now and not value.flagged
            if now:
                self._publish(value)
            else:
                self._waiting.append(value)
        if now and wanted and not later:
            self._connection.node_done(node.number)

    def _set_of(self, value, of):
        """`of`: as in note()."""
        made = self.recorder.by_name.get(of[0]) if of is not None else None
        if made is not None and of[1] < len(made.outputs):
            value.of = made, of[1]  # its number may be another one when the value is published

    def arrives_in(self, tensor):
        """Whether a collective still writes there."""
        tensor = own_part(tensor)
        if not is_plain(tensor):
            return False
        storage = storage_of(tensor)
        return any(storage_of(each.tensor) == storage for each in self.arriving)

    def arrived(self, args, kwargs):
        """These are read: what collectives wrote there has arrived."""
        read = tensors_in(args)
        tensors_in(kwargs.values(), read)
        storages = {storage_of(each) for each in read if is_plain(each)}
        nodes = {each.node for each in self.arriving if storage_of(each.tensor) in storages}
        if not nodes:
            return
        there = [each for each in self.arriving if each.node in nodes]
        self.arriving = [each for each in self.arriving if each.node not in nodes]
        for value in there:
            self._flag(value)
        if self._deferred or any(value.flagged for value in there):
            self._waiting.extend(there)
        else:
            self._tell(there)

    def _flag(self, value):
        """Looks for NaN and Inf where the value is; the answer is awaited when the step ends. The
        processor's memory holds values as far as there is room."""
        if not is_readable(value.tensor):
            with torch._C._DisableTorchDispatch():  # it is no operator of the program
                self.devices.note(value)
            return
        for each in self.devices.room.keep(value):
            if each.published:
                self._publish(each)

    def flag_light(self):
        """The same for all that publish_light() has left, with few kernels."""
        values, self._unflagged = self._unflagged, []
        if values:
            with torch._C._DisableTorchDispatch():
                flags = self.devices.flags([value.tensor for value in values])
            for value, flag in zip(values, flags):
                value.flag, value.flagged = flag, True

    def flag_waiting(self):
        """All that is waiting for it is looked at: memory changes."""
        self.flag_light()
        with torch._C._DisableTorchDispatch():
            self.devices.flag_waiting()

    def note_unread(self, node, outs):
        """Outputs whose values nobody may judge: only their names are noted."""
        self._time += 1
        for slot, out in enumerate(outs):
            if is_plain(out) and out.data_ptr():
                known = (node.source(slot), self._time, out.data_ptr())
                self._by_id[id(out)] = known
                self._by_address.setdefault(out.data_ptr(), known)

    def before_write(self, tensors):
        """These are about to be overwritten: keep copies of what was noted with the same memory."""
        copied = []
        for tensor in tensors:
            if not is_plain(tensor):
                continue
            held = self._by_storage.pop(storage_of(tensor), ())
            if not self.arriving:
                copied.extend(held)
                continue
            coming = []
            for value in held:
                (coming if value in self.arriving else copied).append(value)
            if coming:
                self._by_storage[storage_of(tensor)] = coming
        if copied:
            self._copy(copied)

    def before_resize(self, storage):
        """The memory of a storage is about to be given back: keep copies of what was noted in it.
        In a GPU that would double what FSDP saves: there such values are gone."""
        if not storage.nbytes():
            return
        self.flag_waiting()
        kept = self._by_storage.pop(storage._cdata, ())
        if not self._traced:
            kept = [each for each in self._kept if storage_of(each.tensor) == storage._cdata]
        self._copy([e for e in kept if is_readable(e.tensor) and has_memory(e.tensor)])
        first = storage.data_ptr()
        last = first + storage.nbytes()
        for address in [each for each in self._by_address if first <= each < last]:
            del self._by_address[address]
        self.recorder.forget_memory(first, last)

    def resized(self, storage):
        """The memory of a storage is another one."""
        if self._traced:
            self._unwritten.add(storage._cdata)

    def _copy(self, values):
        if self._unflagged:
            self.flag_light()
        with torch._C._DisableTorchDispatch():  # it is no operator of the program
            self.devices.room.copy(values)
        for value in values:
            if value.published:
                self._publish(value)

    def _publish(self, value):
        tensor, node, slot = value.tensor, value.node, value.slot
        if slot >= len(node.outputs):
            return
        dtype, shape = dtype_name(tensor), tensor.shape
        usual_dtype, usual_shape = node.outputs[slot]
        value.published = True
        if not is_readable(tensor):
            wanted = self.all_wanted or self._connection.wants_node(node.number)
            self.devices.publish(self._connection, value, dtype, wanted)
        elif value.of is not None:
            made, its_slot = value.of
            self._connection.publish_view(
                node.number,
                slot,
                (made.number, its_slot),
                dtype,
                tensor.data_ptr(),
                shape,
                None if tensor.is_contiguous() else tensor.stride(),
            )
        elif dtype == usual_dtype and tensor.is_contiguous():
            self._connection.publish(
                node.number,
                slot,
                tensor.data_ptr(),
                tensor.numel() * tensor.element_size(),
                None if shape == usual_shape else shape,
            )
        else:
            self._connection.publish_strided(
                node.number, slot, dtype, tensor.data_ptr(), shape, tensor.stride()
            )

    def waits(self):
        """Whether publish_waiting() has anything to do."""
        return bool(self._waiting or self.arriving or self._unflagged or self.stopped is not None)

    def publish_waiting(self):
        """The nodes are described now, and the step has run: publishes what was left for its end."""
        self._connection.step_computed()
        if not self._traced:
            self._read_small()
        self.flag_waiting()
        waiting, self._waiting = self.arriving + self._waiting, []
        self.arriving = []
        self._tell([value for value in waiting if value.node.number >= 0])
        if self.stopped is not None and self.stopped.number >= 0:
            self._connection.node_done(self.stopped.number)  # its inputs are there

    def _read_small(self):
        """The loss, and the like: with one number, a copy takes no longer than a flag."""
        for value in self._waiting:
            if value.tensor.numel() == 1 and not is_readable(value.tensor):
                if has_memory(value.tensor):
                    value.tensor = self.devices.read(value.tensor)
        self._unflagged = [each for each in self._unflagged if not is_readable(each.tensor)]

    def _tell(self, values):
        """Publishes values, and tells of each operator once all is known: who stops at the first
        bad one sees what became of it."""
        done = []
        for value in values:
            # A GPU tells NaN and Inf of a value whose memory is gone.
            if not is_readable(value.tensor) or has_memory(value.tensor):
                self._publish(value)
            if not done or done[-1] is not value.node:
                done.append(value.node)
        for node in done:
            self._connection.node_done(node.number)

    def publish_light(self, node, tensor, of=None):
        """The value of a node that is known without tracing. `of`: as in note(). Returns the alias
        that is kept of it, or None."""
        if not is_plain(tensor):
            return None
        tensor = alias_of(tensor)
        value = _Value(node, 0, tensor)
        self._kept.append(value)
        dtype = dtype_name(tensor)
        if dtype != node.outputs[0][0]:
            node.outputs[0] = (dtype, tuple(tensor.shape))
            self.recorder.dirty = True
            self._waiting.append(value)
            return tensor
        if self._traced:
            self._by_storage.setdefault(storage_of(tensor), []).append(value)
            self._set_of(value, of)
        # Behind operators that are told when the step ends, so is this: the first bad one comes first.
        later = self._waiting or self._deferred
        if node.number < 0 or later or not is_readable(tensor):
            wanted = node.number < 0 or self._connection.wants_node(node.number)
            if wanted and not is_readable(tensor):
                self._unflagged.append(value)
            self._waiting.append(value)
            return tensor
        self._publish(value)
        self._connection.node_done(node.number)
        return tensor

    def publish_known(self, node, slot, alias):
        """One output of an operator, in a step that is not traced."""
        if node.number >= 0:
            value = _Value(node, slot, alias)
            self._kept.append(value)
            if not is_readable(alias):
                self._waiting.append(value)
                return
            self._publish(value)
            self._connection.node_done(node.number)

    def end(self):
        """end_step() has returned: nothing is read any more."""
        self._by_id, self._by_address, self._by_storage, self._named = {}, {}, {}, {}
        self._writes, self._unwritten, self._time = {}, set(), 0
        self._waiting, self.arriving, self._kept, self._unflagged = [], [], [], []
        self.stopped = None
