"""Functions of the program that PyTorch calls like operators: those of torch.autograd.Function, and
those that a higher-order operator such as torch.cond is given."""

import functools

import torch
from torch.utils import _python_dispatch

from .compiler import is_compiling, set_compiler
from .mode import Mode
from .tensors import is_plain


def _is_seen(training):
    return not is_compiling() and training.tracing and not training.owner.is_another()


def custom(training, undo):
    """torch.autograd.Function. It may compute by other means than operators."""
    from torch.autograd import function as functions

    function, backward = functions.Function, functions.BackwardCFunction

    forward = vars(function)["apply"]

    def apply(cls, *args, **kwargs):
        made = forward.__get__(None, cls)(*args, **kwargs)
        if _is_seen(training):
            training.guarded(training.note_function, cls.__name__, args, made)
        return made

    function.apply = classmethod(functools.wraps(function.apply)(apply))
    undo.append(lambda: setattr(function, "apply", forward))

    def changed(original):
        @functools.wraps(original)
        def apply(self, *args):
            made = original(self, *args)
            if _is_seen(training):
                name, number = type(self).__name__, self._sequence_nr()
                training.guarded(training.note_function, name, args, made, number)
            return made

        return apply

    for name in ("apply", "apply_boxed"):
        original = vars(backward).get(name)
        if original is not None:
            setattr(backward, name, changed(original))
            undo.append(functools.partial(setattr, backward, name, original))


def classes(training, undo):
    """Tensor.as_subclass, which raises an exception below a mode in some releases. Newer ones take
    all modes off for it, too."""
    if not _fails_below_a_mode():
        return
    original = torch.Tensor.as_subclass

    def as_subclass(self, cls):
        if not training.tracing:
            return original(self, cls)
        with torch._C._DisableTorchDispatch():
            return original(self, cls)

    torch.Tensor.as_subclass = functools.wraps(original)(as_subclass)
    undo.append(lambda: delattr(torch.Tensor, "as_subclass"))


def _fails_below_a_mode():
    class Nothing(_python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    class Own(torch.Tensor):
        pass

    tensor = torch.empty(0)
    try:
        with Nothing():
            tensor.as_subclass(Own)
    except RuntimeError:
        return True
    return False


def lengths(training, undo):
    """ctc_loss takes lengths as numbers or tensors. Below a mode it leaves tensors where they are,
    and its kernels for a GPU do not take those of the processor."""
    original = torch.ctc_loss

    def numbers(value):
        if not is_plain(value):
            return value
        with torch._C._DisableTorchDispatch():  # it is no operator of the program
            return value.tolist()

    @functools.wraps(original)
    def ctc_loss(log_probs, targets, input_lengths, target_lengths, *args, **kwargs):
        if _is_seen(training):
            input_lengths, target_lengths = numbers(input_lengths), numbers(target_lengths)
        return original(log_probs, targets, input_lengths, target_lengths, *args, **kwargs)

    torch.ctc_loss = ctc_loss
    undo.append(lambda: setattr(torch, "ctc_loss", original))


def higher_order(training, undo):
    """Without this, a higher-order operator raises an exception where a mode like ours is entered."""
    operators = torch._ops.HigherOrderOperator
    original, python_key = operators.dispatch, torch._C.DispatchKey.Python

    @functools.wraps(original)
    def dispatch(self, dispatch_key, *args, **kwargs):
        if dispatch_key == python_key:
            if type(_python_dispatch._get_current_dispatch_mode()) is Mode:
                compiler = set_compiler(None)
                try:
                    with _python_dispatch._pop_mode_temporarily() as mode:
                        return mode.higher_order(self, args, kwargs)
                finally:
                    set_compiler(compiler)
        return original(self, dispatch_key, *args, **kwargs)

    operators.dispatch = dispatch
    undo.append(lambda: setattr(operators, "dispatch", original))


def of_library(training, made, function):
    """What PyTorch compiles for itself, in torch.cond and the like: it needs what the function is
    compiled into, and cannot compile below a mode like ours. The whole is one operator."""
    if not callable(function):
        return made
    kind = function.__module__.rpartition(".")[2]

    @functools.wraps(made)
    def compiled(*args, **kwargs):
        if not _is_seen(training):
            return made(*args, **kwargs)
        with training.not_traced():
            result = made(*args, **kwargs)
        given = (*args, *kwargs.values())
        training.guarded(training.note_function, kind, given, result)
        return result

    return compiled
