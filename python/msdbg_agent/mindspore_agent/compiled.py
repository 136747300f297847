"""Compiled functions (@jit) inside a PyNative step: no Python runs in them, so the framework's dump
shows their operators. It is switched on for the whole step, but not for the optimizer's update."""

import ctypes
import os

from .._names import part
from .cells import LOSS
from .graph_file import GraphFile, Value, parameter_key, runs


class Compiled:
    def __init__(self, window, operators, say_once, sync):
        self.window, self.operators, self._say_once = window, operators, say_once
        self._sync = sync
        self._graphs, self._step = {}, None

    def begin(self, step):
        """Operators of this step are wanted."""
        if self.window.usable:
            self._step = step
            self.window.enter(step)

    def pause(self):
        """What runs now is not dumped."""
        if self._step is not None:
            if self.operators.compiled and self._sync is not None:
                self._sync()  # what runs still behind Python is dumped
            self.window.leave()

    def called(self, executor, args, out):
        if self._step is None:
            self._say_once("what runs inside @jit is not seen: %s" % self.window.why)
        else:
            self.operators.called_compiled(executor, args, out)

    def end(self):
        """Notes what ran in compiled functions. Waits for them."""
        if self._step is None:
            return
        if self.operators.compiled:
            for _, _, outs, _ in self.operators.compiled:
                for each in outs:
                    each.data_ptr()
            try:
                self._note_all()
            except (OSError, ValueError, KeyError, IndexError) as fault:
                self._say_once("what runs inside @jit is not seen: %s" % fault)

    def remove(self):
        """The debugger has read everything."""
        step, self._step = self._step, None
        if step is not None:
            self.window.leave()
            if self.operators.compiled:
                self.window.remove(step)
        self.operators.compiled = []

    def _graph(self, number):
        graph = self._graphs.get(number)
        if graph is None:
            rank = self.window.rank_directory()
            name = "ms_output_trace_code_graph_%d.pb" % number
            graph = self._graphs[number] = GraphFile(os.path.join(rank, "graphs", name))
        return graph

    def _note_all(self):
        found = []
        for directory in self.window.iterations(self._step):
            number = os.path.basename(os.path.dirname(directory))
            if number.isdigit():
                graph = self._graph(int(number))
                found += [
                    (when, graph, values, files) for when, values, files in runs(directory, graph)
                ]
        found.sort(key=lambda each: each[0])
        calls = list(self.operators.compiled)
        forward = [each for each in found if not each[1].backward]
        pairs = dict((id(run), call) for run, call in zip(forward, calls))
        waiting = list(zip(calls, forward))
        for run in found:
            if run[1].backward:
                call = self._call_of(run, waiting)
                if call is not None:
                    self._note(run, "Gradients/" + call[0], call, known_inputs=False)
            elif id(run) in pairs:
                self._note(run, pairs[id(run)][0], pairs[id(run)], known_inputs=True)

    @staticmethod
    def _call_of(run, waiting):
        """The call whose gradient a graph of the backward pass makes: backward passes run in
        reverse, and know the names of their operators."""
        wanted = {
            each.name.partition("/Grad_")[0][len("Gradients/") :]
            for each in run[2]
            if each.name.startswith("Gradients/")
        }
        for place in range(len(waiting) - 1, -1, -1):
            call, forward = waiting[place]
            scopes = {each.name.rpartition("/")[0] for each in forward[1].operators}
            if wanted <= scopes:
                del waiting[place]
                return call
        return None

    def _note(self, run, scope, call, known_inputs):
        _, graph, values, files = run
        operators, recorder = self.operators, self.operators.recorder
        hidden = operators._library()
        tensors = {
            each: [Value(path, dtype) for _, (path, dtype) in sorted(slots.items())]
            for each, slots in values.items()
        }
        arguments = self._arguments(graph, call, files, known_inputs)
        nodes = {}
        for each in graph.operators:
            if each not in tensors:
                continue
            node = recorder.node(_below(scope, each.name), part(each.kind or "Operator"))
            nodes[each] = node
            read = []
            if node.inputs is None:
                node.frames = tuple(each.frames(hidden)) or call[3]
                for source in graph.sources(each):
                    if source in nodes:
                        read.append((nodes[source].name, 0))
                    elif isinstance(source, str):
                        read += arguments.get(source, ())
            operators.add(node, read, tensors[each])
        if known_inputs:
            self._returned(call, tensors, nodes)

    def _arguments(self, graph, call, files, known_inputs):
        """What the parameters of a graph are: {name: [tensor or (name, slot)]}."""
        parameters = self.operators.recorder.parameters
        found, free = {}, []
        for name in graph.parameters:
            if name in parameters:
                found[name] = [(name, 0)]
            else:
                free.append(name)
        if known_inputs:
            if len(free) == len(call[1]):
                found.update((name, [tensor]) for name, tensor in zip(free, call[1]))
            return found
        # The framework does not tell what it hands to a graph of the backward pass: it is found by
        # content among the values of the call, and is a gradient otherwise.
        below = call[0] + "/"
        kept = [
            ((node.name, slot), value)
            for node, slot, value in self.operators.published()
            if node.name.startswith(below)
        ] + [(tensor, tensor) for tensor in call[1]]
        for name in free:
            path, dtype = files.get(parameter_key(name), (None, None))
            found[name] = [(LOSS + "/Loss-op0", 0)]
            if path is not None:
                value = Value(path, dtype)
                same = [what for what, other in kept if _place_of(other, [value]) is not None]
                found[name] = same[-1:] or found[name]
        return found

    def _returned(self, call, tensors, nodes):
        """The tensors that a call returned are those of the operators that made them: by content,
        because the dump is a copy."""
        for out in call[2]:
            for each, values in reversed(list(tensors.items())):
                place = _place_of(out, values)
                if place is not None:
                    self.operators.alias(out, nodes[each], place)
                    break


def _place_of(out, values):
    for slot, value in enumerate(values):
        if value.shape == tuple(out.shape) and value.dtype == str(out.dtype):
            if value.nbytes == out.nbytes and _bytes(out) == value.content():
                return slot
    return None


def _bytes(tensor):
    if isinstance(tensor, Value):
        return tensor.content()
    address = tensor.data_ptr()
    if not address or not tensor.is_contiguous():
        return b""
    return ctypes.string_at(address, tensor.nbytes)


def _below(scope, name):
    """The scope of an operator of a graph, below that of the call."""
    inner = name.rpartition("/")[0]
    for head in ("Gradients/Default", "Default"):
        if inner == head or inner.startswith(head + "/"):
            return scope + inner[len(head) :]
    return "%s/%s" % (scope, inner) if inner else scope
