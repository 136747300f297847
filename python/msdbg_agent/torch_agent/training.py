"""The life of a step of a PyTorch training.

idle -> a network is called to train -> begin -> traced, if operators are wanted -> the optimizer
has run, or GradScaler skipped it -> what is new is described, what was kept is published -> end.
"""

import contextlib
import functools

import torch

from .. import _c
from .._left_out import LeftOut
from .captures import Captures
from .compiler import set_compiler
from .early import Early
from .gpu import Devices
from .heap import Heap
from .inputs import Inputs
from .late import Late
from .light import Light
from .mode import Mode, enter, is_translated, leave, take_off
from .module_degree import ModuleDegree
from .module_hooks import ModuleHooks
from .modules import Modules, is_constructed
from .optimizers import Optimizers
from .owner import Owner
from .remote import Parameters
from .rpc import serves
from .scopes import Scopes
from .tensors import NoFunctions, is_symbol, own_kinds
from .trace import Trace, missing
from .unmarked import Unmarked, leaves_of, optimized
from .values import Values

MOST_LATE = 2  # steps seen from their midst that are traced for their names
MOST_FAULTS = 8  # of ours with single operators, until none is traced any more


class Training:
    """What the hooks of modules, optimizers and backward() tell; see hooks.py."""

    def __init__(self, recorder, degree="auto", steps="optimizer"):
        self.recorder, self.degree, self.steps = recorder, degree, steps
        self.modules = Modules()
        self.optimizers = Optimizers(recorder, self.modules)
        self.devices = Devices()
        recorder.remote = Parameters(self.devices)
        self.captures = Captures(self)
        self.values = Values(recorder, self.devices)
        self.scopes = Scopes(self.modules)
        self.module_degree = ModuleDegree(recorder, self.modules, self.values, self.guarded)
        self.module_hooks = ModuleHooks(self.scopes)
        self.trace = Trace(recorder, self.modules, self.values, self.scopes)
        self.tracing = False
        self.owner = Owner()
        self._inside = 0  # it runs a function of ours, in which it may be held
        self._mode, self._heap = None, Heap()
        self.light = Light(recorder, self.modules, self.values)
        self.unmarked = Unmarked()
        self._left_out = LeftOut()
        self._names_known = False
        self._whole, self._late = True, 0  # the step is seen from its beginning; how many were not
        self._ends_behind_backward = self._modules_called = False
        self._scaled = None, None  # what GradScaler made of a loss
        self._quiet = False  # see Recorder.quiet: what it leaves is not told
        self._inputs = Inputs(recorder, self.modules, self.values)
        self._versions = ()  # of the parameters, before a compiled function that may change them
        self._said, self._faults = set(), 0  # faults with single operators
        self._late_process = Late(recorder.connection)
        self._early = Early(functools.partial(self.guarded, self._begin_early))
        for lost in missing():
            self.say_once("this release of PyTorch lacks %s" % lost)

    def say_once(self, line):
        if line not in self._said:
            self._said.add(line)
            _c.say(line)

    def guarded(self, function, *args):
        """Calls a function of ours; a fault in it must not reach the training."""
        self._inside += 1
        compiler = set_compiler(None)  # torch.compile must not compile ours
        try:
            if own_kinds:
                with NoFunctions():
                    return function(*args)
            return function(*args)
        except Exception as fault:
            self._leave()
            self.recorder.failed(fault)
            return None
        finally:
            set_compiler(compiler)
            self._inside -= 1

    def _is_open(self):
        """A step is open, and not one that another thread has begun just now."""
        return self.recorder.open and not self.owner.is_another()

    def trained_elsewhere(self):
        """Another thread of the program runs an optimizer."""
        if self.recorder.off:
            return
        followed, lives = self.owner.another_trained(), self.owner.lives()
        if lives and (self._inside or not followed):
            return
        if self.recorder.open and lives:
            self.say_once("several threads train; the steps of one of them are shown")
            return
        self.guarded(self.end)  # of a thread that ended in the midst of a step
        self.owner.forget()
        self.say_once("another thread trains now; its first steps were not seen")

    # ---- begin

    def begin(self, network=None):
        """Begins a step, with the network that was called first. Raises Terminated."""
        recorder = self.recorder
        if recorder.open or recorder.off or not self.owner.choose():
            return
        if self._early is not None:
            self._early.finish()
            self._early = None
        if not (recorder.described or self._late_process.settle()):
            return self.owner.forget()
        self.owner.begins()
        if network is not None:
            self._add(network)
        self.modules.report(recorder)
        self.light.describe()
        self._ends_behind_backward = False
        recorder.remote.changed()
        if not recorder.begin():
            return
        self._whole = True
        self._left_out.begin()
        by_module = self.degree == "module"
        self.values.begin(by_module and recorder.wants() == _c.WANTS_ALL, by_module)
        traced = self._trace_wanted()
        self._heap.step_begins(traced)
        if traced:
            self._enter()
        self._quiet = recorder.quiet and not self.tracing and not by_module
        if self._quiet:
            self._inputs.begin_quiet()

    def _speak(self):
        """The step that is quiet so far is looked at after all."""
        self._quiet = False
        self._inputs.tell()

    def _begin_early(self):
        """In another thread, while the program waits: only holds the training."""
        self._late_process.settle()
        self.modules.report(self.recorder)
        self.light.describe()
        self.recorder.begin_early()

    def _add(self, network):
        """A network that the program calls. The operators of a new one are traced once, for their
        names."""
        self._modules_called = True
        if self.modules.path(network) is None and not self.tracing:
            self._names_known = False
        self.modules.add_root(network)

    def _trace_wanted(self):
        if self.degree in ("always", "operator"):
            return True
        if self.degree in ("step", "module", "never"):
            return False
        if not self._names_known:
            return True
        return not self.recorder.quiet and self.recorder.wants_traced()

    def _enter(self):
        if is_translated():
            self.say_once("the network is called to be translated, so operators are not seen")
            return
        self.module_hooks.on()
        self.values.begin(True, True)
        self.trace.begin()
        self.values.all_wanted = self.trace.all_wanted
        self._mode = Mode(self.trace, self.captures, self.operator_fault)
        enter(self._mode)
        self.tracing = True

    @contextlib.contextmanager
    def not_traced(self):
        """In a traced step: operators are not seen meanwhile."""
        take_off(self._mode)
        self.tracing = False
        try:
            yield
        finally:
            if self._mode is not None:
                enter(self._mode)
                self.tracing = True

    def fault(self, fault):
        """A fault of ours: says so once; the step runs on without being traced."""
        self.say_once("operators are not traced any more: %s" % _c.line_of(fault))
        self.degree = "never"

    def operator_fault(self, kind, fault):
        """A fault of ours with one operator, which is left out. True: the others are traced on."""
        self._faults += 1
        if self._faults >= MOST_FAULTS:
            self.fault(fault)
            return False
        self.say_once("the operator %s is not shown: %s" % (kind, _c.line_of(fault)))
        return True

    def note_function(self, kind, *args):
        """A function of the program has run in a traced step: see Trace.note_function()."""
        try:
            self.trace.note_function(kind, *args)
        except Exception as fault:
            if not self.operator_fault(kind, fault) and self._mode is not None:
                self._mode.trace = None

    # ---- what happens inside

    def called(self, module, args):
        """A module is called by the training loop, not by another module."""
        if self.recorder.off or is_translated() or any(is_symbol(each) for each in args):
            return
        trainable = self.modules.has_trainable(module)
        if self.captures.open:
            if trainable:
                self._add(module)
            return
        learns = trainable or self.modules.has_parameters(module)
        if self.recorder.step < 0 and learns and not self.recorder.open and is_constructed():
            return
        if self.steps != "manual":
            trained = trainable and module.training and torch.is_grad_enabled()
            trained = trained or (learns and self.unmarked.is_trained(module))
            if trained and self.recorder.open and self.light.losses and self.unmarked.by_hand():
                self.end()
            if trained and (self.recorder.open or not serves()):
                self.begin(module)
            elif trainable and not self.recorder.open:
                self.unmarked.called(module)
        if not self._is_open():
            return
        if learns:
            self._add(module)
            self.scopes.network_called()
        elif self.modules.path(module) is None:
            self.modules.add_loss(module)
        if self._quiet:
            self._inputs.keep(module, args, learns)
        else:
            self._inputs.note(module, args, learns)

    def receives(self):
        """A value comes from another rank between two steps: the next one begins. The first one
        begins with the network: a rank that is held here may be missed by the one that sends."""
        if self.recorder.step >= 0 and self.steps != "manual" and torch.is_grad_enabled():
            if not (self.captures.open or self.owner.is_another()):
                self.begin()

    def compiled_called(self, compiled, function, module, args):
        """What torch.compile has made of a function, or a module that compile() has changed. What
        runs in it is not seen, unless the step is traced by then."""
        if self.captures.open or self.scopes.stack:
            return
        if module is not None:
            self.called(module, args)
            return
        trains = self.steps != "manual" and self.unmarked.trains(compiled, function)
        if not self.recorder.open and self.steps != "manual":
            if trains or self.unmarked.is_trained(compiled):
                if trains and not self.modules.entries:
                    self.modules.add_optimized(optimized())  # nobody has called the network itself
                self.begin()
            else:
                self.unmarked.called(compiled)
        if self.recorder.open and (trains or self.light.losses):
            self._versions = self.modules.versions()

    def compiled_returned(self):
        """Ends the step if an optimizer has run in the compiled function."""
        versions, self._versions = self._versions, ()
        if self.recorder.open and self.steps == "optimizer":
            if any(tensor._version != version for tensor, version in versions):
                self.unmarked.marked()
                self.end()

    def _begin_late(self, leaves):
        """Begins a step in its midst: the networks that were called are not in training mode, or
        there are none and the parameters are `leaves`."""
        networks = [each for each in self.unmarked.learned() if isinstance(each, torch.nn.Module)]
        for network in networks:
            self._add(network)
        if not networks:
            self.modules.add_optimized(leaves)
        self.begin()
        if self._is_open():
            self._whole, self._late = False, self._late + 1

    def backward_begins(self, roots):
        """`roots`: tensors, or edges of autograd's graph, as the stages of a pipeline use them."""
        recorder = self.recorder
        if recorder.off:
            return
        tensors = [each for each in roots if isinstance(each, torch.Tensor)]
        if self.captures.open:
            self.captures.backward(tensors)
            return
        if self.steps != "manual":
            by_hand = self.unmarked.by_hand()
            if not recorder.open:
                self._begin_late(() if self._modules_called else leaves_of(roots))
            elif by_hand and self.light.losses and not self._modules_called:
                self.end()
        if not self._is_open():
            return
        scaled, loss = self._scaled
        if not tensors:
            self.light.losses += 1
        for tensor in tensors:
            self.light.loss(loss if tensor is scaled else tensor, self.tracing)
        self.scopes.backward_called()

    def scaled(self, scale, made, loss):
        """GradScaler has multiplied a loss: that is the one to show."""
        if scale is not None and not self.captures.open:
            self.optimizers.loss_scale(scale)
        if isinstance(made, torch.Tensor):
            self._scaled = made, loss

    def backward_ended(self):
        """Behind a backward pass of the program."""
        if not self.recorder.open or self.captures.open:
            return
        if self._ends_behind_backward:
            self.end()
        elif self.steps != "manual" and self.unmarked.by_hand():
            self.gradients()  # the program may forget them before the step ends

    def gradients(self):
        """Publishes the gradients of all parameters, each once in a step."""
        if self.recorder.open and not self._quiet:
            self.light.gradients(self.tracing)

    def gradients_go(self, optimizer):
        """The optimizer is about to take back gradients: the end of a step whose update is left
        out, or nobody else will look at them, if they are all that the step has made."""
        if self.captures.open:
            return
        if not self.recorder.open:
            self._left_out.cleared()
            return
        if self._left_out.taken_back() and self.steps == "optimizer":
            self.end()
            return
        if self._quiet or not self.light.losses or self.light.told():
            return
        own = {id(p) for group in optimizer.param_groups for p in group["params"]}
        if own.issuperset(self.light.with_gradients()):
            self.gradients()
            self.light.forget_told()  # those of the next backward pass are told, too

    def optimizer_begins(self, optimizer, has_closure=False):
        if self.recorder.off:
            return
        self.unmarked.marked()
        self._left_out.update_begins()
        if self.captures.open:
            self.captures.optimizer(optimizer)
        elif self.recorder.open or not has_closure:
            self.optimizer_runs(optimizer)  # otherwise the network in its closure begins the step

    def optimizer_runs(self, optimizer):
        """What follows is the optimizer's own: its step has begun, or its closure has ended."""
        if self.recorder.off or self.captures.open:
            return
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        if not self.recorder.open and self.steps != "manual":
            self._begin_late(parameters)
        if not self._is_open():
            return
        self._name_optimized(parameters)
        self.optimizers.rate(optimizer)
        if self.light.losses or self.tracing:  # the program may have assigned them itself
            self.gradients()
        self.scopes.optimizer = type(optimizer).__name__

    def _name_optimized(self, parameters):
        """Names what the optimizer changes and nobody has named yet: a layer that came later, or a
        parameter outside of networks."""
        by_id = self.modules.by_id
        if all(id(each) in by_id for each in parameters):
            return
        self.modules.add_new_layers()
        self.modules.report(self.recorder)  # also of a network that was first called in this step
        self.modules.add_optimized(parameters)
        self.modules.report(self.recorder)
        if self.tracing:
            for each in parameters:
                if id(each) in by_id:
                    self.trace.name_parameter(each, by_id[id(each)][0])

    def optimizer_ends(self, optimizer, in_backward=False):
        """`in_backward`: it ran for the sake of one parameter, within a backward pass."""
        self.scopes.optimizer = None
        self._left_out.update_ended()
        if not self.recorder.open or self.captures.open:
            return
        if not self._quiet:
            self.optimizers.state(optimizer, self.trace if self.tracing else None)
        if self.steps == "optimizer":
            self._ends_behind_backward = in_backward
            if not in_backward:
                self.end()

    def program_ends(self, why):
        """Ends the last step: of a program without an optimizer, or one that was cut short.
        `why`: see ended_by()."""
        if not self.recorder.open:
            return
        if why:
            self._speak()
            self.recorder.cut_short(why, self.tracing)
            if self.tracing:
                try:
                    self.trace.note_failed()
                except Exception as fault:
                    self.fault(fault)
            self.end(last=True, cut=True)
        elif self.light.losses and self.steps != "manual":
            if self.unmarked.by_hand():
                self.end(last=True)

    # ---- end

    def end(self, last=False, cut=False):
        """Ends the step, or (`cut`) what there is of it. Raises Terminated."""
        recorder = self.recorder
        if not recorder.open:
            return
        traced, self._versions, self._scaled = self.tracing, (), (None, None)
        self._leave()
        recorder.remote.changed()
        if self.light.losses or not cut:  # else they are those of an earlier step
            self.gradients()
        self.modules.report(recorder)  # the program may have given a parameter other memory
        if recorder.describe():
            if traced and self.degree != "never":  # to the end, without a fault
                recorder.tell_skipped()
            if not self._quiet or self.values.waits():
                self.values.publish_waiting()
            if traced and (self._whole or self._late > MOST_LATE):
                self._names_known = True
            try:
                recorder.end()
            finally:
                self._clear()
        else:
            self._clear()
        if not (self._modules_called or last or self.steps == "manual" or recorder.off):
            self.begin()  # nothing tells where the next step begins: here

    def _clear(self):
        self._inputs.end()
        self.values.end()
        self.devices.end()
        self.scopes.reset()

    def _leave(self):
        """Takes our mode off the stack, wherever it is now."""
        self.tracing = False
        mode, self._mode = self._mode, None
        if mode is None:
            return
        try:
            leave(mode)
        except Exception as fault:
            self.fault(fault)

    def close(self):
        """The agent is taken off: no more steps."""
        self._leave()
        self.recorder.off, self.recorder.open = True, False

    def forget(self, at_exit):
        """In a forked child. True: it may train instead of its parent."""
        if self._early is not None:
            self._early.forget()
        if not (self.recorder.described or self.recorder.off):
            self._late_process.forked(at_exit)
            return True
        self.recorder.off, self.recorder.open = True, False
        if self._mode is not None:
            self._mode.trace = None
        return False
