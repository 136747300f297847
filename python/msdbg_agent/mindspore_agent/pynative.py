"""Steps of MindSpore's PyNative mode: operators as Python runs them.

idle -> the executor begins a forward pass that is differentiated -> begin -> operators are noted,
if they are wanted -> the optimizer's update has run -> what was noted is described and published ->
end. passes.py tells when a step without an optimizer is over.

Operators run behind Python, in threads of the framework: looking at a value waits for it. So values
are noted as they come, and looked at when the step ends.
"""

import sys
import threading

from .. import _c
from .._recorder import REMOTE, Recorder
from .between import Between
from .cells import LOSS, Cells
from .compiled import Compiled
from .compiled_parts import CompiledParts
from .dispatch import mode_class
from .executor import Executors
from .memory import Remote
from .operators import Operators
from .optimizers import Hooks, Updates
from .passes import MOST, Passes
from .patches import Patches
from .tensors import is_optimizer, note_inputs, tensors_in

_NOT_REPLACED = {
    True: "this release of MindSpore lacks MsDispatchMode, and its operators cannot be replaced (%s): "
    "operators outside graphs are not seen, parameters, gradients and the loss are",
    False: "some functions of MindSpore cannot be replaced (%s): what MsDispatchMode does not show is not "
    "seen, as operators that take a list of tensors, and parts of tensors",
}


class PyNative(CompiledParts, Executors):
    """What the executors tell becomes steps."""

    def __init__(self, connection, settings, probe, window, taken):
        self.recorder = Recorder(connection)
        self.recorder.remote = Remote()
        self.trace, self._taken = settings.trace, taken
        self._manual = settings.steps == "manual"
        self.cells = Cells()
        self.passes = Passes(self.cells)
        self.operators = Operators(self.recorder, self.cells, self.say_once)
        self.compiled = Compiled(window, self.operators, self.say_once, probe.sync)
        self.patches = Patches(self.operators, self.noting_failed)
        self.updates = Updates(self.recorder, self.operators, self.cells)
        self.between = Between(self.recorder, self.operators, self.cells)
        self.hooks = Hooks(self._update_begins, self._update_ends)
        self._mode, self._traced, self._updating = None, False, None
        self._names_known, self._thread, self._complete, self._given = False, None, False, None
        self._said, self._fault, self._differentiated = set(), None, None
        super().__init__(probe)

    def say_once(self, line):
        if line not in self._said:
            self._said.add(line)
            _c.say(line)

    # ---- what the executor tells

    def _forward_begins(self, what=None, *args):
        self._updating = None
        frame = sys._getframe(4)  # what calls the framework
        if not self.recorder.open:
            if not self._manual:
                self._begin(what, args, frame)
        elif threading.get_ident() != self._thread or self.passes.is_inside(frame):
            return
        elif self._manual:
            if self.passes.outer is None:  # the first pass of a step that began by hand
                self.passes.begins(what, frame)
                self._look_into(what, args)
        elif self.passes.broken_off:
            self._begin_again(what, args, frame)
        elif self.passes.is_over():
            self._over()
            self._begin(what, args, frame)
        else:
            self.passes.goes_on(what, frame)
            self.operators.after_backward = False
            if self._traced and self.passes.count == MOST:
                self._enough()
            elif self.passes.count < MOST:
                self._look_into(what, args, self.passes.count)

    def _begin_again(self, what, args, frame):
        """The program has caught an exception in a pass of the step."""
        self._leave()
        self._fault = None
        self.patches.again()
        self.recorder.again()
        self.operators.begin()
        self.passes.step_begins(what, frame)
        self._look_into(what, args)
        if self._traced:
            self.compiled.resume()
        self._enter()

    def noting_failed(self, fault):
        """The framework raises here what an earlier operator of the program did, too: then the step
        ends with that exception, and nothing is to be said."""
        self._fault = fault

    def _look_into(self, what, args, turn=0):
        self.cells.find(what)
        note_inputs(self.recorder, what, args, turn)

    def _begin(self, what, args=(), frame=None, compiled=False):
        if self._taken() and not compiled:
            return
        self._thread, self._complete = threading.get_ident(), False
        self.cells.find(what)
        self._note_parameters()
        self.passes.step_begins(None if compiled else what, frame)
        note_inputs(self.recorder, what, args)
        if not self.recorder.described:
            self.recorder.light_node(LOSS, "Loss")
            self.updates.expect(self.cells.trainable())
        if not self.recorder.begin():
            return
        self.operators.begin()
        self._traced = self._wanted()
        if self._traced:
            self.compiled.begin(self.recorder.step)
            self.between.step_begins()
        if not compiled:
            self._enter()

    def _note_parameters(self):
        for name, dtype, shape, address, parameter in self.cells.parameters():
            pointer = parameter.data_ptr() if address == REMOTE else address
            self.recorder.parameter(name, dtype, shape, address, True, parameter, None, pointer)

    def broken(self):
        """The step ended with an exception that is not ours."""
        self._leave()
        self._forget()

    def _wanted(self):
        if self.trace in ("step", "never", "module"):
            return False
        return (
            self.trace in ("always", "operator")
            or not self._names_known
            or self.recorder.wants_traced()
        )

    def _enter(self):
        self.hooks.enter()
        if not self._traced:
            return
        try:
            self.patches.enter()
        except Exception as fault:
            self.patches.leave()
            self.say_once(_NOT_REPLACED[self.probe.dispatch_mode is None] % fault)
        if self.probe.dispatch_mode is None:
            return
        self._mode = mode_class(self.probe.dispatch_mode)(self)
        self._mode.__enter__()

    def _forward_ends(self, what=None, out=None, *_):
        if not self.recorder.open or what is not self.passes.outer or self.operators.in_backward:
            return
        self.passes.ends()
        tensors = tensors_in((out,))
        if tensors:
            self.operators.light_value(LOSS, "Loss", tensors[0])
            self.passes.told_loss(tensors[0])
        self.cells.find(what)

    def _backward_begins(self, what=None, operation=None, weights=None, *_):
        self.operators.backward_begins()
        self.updates.expect(self.passes.told_weights(weights))
        self._differentiated = weights

    def _backward_ends(self, made=None):
        weights, self._differentiated = self._differentiated, None
        if self._traced and made is not None and isinstance(weights, (list, tuple)):
            self.operators.pass_made(weights, tensors_in((made,)))
        self.operators.backward_ends()
        self.operators.after_backward = not self._manual

    def _update_begins(self, optimizer, args):
        """Python is about to run an optimizer."""
        if self._in_step() and self._updating is None:
            self._guarded(self._note_given, optimizer, args)

    def _note_given(self, optimizer, args):
        self._updating = optimizer
        self.cells.add_optimizer(optimizer)
        self.operators.in_update = True
        self._given = self.updates.note_gradients(optimizer, tensors_in(args))

    def _update_ends(self, optimizer, args):
        if self._in_step() and self._updating in (None, optimizer):
            self._guarded(self._optimizer_ran, optimizer, args)

    def _optimizer_ran(self, optimizer, args):
        self._updating = None
        self.passes.updated()
        self.cells.add_optimizer(optimizer)
        self._operators_end()
        given, self._given = self._given, None
        if given is None:
            given = self.updates.note_gradients(optimizer, tensors_in(args))
        self.updates.note(optimizer, given)
        if not self._manual:
            self._end()

    def _operators_end(self):
        """Those that follow belong to no step, or to an update that is shown as one operator."""
        self._leave()
        self._name_operators()

    def _name_operators(self):
        if self._traced and not self._complete:
            self._complete = True
            self.compiled.end()
            self.operators.name_backward()

    def _enough(self):
        """The step goes on and on, as when gradients are all that is wanted: no more operators."""
        self._operators_end()
        self._traced = False
        self.hooks.enter()
        self.say_once(
            "a step of more than %d passes: the operators of the later ones are not seen" % MOST
        )

    def network_runs(self, cell, args, run):
        """A network of graph mode that holds an optimizer runs in the open step: as its update, with
        the result (it has run, what it returned), or as a step of its own, which it begins then."""
        if self._manual or not self._in_step():
            self.say_once(
                "a step of PyNative mode has not ended: networks in graph mode run as a part of it"
            )
            return True, run()
        inside = [each for _, each in cell.cells_and_names() if is_optimizer(each)]
        if is_optimizer(cell) or len(tensors_in(args)) == len(getattr(inside[0], "parameters", ())):
            return True, self.run_optimizer(inside[0], args, run)
        self._guarded(self._over)
        return False, None

    def _over(self):
        """The step has ended without an optimizer that is known."""
        self._operators_end()
        self._end()

    def finish(self, why=""):
        """Ends the last step, at the end of the program. `why`: see ended_by()."""
        if not self._in_step():
            return
        if why:
            self.recorder.cut_short(why, self._traced)
            self._guarded(self._over)
        elif not self._manual and self._guarded(self.passes.is_over):
            self._guarded(self._over)

    def _end(self):
        fault, self._fault = self._fault, None
        if fault is not None:
            self.say_once("operators are not seen any more: %s" % _c.line_of(fault))
        self._note_parameters()
        places = self.operators.resolve()
        if self.recorder.describe():
            if self._traced and fault is None:
                self.recorder.tell_skipped()
            self.operators.publish(places)
            self._names_known = True
            self.recorder.end()
            self.between.step_ends(self._traced)
        self._forget()

    # ---- steps by hand

    def step_begin(self, network=None):
        if not self.recorder.open and not self.recorder.off:
            self._guarded(self._begin, network)
            self.passes.begins(None, None)

    def step_end(self):
        if self.recorder.open and not self.recorder.off:
            self._guarded(self._operators_end)
            self._guarded(self._end)

    def _forget(self):
        """The debugger has read what was noted."""
        self.compiled.remove()
        self.operators.forget()
        self.passes.step_ends()
        self._traced = False

    def _leave(self):
        mode, self._mode = self._mode, None
        if mode is not None:
            mode.agent = None
            mode.__exit__(None, None, None)
        self.patches.leave()
        self.hooks.leave()
        self.compiled.pause()

    def close(self):
        self._leave()
        self.hooks.close()
        self.recorder.off, self.recorder.open = True, False
        for undo in self._undo:
            undo()
        self._undo = []
