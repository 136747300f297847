"""What a compiled function (@jit) does: its graph tells, when the framework has compiled it."""

import os
import types

from .. import _c
from .graph_file import GraphFile


class Kind:
    __slots__ = ("numbers", "backward", "changed", "parameters")

    def __init__(self, numbers, backward, changed, parameters):
        self.numbers = numbers  # of the framework's graphs
        self.backward = backward  # it makes gradients
        self.changed = changed  # names of the trained parameters that it writes to
        self.parameters = parameters

    @property
    def is_step(self):
        return self.backward and bool(self.changed)


def bound(executor):
    """The function with the object whose method it is."""
    if executor.obj is not None and isinstance(executor.fn, types.FunctionType):
        return types.MethodType(executor.fn, executor.obj)
    return executor.fn


def kind_of(executor):
    """That of the function's last call, or None if it is not known."""
    return getattr(executor, "_msdbg_agent_kind", None)


class Kinds:
    def __init__(self, window, cells, say_once):
        self._window, self._cells, self._say_once = window, cells, say_once
        self._phases = {}  # the framework's key of a compiled function -> Kind, or None

    def compiled(self, executor, phase, before):
        """The function is compiled now; `before` are the graphs that there were."""
        if phase not in self._phases:
            new = self._window.numbers() - before
            self._phases[phase] = None
            try:
                self._phases[phase] = self._look(executor, phase, new)
            except (
                AttributeError,
                IndexError,
                OSError,
                RuntimeError,
                TypeError,
                ValueError,
            ) as fault:
                self._say_once("steps under @jit are not found: %s" % _c.line_of(fault))
        executor._msdbg_agent_kind = self._phases[phase]
        return self._phases[phase]

    def _look(self, executor, phase, new):
        files = []
        for number in new:
            name = "ms_output_trace_code_graph_%d.pb" % number
            files.append(GraphFile(os.path.join(self._window.rank_directory(), "graphs", name)))
        compiler = executor._graph_executor
        if not files and hasattr(compiler, "get_func_graph_proto"):
            files.append(GraphFile(data=compiler.get_func_graph_proto(phase, "anf_ir", False)))
        if not files:
            self._say_once(
                "this release of MindSpore shows no graph of what is under @jit: such steps are not found"
            )
        parameters = self._parameters(executor, phase)
        trained = {each.name for each in parameters if each.requires_grad}
        changed = set()
        for each in files:
            changed |= each.changed(trained)
        backward = any(each.backward for each in files)
        return Kind(set(new), backward, changed, parameters)

    def _parameters(self, executor, phase):
        find = getattr(executor._graph_executor, "get_params", None)
        if find is not None:
            # Captured tensors are among them.
            return [each for each in find(phase).values() if hasattr(each, "requires_grad")]
        self._cells.find_all(executor.fn, executor.obj)
        return list(self._cells.get_parameters())
