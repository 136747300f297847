"""Trainings in which neither the mode of a network nor an optimizer tells where a step is: networks
that are trained in evaluation mode, loops that change their parameters themselves, and compiled
functions that hold a whole step."""

import gc
import types
import weakref

import torch

_FUNCTIONS = (types.FunctionType, types.MethodType)
_MOST_CALLS = 64
_MOST_OPERATIONS = 100000
_MOST_DEPTH = 3  # functions that call one another


class Unmarked:
    def __init__(self):
        # Networks in evaluation mode, and compiled functions, that were called since the last step.
        self._called = []
        self._trained = []  # those of which a backward pass was seen
        self._by_hand = None  # None: not known yet
        self._read = weakref.WeakKeyDictionary()  # compiled function -> whether it trains

    def called(self, module):
        """A network with something to train is called outside of a step."""
        if (
            torch.is_grad_enabled()
            and len(self._called) < _MOST_CALLS
            and not _holds(self._called, module)
        ):
            self._called.append(weakref.ref(module))

    def is_trained(self, module):
        """Whether a step begins here although the network is in evaluation mode."""
        return torch.is_grad_enabled() and _holds(self._trained, module)

    def trains(self, compiled, function):
        """Whether `function`, of which `compiled` was made, calls backward(): nothing in it tells
        that a step begins."""
        if compiled not in self._read:
            self._read[compiled] = _names_backward(function, _MOST_DEPTH)
        return self._read[compiled] and torch.is_grad_enabled()

    def learned(self):
        """A backward pass or an optimizer runs, and no step is open: the networks that were called
        are trained. Returns them."""
        found = [module for module in (each() for each in self._called) if module is not None]
        self._called = []
        self._trained = [each for each in self._trained if each() is not None]
        self._trained.extend(weakref.ref(module) for module in found)
        return found

    def by_hand(self):
        """Whether the program changes its parameters itself. Asked when a backward pass begins: a
        program with an optimizer has made it by then."""
        if self._by_hand is None:
            self._by_hand = not has_optimizer()
        return self._by_hand

    def marked(self):
        """An optimizer has run, or the program tells its steps."""
        self._by_hand = False


def _holds(references, module):
    return any(each() is module for each in references)


def _names_backward(function, depth):
    """Whether the code of a function, or of one that it calls by name, has the name `backward`."""
    code = getattr(function, "__code__", None)
    if code is None or "backward" in code.co_names:
        return code is not None
    if depth == 1:
        return False
    found = [getattr(function, "__globals__", {}).get(name) for name in code.co_names]
    owner = getattr(function, "__self__", None)
    if owner is not None:
        found.extend(getattr(type(owner), name, None) for name in code.co_names)
    for cell in getattr(function, "__closure__", None) or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:
            pass  # nothing is in it yet
    return any(_names_backward(each, depth - 1) for each in found if isinstance(each, _FUNCTIONS))


def optimizers():
    """Those that the program has made. Looks at all objects of the process."""
    kind = torch.optim.Optimizer
    return (each for each in gc.get_objects() if issubclass(type(each), kind))


def has_optimizer():
    return next(optimizers(), None) is not None


def optimized():
    """The parameters of all optimizers."""
    return [p for each in optimizers() for group in each.param_groups for p in group["params"]]


def leaves_of(roots):
    """The parameters that a backward pass of these reaches."""
    made = [each.grad_fn if isinstance(each, torch.Tensor) else each.node for each in roots]
    waiting = [each for each in made if each is not None]
    seen, found = set(waiting), []
    while waiting and len(seen) < _MOST_OPERATIONS:
        node = waiting.pop()
        variable = getattr(node, "variable", None)
        if variable is not None:
            found.append(variable)
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                waiting.append(following)
    return found[::-1]
