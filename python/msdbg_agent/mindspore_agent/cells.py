"""Which cell runs: scopes, and the names of parameters."""

import collections
import itertools

from .._names import part
from .tensors import is_loss_scaler, is_optimizer, is_training, parameters_of

LOSS = "Default/_loss_fn-Loss"


_NOWHERE = (None, "Default")
_DEEPEST = 4  # functions that call functions


def _held_by(what):
    """What a function can reach: its object, what it closes over, the globals that it names."""
    found = [getattr(what, "__self__", None), getattr(what, "__wrapped__", None)]
    found.append(getattr(what, "func", None))  # functools.partial
    for cell in getattr(what, "__closure__", None) or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:
            continue  # not bound yet
    code, names = getattr(what, "__code__", None), getattr(what, "__globals__", {})
    found.extend(names.get(name) for name in getattr(code, "co_names", ()))
    return [
        each
        for each in found
        if (callable(each) or is_loss_scaler(each)) and not isinstance(each, type)
    ]


def _reached(start):
    """The cells and loss scalers that functions hold, or those that they call."""
    from mindspore import nn

    seen, waiting = set(), collections.deque((each, 0) for each in start)
    while waiting:
        each, depth = waiting.popleft()
        if id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, nn.Cell) or is_loss_scaler(each):
            yield each
        elif depth < _DEEPEST:
            waiting += [(other, depth + 1) for other in _held_by(each)]


def _held(function, held):
    start = [held] if callable(held) else list(getattr(held, "__dict__", {}).values())
    found = _reached([function] + [each for each in start if callable(each)])
    return [each for each in found if not is_loss_scaler(each)]


def optimizers_of(function, held):
    """Those that a function, or the object whose method it is, holds."""
    return [each for each in _held(function, held) if is_optimizer(each)]


def _trains(cell):
    return is_optimizer(cell) or is_training(cell) or getattr(cell, "training", False)


class _Scales:
    """The parameters of loss scalers; no gradient changes them."""

    def __init__(self):
        self._known = {}

    def add(self, parameter):
        self._known.setdefault(parameter.name, parameter)

    def name_of(self, tensor):
        return next((name for name, each in self._known.items() if each is tensor), None)

    def get_parameters(self):
        return self._known.values()


class Cells:
    """Scopes from the cells whose construct() is running, found in the stack: hooks of cells would
    slow every call."""

    def __init__(self):
        self._paths = {}  # id(cell) -> path
        self._named = {}  # (id(root), qualified name) -> cell
        self._known = []  # so that no id is used again
        self._parameters = {}
        self._trained = {}  # those of optimizers, by id
        self._loose = {}  # trained ones that no cell holds, by name
        self._scales = _Scales()

    def find(self, what):
        """Names the cells of a function that is differentiated: those that it, or what it closes
        over, holds."""
        for each in _reached([what]):
            if is_loss_scaler(each):
                self._scales.add(each.scale_value)
            elif not is_optimizer(each):
                self._root(each)

    def find_all(self, function, held):
        """Names the cells that a function, or the object whose method it is, holds; none and False
        unless there is an optimizer among them, or a cell in training mode."""
        found = _held(function, held)
        if not any(_trains(each) for each in found):
            return False
        for cell in found:
            if is_optimizer(cell):
                self.add_optimizer(cell)
            else:
                self._root(cell)
        return True

    def paths(self):
        """(cell, path) of each that is known."""
        return [(cell, self._paths[id(cell)]) for cell in self._known]

    def _root(self, cell):
        if id(cell) in self._paths:
            return self._paths[id(cell)]
        trained = any(True for _ in cell.trainable_params())
        root = "Default/%s-%s" % ("network" if trained else "_loss_fn", part(type(cell).__name__))
        for name, each in cell.cells_and_names():
            path = root
            if name:
                parent, _, own = name.rpartition(".")
                above = self._paths.get(id(self._named.get((id(cell), parent), cell)), root)
                path = "%s/%s-%s" % (above, part(own), part(type(each).__name__))
            self._named[(id(cell), name)] = each
            self._paths.setdefault(id(each), path)
            self._known.append(each)
            for parameter in each._params.values() if hasattr(each, "_params") else ():
                if self._parameters.get(id(parameter), _NOWHERE)[1] == "Default":
                    self._parameters[id(parameter)] = parameter, path
                    self._loose.pop(parameter.name, None)
        return root

    def add_weights(self, weights):
        """What gradients are made of. Returns those that are new: no cell holds them, and each
        training of a program may make them anew."""
        found = [each for each in weights if id(each) not in self._parameters]
        found = [each for each in found if hasattr(each, "requires_grad") and each.name]
        for each in found:
            former = self._loose.get(each.name)
            if any(other is former for other in weights):
                continue  # both have this name
            self._parameters.pop(id(former), None)
            self._loose[each.name] = each
            self._parameters[id(each)] = each, "Default"
        return [each for each in found if self._loose.get(each.name) is each]

    def add_optimizer(self, optimizer):
        if id(optimizer) in self._paths:
            return
        path = "Default/optimizer-%s" % part(type(optimizer).__name__)
        self._paths[id(optimizer)] = path
        self._known.append(optimizer)
        for parameter in optimizer.get_parameters():
            self._parameters.setdefault(id(parameter), (parameter, path))
        for parameter in getattr(optimizer, "parameters", ()):
            self._trained[id(parameter)] = parameter

    @staticmethod
    def states_of(optimizer, weights):
        """What the optimizer keeps for each parameter and changes with it, by name:
        {"fc.weight": ["moments.fc.weight"]}. These are tuples of as many parameters, of the same
        shapes, whatever they are called."""
        names, found = {each.name for each in weights}, {}
        for kept in vars(optimizer).values():
            if not isinstance(kept, tuple) or len(kept) != len(weights):
                continue
            if not all(hasattr(each, "requires_grad") for each in kept):
                continue  # no parameters
            for weight, each in zip(weights, kept):
                known = found.setdefault(weight.name, [])
                if each.name not in names.union(known) and tuple(each.shape) == tuple(weight.shape):
                    known.append(each.name)
        for each in optimizer.get_parameters():
            # The longest name: a parameter can be called "weight", and another "fc.weight".
            _, mark, rest = each.name.partition(".")
            while mark and each.name not in names:
                if rest in names:
                    if each.name not in found.setdefault(rest, []):
                        found[rest].append(each.name)
                    break
                _, mark, rest = rest.partition(".")
        return found

    def running(self, frame):
        """(scope, cell) of the innermost cell whose construct() runs; there may be none."""
        while frame is not None:
            if frame.f_code.co_name == "construct":
                names = frame.f_code.co_varnames  # of the arguments first
                cell = frame.f_locals.get(names[0]) if names else None
                path = self._paths.get(id(cell))
                if path is not None:
                    return path, cell
            frame = frame.f_back
        return LOSS, None

    def scope(self, frame):
        return self.running(frame)[0]

    def path_of(self, cell):
        """Its path, or None if it is not known."""
        return self._paths.get(id(cell)) if cell is not None else None

    def name_of(self, tensor):
        known = self._parameters.get(id(tensor))
        return known[0].name if known else self._scales.name_of(tensor)

    def place_of(self, parameter):
        """(path of the cell, the parameter's own name)."""
        known = self._parameters.get(id(parameter))
        return (known[1] if known else "Default"), part(parameter.name.rpartition(".")[2])

    def parameters(self):
        return itertools.chain(parameters_of(self), parameters_of(self._scales))

    def trainable(self):
        return [each for each in self.get_parameters() if each.requires_grad]

    def get_parameters(self):
        # Networks of one class, such as a teacher and its student, have the same names: those that
        # are trained count.
        seen, known = set(), [parameter for parameter, _ in self._parameters.values()]
        for parameter in [*self._loose.values(), *self._trained.values(), *known]:
            if parameter.name not in seen:
                seen.add(parameter.name)
                yield parameter
