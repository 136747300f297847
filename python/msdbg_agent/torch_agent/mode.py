"""Sees every operator of a step: a dispatch mode, entered only for steps in which operators are
wanted."""

import functools

import torch
from torch.utils import _python_dispatch

from .pending import elements_of, pending_in
from .room import OutOfMemory
from .tensors import NoFunctions, own_kinds, own_part

# They call functions of the program, one after another, and return what these return.
_CONTROL_FLOW = {"cond", "while_loop", "map_impl", "scan", "switch"}
# Their derivatives are computed in another way below a mode, and differ in the last bit.
_DIFFER = {"prod"}

_tracing_state = getattr(torch._C, "_get_tracing_state", lambda: None)


class Mode(_python_dispatch.TorchDispatchMode):
    """Runs each operator once, and notes it. `trace` is None in a forked child and after faults of
    ours; `on_fault` tells whether to go on."""

    def __init__(self, trace, captures, on_fault):
        super().__init__()
        self.trace, self._captures, self._on_fault = trace, captures, on_fault
        self._differing = []  # (kind, output) of those that have no node of autograd yet

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if own_kinds:
            # Without a mode, nothing would ask the class here.
            with NoFunctions():
                return self._run(func, types, args, kwargs or {})
        return self._run(func, types, args, kwargs or {})

    def _run(self, func, types, args, kwargs):
        trace = self.trace
        if trace is None or self._captures.open:
            return func(*args, **kwargs)
        if self._differing:
            self.leave_out_derivatives()
        operator = trace.operator(func)
        if operator.skip:
            out = func(*args, **kwargs)
            if operator.alias:
                trace.values.alias(own_part(out), own_part(args[0]) if args else None)
            elif operator.empty:
                trace.values.unwritten(own_part(out))
            return out
        of_collective = False  # how its value arrives
        read, named = args, kwargs  # as the call is noted
        later = False  # its output is a part of what a collective still delivers
        try:
            if types:
                pending = pending_in((args, kwargs))
                if pending:
                    read, named = elements_of(args), elements_of(kwargs)
                    later = operator.view
                for each in pending if not later else ():
                    each.trigger_wait()  # the operator would, before anything else
            if trace.values.arriving and not operator.waits and not later:
                copies = operator.kind == "copy_"
                trace.values.arrived(read[1:] if copies else read, named)
                of_collective = copies and trace.values.arrives_in(read[0])
            if operator.writes:
                trace.values.before_write(operator.written(read, named))
        except Exception as fault:
            self._fault(operator.kind, fault)
        try:
            out = func(*args, **kwargs)
        except OutOfMemory:
            # The values that are kept for the debugger must not end the training.
            once = operator.writes or operator.foreign
            if once or not trace.values.devices.room.free():
                raise
            out = func(*args, **kwargs)
        except Exception:
            trace.failed(operator, args, kwargs)
            raise
        if self.trace is not None and not of_collective:
            try:
                if trace.values.arriving and operator.waits:
                    trace.values.arrived(read, named)
                trace.note(operator, read, named, elements_of(out) if later else out, later)
                if operator.kind in _DIFFER and isinstance(out, torch.Tensor):
                    self._differing.append((operator.kind, out))
            except Exception as fault:
                self._fault(operator.kind, fault)
        return out

    def leave_out_derivatives(self):
        """The mode is taken off while autograd computes some derivatives: each is one operator."""
        differing, self._differing = self._differing, []
        for kind, out in differing:
            node = out.grad_fn
            if node is not None:
                number = node._sequence_nr()  # a hook that holds the node would keep it for ever
                node.register_prehook(lambda gradients: self._derivative_begins())
                node.register_hook(
                    functools.partial(self._derivative_ended, kind + "_backward", number)
                )

    def _derivative_begins(self):
        if self.trace is not None:
            take_off(self)

    def _derivative_ended(self, kind, number, made, gradients):
        if self.trace is not None:
            enter(self)
            try:
                self.trace.note_function(kind, gradients, made, number)
            except Exception as fault:
                self._fault(kind, fault)

    def higher_order(self, func, args, kwargs):
        """An operator that is given functions of the program, and has no schema."""
        if self.trace is None or self._captures.open:
            return func(*args, **kwargs)
        name = func.name()
        if name in _CONTROL_FLOW:
            args = [self._seen(each) if callable(each) else each for each in args]
        out = func(*args, **kwargs)
        if self.trace is not None:
            try:
                self.trace.note_function(name, (*args, *kwargs.values()), out)
            except Exception as fault:
                self._fault(name, fault)
        return out

    def _seen(self, function):
        """`function`, with its operators seen."""

        def seen(*args, **kwargs):
            with self:
                return function(*args, **kwargs)

        return seen

    def _fault(self, kind, fault):
        if not self._on_fault(kind, fault):
            self.trace = None


def _take_above(mode):
    """Takes the modes off the stack, the uppermost first, as far as `mode`, which is not among
    those that it returns."""
    above = []
    while torch._C._len_torch_dispatch_stack() > 0:
        top = _python_dispatch._pop_mode()
        if top is mode:
            break
        above.append(top)
    return above


def _put_back(above):
    for other in reversed(above):
        _python_dispatch._push_mode(other)


def is_translated():
    """Whether what runs is only written down: by torch.jit.trace, or a mode of PyTorch's own, which
    works on symbols instead of values."""
    if _tracing_state() is not None:
        return True
    if not torch._C._len_torch_dispatch_stack():
        return False
    above = _take_above(None)
    _put_back(above)
    return any(getattr(each, "_mode_key", None) is not None for each in above)


def enter(mode):
    """Puts a mode below those of the program, such as a counter of operations: they may end before
    it does."""
    above = _take_above(None)
    mode.__enter__()
    _put_back(above)


def take_off(mode):
    """Takes a mode off the stack, wherever it is now."""
    _put_back(_take_above(mode))


def leave(mode):
    """Takes a mode off the stack for good."""
    mode.trace = None
    take_off(mode)
