"""PyTorch: an unmodified training is held, stepped and watched by operator."""

import atexit

import torch

from .. import _c, _process
from .._recorder import Recorder, Terminated
from . import hooks
from .training import Training


class Agent:
    """The agent of this process for PyTorch."""

    framework = "PyTorch"

    def __init__(self, connection, settings):
        connection.set_option("program", "PyTorch")
        connection.set_option("version", torch.__version__)
        self.recorder = Recorder(connection)
        self.training = Training(self.recorder, settings.trace, settings.steps)
        self._undo = hooks.install(self.training)
        atexit.register(self._at_exit)

    def step_begin(self, network=None):
        self.training.unmarked.marked()
        self.training.guarded(self.training.begin, network)

    def step_end(self):
        self.training.guarded(self.training.gradients)
        self.training.guarded(self.training.end)

    def add(self, network=None, optimizer=None):
        if network is not None:
            self.training.modules.add_root(network)
        if optimizer is not None and network is None:
            self.training.modules.add_optimized(
                p for group in optimizer.param_groups for p in group["params"]
            )

    def _at_exit(self):
        try:
            self.training.guarded(self.training.program_ends, _process.ended_by())
        except Terminated:
            return  # it ends anyway
        if self.recorder.open and self.recorder.step == 0:
            _c.say(
                "no step was seen to end: no optimizer of torch.optim ran; mark the steps with "
                "msdbg_agent.step_begin() and step_end()"
            )

    def forget(self):
        """In a forked child. True: it may have a conversation of its own."""
        return self.training.forget(self._child_ends)

    def _child_ends(self):
        self._at_exit()
        _process.finish()

    def close(self):
        """Takes every hook back; an open step ends without a hold."""
        self.training.close()
        for undo in self._undo:
            undo()
        self._undo = []


def attach(connection, settings):
    return Agent(connection, settings)
