"""Steps of MindSpore's PyNative mode: operators as Python runs them.

idle -> the executor begins a forward pass that is differentiated -> begin -> operators are noted,
if they are wanted -> the optimizer's update has run -> what was noted is described and published ->
end.

Operators run behind Python, in threads of the framework: looking at a value waits for it. So values
are noted as they come, and looked at when the step ends.
"""

import functools
import threading

from .. import _c
from .._names import part
from .._recorder import Recorder
from .cells import LOSS, Cells
from .compiled import Compiled
from .operators import Operators
from .patches import Patches
from .tensors import TYPES, input_names, tensors_in


class PyNative:
    """Wraps the executor's passes and the call of compiled functions, which shows the optimizer."""

    def __init__(self, connection, settings, probe, window, taken):
        self.recorder = Recorder(connection)
        self.trace, self.probe, self._taken = settings.trace, probe, taken
        self._manual = settings.steps == "manual"
        self.cells = Cells()
        self.operators = Operators(self.recorder, self.cells, self.say_once)
        self.compiled = Compiled(window, self.operators, self.say_once, probe.sync)
        self.patches = Patches(
            self.operators,
            lambda fault: self.say_once("operators are not seen any more: %s" % fault),
        )
        self._mode, self._outer, self._traced = None, None, False
        self._names_known, self._thread, self._complete = False, None, False
        self._said, self._undo = set(), []
        self._wrap(probe.pynative_executor, "new_graph", self._forward_begins)
        self._wrap(probe.pynative_executor, "end_graph", self._forward_ends)
        self._wrap(probe.pynative_executor, "grad", self._backward_begins, self._backward_ends)
        if probe.jit_executor is not None:
            self._wrap_call(probe.jit_executor)

    def say_once(self, line):
        if line not in self._said:
            self._said.add(line)
            _c.say(line)

    def _wrap(self, owner, name, told, told_after=None):
        original = getattr(owner, name, None)
        if original is None:
            return

        @functools.wraps(original)
        def wrapped(executor, *args, **kwargs):
            if not self.recorder.off:
                self._guarded(told, *args)
            try:
                return original(executor, *args, **kwargs)
            finally:
                if told_after is not None and not self.recorder.off:
                    self._guarded(told_after)

        setattr(owner, name, wrapped)
        self._undo.append(lambda: setattr(owner, name, original))

    def _wrap_call(self, owner):
        original = owner.__call__

        @functools.wraps(original)
        def call(executor, *args, **kwargs):
            if not (
                self.recorder.open
                and not self.recorder.off
                and threading.get_ident() == self._thread
            ):
                return original(executor, *args, **kwargs)
            from mindspore import nn

            held = getattr(executor, "obj", None)
            if isinstance(held, nn.Optimizer):
                self._guarded(self.compiled.pause)
                out = original(executor, *args, **kwargs)
                self._guarded(self._optimizer_ran, held, args)
            else:
                if self._traced:
                    self._guarded(self.operators.compiled_begins)
                mode, self._mode = self._mode, None
                if mode is not None:
                    mode.__exit__(None, None, None)
                self.patches.pause()
                try:
                    out = original(executor, *args, **kwargs)
                finally:
                    if mode is not None:
                        self._mode = mode
                        mode.__enter__()
                    self.patches.resume()
                if self._traced:
                    self._guarded(self.compiled.called, executor, args, out)
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
        if not self.recorder.open:
            if not self._manual:
                self._begin(what, args)
        elif self._outer is None and threading.get_ident() == self._thread:
            self._outer = what  # the first pass of a step that began by hand
            self.cells.find(what)
            self._note_inputs(what, args)

    def _note_inputs(self, what, args):
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

    def _begin(self, what, args=()):
        if self._taken():
            return
        self._thread, self._outer, self._complete = threading.get_ident(), what, False
        self.cells.find(what)
        for name, dtype, shape, address in self.cells.parameters():
            self.recorder.parameter(name, dtype, shape, address)
        self._note_inputs(what, args)
        if not self.recorder.described:
            self.recorder.light_node(LOSS, "Loss")
        if not self.recorder.begin():
            return
        self.operators.begin()
        self._traced = self._wanted()
        if self._traced:
            self.compiled.begin(self.recorder.step)
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
            try:
                self.patches.enter()
            except Exception as fault:
                self.patches.leave()
                self.say_once(
                    "this release of MindSpore lacks MsDispatchMode, and its operators cannot be replaced (%s): "
                    "operators outside graphs are not seen, parameters, gradients and the loss are"
                    % fault
                )
            return
        self._mode = _mode_class(self.probe.dispatch_mode)(self)
        self._mode.__enter__()

    def _forward_ends(self, what=None, out=None, *_):
        if not self.recorder.open or what is not self._outer or self.operators.in_backward:
            return
        tensors = tensors_in((out,))
        if tensors:
            self.operators.light_value(LOSS, "Loss", tensors[0])
        self.cells.find(what)

    def _backward_begins(self, *_):
        self.operators.in_backward = self.recorder.open

    def _backward_ends(self, *_):
        self.operators.in_backward = False

    def _optimizer_ran(self, optimizer, args):
        operators = self.operators
        self.cells.add_optimizer(optimizer)
        self._operators_end()
        weights = list(getattr(optimizer, "parameters", ()))
        gradients = tensors_in(args)
        if len(gradients) == len(weights):
            for weight, gradient in zip(weights, gradients):
                path, name = self.cells.place_of(weight)
                node = operators.light_value(
                    "Gradients/%s/Grad_%s" % (path, name), "Gradient", gradient, weight.name
                )
                # The update ran as one compiled function; this stands for what it did to
                # the parameter.
                kind = type(optimizer).__name__
                update = operators.light_value(
                    "Default/optimizer-%s/%s-%s" % (part(kind), part(weight.name), part(kind)),
                    "Apply%s" % part(kind),
                    weight,
                )
                if node is not None and update is not None and not update.inputs:
                    update.inputs = [(weight.name, 0), (node.name, 0)]
                    self.recorder.dirty = True
        if not self._manual:
            self._end()

    def _operators_end(self):
        """Those that follow belong to no step, or to an update that is shown as one operator."""
        self._leave()
        if self._traced and not self._complete:
            self._complete = True
            self.compiled.end()
            self.operators.name_backward()

    def _end(self):
        for name, dtype, shape, address in self.cells.parameters():
            self.recorder.parameter(name, dtype, shape, address)
        self.operators.resolve()
        if self.recorder.describe():
            self.operators.publish()
            self._names_known = True
            self.recorder.end()
        self._forget()

    # ---- steps by hand

    def step_begin(self, network=None):
        if not self.recorder.open and not self.recorder.off:
            self._guarded(self._begin, network)
            self._outer = None

    def step_end(self):
        if self.recorder.open and not self.recorder.off:
            self._guarded(self._operators_end)
            self._guarded(self._end)

    def _forget(self):
        """The debugger has read what was noted."""
        self.compiled.remove()
        self.operators.forget()
        self._traced = False

    def _leave(self):
        mode, self._mode = self._mode, None
        if mode is not None:
            mode.agent = None
            mode.__exit__(None, None, None)
        self.patches.leave()
        self.compiled.pause()

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
                    agent.operators.note(func.name, args, out)
                except Exception as fault:
                    self.agent = None
                    agent.say_once(
                        "operators are not seen any more: %s: %s" % (type(fault).__name__, fault)
                    )
            return out

    return Mode
