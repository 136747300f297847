"""The operators of a PyNative step: noted as Python runs them, looked at when the step ends.

Operators run behind Python, in threads of the framework: looking at a value, or at its address,
waits for it. So nothing is read before `finish()`.
"""

import sys
import threading

from .. import _c
from .._names import infinite_argument, library_folder, part, user_frame, user_frames
from .backward import Backward
from .cells import LOSS
from .kinds import bound, kind_of
from .memory import is_readable
from .places import Places, writes_in_place
from .tensors import TYPES, input_names, is_mask, tensors_in

_UNSEEN = {"typeof", "Ones", "Zeros", "Depend", "StopGradient"}
_NOT_SEEN = "not_seen"
_MOST_CHANGES = 3  # how often a node is told to read something else
# Of a tensor that has the type already, these return the same elements.
_CASTS = {"Cast", "To", "Astype", "Type", "TypeAs", "Float", "Half", "Int", "Long", "Bool"}


# The outputs that are results. What follows them is memory for the backward pass, which writes to it.
_RESULTS = {"LSTM": 3, "GRUV2": 2}


class Call:
    """A call of a compiled function, which the framework's dump shows."""

    __slots__ = ("scope", "read", "outs", "names", "groups", "kind", "frames", "is_update")

    def __init__(self, scope, executor, args, out, kind, frames):
        self.scope, self.kind, self.frames = scope, kind, frames
        self.read, self.outs = tensors_in(args), tensors_in((out,))
        self.is_update = kind is not None and bool(kind.changed) and not kind.backward
        self.names = {}  # of arguments: the tensors
        self.groups = []  # the tensors of each argument that has any
        values = args[1:] if getattr(executor, "obj", None) is not None else args
        for name, value in zip(input_names(bound(executor), len(values)), values):
            self.names[name] = tensors_in((value,))
        for value in values:
            if tensors_in((value,)):
                self.groups.append(tensors_in((value,)))


class Operators:
    def __init__(self, recorder, cells, say_once):
        self.recorder, self.cells, self._say_once = recorder, cells, say_once
        self.in_backward = self.in_update = self.after_backward = self._trains = False
        self.count = 0  # of what was noted, ever
        self._light = {}
        self._weights = {}  # node of a gradient -> name of the parameter
        self._thread = None
        self._hidden = None
        self._backward = Backward()
        self._no_hooks = False
        self.begin()

    def begin(self):
        self.forget()
        self._thread = threading.get_ident()
        self.in_update = self.after_backward = self._trains = False
        self._pass = None  # the frame of the program that runs the backward pass
        self._aliases = {}  # address -> (name, slot)

    def forget(self):
        """Lets go of the tensors of the step."""
        self.recorder.remote.forget_outputs()
        self._values = []  # (node, slot, tensor) of this step, in order
        # (values before it, node, the tensors that it read, the nodes of the forward pass that it
        # can work for, if it is of the backward pass, whether it is known what it read before)
        self._new = []
        self.compiled = []  # calls of compiled functions
        self._hooks = {}
        self._backward.close()
        self._backward = Backward()

    # ---- while the step runs

    def note(self, name, args, out, depth=2):
        """An operator was called, `depth` frames below the user's or the framework's code."""
        if threading.get_ident() != self._thread:
            return
        self.count += 1
        outs = tensors_in((out,))
        if not outs:
            return
        if self.in_backward:
            # Those of a `bprop` or a hook, which the framework calls in the midst of the pass.
            frames = user_frames(self._library(), depth + 1, above=self._pass)
            self._backward.ran(len(self._values), name, tensors_in(args), outs, frames)
            return
        if name in _UNSEEN:
            return
        read = tensors_in(args)
        if name in _CASTS:
            if read and read[0].dtype == outs[0].dtype:
                return
            name = "Cast"
        scope, cell = self.cells.running(sys._getframe(depth))
        training = getattr(cell, "training", False)
        if not self.after_backward:
            self._trains = self._trains or training
        elif self._trains and cell is not None and not training:
            return  # an evaluation between the gradients and the update
        node = self.recorder.node(scope, part(name))
        if node.inputs is None:
            node.frames = user_frames(self._library(), depth + 1)
            node.infinite = infinite_argument(args)
        self.add(node, read, outs)
        if self.in_update or self.after_backward:
            return
        number = self._backward.forward(node, read, outs)
        # The framework tells the gradients of what some operators return, and for others only those
        # of what they are given.
        for place, each in enumerate(read):
            self._ask_gradient(each, number, place, True)
        for slot, each in enumerate(outs):
            self._ask_gradient(each, number, slot, False)

    def backward_begins(self):
        self.in_backward = self.recorder.open
        self._pass = user_frame(self._library()) if self.in_backward else None

    def pass_made(self, weights, gradients):
        """A backward pass returns these: the last ones are those of the weights."""
        if self.in_backward and len(gradients) >= len(weights) > 0:
            self._backward.pass_made(weights, gradients[-len(weights) :])

    def backward_ends(self):
        self.in_backward, self._pass = False, None

    def add(self, node, read, outs, forward=()):
        """A node has run, in this order."""
        known = node.inputs is not None
        if not known:
            node.inputs = []
        if not known or node.changes < _MOST_CHANGES:
            self._new.append((len(self._values), node, read, forward, known))
        if not known:
            node.outputs = [
                (TYPES.get(str(each.dtype), "uint8"), tuple(each.shape))
                for each in outs[: _RESULTS.get(node.kind)]
            ]
        self._values.extend((node, slot, each) for slot, each in enumerate(outs))

    def _ask_gradient(self, tensor, number, place, given):
        """The gradient of an output, or of what an operator was `given`."""
        if self._no_hooks or id(tensor) in self._hooks or "Float" not in str(tensor.dtype):
            return
        backward = self._backward

        def told(gradient):
            # Nothing may be raised here, and nothing returned: that would be the new gradient.
            if gradient is not None:
                backward.gradient(len(self._values), number, place, given, gradient)

        try:
            self._hooks[id(tensor)] = (tensor.register_hook(told), tensor)
        except Exception as fault:
            if "requires grad is false" in str(fault):
                return  # it has no gradient
            self._say_once("gradients between operators are not all seen: %s" % _c.line_of(fault))

    def compiled_begins(self):
        """MindSpore compiles the hooks of a compiled function's arguments, and crashes on ours: where
        such functions are called, gradients between operators are not asked for."""
        hooks, self._hooks, self._no_hooks = self._hooks, {}, True
        for hook, _ in hooks.values():
            hook.remove()

    def called_compiled(self, executor, args, out):
        """A compiled function was called: the framework's dump shows what ran in it."""
        held = getattr(executor, "obj", None)
        name = getattr(getattr(executor, "fn", None), "__name__", "jit")
        scope, kind = self.cells.path_of(held), kind_of(executor)
        if kind is not None and (kind.backward or kind.changed):
            # It holds the network, or the optimizer: its operators have their own places.
            scope = "Default"
        elif scope is None:
            scope = "%s/%s" % (self.cells.scope(sys._getframe(2)), part(name))
        frames = user_frames(self._library(), 3)
        self.compiled.append(Call(scope, executor, args, out, kind, frames))

    def _library(self):
        if self._hidden is None:
            import mindspore

            self._hidden = (library_folder(mindspore),)
        return self._hidden

    # ---- what is known without operators

    def light(self, scope, kind, tensor, weight=None):
        """The node of a value like this tensor, which is known without tracing; None if its type is
        not known."""
        dtype = TYPES.get(str(tensor.dtype))
        if dtype is None:
            return None
        node = self._light.get((scope, kind))
        if node is None:
            node = self._light[(scope, kind)] = self.recorder.light_node(
                scope, kind, dtype, tuple(tensor.shape)
            )
            node.outputs = [(dtype, tuple(tensor.shape))]
            node.gradient_of = weight if kind == "Gradient" else None
            self.recorder.dirty = True
        return node

    def light_value(self, scope, kind, tensor, weight=None):
        node = self.light(scope, kind, tensor, weight)
        if node is None:
            return None
        self.recorder.light_ran(node)
        if kind in ("Loss", "Gradient") and node.changes < _MOST_CHANGES:
            self._new.append((len(self._values), node, [tensor], (), bool(node.inputs)))
            self._weights[node] = weight
        if kind == "Loss":
            self._backward.loss = tensor
        self._values.append((node, 0, tensor))
        return node

    def alias(self, tensor, node, slot):
        """A tensor that Python has is this output of a node, whose own value is elsewhere."""
        self._aliases[tensor.data_ptr()] = (node.name, slot)

    def published(self):
        """(node, slot, tensor) so far."""
        return self._values

    # ---- when the step ends

    def name_backward(self):
        """Puts the operators of the backward passes below those that they belong to, and in order:
        what follows a pass reads its gradients."""
        values, new = self._values, self._new
        self._values, self._new = [], []
        taken = waiting = 0
        for at, scope, kind, frames, read, outs, forward in self._backward.named():
            taken, waiting = self._take(values, new, taken, waiting, at)
            node = self.recorder.node(scope, kind)
            if node.inputs is None:
                node.frames = frames
            self.add(node, read, outs, forward)
        self._take(values, new, taken, waiting, len(values) + 1)
        order = {}
        for place, (node, _, _) in enumerate(self._values):
            order.setdefault(node, place)
        self.recorder.ran.sort(key=lambda node: order.get(node, len(self._values)))

    def _take(self, values, new, taken, waiting, until):
        """Notes again what had been noted before the value with that number."""
        while taken < min(until, len(values)) or waiting < len(new) and new[waiting][0] < until:
            while waiting < len(new) and new[waiting][0] <= taken:
                self._new.append((len(self._values),) + new[waiting][1:])
                waiting += 1
            if taken == len(values):
                break
            self._values.append(values[taken])
            taken += 1
        return taken, waiting

    def resolve(self):
        """What the new nodes read. Waits for the operators. Returns where everything is."""
        places = Places(self.recorder.parameters, self._aliases)
        at, readers, assigned = 0, {}, {}
        for count, node, tensors, forward, known in self._new:
            while at < count:
                made, slot, tensor = self._values[at]
                places.made(made, slot, tensor)
                if made.gradient_of and places.find(tensor, False) is None:
                    places.is_at(tensor.data_ptr(), made, slot, tuple(tensor.shape))
                if made in assigned:
                    places.is_at(assigned[made], made, slot)
                at += 1
            if known and not self._reads_another(places, node, tensors):
                continue
            inputs, hidden = [], False
            for tensor in tensors:
                found = places.find(tensor, not node.light)
                if found is not None and found[0] != node.name:
                    inputs.append(found)
                if found is None and node.infinite is None and is_mask(tensor):
                    node.infinite = ("mask", "-Infinity")
                if found is None and not node.light:
                    # The gradient of a weight, made by an operator that is not seen.
                    for reader in self._backward.readers_of_weight(tensor):
                        inputs += (reader.inputs or []) + self._arrived(reader, places, node)
                hidden = hidden or found is None and tensor.ndim > 0
            if hidden and forward:
                # Made by an operator of the backward pass that is not seen, of what was.
                arrived = []
                for each in forward:
                    arrived += self._arrived(each, places, node)
                inputs += arrived or [self._not_seen()]
            if known and node.changes > 1:
                inputs += [each for each in node.inputs if each not in inputs]  # it alternates
            node.inputs = list(dict.fromkeys(inputs)) if len(inputs) > 8 else inputs
            if writes_in_place(node) and inputs and self._is_parameter(tensors[0]):
                # What it returns is what the parameter is from here on, at another address.
                node.updates = {inputs[0]}
                assigned[node] = tensors[0].data_ptr()
            if not node.name.startswith("Gradients/") and node.kind != "TensorMove":
                for name, _ in inputs:
                    readers.setdefault(name, node)
            weight = self._weights.get(node)
            if weight and not node.inputs and weight in readers:
                # No operator of the backward pass is seen that made this gradient: it comes from
                # what the forward one read, and from the gradient of what it made.
                reader = readers[weight]
                made = self._arrived(reader, places, node)
                if not made:
                    above = "Gradients/%s/Grad_%s/" % (reader.scope, reader.kind)
                    names = [each.name for each in self.recorder.ran if each.name.startswith(above)]
                    made = [(names[0] if names else LOSS + "/Loss-op0", 0)]
                node.inputs = list(reader.inputs) + made
                node.frames = node.frames or reader.frames
            self.recorder.dirty = self.recorder.dirty or bool(node.inputs)
        self._new = []
        return places

    @staticmethod
    def _reads_another(places, node, tensors):
        """Whether a node surely reads something that it is not known to read."""
        found = [places.find(each, False) for each in tensors]
        other = any(
            each is not None and each[0] != node.name and each not in node.inputs for each in found
        )
        node.changes += other
        return other

    def _arrived(self, forward, places, node):
        """The gradients of what a node of the forward pass has made."""
        found = [places.find(each) for each in self._backward.arrived.get(forward, ())]
        return [each for each in found if each is not None and each[0] != node.name]

    def _not_seen(self):
        """What stands for a value that nobody knows: without it, an operator would have made itself
        what is wrong with it."""
        self.recorder.parameter(_NOT_SEEN, "float32", (), None, False)
        return _NOT_SEEN, 0

    def _is_parameter(self, tensor):
        return not isinstance(tensor, tuple) and self.cells.name_of(tensor) is not None

    def _overwritten(self):
        """Places of the values that are not there any more: something was written into their memory."""
        lost, written = set(), set()
        for place in range(len(self._values) - 1, -1, -1):
            node, _, tensor = self._values[place]
            if not written and not writes_in_place(node) or not hasattr(tensor, "data_ptr"):
                continue
            address = tensor.data_ptr()
            if address in written and not node.light:
                lost.add(place)
            if writes_in_place(node):
                written.add(address)
        return lost

    def publish(self, places):
        """Everything that was noted, in order; `places` as of resolve(). Waits for the operators."""
        connection, done = self.recorder.connection, None
        connection.step_computed()
        kept, lost = [], self._overwritten()
        for place, (node, slot, tensor) in enumerate(self._values):
            if node.number < 0 or slot >= len(node.outputs) or not hasattr(tensor, "data_ptr"):
                continue
            if place in lost:
                continue
            if done is not None and done is not node:
                connection.node_done(done.number)
            if not (node.light or writes_in_place(node)) and places.parameter_at(tensor.data_ptr()):
                continue  # a view of a parameter, which the update has changed
            dtype, shape = TYPES.get(str(tensor.dtype)), tuple(tensor.shape)
            if not is_readable(tensor):
                if dtype:
                    self.recorder.remote.publish(
                        connection, node.number, slot, dtype, shape, tensor
                    )
                done = node
                continue
            if not tensor.is_contiguous():
                tensor = tensor.contiguous()
                kept.append(tensor)
            address = tensor.data_ptr()
            if address:
                if dtype == node.outputs[slot][0]:
                    connection.publish(node.number, slot, address, tensor.nbytes, shape)
                elif dtype:
                    connection.publish_copy(node.number, slot, dtype, address, shape, None)
            done = node
        if done is not None:
            connection.node_done(done.number)
        self._values.extend((None, 0, tensor) for tensor in kept)
