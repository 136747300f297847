"""Steps of MindSpore's PyNative mode: operators as Python runs them.

idle -> the executor begins a forward pass that is differentiated -> begin -> operators are noted, if
they are wanted -> the optimizer's update has run -> what was noted is described and published -> end.

Operators run behind Python, in threads of the framework: looking at a value waits for it. So values are
noted as they come, and looked at when the step ends.
"""
import functools
import sys
import threading

from .. import _c
from .._names import library_folder, part, user_frames
from .._recorder import Recorder
from .boundary import TYPES, parameters_of

_LOSS = "Default/_loss_fn-Loss"
_UNSEEN = {"typeof", "Ones", "Zeros", "Depend", "StopGradient"}


class PyNative:
    """Wraps the executor's passes and the call of compiled functions, which shows the optimizer."""

    def __init__(self, connection, settings, probe, taken):
        self.recorder = Recorder(connection)
        self.trace, self.probe, self._taken = settings.trace, probe, taken
        self.cells = Cells()
        self.backward = False
        self._mode, self._values, self._light, self._outer = None, [], {}, None
        self._names_known, self._thread = False, None
        self._made = {}         # id of a tensor -> (name, slot, the tensor)
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
            if self.recorder.open and not self.recorder.off and threading.get_ident() == self._thread:
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
            self.recorder.give_up("the training goes on without the debugger: %s: %s" % (type(fault).__name__, fault))
            return None

    # ---- what the executor tells

    def _forward_begins(self, what=None, *_):
        if self.recorder.open or self._taken():
            return
        self._thread, self._outer, self.backward = threading.get_ident(), what, False
        self.cells.find(what)
        for name, dtype, shape, address in self.cells.parameters():
            self.recorder.parameter(name, dtype, shape, address)
        if not self.recorder.described:
            self.recorder.light_node(_LOSS, "Loss")
        if not self.recorder.begin():
            return
        self._values, self._made = [], {}
        if self._wanted():
            self._enter()

    def _wanted(self):
        if self.trace in ("step", "never", "module"):
            return False
        return self.trace in ("always", "operator") or not self._names_known or self.recorder.wants_traced()

    def _enter(self):
        if self.probe.dispatch_mode is None:
            self.say_once("this release of MindSpore lacks MsDispatchMode: operators outside graphs are not seen, "
                          "parameters, gradients and the loss are")
            return
        self._mode = _mode_class(self.probe.dispatch_mode)(self)
        self._mode.__enter__()

    def _forward_ends(self, what=None, out=None, *_):
        if not self.recorder.open or what is not self._outer or self.backward:
            return
        tensors = tensors_in((out,))
        if tensors:
            self._light_value(_LOSS, "Loss", tensors[0])
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
                self._light_value("Gradients/%s/Grad_%s" % (path, name), "Gradient", gradient)
        for name, dtype, shape, address in self.cells.parameters():
            self.recorder.parameter(name, dtype, shape, address)
        if self.recorder.describe():
            self._publish()
            self._names_known = True
            self.recorder.end()
        self._values, self._made = [], {}

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
            for tensor in tensors_in(args):
                made = self._made.get(id(tensor))
                if made is not None:
                    node.inputs.append(made[:2])
                elif self.cells.name_of(tensor):
                    node.inputs.append((self.cells.name_of(tensor), 0))
            node.frames = user_frames(self._hidden(), 3)
            node.outputs = [(TYPES.get(str(each.dtype), "uint8"), tuple(each.shape)) for each in outs]
        for slot, each in enumerate(outs):
            self._made[id(each)] = (node.name, slot, each)
            self._values.append((node, slot, each))

    @staticmethod
    def _hidden():
        import mindspore
        return (library_folder(mindspore),)

    def _light_value(self, scope, kind, tensor):
        dtype = TYPES.get(str(tensor.dtype))
        if dtype is None:
            return
        node = self._light.get((scope, kind))
        if node is None:
            node = self._light[(scope, kind)] = self.recorder.light_node(scope, kind, dtype, tuple(tensor.shape))
            node.outputs = [(dtype, tuple(tensor.shape))]
            self.recorder.dirty = True
        made = self._made.get(id(tensor))
        if made is not None and not node.inputs:
            node.inputs = [made[:2]]
            self.recorder.dirty = True
        self.recorder.light_ran(node)
        self._values.append((node, 0, tensor))

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
                    agent.say_once("operators are not seen any more: %s: %s" % (type(fault).__name__, fault))
            return out
    return Mode


class Cells:
    """Scopes from the cells whose construct() is running, found in the stack: hooks of cells would slow every call."""

    def __init__(self):
        self._paths = {}    # id(cell) -> path
        self._named = {}    # (id(root), qualified name) -> cell
        self._known = []    # so that no id is used again
        self._parameters = {}

    def find(self, what):
        """Names the cells of a function that is differentiated: those that it, or what it closes over, holds."""
        from mindspore import nn
        found = [what] if isinstance(what, nn.Cell) else []
        held = getattr(what, "__self__", None)
        if isinstance(held, nn.Cell):
            found.append(held)
        code, names = getattr(what, "__code__", None), getattr(what, "__globals__", {})
        for cell in getattr(what, "__closure__", None) or ():
            try:
                found.append(cell.cell_contents)
            except ValueError:
                continue  # not bound yet
        found.extend(names.get(name) for name in getattr(code, "co_names", ()))
        for each in found:
            if isinstance(each, nn.Cell) and not isinstance(each, nn.Optimizer):
                self._root(each)

    def _root(self, cell):
        if id(cell) in self._paths:
            return self._paths[id(cell)]
        trained = any(True for _ in cell.trainable_params())
        root = "Default/%s-%s" % ("network" if trained else "_loss_fn", part(type(cell).__name__))
        for name, each in cell.cells_and_names():
            path = root
            if name:
                parent, _, own = name.rpartition(".")
                above = self._paths.get(id(self._named.get((id(cell), parent), cell)), root)
                path = "%s/%s-%s" % (above, part(own), part(type(each).__name__))
            self._named[(id(cell), name)] = each
            self._paths.setdefault(id(each), path)
            self._known.append(each)
            for parameter in each._params.values() if hasattr(each, "_params") else ():
                self._parameters.setdefault(id(parameter), (parameter, path))
        return root

    def add_optimizer(self, optimizer):
        if id(optimizer) in self._paths:
            return
        path = "Default/optimizer-%s" % part(type(optimizer).__name__)
        self._paths[id(optimizer)] = path
        self._known.append(optimizer)
        for parameter in optimizer.get_parameters():
            self._parameters.setdefault(id(parameter), (parameter, path))

    def scope(self, frame):
        """Of the innermost cell whose construct() runs."""
        while frame is not None:
            if frame.f_code.co_name == "construct":
                cell = frame.f_locals.get("self")
                path = self._paths.get(id(cell))
                if path is not None:
                    return path
            frame = frame.f_back
        return _LOSS

    def name_of(self, tensor):
        known = self._parameters.get(id(tensor))
        return known[0].name if known else None

    def place_of(self, parameter):
        """(path of the cell, the parameter's own name)."""
        known = self._parameters.get(id(parameter))
        return (known[1] if known else "Default"), part(parameter.name.rpartition(".")[2])

    def parameters(self):
        return parameters_of(self)

    def get_parameters(self):
        seen = set()
        for parameter, _ in self._parameters.values():
            if parameter.name not in seen:
                seen.add(parameter.name)
                yield parameter


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
