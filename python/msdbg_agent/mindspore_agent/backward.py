"""Which operator of the forward pass an operator of the backward pass belongs to.

The framework does not tell it, so the gradients are followed: whoever reads the gradient of an
output of a forward operator works for that operator, and makes the gradients of what the operator
read, or something in between. Values that the forward pass has kept decide where both are possible.
"""

from .cells import LOSS

_LOSS = (LOSS + "/Loss-op0", 0)


class _Forward:
    __slots__ = ("node", "read", "outs", "sources", "readers")

    def __init__(self, node, read, outs):
        self.node, self.read, self.outs = node, read, outs
        self.sources = []  # for each that it read: (number of its maker or None, shape)
        self.readers = []  # numbers of those that read its outputs


class Backward:
    """One step."""

    def __init__(self):
        self._forward = []
        # (at, name, read, outs, lines of the program that ran it), or (at, None, (number, place,
        # given), gradient, ()); `at` is how many values the step had before
        self._events = []
        self.loss = None
        self._read = {}  # address of what came into the step -> the numbers of its readers
        self.arrived = {}  # node of the forward pass -> the gradients of its outputs that were seen
        self._passes = []  # (number of operators before, behind it, weights, their gradients)
        self._of_weights = None  # address of a gradient -> (of these the first two, weight)

    def close(self):
        """Lets go of the tensors: the framework keeps the functions that it tells gradients to."""
        self._forward, self._events, self.loss, self.arrived = [], None, None, {}
        self._passes, self._of_weights = [], None

    def forward(self, node, read, outs):
        self._forward.append(_Forward(node, read, outs))
        return len(self._forward) - 1

    def ran(self, at, name, read, outs, frames):
        self._events.append((at, name, read, outs, frames))

    def gradient(self, at, number, place, given, gradient):
        """Of what operator `number` made, or was given at that place."""
        if self._events is not None:
            self._events.append((at, None, (number, place, given), gradient, ()))

    def pass_made(self, weights, gradients):
        """A backward pass has ended, with these gradients of weights."""
        first = self._passes[-1][1] if self._passes else 0
        self._passes.append((first, len(self._forward), weights, gradients))

    def readers_of_weight(self, tensor):
        """If it is the gradient of a weight: the nodes that read the weight in that pass."""
        if not self._passes:
            return ()
        if self._of_weights is None:
            self._of_weights = {
                gradient.data_ptr(): (first, behind, weight.data_ptr())
                for first, behind, weights, gradients in self._passes
                for weight, gradient in zip(weights, gradients)
            }
        first, behind, address = self._of_weights.get(tensor.data_ptr(), (0, 0, 0))
        return [
            each.node
            for each in self._forward[first:behind]
            if any(read.data_ptr() == address for read in each.read)
        ]

    def named(self):
        """(at, scope, kind, frames, what it read, outputs, the nodes that it can work for) for
        each, in order. Waits for the operators."""
        if not self._events or not self._forward:
            return
        made, touched = self._link()
        last = made.get(self.loss.data_ptr()) if self.loss is not None else None
        current = len(self._forward) - 1 if last is None else last
        meaning = {}  # address -> (whose work it is, [whose gradient it can be])
        told = set()
        names = {}  # number -> the tensors that are gradients of its outputs
        seeds, passes = set(), set()  # addresses of the gradients that passes begin with
        for at, name, read, outs, frames in self._events:
            if name is None:
                number, place, given = read
                if given:
                    number = self._forward[number].sources[place][0]
                address = outs.data_ptr()
                known = address in meaning
                if number is None or (address, number) in told:
                    continue  # of a parameter or of the batch, or told twice
                told.add((address, number))
                meaning[address] = (None, [number])
                self._arrives(number, outs)
                names.setdefault(number, []).append(outs)
                if known:
                    continue  # shown by the operator that made it
                # What made it is not seen: it is what the backward pass of the readers of the
                # output makes, and gets its name from the first of them.
                each = self._forward[number]
                readers = [self._forward[reader] for reader in sorted(each.readers)] or [each]
                read = []
                for reader in sorted(each.readers):
                    read += names.get(reader, []) + self._forward[reader].read
                read = read if each.readers else [_LOSS]  # the pass begins there
                first = readers[0]
                scope = self._scope(first)
                yield at, scope, first.node.kind, first.node.frames, read, [outs], [first.node]
                continue
            owner = self._owner(read, meaning, touched)
            if owner is None:
                owner = self._of_its_kind(name, read, current)
            read = [_LOSS if each.data_ptr() in seeds else each for each in read]
            seeds.difference_update(out.data_ptr() for out in outs)
            if name in ("Ones", "OnesLike") and not read and at not in passes:
                passes.add(at)
                seeds.update(out.data_ptr() for out in outs)
            if name in ("Ones", "OnesLike", "Zeros") and not read:
                for out in outs:
                    meaning[out.data_ptr()] = (None, [owner])
                continue
            current = owner
            each = self._forward[owner]
            for out in outs:
                shape = tuple(out.shape)
                targets = [
                    source for source, its in each.sources if source is not None and its == shape
                ]
                meaning[out.data_ptr()] = (owner, targets)
                for target in targets:
                    self._arrives(target, out)
            kind, frames = name.replace("/", "|"), frames or each.node.frames
            yield at, self._scope(each), kind, frames, read, outs, self._beside(each)

    def _of_its_kind(self, name, read, current):
        """Reads what an operator made that is not seen: works for the next forward operator of its
        kind that made something of that shape, such as Mul for Mul, or else for the current one."""
        shapes = {tuple(tensor.shape) for tensor in read}
        for number in range(current - 1, -1, -1):
            each = self._forward[number]
            if each.node.kind == name and any(tuple(out.shape) in shapes for out in each.outs):
                return number
        return current

    def _beside(self, each):
        """The node, and those that read what it reads: their gradients are added up."""
        numbers = set()
        for tensor, (source, _) in zip(each.read, each.sources):
            made = source is not None
            numbers.update(self._forward[source].readers if made else self._read[tensor.data_ptr()])
        return [each.node] + [self._forward[number].node for number in sorted(numbers)]

    def _arrives(self, number, gradient):
        self.arrived.setdefault(self._forward[number].node, []).append(gradient)

    @staticmethod
    def _scope(each):
        return "Gradients/%s/Grad_%s" % (each.node.scope, each.node.kind)

    def _link(self):
        """Who made and who touched each address. Parts of a tensor can begin where it does."""
        made, touched = {}, {}
        for number, each in enumerate(self._forward):
            for tensor in each.read:
                address, shape = tensor.data_ptr(), tuple(tensor.shape)
                source = made.get((address, shape), made.get(address))
                each.sources.append((source, shape))
                if source is None:
                    self._read.setdefault(address, []).append(number)
                else:
                    self._forward[source].readers.append(number)
                touched.setdefault(address, set()).add(number)
            for tensor in each.outs:
                address = tensor.data_ptr()
                made[address] = made[address, tuple(tensor.shape)] = number
                touched.setdefault(address, set()).add(number)
        return made, touched

    @staticmethod
    def _owner(read, meaning, touched):
        between, owners, targets, near = set(), set(), set(), set()
        for tensor in read:
            address = tensor.data_ptr()
            known = meaning.get(address)
            if known is None:
                near |= touched.get(address, set())
            elif not known[1]:
                between.add(known[0])
            else:
                targets.update(known[1])
                if known[0] is not None:
                    owners.add(known[0])
        if between and near and max(between) not in near:
            # What is between comes from further back: it is the gradient of what they made.
            between = {each for each in near if each < max(between)} or between
        for choice in (between, targets & near, owners & near, targets, owners):
            if choice:
                return max(choice)
        return None
