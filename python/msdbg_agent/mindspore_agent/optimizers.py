"""Optimizers of a PyNative step: what they are given, what they change, and when Python runs them."""

import functools
import gc
import weakref

from .._names import part
from .tensors import optimizer_types


class Updates:
    """Describes updates; most run as one compiled function, without a view of what is inside."""

    def __init__(self, recorder, operators, cells):
        self._recorder, self._operators, self._cells = recorder, operators, cells

    def expect(self, weights):
        """The nodes of their gradients, before the first step: they tell what is a weight."""
        for weight in weights:
            self._operators.light(*self._place(weight), weight, weight.name)

    def _place(self, weight):
        path, name = self._cells.place_of(weight)
        return "Gradients/%s/Grad_%s" % (path, name), "Gradient"

    def note_gradients(self, optimizer, gradients):
        """The nodes of what the optimizer was given for each parameter."""
        weights = list(getattr(optimizer, "parameters", ()))
        if len(gradients) != len(weights):
            return []
        nodes = []
        for weight, gradient in zip(weights, gradients):
            place = self._place(weight)
            nodes.append(self._operators.light_value(*place, gradient, weight.name))
        return nodes

    def note(self, optimizer, nodes):
        """One operator for each parameter stands for what the update did to it and its state."""
        weights = list(getattr(optimizer, "parameters", ()))
        if len(nodes) != len(weights):
            return
        kind = part(type(optimizer).__name__)
        states = self._cells.states_of(optimizer, weights)
        for weight, node in zip(weights, nodes):
            scope = "Default/optimizer-%s/%s-%s" % (kind, part(weight.name), kind)
            update = self._operators.light_value(scope, "Apply" + kind, weight)
            if node is not None and update is not None and not update.inputs:
                changed = [(each, 0) for each in [weight.name] + states.get(weight.name, [])]
                update.inputs = changed + [(node.name, 0)]
                update.updates = set(changed)
                self._recorder.dirty = True


class Hooks:
    """Tells when an optimizer runs whose construct() is not compiled. It is wrapped only while a step
    is open, and not while the framework compiles: it would compile the wrapper, too. The hooks of
    cells would do, but they change the last digits of a loss in releases before 2.10."""

    def __init__(self, begins, ends):
        self._begins, self._ends = begins, ends
        self._known, self._wrapped, self._inside, self._undo = [], [], False, []
        for owner in optimizer_types():
            self._wrap_init(owner)
        for each in gc.get_objects():
            if issubclass(type(each), optimizer_types()):
                self._add(each)

    def _wrap_init(self, owner):
        original = owner.__init__

        @functools.wraps(original)
        def init(optimizer, *args, **kwargs):
            original(optimizer, *args, **kwargs)
            self._add(optimizer)

        owner.__init__ = init
        self._undo.append(lambda: setattr(owner, "__init__", original))

    def _add(self, optimizer):
        # Those that are compiled show themselves by their call.
        if not hasattr(type(optimizer).construct, "__wrapped__"):
            self._known.append(weakref.ref(optimizer))

    def enter(self):
        self._inside = True
        self.resume()

    def leave(self):
        self.pause()
        self._inside = False

    def resume(self):
        if not self._inside or self._wrapped:
            return
        for reference in self._known:
            optimizer = reference()
            if optimizer is not None and "construct" not in vars(optimizer):
                object.__setattr__(optimizer, "construct", self._wrap(optimizer))
                self._wrapped.append(reference)

    def _wrap(self, optimizer):
        original, reference = optimizer.construct, weakref.ref(optimizer)

        @functools.wraps(original)
        def construct(*args, **kwargs):
            self._begins(reference(), args)
            out = original(*args, **kwargs)
            self._ends(reference(), args)
            return out

        return construct

    def pause(self):
        wrapped, self._wrapped = self._wrapped, []
        for reference in wrapped:
            optimizer = reference()
            if optimizer is not None:
                vars(optimizer).pop("construct", None)

    def close(self):
        self.leave()
        for undo in self._undo:
            undo()
