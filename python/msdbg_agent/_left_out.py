"""Iterations whose update the program leaves out, as it does for a loss that is not finite."""

_ENOUGH = 2  # updates that show how the program goes
_MOST_IN_TURN = 3  # updates in turn with such an iteration before each


class LeftOut:
    """What tells such an iteration is that the program takes the gradients back in the midst of a
    step, which it did in no step with an update before. Programs that always do so, as with several
    backward passes for one update, or a pass for a target, are left alone; also those that begin to,
    as with a pass that looks for hard examples.

    A network that is called between two steps for what it makes, such as the samples of a GAN, looks
    like the begin of a step. If the program takes gradients back before each step, such a call has
    none before it, and is a part of the next step."""

    def __init__(self):
        self._updates = 0  # steps with one
        self._inside = False  # gradients were taken back in the midst of this step
        self._always_before = True  # in no step with an update they were
        self._updating = False  # an optimizer runs
        self._left_out = False  # since the last update
        self._in_turn = 0
        self._cleared = False  # gradients were taken back since the last step
        self._begun_clear = False  # and so they were before this one,
        self._always_clear = True  # as before every step with an update

    def begin(self):
        self._inside = False
        self._begun_clear, self._cleared = self._cleared, False

    def cleared(self):
        """An optimizer takes back the gradients between two steps."""
        self._cleared = True

    def update_begins(self):
        self._updating = True

    def update_ended(self):
        self._updating = False
        self._updates += 1
        self._in_turn = self._in_turn + 1 if self._left_out else 0
        self._left_out = False
        self._always_clear = self._always_clear and self._begun_clear
        if self._inside or self._in_turn >= _MOST_IN_TURN:
            self._always_before = False

    def taken_back(self):
        """An optimizer takes back the gradients in an open step. True: the step has no update."""
        knows = self._updates >= _ENOUGH and not self._updating
        if knows and self._always_clear and not self._begun_clear:
            self._begun_clear = True  # the step begins here
            return False
        self._inside = True
        if not knows or not self._always_before:
            return False
        self._left_out = self._cleared = True
        return True
