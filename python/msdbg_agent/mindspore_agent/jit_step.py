"""Compiled functions (@jit) that train.

No Python runs in them. One that differentiates and updates the parameters is a step of graph mode:
the executor is called -> it compiles -> GraphMode begins a step -> the executor runs the graph ->
GraphMode ends the step. One that only differentiates begins a step of PyNative mode, which ends
when an optimizer has run.
"""

import functools

from .captures import Captures
from .cells import Cells, optimizers_of
from .kinds import Kinds, bound
from .tensors import is_optimizer, parameters_of, tensors_in


class _Function:
    """A compiled function, with what GraphMode asks of a cell."""

    def __init__(self, executor, parameters):
        self.construct, self._parameters = bound(executor), parameters

    def get_parameters(self):
        return self._parameters


class _Call:
    """The call that is running."""

    def __init__(self, executor, inside):
        self.executor, self.compiled = executor, False
        self.function, self.graph, self.begun, self.traced = None, None, False, False
        self.apart = False  # it began a step of PyNative mode
        self.inside = inside  # it is called in a step of PyNative mode


class JitSteps:
    """Wraps the call and the compilation of functions under @jit; see the module's text."""

    def __init__(self, graph_mode, pynative, probe):
        self.mode, self.pynative, self.window = graph_mode, pynative, graph_mode.window
        self._cells = Cells()
        self._named = set()  # functions whose cells have their scopes
        self.kinds = Kinds(self.window, self._cells, graph_mode.say_once)
        self._kept = []  # so that no id is used again
        self._call = None
        self._sync = probe.sync
        self._undo = []
        self._captures = Captures(self._say_while_on, pynative.set_aside)
        owner = probe.jit_executor
        if owner is not None and hasattr(owner, "compile"):
            self._wrap(owner, "__call__", self._called)
            self._wrap(owner, "compile", self._compiles)
        elif owner is not None:
            graph_mode.say_once(
                "this release of MindSpore lacks _JitExecutor.compile: steps under @jit are not found"
            )

    def _wrap(self, owner, name, instead):
        original = getattr(owner, name)

        @functools.wraps(original)
        def wrapped(executor, *args, **kwargs):
            return instead(functools.partial(original, executor), executor, args, kwargs)

        setattr(owner, name, wrapped)
        self._undo.append(lambda: setattr(owner, name, original))

    def _say_while_on(self, line):
        if not self.mode.off:
            self.mode.say_once(line)

    def close(self):
        self._captures.close()
        for undo in self._undo:
            undo()
        self._undo = []

    # ---- a call

    def _called(self, original, executor, args, kwargs):
        mode = self.mode
        if mode.off or mode.busy or self._is_update(executor):
            return original(*args, **kwargs)
        inside = mode.taken()
        mode.busy = True
        call = self._call = _Call(executor, inside)
        try:
            try:
                out = original(*args, **kwargs)
            except Exception as fault:
                if call.apart:
                    self.pynative.broken()
                if call.begun:
                    if call.traced:
                        self.window.leave()
                    mode.cut_short(fault, call.graph, call.traced)
                elif call.apart:
                    mode.broken(fault)
                raise
            if call.begun and not mode.off:
                mode.guarded(self._ended, call, out)
            if call.apart and not mode.off:
                self.pynative.compiled_ran(executor, args, out)
            return out
        finally:
            if call.traced:
                self.window.leave()
            self._call, mode.busy = None, False

    def _compiles(self, original, executor, args, kwargs):
        if self.mode.off or self._is_update(executor):
            return original(*args, **kwargs)
        before = self.mode.guarded(self._before, executor)
        phase = original(*args, **kwargs)
        if not self.mode.off:
            self.mode.guarded(self._compiled, executor, phase, args[1:], before)
        return phase

    def _before(self, executor):
        """The graphs that there are before a function is compiled."""
        self._name_cells(executor)
        return self.window.numbers()

    @staticmethod
    def _is_update(executor):
        """An optimizer alone, in a PyNative step or behind a step that is not followed."""
        return is_optimizer(getattr(executor, "obj", None))

    def _compiled(self, executor, phase, args, before):
        kind, call = self.kinds.compiled(executor, phase, before), self._call
        if call is None or call.executor is not executor or call.compiled:
            return
        call.compiled = True
        if kind is None or not kind.backward:
            return
        weights = [each for each in kind.parameters if each.requires_grad]
        if call.inside and not self.pynative.compiled_goes_on(weights):
            return
        if kind.is_step:
            self._begin(call, kind, args)
        else:
            call.apart = self.pynative.compiled_begins(bound(executor), args, weights)

    def _begin(self, call, kind, args):
        executor, mode = call.executor, self.mode
        call.function = _Function(executor, kind.parameters)
        # Equal for the functions that an enclosing one makes each time that it is called.
        key = (executor.fn.__code__, id(executor.obj))
        call.graph = mode.graph_of(key, executor.obj)
        if self.window.usable:
            mode.show(call.function, call.graph, kind.numbers)
        else:
            mode.say_once(self.window.why)
            mode.describe_parameters(call.function, call.graph)
        call.begun = bool(mode.begin(call.function, call.graph, args))
        if call.begun and mode.wanted(call.graph):
            call.traced = True
            self.window.enter(mode.step)

    def _ended(self, call, out):
        # The framework runs the graph behind Python.
        for each in tensors_in((out,)):
            each.data_ptr()
        for _ in parameters_of(call.function):
            pass
        if self._sync is not None:
            self._sync()
        if call.traced:
            self.window.leave()
        self.mode.end(call.graph, call.traced)

    def _name_cells(self, executor):
        """The framework gives scopes to the cells of a network that is compiled, but not to those
        that a function calls. Only a function that can train is looked at: inside a step, one
        that updates the parameters, because parts of a network belong to its cells."""
        part = self.mode.taken()
        key = (executor.fn.__code__, id(executor.obj), part)
        if key in self._named:
            return
        self._named.add(key)
        self._kept.append(executor.obj)
        if part and not optimizers_of(executor.fn, executor.obj):
            return
        if not self._cells.find_all(executor.fn, executor.obj):
            return
        for cell, path in self._cells.paths():
            name = getattr(cell, "_set_scope", None)
            if name is None:
                self.mode.say_once(
                    "this release of MindSpore lacks Cell._set_scope: operators are named without their cells"
                )
                return
            name(path)  # the first name stays
