"""MindSpore: an unmodified training is held and watched by step, with every operator of a step that
somebody looks at."""

import atexit

from .. import _c, _process
from .._recorder import Terminated
from .versions import Probe
from .window import Window


class Agent:
    """The agent of this process for MindSpore."""

    framework = "MindSpore"

    def __init__(self, connection, settings):
        import mindspore

        from .boundary import GraphMode
        from .jit_step import JitSteps
        from .pynative import PyNative

        connection.set_option("program", "MindSpore")
        connection.set_option("version", mindspore.__version__)
        probe = Probe()
        for line in probe.lost():
            _c.say(line)
        self.window = Window(probe, connection.can_read_dumps)
        atexit.register(self.window.close)
        self.graph_mode = GraphMode(connection, settings, probe, self.window)
        self.pynative = PyNative(
            connection, settings, probe, self.window, lambda: self.graph_mode.busy
        )
        self.jit_steps = JitSteps(self.graph_mode, self.pynative, probe)
        self.graph_mode.taken = lambda: self.pynative.recorder.open
        self.graph_mode.run_in_step = self.pynative.network_runs
        atexit.register(self._finish)

    def step_begin(self, network=None):
        """In graph mode, a step is one run of the network, whoever calls this."""
        self.pynative.step_begin(network)

    def step_end(self):
        """Ends a step of PyNative mode."""
        self.pynative.step_end()

    def add(self, network=None, optimizer=None):
        """Networks are found when they run."""

    def _finish(self):
        try:
            self.pynative.finish(_process.ended_by())
        except Terminated:
            pass  # the program ends anyway

    def forget(self):
        """In a forked child."""
        self.graph_mode.off = self.pynative.recorder.off = True
        self.window.root = None
        return False

    def close(self):
        atexit.unregister(self._finish)
        self._finish()
        self.jit_steps.close()
        self.graph_mode.close()
        self.pynative.close()
        self.window.close()


def attach(connection, settings):
    return Agent(connection, settings)
