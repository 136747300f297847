"""What an optimizer shows of itself: learning rates and its state, as parameters of the graph."""

import ctypes

import torch

from .tensors import address_of, dtype_name, is_plain


class Optimizers:
    def __init__(self, recorder, modules):
        self.recorder, self.modules = recorder, modules
        self._rates = {}
        self._names = {}  # (name of a parameter, state) -> name of that state

    def rate(self, optimizer):
        """The learning rates, as parameters of the graph."""
        groups = optimizer.param_groups
        for number, group in enumerate(groups):
            name = "learning_rate" if len(groups) == 1 else "learning_rate_group_%d" % number
            held = self._rates.get(name)
            if held is None:
                held = self._rates[name] = ctypes.c_float()
                self.recorder.parameter(name, "float32", (), ctypes.addressof(held), True, held)
            try:
                held.value = float(group.get("lr", 0.0))
            except (TypeError, ValueError):
                pass  # not a number: a rate of the user's own kind

    def state(self, optimizer, trace=None):
        """The optimizer's state: `moments.<state>.<parameter>`. `trace`: of the step, if it is
        traced."""
        parameters = self.recorder.parameters
        for tensor, state in optimizer.state.items():
            entry = self.modules.by_id.get(id(tensor)) if isinstance(state, dict) else None
            if entry is None:
                continue
            for key, value in state.items():
                if not isinstance(value, torch.Tensor):
                    continue
                name = self._names.get((entry[0], key))
                if name is None:
                    name = self._names[entry[0], key] = "moments.%s.%s" % (key, entry[0])
                known = parameters.get(name)
                if known is not None and known.keep is value and known.address == value.data_ptr():
                    continue  # where it was in the last step
                if is_plain(value):
                    if known is None and trace is not None:
                        trace.name_state(value, name)
                    self.recorder.parameter(
                        name, dtype_name(value), tuple(value.shape), address_of(value), True, value
                    )
