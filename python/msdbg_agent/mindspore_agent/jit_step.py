"""Steps that are compiled as a whole: one call of a function under @jit that differentiates and
updates the parameters.

No Python runs in such a step, so it is a step of graph mode. The executor is called -> it compiles
-> GraphMode begins a step, if the graph makes gradients and changes parameters with them -> the
executor runs the graph -> GraphMode ends the step.
"""

import functools
import os
import types

from .cells import Cells
from .graph_file import GraphFile
from .tensors import is_optimizer, parameters_of, tensors_in


class _Function:
    """A compiled function, with what GraphMode asks of a cell."""

    def __init__(self, executor, parameters):
        self.construct, self._parameters = executor.fn, parameters
        if executor.obj is not None and isinstance(executor.fn, types.FunctionType):
            self.construct = types.MethodType(executor.fn, executor.obj)

    def get_parameters(self):
        return self._parameters


class _Call:
    """The call that is running."""

    def __init__(self, executor):
        self.executor, self.compiled = executor, False
        self.function, self.graph, self.begun, self.traced = None, None, False, False


class JitSteps:
    """Wraps the call and the compilation of functions under @jit; see the module's text."""

    def __init__(self, graph_mode, probe):
        self.mode, self.window = graph_mode, graph_mode.window
        self._cells = Cells()
        self._named = set()  # functions whose cells have their scopes
        # The framework's key of a compiled function -> (_Function, number of its graph), or None.
        self._phases = {}
        self._kept = []  # so that no id is used again
        self._call = None
        self._sync = probe.sync
        self._undo = []
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

    def close(self):
        for undo in self._undo:
            undo()
        self._undo = []

    # ---- a call

    def _called(self, original, executor, args, kwargs):
        mode = self.mode
        if mode.off or mode.busy or mode.taken() or self._is_update(executor):
            return original(*args, **kwargs)
        mode.busy = True
        call = self._call = _Call(executor)
        try:
            mode.guarded(self._name_cells, executor)
            out = original(*args, **kwargs)
            if call.begun and not mode.off:
                mode.guarded(self._ended, call, out)
            return out
        finally:
            if call.traced:
                self.window.leave()
            self._call, mode.busy = None, False

    def _compiles(self, original, executor, args, kwargs):
        call = self._call
        if call is None or call.executor is not executor or call.compiled or self.mode.off:
            return original(*args, **kwargs)
        call.compiled = True
        before = self.mode.guarded(self.window.graphs)
        phase = original(*args, **kwargs)
        if not self.mode.off:
            self.mode.guarded(self._compiled, call, phase, args[1:], before)
        return phase

    @staticmethod
    def _is_update(executor):
        """An optimizer alone, in a PyNative step or behind a step that is not followed."""
        return is_optimizer(getattr(executor, "obj", None))

    def _compiled(self, call, phase, args, before):
        executor, mode = call.executor, self.mode
        if phase not in self._phases:
            after = self.window.graphs()
            new = {number: after[number] for number in after if number not in before}
            self._phases[phase] = None
            try:
                self._phases[phase] = self._step_of(executor, phase, new)
            except (OSError, ValueError, IndexError, RuntimeError) as fault:
                mode.say_once(
                    "steps under @jit are not found: %s: %s" % (type(fault).__name__, fault)
                )
        if self._phases[phase] is None:
            return
        call.function, number = self._phases[phase]
        # Equal for the functions that an enclosing one makes each time that it is called.
        key = (executor.fn.__code__, id(executor.obj))
        call.graph = mode.graph_of(key, executor.obj)
        if self.window.usable:
            mode.show(call.function, call.graph, number)
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

    # ---- what a compiled function is

    def _step_of(self, executor, phase, new):
        """(_Function, number of its graph) if a call is a step."""
        files = []
        for number in new:
            name = "ms_output_trace_code_graph_%d.pb" % number
            files.append(GraphFile(os.path.join(self.window.rank_directory(), "graphs", name)))
        compiler = executor._graph_executor
        if not files and hasattr(compiler, "get_func_graph_proto"):
            files.append(GraphFile(data=compiler.get_func_graph_proto(phase, "anf_ir", False)))
        if not files:
            self.mode.say_once(
                "this release of MindSpore shows no graph of what is under @jit: such steps are not found"
            )
        parameters = self._parameters(executor, phase)
        trained = {each.name for each in parameters if each.requires_grad}
        if not any(each.backward for each in files):
            return None
        if not any(each.changes(trained) for each in files):
            return None
        return _Function(executor, parameters), self.mode.largest(new)

    def _parameters(self, executor, phase):
        find = getattr(executor._graph_executor, "get_params", None)
        if find is not None:
            return list(find(phase).values())
        self._cells.find_all(executor.fn, executor.obj)
        return list(self._cells.get_parameters())

    def _name_cells(self, executor):
        """The framework gives scopes to the cells of a network that is compiled, but not to those
        that a function calls. Only a function that holds an optimizer is looked at."""
        key = (executor.fn.__code__, id(executor.obj))
        if key in self._named:
            return
        self._named.add(key)
        self._kept.append(executor.obj)
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
