"""The graph that the debugger knows, and the phases of a step.

Knows no framework. The graph is the union of all names that were seen: a step publishes what it
ran, and new names are described when it ends. All calls come from the thread of the training.
"""

from . import _c
from ._names import Table, merged_order, ranges, usable_order

REMOTE = -1  # the address of a parameter that Recorder.remote reads


class Terminated(SystemExit):
    """The debugger ended the training."""


class Parameter:
    """A weight, an optimizer's state, a setting, or a data input."""

    __slots__ = ("dtype", "shape", "address", "weight", "keep", "memory", "pointer")

    def __init__(self, dtype, shape, address, weight, keep, memory=None, pointer=None):
        self.dtype, self.shape, self.address, self.weight = dtype, shape, address, weight
        self.keep, self.memory, self.pointer = keep, memory, pointer


class Recorder(_c.Conversing):
    def __init__(self, connection):
        self.connection = connection
        self.table = Table()
        self.order = []  # the described nodes, and light ones that wait for it
        self.ran = []  # in this step, in order
        self.parameters = {}  # by name, in order of appearance
        self.step = -1
        self.open = False  # between begin() and end()
        # The open step ends without a word to the debugger, which wants only what is known anyway.
        self.quiet = False
        self.dirty = True  # something is to be described: at first the graph, even if it is empty
        self.described = False
        self._place, self._number = 0, None  # of the graph
        self._early = None  # what the debugger answered in begin_early()
        self.remote = None  # tells the debugger of parameters without an address
        self.by_name = {}  # the described nodes
        self._asked = _c.numbers([])  # of these, the ones that only tracing shows,
        self._gradients = _c.numbers([])  # and the gradients of parameters
        self._not_always = _c.numbers([])  # both
        self._updaters = []  # those that change something in place
        self._told = ""

    # ---- the graph

    def node(self, scope, kind):
        """The node of an operator that runs now. New ones are noted for the next description."""
        node = self.table.next(scope, kind, self.step)
        if node.step != self.step:
            node.step = self.step
            self.ran.append(node)
            if node.number < 0:
                self.dirty = True
        return node

    def light_node(self, scope, kind, dtype="float32", shape=()):
        """A node that is described before it ever runs."""
        node = self.table.next(scope, kind, ("light", len(self.order)))
        if not node.light:
            node.light = True
            node.inputs = []
            node.outputs = [(dtype, shape)]
            self.order.append(node)
            self.dirty = True
        return node

    def light_ran(self, node):
        if node.step != self.step:
            node.step = self.step
            self.ran.append(node)

    def parameter(
        self, name, dtype, shape, address, weight=True, keep=None, memory=None, pointer=None
    ):
        """Where a parameter is now. `keep` is held, so that the memory stays; `memory`, too, where
        the program may give `keep` other memory. `pointer` tells by itself whether it has moved."""
        known = self.parameters.get(name)
        if address is None:
            pointer = None  # it may get memory at the same place
        if known is None:
            self.parameters[name] = Parameter(dtype, shape, address, weight, keep, memory, pointer)
            self.dirty = True
            return
        held = known.memory  # until the debugger knows the new address
        known.keep, known.memory, known.pointer = keep, memory, pointer
        if known.address == address and known.shape == shape and known.dtype == dtype:
            return
        known.dtype, known.shape, known.address = dtype, shape, address
        if self.described and not self._set(name, known):
            self.dirty = True  # it is too new, or changed in a way that needs a description
        del held

    def _set(self, name, known):
        if known.address == REMOTE:
            return self.remote.place(self.connection, self._place, name, known)
        return self.connection.set_parameter(
            self._place, name, known.dtype, known.shape, known.address
        )

    def forget_memory(self, first, last):
        """The memory between two addresses is about to be given back: no parameter is there now."""
        for name, known in self.parameters.items():
            if known.address is not None and first <= known.address < last:
                self.parameter(name, known.dtype, known.shape, None, known.weight, known.keep)

    def forget_inputs(self):
        """The data inputs of earlier steps are not kept any more."""
        for name, known in self.parameters.items():
            if not known.weight and known.address is not None:
                self.parameter(name, known.dtype, known.shape, None, False)

    def release(self, names):
        """These parameters do not exist any more, nor does the optimizer's state of them."""
        ends = tuple("." + name for name in names)
        for name, known in self.parameters.items():
            if ("." + name).endswith(ends) and ("." + name in ends or name.startswith("moments.")):
                self.parameter(name, known.dtype, known.shape, None, known.weight)

    def describe(self):
        """Gives the debugger the graph, if there is anything new. False: it refused; the
        conversation ends."""
        if not self.dirty or self.off:
            return not self.off
        if any(node.number < 0 for node in self.ran):
            self.order = merged_order(self.order, self.ran)
        self.order, inputs = usable_order(self.order)
        if self._number is None:
            self._number = self.connection.free_number(1)
        self.by_name = {node.name: node for node in self.order}
        graph = self.connection.description(self._number)
        for name, known in self.parameters.items():
            address = None if known.address == REMOTE else known.address
            graph.parameter(name, known.dtype, known.shape, address, known.weight)
        for node in self.order:
            number = graph.node(node.name, node.kind)
            node.number = number
            for name, slot in inputs[node]:
                if name not in self.by_name or slot < len(self.by_name[name].outputs):
                    graph.input(number, name, slot)
            changed = [k for k, source in enumerate(inputs[node]) if source in node.updates]
            if changed:
                graph.attribute(number, "updates", ranges(changed))
            if node.infinite:
                graph.attribute(number, *node.infinite)
            for name, value in node.attributes:
                graph.attribute(number, name, value)
            if node.gradient_of:
                graph.attribute(number, "gradient_of", node.gradient_of)
            for dtype, shape in node.outputs:
                graph.output(number, dtype, shape)
            for file, line, code in node.frames:
                graph.frame(number, file, line, code)
        if not self.described:
            self._place = self.connection.graphs
        if not self.connection.send_graph(graph, self._place if self.described else None):
            return self.give_up("the debugger cannot use the graph: %s" % self.connection.problem())
        self.described, self.dirty = True, False
        for name, known in self.parameters.items():
            if known.address == REMOTE:
                self._set(name, known)
        asked = [node.number for node in self._traced_only()]
        gradients = [node.number for node in self.order if node.gradient_of]
        self._asked, self._gradients = _c.numbers(asked), _c.numbers(gradients)
        self._not_always = _c.numbers(asked + gradients)
        self._updaters = [node for node in self.order if node.updates]
        return True

    def _traced_only(self):
        """The nodes for whose sake a step is traced. msdbg keeps a history of the single numbers of
        a loss by itself, and what is watched wants its inputs, too: that must not make every step a
        traced one. Whoever watches such an input wants the inputs of that, which are asked."""
        known = [node for node in self.order if node.light or _is_part_of_loss(node)]
        left_out = {name for node in known for name, _ in node.inputs or ()}
        left_out.update(node.name for node in known)
        return [node for node in self.order if node.name not in left_out]

    # ---- the phases of a step

    def begin(self):
        """Holds the training before its first step. False: go on without the debugger."""
        if self.off or not self.describe():
            return False
        self.step += 1
        self.ran = []
        answer, self._early = self._early, None
        if answer is None:
            answer = self.connection.begin_step(self._place)
        if answer == _c.STOP:
            return self._stopped()
        self.open = True
        self.quiet = self.connection.passes() and not self.connection.wants_any(self._not_always)
        if not self.quiet:
            self.tell_problem()
        return True

    def begin_early(self):
        """Holds the training before its first step while the program waits for something else;
        begin() then goes on. In another thread than that of the program."""
        if not self.off and self.describe():
            self._early = self.connection.begin_step(self._place)

    def again(self):
        """What the open step ran is forgotten: the program runs it once more."""
        for node in self.ran:
            node.step = None
            if node.number < 0 and not node.light:
                node.inputs = None
        self.ran = []
        self.table.again()

    def wants(self):
        return self.connection.wants()

    def wants_traced(self):
        """Whether anything is wanted that is known only from tracing."""
        wanted = self.connection.wants()
        if wanted != _c.WANTS_SOME:
            return wanted == _c.WANTS_ALL
        return self.connection.wants_any(self._asked)

    def wants_gradients(self):
        """Whether the gradient of any parameter is wanted, or not known to the debugger yet."""
        return self.dirty or self.connection.wants_any(self._gradients)

    def tell_skipped(self):
        """Operators that change something in place and did not run in this step, which was traced:
        as those of one optimizer in the step of another, or behind an exception."""
        skipped = [node.number for node in self._updaters if node.step != self.step]
        if skipped:
            self.connection.skipped(_c.numbers(skipped))

    def end(self):
        """Ends the step; holds the training if the debugger wants. Raises Terminated."""
        if not self.open:
            return
        self.open = False
        if self.connection.end_step() == _c.STOP:
            self._stopped()
        elif not self.quiet:  # otherwise another step tells it soon
            self.tell_problem()

    def _stopped(self):
        problem = self.connection.problem()
        if problem:
            return self.give_up(_c.goes_on(problem, self._told))
        self.off = True
        self.connection.finish()
        _c.say("the debugger ended the training")
        raise Terminated(0)

    def cut_short(self, why, traced):
        """The program ends in the midst of the open step. `traced`: its operators were seen."""
        self.quiet = False
        self.connection.cut_short(self.step, why, traced)

    def give_up(self, line):
        """Ends the conversation with one line; the training goes on."""
        if not self.off:
            self.off, self.open = True, False
            self.connection.finish()
            _c.say(line)
        return False

    def failed(self, fault):
        """A fault of ours: the training goes on without the debugger."""
        self.give_up("the training goes on without the debugger: %s" % _c.line_of(fault))

    def tell_problem(self):
        problem = self.connection.problem()
        if problem != self._told:
            self._told = problem
            if problem:
                _c.say(problem)


def _is_part_of_loss(node):
    single = all(not shape or max(shape) <= 1 for _, shape in node.outputs[:1])
    return single and (
        "_loss_fn-" in node.scope or node.kind.endswith("loss") or "_loss_" in node.kind
    )
