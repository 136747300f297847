"""Iterations whose update the program leaves out, as it does for a loss that is not finite."""

_ENOUGH = 2  # updates that show how the program goes
_MOST_IN_TURN = 3  # updates in turn with such an iteration before each


class LeftOut:
    """What tells such an iteration is that the program takes the gradients back in the midst of a
    step, which it did in no step with an update before. Programs that always do so, as with several
    backward passes for one update, or a pass for a target, are left alone; also those that begin to,
    as with a pass that looks for hard examples."""

    def __init__(self):
        self._updates = 0  # steps with one
        self._inside = False  # gradients were taken back in the midst of this step
        self._always_before = True  # in no step with an update they were
        self._updating = False  # an optimizer runs
        self._left_out = False  # since the last update
        self._in_turn = 0

    def begin(self):
        self._inside = False

    def update_begins(self):
        self._updating = True

    def update_ended(self):
        self._updating = False
        self._updates += 1
        self._in_turn = self._in_turn + 1 if self._left_out else 0
        self._left_out = False
        if self._inside or self._in_turn >= _MOST_IN_TURN:
            self._always_before = False

    def taken_back(self):
        """An optimizer takes back the gradients in an open step. True: the step has no update."""
        self._inside = True
        if self._updating or not self._always_before or self._updates < _ENOUGH:
            return False
        self._left_out = True
        return True
