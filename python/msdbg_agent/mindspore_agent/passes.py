"""Which passes belong to one step.

An optimizer ends a step. A program that changes its parameters by itself, or leaves out an update
because the gradients are not finite, shows it only when it goes on with the next pass.
"""

import ctypes

from .memory import bytes_of, on_host

_LOOKED_AT = 256  # bytes at the beginning and in the middle of a parameter
_COPIED, _MOST_COPIED = 8, 1 << 20  # parameters on a device, and bytes of each
MOST = 128  # passes of one step whose operators are noted


class Passes:
    """Those of the open step."""

    def __init__(self, cells):
        self._cells = cells
        self._usual = 0  # passes of the last step that an optimizer has ended
        self.step_begins()

    def step_begins(self, outer=None, frame=None):
        """`outer` is what is differentiated, None in a compiled function; `frame` calls it."""
        self.count, self._loss, self._flag, self._weights = 0, None, None, set()
        self._before = self._look()
        self.begins(outer, frame)

    def begins(self, outer, frame):
        self.outer, self._frame = outer, frame

    def goes_on(self, outer, frame):
        """Another pass of the same step."""
        self.count += 1
        self.begins(outer, frame)

    def ends(self):
        """The outermost forward pass."""
        self._frame = None

    def updated(self):
        """An optimizer has run: the step has all its passes."""
        self._usual = self.count + 1

    def step_ends(self):
        self.begins(None, None)
        self._before, self._loss, self._flag = {}, None, None

    def is_inside(self, frame):
        """Whether a pass that begins now is a part of the one that runs."""
        while self._frame is not None and frame is not None:
            if frame is self._frame:
                return True
            frame = frame.f_back
        return False

    @property
    def broken_off(self):
        """A forward pass has not come to its end; to be asked when none runs."""
        return self._frame is not None

    def told_loss(self, tensor):
        self._loss = tensor if tensor.size == 1 else None

    def told_weights(self, weights):
        """What gradients are made of. Other parameters, such as counters, may change in a step.
        Returns the weights that nobody has shown before."""
        if weights is not None and not isinstance(weights, (list, tuple)):
            weights = [weights]
        self._weights.update(getattr(each, "name", None) for each in weights or ())
        new = self._cells.add_weights(weights or ())
        self._before.update(self._contents(new))
        return new

    def told_finite(self, flag):
        """What MindSpore's all_finite() said about the gradients."""
        self._flag = flag

    def is_over(self):
        """Whether the step is over, as another pass is about to begin. Waits for the operators. A
        program that adds up the gradients of several passes goes on if one of them is not finite.
        """
        if self.count + 1 < self._usual:
            return self.changed()
        if self._flag is not None and not self._number(self._flag, 1):
            return True
        if self._loss is not None and not abs(self._number(self._loss, 0)) < float("inf"):
            return True
        return self.changed()

    def changed(self):
        """The program has written to what it trains."""
        now = self._look()
        return any(
            now.get(name, content) != content
            for name, content in self._before.items()
            if name in self._weights
        )

    @staticmethod
    def _number(tensor, otherwise):
        try:
            return float(tensor.asnumpy().reshape(-1)[0])
        except (AttributeError, IndexError, RuntimeError, TypeError, ValueError):
            return otherwise

    def _look(self):
        return self._contents(self._cells.trainable())

    @staticmethod
    def _contents(trained):
        if not on_host():
            # Each copy waits for the device; an update changes nearly all of them.
            few = sorted(trained, key=lambda each: each.nbytes)[:_COPIED]
            return {each.name: bytes_of(each) for each in few if each.nbytes <= _MOST_COPIED}
        found = {}
        for each in trained:
            address = each.data_ptr() if hasattr(each, "data_ptr") else None
            if address:
                size = min(_LOOKED_AT, each.nbytes)
                middle = (each.nbytes - size) // 2
                found[each.name] = ctypes.string_at(address, size) + ctypes.string_at(
                    address + middle, size
                )
        return found
