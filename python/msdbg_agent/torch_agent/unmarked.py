"""Trainings in which neither the mode of a network nor an optimizer tells where a step is: networks
that are trained in evaluation mode, and loops that change their parameters themselves."""

import gc
import weakref

import torch

_MOST_CALLS = 64
_MOST_OPERATIONS = 100000


class Unmarked:
    def __init__(self):
        # Networks in evaluation mode, and compiled functions, that were called since the last step.
        self._called = []
        self._trained = []  # those of which a backward pass was seen
        self._by_hand = None  # None: not known yet

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


def has_optimizer():
    """Whether the program has made one. Looks at all objects of the process."""
    kind = torch.optim.Optimizer
    return any(issubclass(type(each), kind) for each in gc.get_objects())


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
