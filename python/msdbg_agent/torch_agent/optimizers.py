"""What an optimizer shows of itself: learning rates and its state, as parameters of the graph."""

import ctypes
import weakref

import torch

from .tensors import address_of, dtype_name, is_plain, own_part, shape_of


class Optimizers:
    def __init__(self, recorder, modules):
        self.recorder, self.modules = recorder, modules
        self._rates = {}
        self._names = {}  # (name of a parameter, state) -> name of that state
        self._told = {}  # id(optimizer) -> what was told of it

    def loss_scale(self, scale):
        """What GradScaler multiplies the loss with, as a parameter of the graph."""
        known = self.recorder.parameters.get("loss_scale")
        if is_plain(scale) and (known is None or known.keep is not scale):
            self.recorder.parameter(
                "loss_scale", dtype_name(scale), tuple(scale.shape), address_of(scale), True, scale
            )

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
        told = self._told.get(id(optimizer))
        if told is not None and told.still_holds(optimizer):
            return
        told = self._told[id(optimizer)] = _Told(optimizer, self._told)
        parameters = self.recorder.parameters
        for tensor, state in optimizer.state.items():
            entry = self.modules.by_id.get(id(tensor)) if isinstance(state, dict) else None
            if entry is None:
                told.add(state, ())
                continue
            for key, value in state.items():
                part = own_part(value)
                if not (isinstance(part, torch.Tensor) and is_plain(part)):
                    continue
                name = self._names.get((entry[0], key))
                if name is None:
                    name = self._names[entry[0], key] = "moments.%s.%s" % (key, entry[0])
                if name not in parameters and trace is not None:
                    trace.name_state(part, name)
                self.recorder.parameter(
                    name,
                    dtype_name(part),
                    shape_of(part),
                    address_of(part),
                    True,
                    value,
                    None,
                    part.data_ptr(),
                )
            told.add(
                state,
                [(key, parameters.get(self._names.get((entry[0], key)))) for key in state],
            )


class _Told:
    """What was told of an optimizer's state: most steps change its values alone."""

    def __init__(self, optimizer, all_told):
        number = id(optimizer)
        self._states = []  # (state of a parameter, [(key, what the recorder knows of it, or None)])
        self._optimizer = weakref.ref(optimizer, lambda _: all_told.pop(number, None))

    def add(self, state, entries):
        self._states.append((state, entries))

    def still_holds(self, optimizer):
        if self._optimizer() is not optimizer or len(self._states) != len(optimizer.state):
            return False
        for (told, entries), state in zip(self._states, optimizer.state.values()):
            if told is not state or (entries and len(entries) != len(state)):
                return False
            for key, known in entries:
                value = state.get(key)
                if known is None:
                    if isinstance(value, torch.Tensor):
                        return False
                elif value is not known.keep:
                    return False
                elif value.data_ptr() != known.pointer:
                    if own_part(value).data_ptr() != known.pointer:
                        return False
        return True
