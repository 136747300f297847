"""Steps of MindSpore's graph mode: one run of a network that holds an optimizer. jit_step.py finds
those of functions that are compiled as a whole.

idle -> Cell.compile_and_run is entered -> compiled, so that the graph is known -> begin -> run, in
the window if operators are wanted -> the dump is published -> end.
"""

import functools

from .. import _c
from .._names import merged_order
from .._recorder import REMOTE, Parameter, Terminated
from .memory import Remote, address_of
from .tensors import TYPES, input_names, is_training, parameters_of


class _Graph:
    """A compiled network as the debugger knows it."""

    def __init__(self):
        self.place = None  # its number in begin_step()
        self.number = None  # its id
        self.cell = None
        # The framework's graphs that it shows, in the order in which they run; none: parameters alone
        self.compiled = None
        self.asked = _c.numbers([])  # the operators for whose sake a step is dumped
        self.reads = ()  # names of the parameters and inputs of these
        self.addresses = {}  # parameter -> address


class GraphMode(_c.Conversing):
    """Wraps Cell.compile_and_run; see the module's text."""

    def __init__(self, connection, settings, probe, window):
        self.connection, self.window, self.trace = connection, window, settings.trace
        self.step, self.busy = -1, False
        self._graphs = {}  # id(cell), or the key of a function -> _Graph
        self._kept = []  # so that no id is used again
        self._by_shape = {}  # (id(cell), shapes) -> the framework's number
        self._told, self._said = "", set()
        self._batch = ()
        self._remote = Remote()
        self._undo = []
        if probe.compile_and_run is not None:
            self._wrap()

    @staticmethod
    def taken():
        """What runs now belongs to a step of PyNative mode; replaced by the agent."""
        return False

    @staticmethod
    def run_in_step(cell, args, run):
        """(whether the network ran as a part of that step, what it returned); replaced, too."""
        return True, run()

    def say_once(self, line):
        if line not in self._said:
            self._said.add(line)
            _c.say(line)

    def _wrap(self):
        from mindspore import nn

        original = nn.Cell.compile_and_run

        @functools.wraps(original)
        def compile_and_run(cell, *args, **kwargs):
            if self.off or self.busy or not is_training(cell):
                return original(cell, *args, **kwargs)
            if self.taken():
                run = functools.partial(original, cell, *args, **kwargs)
                ran, out = self.run_in_step(cell, args, run)
                if ran:
                    return out
            return self._run(cell, original, args, kwargs)

        nn.Cell.compile_and_run = compile_and_run
        self._undo.append(lambda: setattr(nn.Cell, "compile_and_run", original))

    def _run(self, cell, original, args, kwargs):
        self.busy = True
        begun = False
        try:
            graph = self.guarded(self._prepare, cell, args, kwargs)
            begun = graph is not None and bool(self.guarded(self.begin, cell, graph, args))
            traced = begun and self.guarded(self.wanted, graph)
            try:
                if traced:
                    with self.window.opened(self.step):
                        out = original(cell, *args, **kwargs)
                else:
                    out = original(cell, *args, **kwargs)
            except Exception as fault:
                if begun:
                    self.cut_short(fault, graph, traced)
                raise
            if begun:
                self.guarded(self.end, graph, traced)
            return out
        finally:
            self.busy = False

    def guarded(self, function, *args):
        """A fault of ours must not reach the training."""
        try:
            return function(*args)
        except Exception as fault:
            self._give_up("the training goes on without the debugger: %s" % _c.line_of(fault))
            return None

    def cut_short(self, fault, graph, traced):
        """The step that has begun ended with an exception that is not ours: the debugger sees what
        there is of it, before the program sees the exception."""
        self.connection.cut_short(self.step, _c.line_of(fault), traced)
        self.guarded(self.end, graph, traced)

    def broken(self, fault):
        """The same for a step whose values nobody can publish."""
        self._give_up(
            "the training goes on without the debugger: a step ended with %s" % _c.line_of(fault)
        )

    def _give_up(self, line):
        if not self.off:
            self.off = True
            self.connection.finish()
            _c.say(line)

    # ---- the graph

    def graph_of(self, key, kept):
        """What the debugger knows under this key, an id of `kept`."""
        graph = self._graphs.get(key)
        if graph is None:
            graph = self._graphs[key] = _Graph()
            self._kept.append(kept)
        return graph

    def _prepare(self, cell, args, kwargs):
        """The network's graph, compiled and described."""
        graph = self.graph_of(id(cell), cell)
        if not self.window.usable:
            self.say_once(self.window.why)
            return self.describe_parameters(cell, graph)
        key = (
            id(cell),
            tuple(
                (str(getattr(a, "dtype", type(a))), tuple(getattr(a, "shape", ()))) for a in args
            ),
        )
        numbers = self._by_shape.get(key)
        if numbers is None:
            before = self.window.numbers()
            try:
                cell.compile(*args, **kwargs)
            except Exception:
                return None  # the program's own fault: the run that follows raises it, too
            new = self.window.numbers() - before
            numbers = self._by_shape[key] = new or graph.compiled
        return self.show(cell, graph, numbers)

    def show(self, cell, graph, numbers):
        """Describes these graphs of the framework's, if they are not the ones that are known."""
        graph.cell = cell
        if not numbers:
            self.say_once("MindSpore wrote no graph: operators are not seen")
            return self.describe_parameters(cell, graph)
        if set(numbers) != set(graph.compiled or ()):
            # Control flow on tensors makes several: the first run tells their order.
            self._describe(cell, graph, sorted(numbers))
        return graph

    def _describe(self, cell, graph, numbers):
        made, first = self.connection.description_of_dump(
            self._number(graph, 0), self.window.rank_directory(), numbers
        )
        if made is None:
            self.say_once("operators are not seen: %s" % first)
            self.describe_parameters(cell, graph)
            return
        # One of several graphs reads few of the parameters.
        known = [self.window.parameters(number) for number in numbers]
        graph.reads = set().union(*known)
        for name, dtype, shape, address, _ in parameters_of(cell):
            if all(known) and name not in graph.reads:
                made.parameter(name, dtype, shape, None if address == REMOTE else address)
        self._send(graph, made)
        names = {
            first[number] + place: name
            for number in numbers
            for place, name in enumerate(self.window.order(number))
        }
        graph.compiled, graph.asked, graph.addresses = tuple(numbers), _asked(names), {}

    def describe_parameters(self, cell, graph):
        """A graph of parameters alone."""
        if graph.compiled is None:
            made = self.connection.description(self._number(graph, 1))
            for name, dtype, shape, address, _ in parameters_of(cell):
                made.parameter(name, dtype, shape, None if address == REMOTE else address)
                if address != REMOTE:
                    graph.addresses[name] = address
            self._send(graph, made)
            graph.compiled = ()
        return graph

    def _number(self, graph, more):
        if graph.number is None:
            graph.number = self.connection.free_number(self.connection.graphs + more)
        return graph.number

    def _send(self, graph, made):
        replaced = graph.place
        if replaced is None:
            graph.place = self.connection.graphs
        if not self.connection.send_graph(made, replaced):
            raise RuntimeError("the debugger cannot use the graph: %s" % self.connection.problem())

    # ---- the step

    def begin(self, cell, graph, args):
        self._batch = args  # the debugger reads it until the next one comes
        self._tell_places(cell, graph)
        self.step += 1
        if self.connection.begin_step(graph.place) == _c.STOP:
            return self._stopped()
        self._tell()
        return True

    def _tell_places(self, cell, graph):
        """Where the batch and the parameters are now."""
        if graph.compiled:
            for name, value in zip(input_names(cell, len(self._batch)), self._batch):
                dtype = (
                    TYPES.get(str(getattr(value, "dtype", None))) if name in graph.reads else None
                )
                if dtype is not None and hasattr(value, "data_ptr") and value.is_contiguous():
                    self._set(graph, name, dtype, tuple(value.shape), address_of(value), value)
        for name, dtype, shape, address, parameter in parameters_of(cell):
            # It moves with set_data() and load_param_into_net().
            place = id(parameter) if address == REMOTE else address
            if graph.addresses.get(name) != place:
                graph.addresses[name] = place
                self._set(graph, name, dtype, shape, address, parameter)

    def _set(self, graph, name, dtype, shape, address, tensor):
        if address == REMOTE:
            known = Parameter(dtype, shape, address, True, tensor)
            self._remote.place(self.connection, graph.place, name, known)
        else:
            self.connection.set_parameter(graph.place, name, dtype, shape, address)

    def wanted(self, graph):
        if not graph.compiled or self.trace in ("step", "never"):
            return False
        if self.trace in ("always", "operator"):
            return True
        wanted = self.connection.wants()
        if wanted != _c.WANTS_SOME:
            return wanted == _c.WANTS_ALL
        return self.connection.wants_any(graph.asked)

    def end(self, graph, traced):
        try:
            for directory in self._in_order(graph) if traced else ():
                self.window.remove_unwritten(directory)
                if self.connection.publish_dump(directory) < 0:
                    self.say_once("operators are not seen: %s" % self.connection.problem())
            if self.connection.end_step() == _c.STOP:
                self._stopped()
            else:
                self._tell()
        finally:
            if traced:
                self.window.remove(self.step)

    def _in_order(self, graph):
        """The directories of the step, in the order in which its graphs ran."""
        places = self.window.iterations(self.step)
        ran = [number for number in places if number in graph.compiled]
        order = tuple(merged_order(graph.compiled, ran))
        if order != graph.compiled:
            self._describe(graph.cell, graph, order)
            self._tell_places(graph.cell, graph)
        return [places[number] for number in ran]

    def _stopped(self):
        problem = self.connection.problem()
        if problem:
            self._give_up(_c.goes_on(problem, self._told))
            return False
        self.off = True
        self.connection.finish()
        _c.say("the debugger ended the training")
        raise Terminated(0)

    def _tell(self):
        problem = self.connection.problem()
        if problem != self._told:
            self._told = problem
            if problem:
                _c.say(problem)

    def close(self):
        self.off = True
        for undo in self._undo:
            undo()
        self._undo = []


def _asked(names):
    """Of {number: operator}, those for whose sake a step is dumped. msdbg keeps a history of the
    loss by itself: that must not make every step a dumped one."""
    loss = [
        number for number, name in names.items() if "_loss_fn-" in name and "Gradients/" not in name
    ]
    # What the loss reads is wanted with it.
    known = set(loss).union(loss[:1] and [loss[0] - 1])
    return _c.numbers([number for number in names if number not in known])
