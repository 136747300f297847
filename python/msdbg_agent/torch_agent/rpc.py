"""Trainings that torch.distributed.rpc spreads over processes: the rank that asks for backward pass
and update has the steps, whoever computes them."""

import functools
import sys
import threading

import torch

from .._imports import after_import

_Unknown = getattr(threading, "_DummyThread", ())


def serves():
    """Whether this thread computes what another rank has asked for: no step begins there."""
    if "torch.distributed.rpc" not in sys.modules or not hasattr(torch.distributed, "rpc"):
        return False
    if not getattr(torch.distributed.rpc, "_is_current_rpc_agent_set", bool)():
        return False
    return isinstance(threading.current_thread(), _Unknown)  # Python has not started it


def install(training, undo):
    if not torch.distributed.is_available():
        return
    after_import("torch.distributed.autograd", functools.partial(_passes, training, undo))
    after_import("torch.distributed.optim.optimizer", functools.partial(_updates, training, undo))


def _elsewhere(training):
    return training.recorder.off or training.owner.is_another()


def _passes(training, undo):
    autograd = sys.modules["torch.distributed.autograd"]
    original = getattr(autograd, "backward", None)
    if original is None:
        return  # this PyTorch is built without it

    @functools.wraps(original)
    def backward(context_id, roots, *args, **kwargs):
        if _elsewhere(training):
            return original(context_id, roots, *args, **kwargs)
        training.guarded(training.unmarked.marked)
        training.guarded(training.backward_begins, roots)
        original(context_id, roots, *args, **kwargs)
        training.guarded(training.backward_ended)

    autograd.backward = backward
    undo.append(lambda: setattr(autograd, "backward", original))


def _updates(training, undo):
    kind = getattr(sys.modules["torch.distributed.optim.optimizer"], "DistributedOptimizer", None)
    if kind is None:
        return
    original = kind.step

    @functools.wraps(original)
    def step(self, *args, **kwargs):
        if training.tracing and not _elsewhere(training):
            # Other threads change these; what was a view of them is to be shown as it was.
            changing = [tensor for tensor, _ in training.modules.versions()]
            training.guarded(training.values.before_write, changing)
        result = original(self, *args, **kwargs)
        if not _elsewhere(training) and training.steps == "optimizer":
            training.guarded(training.end)
        return result

    kind.step = step
    undo.append(lambda: setattr(kind, "step", original))
