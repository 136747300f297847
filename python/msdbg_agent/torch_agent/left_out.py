"""Iterations whose update the program leaves out, as it does for a loss that is not finite."""

_ENOUGH = 2  # updates that show how the program goes


class LeftOut:
    """What tells such an iteration is that the program takes the gradients back in the midst of a
    step, which it did in no step with an update before. Programs that always do so, as with several
    backward passes for one update, or a pass for a target, are left alone."""

    def __init__(self):
        self._updates = 0  # steps with one
        self._inside = False  # gradients were taken back in the midst of this step
        self._always_before = True  # in no step with an update they were
        self._updating = False  # an optimizer runs

    def begin(self):
        self._inside = False

    def update_begins(self):
        self._updating = True

    def update_ended(self):
        self._updating = False
        self._updates += 1
        self._always_before = self._always_before and not self._inside

    def taken_back(self):
        """An optimizer takes back the gradients in an open step. True: the step has no update."""
        self._inside = True
        return self._always_before and not self._updating and self._updates >= _ENOUGH
