"""The life of a step of a PyTorch training.

idle -> a network is called to train -> begin -> traced, if operators are wanted -> the optimizer
has run, or GradScaler skipped it -> what is new is described, what was kept is published -> end.
"""

import threading

import torch

from .. import _c
from .._names import library_folder, user_frames
from .gpu import Devices
from .mode import Mode, Trace, missing
from .module_degree import ModuleDegree
from .modules import Modules, is_trained
from .optimizers import Optimizers
from .scopes import LOSS, Scopes
from .tensors import dtype_name, is_plain
from .values import Values

_HIDDEN = (library_folder(torch),)


class Training:
    """What the hooks of modules, optimizers and backward() tell; see hooks.py."""

    def __init__(self, recorder, degree="auto", steps="optimizer"):
        self.recorder, self.degree, self.steps = recorder, degree, steps
        self.modules = Modules()
        self.optimizers = Optimizers(recorder, self.modules)
        self.devices = Devices()
        self.values = Values(recorder, self.devices)
        self.scopes = Scopes(self.modules)
        self.module_degree = ModuleDegree(recorder, self.modules, self.values, self.guarded)
        self.trace = Trace(recorder, self.modules, self.values, self.scopes)
        self.tracing = False
        self.thread = None
        self._mode = None
        self._light = {}  # id of a parameter's entry -> node of its gradient
        self._losses = 0
        self._gradients_told = False
        self._names_known = False
        self._modules_called = False
        self._said = set()
        for lost in missing():
            self.say_once("this release of PyTorch lacks %s" % lost)

    def say_once(self, line):
        if line not in self._said:
            self._said.add(line)
            _c.say(line)

    def guarded(self, function, *args):
        """Calls a function of ours; a fault in it must not reach the training."""
        try:
            return function(*args)
        except Exception as fault:
            self._leave()
            self.recorder.failed(fault)
            return None

    # ---- begin

    def begin(self, network=None):
        """Begins a step, with the network that was called first. Raises Terminated."""
        recorder = self.recorder
        if recorder.open or recorder.off:
            return
        self.thread = threading.get_ident()
        if network is not None:
            self._add(network)
        self.modules.report(recorder)
        self._describe_light()
        self._losses, self._gradients_told = 0, False
        if not recorder.begin():
            return
        self.values.begin(self.degree == "module" and recorder.wants() == _c.WANTS_ALL)
        if self._trace_wanted():
            self._enter()

    def _add(self, network):
        """A network that the program calls. The operators of a new one are traced once, for their
        names."""
        self._modules_called = True
        if self.modules.path(network) is None and not self.tracing:
            self._names_known = False
        self.modules.add_root(network)

    def _describe_light(self):
        """Nodes of gradients and of the loss: known before the first step, and without tracing."""
        for entry in self.modules.entries:
            tensor = entry[3].get(entry[2])
            if (
                id(entry) not in self._light
                and tensor is not None
                and tensor.requires_grad
                and is_plain(tensor)
            ):
                scope = "Gradients/%s/Grad_%s" % (entry[1], entry[2])
                self._light[id(entry)] = self.recorder.light_node(
                    scope, "Gradient", dtype_name(tensor), tuple(tensor.shape)
                )
        if not self._losses and not self.recorder.described:
            self.recorder.light_node(LOSS, "Loss")

    def _trace_wanted(self):
        if self.degree in ("always", "operator"):
            return True
        if self.degree in ("step", "module", "never"):
            return False
        return not self._names_known or self.recorder.wants_traced()

    def _enter(self):
        if (
            torch._C._len_torch_dispatch_stack()
            if hasattr(torch._C, "_len_torch_dispatch_stack")
            else 0
        ):
            self.say_once("another dispatch mode is active, so operators are not seen")
            return
        self.values.begin(True)
        self.trace.begin()
        self.values.all_wanted = self.trace.all_wanted
        self._mode = Mode(self.trace, self.fault)
        self._mode.__enter__()
        self.tracing = True

    def fault(self, fault):
        """A fault of ours: says so once; the step runs on without being traced."""
        self.say_once("operators are not traced any more: %s" % _c.line_of(fault))
        self.degree = "never"

    # ---- what happens inside

    def called(self, module, args):
        """A module is called by the training loop, not by another module."""
        if self.recorder.off:
            return
        if not self.recorder.open and self.steps != "manual" and is_trained(module):
            self.begin(module)
        if not self.recorder.open:
            return
        if any(True for _ in module.parameters()):
            self._add(module)
            self.scopes.network_called()
        elif self.modules.path(module) is None:
            self.modules.add_loss(module)
        names = self.modules.argument_names(module)
        place = "data" if any(True for _ in module.parameters()) else "loss"
        for name, value in zip(names, args):
            if (
                isinstance(value, torch.Tensor)
                and not value.requires_grad
                and is_plain(value)
                and self.values.source(value) is None
            ):
                self.values.data(self.recorder, "%s.%s" % (place, name), value)

    def backward_begins(self, tensors):
        if not self.recorder.open or threading.get_ident() != self.thread:
            return
        for tensor in tensors:
            known = self._losses == 0
            node = self.recorder.node(LOSS, "Loss")
            self._losses += 1
            if node.inputs is None or (known and not node.inputs):
                node.inputs = [source for source in (self.values.source(tensor),) if source]
                node.outputs = node.outputs or [
                    (dtype_name(tensor) or "float32", tuple(tensor.shape))
                ]
                node.light = True
                self.recorder.dirty = self.recorder.dirty or bool(node.inputs)
            if not node.frames:
                node.frames = user_frames(_HIDDEN, 3)
                self.recorder.dirty = True
            self.values.publish_light(node, tensor)
            if not self.tracing and node.inputs:
                # The operator that made the loss: its value is known, too.
                made = self.recorder.by_name.get(node.inputs[0][0])
                if made is not None:
                    self.values.publish_known(made, node.inputs[0][1], tensor)
        self.scopes.backward_called()

    def gradients(self):
        """Publishes the gradients of all parameters, once in a step."""
        if not self.recorder.open or self._gradients_told:
            return
        self._gradients_told = True
        for entry in self.modules.entries:
            node = self._light.get(id(entry))
            tensor = entry[3].get(entry[2])
            gradient = getattr(tensor, "grad", None)
            if node is None or gradient is None:
                continue
            self.recorder.light_ran(node)
            if self.tracing and not node.inputs:
                source = self.values.source(gradient)
                if source:
                    node.inputs = [source]
                    self.recorder.dirty = True
            self.values.publish_light(node, gradient)
            if self.tracing:
                # The optimizer reads it: its value is known in steps that are not traced, too.
                self.values.name(gradient, node.name)

    def optimizer_begins(self, optimizer):
        if self.recorder.off:
            return
        if not self.recorder.open and self.steps != "manual":
            self.modules.add_optimized(
                p for group in optimizer.param_groups for p in group["params"]
            )
            self.begin()
        if not self.recorder.open:
            return
        self.optimizers.rate(optimizer)
        if self._losses:
            self.gradients()
        self.scopes.optimizer = type(optimizer).__name__

    def optimizer_ends(self, optimizer):
        self.scopes.optimizer = None
        if not self.recorder.open:
            return
        self.optimizers.state(optimizer, self.trace if self.tracing else None)
        if self.steps == "optimizer":
            self.end()

    # ---- end

    def end(self):
        """Ends the step. Raises Terminated."""
        recorder = self.recorder
        if not recorder.open:
            return
        traced = self.tracing
        self._leave()
        self.gradients()
        if recorder.describe():
            self.values.publish_waiting()
            self._names_known = self._names_known or traced
            try:
                recorder.end()
            finally:
                self._clear()
        else:
            self._clear()
        if not self._modules_called and self.steps != "manual" and not recorder.off:
            self.begin()  # nothing tells where the next step begins: here

    def _clear(self):
        self.values.end()
        self.devices.end()
        self.scopes.reset()

    def _leave(self):
        """Takes our mode off the stack, wherever it is now."""
        self.tracing = False
        mode, self._mode = self._mode, None
        if mode is None:
            return
        mode.trace = None
        from torch.utils import _python_dispatch as dispatch

        above = []
        try:
            while torch._C._len_torch_dispatch_stack() > 0:
                top = dispatch._pop_mode()
                if top is mode:
                    break
                above.append(top)
            for other in reversed(above):
                dispatch._push_mode(other)
        except Exception as fault:
            self.fault(fault)

    def close(self):
        """The agent is taken off: no more steps."""
        self._leave()
        self.recorder.off, self.recorder.open = True, False

    def forget(self):
        """In a forked child."""
        self.recorder.off, self.recorder.open = True, False
        if self._mode is not None:
            self._mode.trace = None
