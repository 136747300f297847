"""The framework's executors, wrapped: they tell where passes begin and end, and which compiled
functions and optimizers run."""

import contextlib
import functools
import threading

from .kinds import kind_of
from .tensors import is_optimizer


class Executors:
    """What PyNative is told; see there."""

    def __init__(self, probe):
        self.probe, self._undo = probe, []
        self._wrap(probe.pynative_executor, "new_graph", self._forward_begins)
        self._wrap(probe.pynative_executor, "end_graph", self._forward_ends)
        self._wrap(probe.pynative_executor, "grad", self._backward_begins, self._backward_ends)
        if probe.jit_executor is not None:
            self._wrap_call(probe.jit_executor)

    def _wrap(self, owner, name, told, told_after=None):
        original = getattr(owner, name, None)
        if original is None:
            return

        @functools.wraps(original)
        def wrapped(executor, *args, **kwargs):
            if not self.recorder.off:
                self._guarded(told, *args)
            out = None
            try:
                out = original(executor, *args, **kwargs)
                return out
            finally:
                if told_after is not None and not self.recorder.off:
                    self._guarded(told_after, out)

        setattr(owner, name, wrapped)
        self._undo.append(lambda: setattr(owner, name, original))

    def _in_step(self):
        """What runs now belongs to the open step."""
        return (
            self.recorder.open
            and not self.recorder.off
            and threading.get_ident() == self._thread
        )

    @contextlib.contextmanager
    def set_aside(self):
        """In a step, the framework's own functions are back, for a compiler that reads them."""
        if not self._in_step():
            yield
            return
        step = self.recorder.step
        self.hooks.pause()
        mode, self._mode = self._mode, None
        if mode is not None:
            mode.__exit__(None, None, None)
        self.patches.pause()
        try:
            yield
        finally:
            # What was compiled can be the first function of the next step, which has ended this one.
            if self.recorder.step == step:
                if mode is not None:
                    self._mode = mode
                    mode.__enter__()
                self.patches.resume()
                self.hooks.resume()

    def _wrap_call(self, owner):
        original = owner.__call__

        @functools.wraps(original)
        def call(executor, *args, **kwargs):
            if not self._in_step():
                return original(executor, *args, **kwargs)
            held = getattr(executor, "obj", None)
            run = functools.partial(original, executor, *args, **kwargs)
            if is_optimizer(held) and self._updating is None:
                return self.run_optimizer(held, args, run)
            step = self.recorder.step
            if self._traced:
                self._guarded(self.operators.compiled_begins)
            with self.set_aside():
                out = run()
            if self.recorder.step != step:
                return out
            if self._traced:
                self._guarded(self.compiled.called, executor, args, out)
            self._guarded(self._compiled_function_ran, executor, args, out)
            return out

        owner.__call__ = call
        self._undo.append(lambda: setattr(owner, "__call__", original))

    def run_optimizer(self, optimizer, args, run):
        """One whose update is compiled, from the framework's own functions: it ends the step."""
        self._guarded(self.compiled.pause)
        with self.set_aside():
            out = run()
        self._guarded(self._optimizer_ran, optimizer, args)
        return out

    def _is_update(self, executor):
        """A compiled function, not of the forward pass, that writes to what the step trains."""
        kind, in_forward = kind_of(executor), self.probe.grad_flag
        if kind is None or not kind.changed or in_forward is None or in_forward():
            return False
        return any(
            each.requires_grad and each.name in kind.changed for each in self.cells.get_parameters()
        )

    def _guarded(self, function, *args):
        """A fault of ours must not reach the training."""
        try:
            return function(*args)
        except Exception as fault:
            self._leave()
            self.recorder.failed(fault)
            return None
