"""What the training loop gives to a network, or to a loss: the data inputs of the graph."""

import torch


class Inputs:
    def __init__(self, recorder, modules, values):
        self._recorder, self._modules, self._values = recorder, modules, values
        self._untold = []  # arguments of the networks and losses that a quiet step has called
        self._kept = False  # the recorder has some

    def begin_quiet(self):
        """Those of earlier steps are not kept any more; those of this one are not told yet."""
        if self._kept:
            self._recorder.forget_inputs()
            self._kept = False

    def keep(self, module, args, learns):
        """For tell(). What the network computed is not kept longer than without the agent."""
        kept = [None if getattr(each, "requires_grad", True) else each for each in args]
        self._untold.append((module, kept, learns))

    def tell(self):
        for each in self._untold:
            self.note(*each)

    def end(self):
        self._untold = []

    def note(self, module, args, learns):
        """`learns`: the module has parameters, so it is no loss."""
        self._kept = True
        names = self._modules.argument_names(module)
        place = "data" if learns else "loss"
        for name, value in zip(names, args):
            if (
                isinstance(value, torch.Tensor)
                and not value.requires_grad
                and id(value) not in self._modules.by_id
                and self._values.source(value) is None
            ):
                self._values.data(self._recorder, "%s.%s" % (place, name), value)
