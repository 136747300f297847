"""Where PyTorch tells us what happens: global hooks of modules and optimizers, backward() and
GradScaler."""

import functools
import sys

import torch

from .._imports import after_import
from . import functions, rpc
from .compiler import is_compiling
from .owner import current_node


def install(training):
    """Returns a list of functions that take everything back. What a release lacks is said in one
    line each."""
    undo = []
    for what, step in (
        ("module hooks: steps begin and operators have no scope", _modules),
        ("optimizer hooks: steps do not end; call msdbg_agent.step_end()", _optimizers),
        ("Optimizer.zero_grad: gradients of an update that is left out are not shown", _left_out),
        ("torch.autograd.backward: the loss is not shown", _backward),
        ("GradScaler: steps that it skips are not ended", _scaler),
        ("torch.compile: what compiled functions train is not seen from its beginning", _compile),
        ("autograd.Function: what the program computes by itself is not seen", functions.custom),
        ("HigherOrderOperator: torch.cond and the like fail", functions.higher_order),
        ("ctc_loss: it may fail in a GPU", functions.lengths),
        ("Tensor.as_subclass: it may fail while operators are seen", functions.classes),
        ("CUDAGraph: steps that are replayed are not seen", _graphs),
        ("UntypedStorage.resize_: values that FSDP frees are lost", _storages),
        ("ProcessGroup.recv: what a pipeline's stage receives first has no sender", _receives),
        ("import hooks: pipelines show what they compute for the sake of shapes", _pipelines),
        ("torch.distributed.rpc: steps that it spreads over ranks do not end", rpc.install),
    ):
        try:
            step(training, undo)
        except (ImportError, AttributeError, TypeError) as problem:
            training.say_once("this release of PyTorch lacks %s (%s)" % (what, problem))
    return undo


def _modules(training, undo):
    training.module_hooks.install(training)
    undo.append(training.module_hooks.remove)


def _optimizers(training, undo):
    from torch.optim.optimizer import (
        register_optimizer_step_post_hook,
        register_optimizer_step_pre_hook,
    )

    running = []  # an optimizer may hold another one

    def before(optimizer, args, kwargs):
        if is_compiling():
            return None
        if training.owner.is_another():
            training.trained_elsewhere()
            return None
        if any(each is optimizer for each in running):
            running.clear()  # its last step raised an exception
        running.append(optimizer)
        if len(running) > 1:
            return None
        closure = args[1] if len(args) > 1 else kwargs.get("closure")
        training.guarded(training.optimizer_begins, optimizer, closure is not None)
        if closure is None or training.recorder.off:
            return None
        closure = _closure(training, optimizer, closure)
        if len(args) > 1:
            return (args[0], closure, *args[2:]), kwargs
        return args, {**kwargs, "closure": closure}

    def after(optimizer, args, kwargs):
        if is_compiling() or training.owner.is_another():
            return
        if running:
            running.pop()
        if not running:
            training.guarded(training.optimizer_ends, optimizer, current_node() is not None)

    undo.append(register_optimizer_step_pre_hook(before).remove)
    undo.append(register_optimizer_step_post_hook(after).remove)


def _closure(training, optimizer, closure):
    """What an optimizer calls for the loss: a pass of the network, in the midst of its step."""

    @functools.wraps(closure)
    def called():
        training.scopes.optimizer = None
        loss = closure()
        training.guarded(training.optimizer_runs, optimizer)
        return loss

    return called


def _left_out(training, undo):
    """Programs leave out an update whose loss or gradients are not finite: these are gone here."""
    kind = torch.optim.Optimizer
    original = kind.zero_grad

    @functools.wraps(original)
    def zero_grad(self, *args, **kwargs):
        if not is_compiling() and not training.recorder.off:
            if current_node() is None and not training.owner.is_another():
                training.module_hooks.check()
                training.guarded(training.gradients_go, self)
        return original(self, *args, **kwargs)

    kind.zero_grad = zero_grad
    undo.append(lambda: setattr(kind, "zero_grad", original))


def _backward(training, undo):
    original = torch.autograd.backward

    @functools.wraps(original)
    def backward(tensors, *args, **kwargs):
        # A backward() inside a backward pass belongs to checkpointing.
        off = training.recorder.off or is_compiling() or current_node() is not None
        if off or training.owner.is_another():
            return original(tensors, *args, **kwargs)
        if not isinstance(tensors, torch.Tensor):
            tensors = tuple(tensors)
        found = (tensors,) if isinstance(tensors, torch.Tensor) else tensors
        training.module_hooks.check()
        training.guarded(training.backward_begins, found)
        original(tensors, *args, **kwargs)
        training.guarded(training.backward_ended)

    torch.autograd.backward = backward
    undo.append(lambda: setattr(torch.autograd, "backward", original))


def _scaler(training, undo):
    scaler = getattr(getattr(torch, "amp", None), "GradScaler", None)
    if scaler is None:
        scaler = torch.cuda.amp.GradScaler
    multiply, original = scaler.scale, scaler.update

    @functools.wraps(multiply)
    def scale(self, outputs):
        made = multiply(self, outputs)
        if made is not outputs and not training.recorder.off and not training.owner.is_another():
            training.guarded(training.scaled, getattr(self, "_scale", None), made, outputs)
        return made

    @functools.wraps(original)
    def update(self, *args, **kwargs):
        # A step with a gradient that is not finite does not reach the optimizer: it ends here.
        if training.recorder.open and training.steps == "optimizer":
            if not training.owner.is_another():
                training.guarded(training.end)
        return original(self, *args, **kwargs)

    scaler.scale, scaler.update = scale, update
    undo.append(lambda: setattr(scaler, "scale", multiply))
    undo.append(lambda: setattr(scaler, "update", original))


def _compile(training, undo):
    original = torch.compile

    def followed(made, function):
        """What torch.compile made of a function; networks are followed by their hooks."""
        if isinstance(made, torch.nn.Module):
            return made
        module = getattr(function, "__self__", None)
        if not isinstance(module, torch.nn.Module) or function.__name__ != "_call_impl":
            module = None  # otherwise it is compiled by its compile()

        @functools.wraps(made)
        def compiled(*args, **kwargs):
            over = training.recorder.off or is_compiling() or training.owner.is_another()
            if over or current_node() is not None:
                return made(*args, **kwargs)
            training.guarded(training.compiled_called, compiled, function, module, args)
            result = (function if training.tracing else made)(*args, **kwargs)
            training.guarded(training.compiled_returned)
            return result

        return compiled

    @functools.wraps(original)
    def compile(model=None, *args, **kwargs):
        made = original(model, *args, **kwargs)
        if sys._getframe(1).f_globals.get("__name__", "").startswith("torch."):
            return functions.of_library(training, made, model)
        if model is not None:
            return followed(made, model)
        return lambda function: followed(made(function), function)

    torch.compile = compile
    undo.append(lambda: setattr(torch, "compile", original))


def _graphs(training, undo):
    graphs = torch.cuda.CUDAGraph
    captures = training.captures

    def patched(name, change):
        original = getattr(graphs, name)
        changed = functools.wraps(original)(change(original))
        own = name in vars(graphs)
        setattr(graphs, name, changed)
        undo.append(lambda: setattr(graphs, name, original) if own else delattr(graphs, name))

    def begin(original):
        def capture_begin(self, *args, **kwargs):
            training.guarded(captures.begin, self)
            try:
                return original(self, *args, **kwargs)
            except Exception:
                captures.end()
                raise

        return capture_begin

    def end(original):
        def capture_end(self, *args, **kwargs):
            try:
                return original(self, *args, **kwargs)
            finally:
                captures.end()

        return capture_end

    def again(original):
        def replay(self, *args, **kwargs):
            training.guarded(captures.replay_begins, self)
            result = original(self, *args, **kwargs)
            training.guarded(captures.replay_ended, self)
            return result

        return replay

    for name, change in (("capture_begin", begin), ("capture_end", end), ("replay", again)):
        patched(name, change)
    make = torch.cuda.make_graphed_callables

    @functools.wraps(make)
    def make_graphed_callables(*args, **kwargs):
        # It runs the networks a few times, with gradients that nobody has written.
        captures.pause()
        try:
            return make(*args, **kwargs)
        finally:
            captures.resume()

    torch.cuda.make_graphed_callables = make_graphed_callables
    undo.append(lambda: setattr(torch.cuda, "make_graphed_callables", make))


def _has_address(storage):
    """False for what a compiler calculates with instead of memory."""
    try:
        storage.data_ptr()
        return True
    except RuntimeError:
        return False


def _storages(training, undo):
    storages = torch.UntypedStorage
    original = storages.resize_  # of its base

    def resize_(self, size):
        if not training.recorder.open or not _has_address(self):
            return original(self, size)
        # This may be anywhere inside PyTorch: a fault of ours must leave our mode where it is.
        try:
            training.values.before_resize(self)
        except Exception as fault:
            training.fault(fault)
        result = original(self, size)
        training.values.resized(self)
        return result

    storages.resize_ = resize_
    undo.append(lambda: delattr(storages, "resize_"))


def _receives(training, undo):
    """A later stage of a pipeline receives before it calls its network."""
    if not torch.distributed.is_available():
        return
    group = torch.distributed.ProcessGroup
    original = group.recv

    @functools.wraps(original)
    def recv(self, *args, **kwargs):
        if not training.recorder.open:
            training.guarded(training.receives)
        return original(self, *args, **kwargs)

    group.recv = recv
    undo.append(lambda: setattr(group, "recv", original))


def _pipelines(training, undo):
    """The stages of a pipeline run their networks once with memory that nobody has written, to see
    what shapes come out."""
    captures = training.captures

    def follow():
        stage = sys.modules["torch.distributed.pipelining.stage"]
        names = ("_prepare_forward_infra", "_prepare_backward_infra")
        found = [
            (kind, name)
            for kind in vars(stage).values()
            for name in names
            if isinstance(kind, type) and kind.__module__ == stage.__name__ and name in vars(kind)
        ]
        if not found:
            training.say_once(
                "this release of PyTorch lacks PipelineStage._prepare_forward_infra: what a pipeline "
                "computes for the sake of shapes is shown as a step"
            )
        for kind, name in found:
            original = vars(kind)[name]
            setattr(kind, name, unseen(original))
            undo.append(functools.partial(setattr, kind, name, original))

    def unseen(original):
        @functools.wraps(original)
        def prepare(*args, **kwargs):
            captures.pause()
            try:
                return original(*args, **kwargs)
            finally:
                captures.resume()

        return prepare

    after_import("torch.distributed.pipelining.stage", follow)
