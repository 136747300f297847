"""Compiled functions (@jit) inside a PyNative step: no Python runs in them, so the framework's dump
shows their operators. It is switched on for the whole step, but not for the optimizer's update."""

import os

from .._names import part
from .cells import LOSS
from .graph_file import GraphFile, Value, parameter_key, runs
from .memory import bytes_of
from .window import UNWRITTEN


class Compiled:
    def __init__(self, window, operators, say_once, sync):
        self.window, self.operators, self._say_once = window, operators, say_once
        self._sync = sync
        self._graphs, self._step = {}, None
        self.gradients = {}  # name of a parameter -> the node of what an optimizer was given

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

    def resume(self):
        if self._step is not None:
            self.window.enter(self._step)

    def end(self):
        """Notes what ran in compiled functions. Waits for them."""
        if self._step is None:
            return
        if self.operators.compiled:
            for call in self.operators.compiled:
                for each in call.outs:
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
        self.operators.compiled, self.gradients = [], {}

    def _graph(self, number):
        graph = self._graphs.get(number)
        if graph is None:
            rank = self.window.rank_directory()
            name = "ms_output_trace_code_graph_%d.pb" % number
            graph = self._graphs[number] = GraphFile(os.path.join(rank, "graphs", name))
        return graph

    def _note_all(self):
        found = []
        for number, directory in self.window.iterations(self._step).items():
            graph = self._graph(number)
            found += [_Run(number, graph, *each) for each in runs(directory, graph)]
        found.sort(key=lambda each: each.when)
        calls = list(self.operators.compiled)
        pairs = _by_graph(calls, found)
        left = [each for each in calls if all(each is not call for call in pairs.values())]
        forward = [each for each in found if each not in pairs and not each.graph.backward]
        pairs.update(zip(forward, left))
        waiting = [(call, run) for run, call in pairs.items()]
        for run in found:
            if run in pairs:
                self._note(run, pairs[run].scope, pairs[run], known_inputs=True)
            elif run.graph.backward:
                call = self._call_of(run, waiting)
                if call is not None:
                    self._note(run, call.scope, call, known_inputs=False)

    @staticmethod
    def _call_of(run, waiting):
        """The call whose gradient a graph of the backward pass makes: backward passes run in
        reverse, and know the names of their operators."""
        wanted = {
            each.name.partition("/Grad_")[0][len("Gradients/") :]
            for each in run.values
            if each.name.startswith("Gradients/")
        }
        for place in range(len(waiting) - 1, -1, -1):
            call, forward = waiting[place]
            scopes = {each.name.rpartition("/")[0] for each in forward.graph.operators}
            if wanted <= scopes:
                del waiting[place]
                return call
        return None

    def _note(self, run, scope, call, known_inputs):
        graph = run.graph
        operators, recorder = self.operators, self.operators.recorder
        hidden = operators._library()
        tensors = {
            each: {slot: Value(path, dtype) for slot, (path, dtype) in sorted(slots.items())}
            for each, slots in run.values.items()
        }
        arguments = self._arguments(graph, call, run.files, known_inputs)
        nodes = {}
        for each in graph.operators:
            if each not in tensors:
                continue
            # A graph of the backward pass repeats operators of the forward one.
            gradient = not known_inputs or each.name.startswith("Gradients/")
            place = _below("Gradients/" + scope if gradient else scope, each.name)
            node = recorder.node(place, part(each.kind or "Operator"))
            nodes[each] = node
            slots = sorted(tensors[each])
            read = []
            if node.inputs is None:
                node.frames = tuple(each.frames(hidden)) or call.frames
                for source, slot in graph.sources(each):
                    if source in nodes:
                        made = sorted(tensors[source])
                        read.append((nodes[source].name, made.index(slot) if slot in made else 0))
                    elif isinstance(source, str):
                        given = arguments.get(source, ())
                        read += given[slot : slot + 1] if len(given) > 1 else given
                if call.is_update and not self._computed(read):
                    read += self._constant_gradient(graph, each)
            outs = [tensors[each][slot] for slot in slots]
            operators.add(node, read, self._written(graph, each, outs))
        if known_inputs:
            self._returned(graph, call, tensors, nodes)

    def _written(self, graph, operator, outs):
        """What an operator has changed stands for outputs that it does not write to."""
        if operator.kind not in UNWRITTEN:
            return outs
        known = {each.name: each for each in self.operators.cells.get_parameters()}
        names = [source for source, _ in graph.sources(operator) if isinstance(source, str)]
        return [known[name] for name in names if name in known][: len(outs)] or outs

    def _constant_gradient(self, graph, operator):
        """The framework takes what is in a tuple for constants, unless it is told otherwise: the
        gradient by which an update changes a parameter is the one that the function was given."""
        names = [source for source, _ in graph.sources(operator) if isinstance(source, str)]
        nodes = [self.gradients[name] for name in names if name in self.gradients]
        return [(node.name, 0) for node in nodes if node is not None]

    def _computed(self, read):
        """Whether it is known of anything but parameters that an operator reads it."""
        parameters = self.operators.recorder.parameters
        return any(not isinstance(each, tuple) or each[0] not in parameters for each in read)

    def _arguments(self, graph, call, files, known_inputs):
        """What the parameters of a graph are: {name: [tensor or (name, slot)]}. What nobody saw
        being made is left out."""
        parameters = self.operators.recorder.parameters
        found, free = {}, []
        for name in graph.parameters:
            if name in parameters:
                found[name] = [(name, 0)]
            else:
                free.append(name)
        if known_inputs:
            if len(free) == len(call.read):
                found.update((name, [tensor]) for name, tensor in zip(free, call.read))
            elif len(free) == len(call.groups):
                found.update(zip(free, call.groups))
            else:
                found.update((name, call.names[name]) for name in free if name in call.names)
            members = graph.flattened()
            tuples = [each for group in call.groups if len(group) > 1 for each in group]
            if len(members) == len(tuples):
                found.update((name, [tensor]) for name, tensor in zip(members, tuples))
            return found
        # The framework does not tell what it hands to a graph of the backward pass: it is found by
        # content among the values of the call, and can be the gradient of what the call made.
        below = call.scope + "/"
        kept = [
            ((node.name, slot), value)
            for node, slot, value in self.operators.published()
            if node.name.startswith(below)
        ] + [(tensor, tensor) for tensor in call.read]
        for name in free:
            path, dtype = files.get(parameter_key(name), (None, None))
            if path is None:
                continue
            value = Value(path, dtype)
            same = [what for what, other in kept if _same(other, value)]
            if same:
                found[name] = same[-1:]
            elif any(tuple(out.shape) == value.shape for out in call.outs):
                found[name] = [(LOSS + "/Loss-op0", 0)]
        return found

    def _returned(self, graph, call, tensors, nodes):
        """The tensors that a call returned are those of the operators that made them. The dump is a
        copy, so contents are compared, too: equal ones alone would not tell which operator it was.
        """
        made = [
            (source, slot)
            for source, slot in graph.returned()
            if source in nodes or source in graph.parameters
        ]
        for place, out in enumerate(call.outs):
            known = made[place] if len(made) == len(call.outs) else None
            if known is None:
                same = [
                    (each, slot)
                    for each, values in tensors.items()
                    for slot, value in values.items()
                    if _same(out, value)
                ]
                known = same[0] if len(same) == 1 else None
            if known is None or known[0] not in nodes:
                continue
            value = tensors[known[0]].get(known[1])
            if value is not None and _same(out, value):
                slot = sorted(tensors[known[0]]).index(known[1])
                self.operators.alias(out, nodes[known[0]], slot)


class _Run:
    """One run of a graph, as its dump shows it."""

    __slots__ = ("number", "graph", "when", "values", "files")

    def __init__(self, number, graph, when, values, files):
        self.number, self.graph, self.when, self.values, self.files = (
            number,
            graph,
            when,
            values,
            files,
        )


def _by_graph(calls, found):
    """{run: call} where it is known which graphs a call runs: the n-th call of a function is the
    n-th run of each. A function that is called once has all runs: of loops, there are many."""
    pairs = {}
    counts = {}
    for call in calls:
        if call.kind is not None and call.kind.numbers:
            counts.setdefault(id(call.kind), []).append(call)
    for same in counts.values():
        numbers = same[0].kind.numbers
        for number in numbers:
            of_it = [each for each in found if each.number == number]
            for place, run in enumerate(of_it):
                if place < len(same) or len(same) == 1:
                    pairs[run] = same[min(place, len(same) - 1)]
    return pairs


def _same(out, value):
    return (
        value.shape == tuple(out.shape)
        and value.dtype == str(out.dtype)
        and value.nbytes == out.nbytes
        and _bytes(out) == value.content()
    )


def _bytes(tensor):
    return bytes_of(tensor) if tensor.is_contiguous() else b""


def _below(scope, name):
    """The scope of an operator of a graph, below that of the call."""
    inner = name.rpartition("/")[0]
    gradients = scope.startswith("Gradients/")
    plain = scope[len("Gradients/") :] if gradients else scope
    if plain != "Default" and (inner + "/").startswith(plain + "/"):
        return "Gradients/" + inner if gradients else inner  # the framework knows the cell already
    if inner == scope or inner.startswith(scope + "/"):
        return inner
    for head in ("Gradients/Default", "Default"):
        if inner == head or inner.startswith(head + "/"):
            return scope + inner[len(head) :]
    return "%s/%s" % (scope, inner) if inner else scope
