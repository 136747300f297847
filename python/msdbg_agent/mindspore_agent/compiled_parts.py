"""Compiled functions (@jit) as parts of a PyNative step: one that differentiates begins it, one that
updates the parameters ends it."""

from .cells import LOSS, optimizers_of
from .tensors import tensors_in


class CompiledParts:
    """Of PyNative; see there."""

    def compiled_begins(self, function, args, weights):
        """A compiled function that differentiates is about to run. Whether it began a step."""
        if self._manual or self.recorder.open or self.recorder.off:
            return False
        self._guarded(self._begin, function, args, None, True)
        self.passes.told_weights(weights)
        return self.recorder.open

    def compiled_goes_on(self, weights):
        """A compiled function that differentiates is about to run in the open step. Whether it
        ended it: it was over."""
        if self._manual or not self._in_step() or self.operators.in_backward:
            return False
        self.passes.told_weights(weights)
        if self.passes.is_over():
            self._guarded(self._over)
        return not self.recorder.open

    def compiled_ran(self, executor, args, out):
        """The function that began the step has run."""
        self._guarded(self._compiled_ran, executor, args, out)

    def _compiled_ran(self, executor, args, out):
        tensors = tensors_in((out,))
        if isinstance(out, (list, tuple)) and tensors and tensors[0].size == 1:
            self.operators.light_value(LOSS, "Loss", tensors[0])  # (loss, gradients)
            self.passes.told_loss(tensors[0])
        if self._traced:
            self.operators.compiled_begins()
            self.compiled.called(executor, args, out)
        self._enter()

    def _compiled_function_ran(self, executor, args, out):
        """One that has updated the parameters ends the step; its operators are seen like those of
        any other."""
        name = getattr(executor.fn, "__name__", "")
        if name.endswith("all_finite") and executor.fn.__module__.startswith("mindspore."):
            for flag in tensors_in((out,))[:1]:
                self.passes.told_finite(flag)
        if self._updating is not None or not self._is_update(executor):
            return
        found = optimizers_of(executor.fn, executor.obj)
        for each in found:
            self.cells.add_optimizer(each)
        self._note_parameters()
        if len(found) == 1:
            nodes = self.updates.note_gradients(found[0], tensors_in(args))
            names = [each.name for each in found[0].parameters]
            self.compiled.gradients = dict(zip(names, nodes))
        self._operators_end()
        if not self._manual:
            self._end()
