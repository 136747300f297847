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
from .._recorder import Recorder
from .cells import LOSS, Cells, optimizers_of
from .compiled import Compiled
from .dispatch import mode_class
from .kinds import kind_of
from .operators import Operators
from .optimizers import Hooks, Updates
from .patches import Patches
from .tensors import is_optimizer, note_inputs, tensors_in


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
        self.updates = Updates(self.recorder, self.operators, self.cells)
        self.hooks = Hooks(self._update_begins, self._update_ends)
        self._mode, self._outer, self._traced = None, None, False
        self._names_known, self._thread, self._complete, self._given = False, None, False, None
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
            held = getattr(executor, "obj", None)
            self.hooks.pause()
            if is_optimizer(held):
                self._guarded(self.compiled.pause)
                out = original(executor, *args, **kwargs)
                self._guarded(self._optimizer_ran, held, args)
                return out
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
                self.hooks.resume()
            if self._traced:
                self._guarded(self.compiled.called, executor, args, out)
            self._guarded(self._compiled_function_ran, executor, args)
            return out

        owner.__call__ = call
        self._undo.append(lambda: setattr(owner, "__call__", original))

    def _is_update(self, executor):
        """A compiled function, not of the forward pass, that writes to what the step trains."""
        kind, in_forward = kind_of(executor), self.probe.grad_flag
        if kind is None or not kind.changed or in_forward is None or in_forward():
            return False
        return any(
            each.requires_grad and each.name in kind.changed for each in self.cells.get_parameters()
        )

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
            note_inputs(self.recorder, what, args)

    def _begin(self, what, args=(), compiled=False):
        if self._taken() and not compiled:
            return
        self._thread, self._complete = threading.get_ident(), False
        self._outer = None if compiled else what
        self.cells.find(what)
        self._note_parameters()
        note_inputs(self.recorder, what, args)
        if not self.recorder.described:
            self.recorder.light_node(LOSS, "Loss")
        if not self.recorder.begin():
            return
        self.operators.begin()
        self._traced = self._wanted()
        if self._traced:
            self.compiled.begin(self.recorder.step)
        if not compiled:
            self._enter()

    def _note_parameters(self):
        for name, dtype, shape, address in self.cells.parameters():
            self.recorder.parameter(name, dtype, shape, address)

    # ---- steps whose gradients are compiled, and whose update is not

    def compiled_begins(self, function, args):
        """A compiled function that differentiates is about to run. Whether it began a step."""
        if self._manual or self.recorder.open or self.recorder.off:
            return False
        self._guarded(self._begin, function, args, True)
        return self.recorder.open

    def compiled_ran(self, executor, args, out):
        """The function that began the step has run."""
        self._guarded(self._compiled_ran, executor, args, out)

    def _compiled_ran(self, executor, args, out):
        tensors = tensors_in((out,))
        if isinstance(out, (list, tuple)) and tensors and tensors[0].size == 1:
            self.operators.light_value(LOSS, "Loss", tensors[0])  # (loss, gradients)
        if self._traced:
            self.operators.compiled_begins()
            self.compiled.called(executor, args, out)
        self._enter()

    def broken(self):
        """The step ended with an exception that is not ours."""
        self._leave()
        self._forget()

    def _wanted(self):
        if self.trace in ("step", "never", "module"):
            return False
        return (
            self.trace in ("always", "operator")
            or not self._names_known
            or self.recorder.wants_traced()
        )

    def _enter(self):
        self.hooks.enter()
        if not self._traced:
            return
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
        self._mode = mode_class(self.probe.dispatch_mode)(self)
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

    def _update_begins(self, optimizer, args):
        """Python is about to run an optimizer."""
        if self.recorder.open and not self.recorder.off and threading.get_ident() == self._thread:
            self._guarded(self._note_given, optimizer, args)

    def _note_given(self, optimizer, args):
        self.cells.add_optimizer(optimizer)
        self.operators.in_update = True
        self._given = self.updates.note_gradients(optimizer, tensors_in(args))

    def _update_ends(self, optimizer, args):
        if self.recorder.open and not self.recorder.off and threading.get_ident() == self._thread:
            self._guarded(self._optimizer_ran, optimizer, args)

    def _optimizer_ran(self, optimizer, args):
        self.cells.add_optimizer(optimizer)
        self._operators_end()
        given, self._given = self._given, None
        if given is None:
            given = self.updates.note_gradients(optimizer, tensors_in(args))
        self.updates.note(optimizer, given)
        if not self._manual:
            self._end()

    def _compiled_function_ran(self, executor, args):
        """One that has updated the parameters ends the step; its operators are seen like those of
        any other."""
        if not self._is_update(executor):
            return
        found = optimizers_of(executor.fn, executor.obj)
        for each in found:
            self.cells.add_optimizer(each)
        self._note_parameters()
        if len(found) == 1:
            nodes = self.updates.note_gradients(found[0], tensors_in(args))
            names = [each.name for each in found[0].parameters]
            self.compiled.gradients = dict(zip(names, nodes))
        self._operators_end()
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
        self._note_parameters()
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
        self.hooks.leave()
        self.compiled.pause()

    def close(self):
        self._leave()
        self.hooks.close()
        self.recorder.off, self.recorder.open = True, False
        for undo in self._undo:
            undo()
        self._undo = []
