"""Steps of MindSpore's PyNative mode: operators as Python runs them.

idle -> the executor begins a forward pass that is differentiated -> begin -> operators are noted,
if they are wanted -> the optimizer's update has run -> what was noted is described and published ->
end.

Operators run behind Python, in threads of the framework: looking at a value waits for it. So values
are noted as they come, and looked at when the step ends.
"""

import functools
import sys
import threading

from .. import _c
from .._names import library_folder, part, user_frames
from .._recorder import Recorder
from .boundary import TYPES, input_names
from .cells import LOSS, Cells

_UNSEEN = {"typeof", "Ones", "Zeros", "Depend", "StopGradient"}


class PyNative:
    """Wraps the executor's passes and the call of compiled functions, which shows the optimizer."""

    def __init__(self, connection, settings, probe, taken):
        self.recorder = Recorder(connection)
        self.trace, self.probe, self._taken = settings.trace, probe, taken
        self.cells = Cells()
        self.backward = False
        self._mode, self._outer = None, None
        self._values = []  # (node, slot, tensor) of this step, in order
        self._light = {}
        self._names_known, self._thread = False, None
        self._new = []  # (values before it, node, the tensors that it read)
        self._weights = {}  # node of a gradient -> name of the parameter
        self._said, self._undo = set(), []
        self._wrap(probe.pynative_executor, "new_graph", self._forward_begins)
        self._wrap(probe.pynative_executor, "end_graph", self._forward_ends)
        self._wrap(probe.pynative_executor, "grad", self._backward_begins)
        if probe.jit_executor is not None:
            self._wrap_call(probe.jit_executor)

    def say_once(self, line):
        if line not in self._said:
            self._said.add(line)
            _c.say(line)

    def _wrap(self, owner, name, told):
        original = getattr(owner, name, None)
        if original is None:
            return

        @functools.wraps(original)
        def wrapped(executor, *args, **kwargs):
            if not self.recorder.off:
                self._guarded(told, *args)
            return original(executor, *args, **kwargs)

        setattr(owner, name, wrapped)
        self._undo.append(lambda: setattr(owner, name, original))

    def _wrap_call(self, owner):
        original = owner.__call__

        @functools.wraps(original)
        def call(executor, *args, **kwargs):
            out = original(executor, *args, **kwargs)
            if (
                self.recorder.open
                and not self.recorder.off
                and threading.get_ident() == self._thread
            ):
                from mindspore import nn

                held = getattr(executor, "obj", None)
                if isinstance(held, nn.Optimizer):
                    self._guarded(self._optimizer_ran, held, args)
            return out

        owner.__call__ = call
        self._undo.append(lambda: setattr(owner, "__call__", original))

    def _guarded(self, function, *args):
        """A fault of ours must not reach the training."""
        try:
            return function(*args)
        except Exception as fault:
            self._leave()
            self.recorder.failed(fault)
            return None

    # ---- what the executor tells

    def _forward_begins(self, what=None, *args):
        if self.recorder.open or self._taken():
            return
        self._thread, self._outer, self.backward = threading.get_ident(), what, False
        self.cells.find(what)
        for name, dtype, shape, address in self.cells.parameters():
            self.recorder.parameter(name, dtype, shape, address)
        for name, value in zip(input_names(what, len(args)), args):
            dtype = TYPES.get(str(getattr(value, "dtype", None)))
            if dtype and hasattr(value, "data_ptr") and value.is_contiguous():
                self.recorder.parameter(
                    "data.%s" % name,
                    dtype,
                    tuple(value.shape),
                    value.data_ptr() or None,
                    False,
                    value,
                )
        if not self.recorder.described:
            self.recorder.light_node(LOSS, "Loss")
        if not self.recorder.begin():
            return
        self._values, self._new = [], []
        if self._wanted():
            self._enter()

    def _wanted(self):
        if self.trace in ("step", "never", "module"):
            return False
        return (
            self.trace in ("always", "operator")
            or not self._names_known
            or self.recorder.wants_traced()
        )

    def _enter(self):
        if self.probe.dispatch_mode is None:
            self.say_once(
                "this release of MindSpore lacks MsDispatchMode: operators outside graphs are not seen, "
                "parameters, gradients and the loss are"
            )
            return
        self._mode = _mode_class(self.probe.dispatch_mode)(self)
        self._mode.__enter__()

    def _forward_ends(self, what=None, out=None, *_):
        if not self.recorder.open or what is not self._outer or self.backward:
            return
        tensors = tensors_in((out,))
        if tensors:
            self._light_value(LOSS, "Loss", tensors[0])
        self.cells.find(what)

    def _backward_begins(self, *_):
        if self.recorder.open:
            self.backward = True

    def _optimizer_ran(self, optimizer, args):
        self._leave()
        self.cells.add_optimizer(optimizer)
        weights = list(getattr(optimizer, "parameters", ()))
        gradients = tensors_in(args)
        if len(gradients) == len(weights):
            for weight, gradient in zip(weights, gradients):
                path, name = self.cells.place_of(weight)
                node = self._light_value(
                    "Gradients/%s/Grad_%s" % (path, name), "Gradient", gradient, weight.name
                )
                # The update ran as one compiled function; this stands for what it did to
                # the parameter.
                kind = type(optimizer).__name__
                update = self._light_value(
                    "Default/optimizer-%s/%s-%s" % (part(kind), part(weight.name), part(kind)),
                    "Apply%s" % part(kind),
                    weight,
                )
                if node is not None and update is not None and not update.inputs:
                    update.inputs = [(weight.name, 0), (node.name, 0)]
                    self.recorder.dirty = True
        for name, dtype, shape, address in self.cells.parameters():
            self.recorder.parameter(name, dtype, shape, address)
        self._resolve()
        if self.recorder.describe():
            self._publish()
            self._names_known = True
            self.recorder.end()
        self._values = []

    # ---- operators

    def note(self, name, args, out):
        """An operator was called. Nothing of it is read now."""
        if name in _UNSEEN or threading.get_ident() != self._thread:
            return
        outs = tensors_in((out,))
        if not outs:
            return
        if self.backward:
            scope = "Gradients/Default/backward"
        else:
            scope = self.cells.scope(sys._getframe(2))
        node = self.recorder.node(scope, part(name))
        if node.inputs is None:
            node.inputs = []
            self._new.append((len(self._values), node, tensors_in(args)))
            node.frames = user_frames(self._hidden(), 3)
            node.outputs = [
                (TYPES.get(str(each.dtype), "uint8"), tuple(each.shape)) for each in outs
            ]
        self._values.extend((node, slot, each) for slot, each in enumerate(outs))

    @staticmethod
    def _hidden():
        import mindspore

        return (library_folder(mindspore),)

    def _light_value(self, scope, kind, tensor, weight=None):
        dtype = TYPES.get(str(tensor.dtype))
        if dtype is None:
            return None
        node = self._light.get((scope, kind))
        if node is None:
            node = self._light[(scope, kind)] = self.recorder.light_node(
                scope, kind, dtype, tuple(tensor.shape)
            )
            node.outputs = [(dtype, tuple(tensor.shape))]
            self.recorder.dirty = True
        self.recorder.light_ran(node)
        if not node.inputs and kind in ("Loss", "Gradient"):
            self._new.append((len(self._values), node, [tensor]))
            self._weights[node] = weight
        self._values.append((node, 0, tensor))
        return node

    def _resolve(self):
        """What the new nodes read, by address: Python's objects differ from call to call. Waits for
        the operators."""
        places = {}
        for name, known in self.recorder.parameters.items():
            if known.address:
                places[known.address] = (name, 0)
        at, readers = 0, {}
        for count, node, tensors in self._new:
            while at < count:
                made, slot, tensor = self._values[at]
                address = tensor.data_ptr()
                if address and not made.light:
                    places[address] = (made.name, slot)
                at += 1
            node.inputs = [
                places[address]
                for address in (tensor.data_ptr() for tensor in tensors)
                if address in places
            ]
            for name, slot in node.inputs:
                readers.setdefault(name, node)
            weight = self._weights.get(node)
            if weight and not node.inputs and weight in readers:
                # No operator of the backward pass is seen that made this gradient: it
                # comes from what the forward one read.
                node.inputs = list(readers[weight].inputs) + [(LOSS + "/Loss-op0", 0)]
            self.recorder.dirty = self.recorder.dirty or bool(node.inputs)
        self._new = []

    def _publish(self):
        """Everything that was noted, in order. Waits for the operators."""
        connection, done = self.recorder.connection, None
        kept = []
        for node, slot, tensor in self._values:
            if node.number < 0 or slot >= len(node.outputs) or not hasattr(tensor, "data_ptr"):
                continue
            if done is not None and done is not node:
                connection.node_done(done.number)
            if not tensor.is_contiguous():
                tensor = tensor.contiguous()
                kept.append(tensor)
            address = tensor.data_ptr()
            if address:
                dtype, shape = TYPES.get(str(tensor.dtype)), tuple(tensor.shape)
                if dtype == node.outputs[slot][0]:
                    connection.publish(node.number, slot, address, tensor.nbytes, shape)
                elif dtype:
                    connection.publish_copy(node.number, slot, dtype, address, shape, None)
            done = node
        if done is not None:
            connection.node_done(done.number)
        self._values.extend((None, 0, tensor) for tensor in kept)

    def _leave(self):
        mode, self._mode = self._mode, None
        if mode is not None:
            mode.agent = None
            mode.__exit__(None, None, None)

    def close(self):
        self._leave()
        self.recorder.off, self.recorder.open = True, False
        for undo in self._undo:
            undo()
        self._undo = []


def _mode_class(base):
    class Mode(base):
        """Runs each operator once, and notes it."""

        def __init__(self, agent):
            super().__init__()
            self.agent = agent

        def __ms_dispatch__(self, func, args, kwargs=None):
            out = func(*args, **(kwargs or {}))
            agent = self.agent
            if agent is not None:
                try:
                    agent.note(func.name, args, out)
                except Exception as fault:
                    self.agent = None
                    agent.say_once(
                        "operators are not seen any more: %s: %s" % (type(fault).__name__, fault)
                    )
            return out

    return Mode


def tensors_in(values, found=None):
    """All tensors in (nested) arguments, in order."""
    from mindspore import Tensor

    if found is None:
        found = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            tensors_in(value, found)
    return found
