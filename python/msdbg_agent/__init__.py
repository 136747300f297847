"""Lets `msdbg listen` hold, step and watch a PyTorch or MindSpore training.

    ENABLE_MS_DEBUGGER=1 MS_DEBUGGER_PORT=50051 python train.py     unmodified
    python -m msdbg_agent train.py                                  the same, explicitly

In a program: `attach()`, or `with session(net, optimizer):`; `step_begin()` and `step_end()` where
no step can be found; `Callback()` for MindSpore's Model.train(). Without a debugger, all of it does
nothing.
"""

import os
import sys

from . import _c
from ._recorder import Terminated

__version__ = "0.1.0"
__all__ = ["Callback", "Terminated", "attach", "problem", "session", "step_begin", "step_end"]

TRACES = ("auto", "step", "module", "operator", "always", "never")
STEPS = ("optimizer", "manual")

_agents = {}  # by framework
_state = {"connection": None, "guard": None, "failed": False}


class Settings:
    """The variables MSDBG_AGENT_*, checked once."""

    def __init__(self, trace=None, steps=None):
        self.trace = self._choice("MSDBG_AGENT_TRACE", trace, TRACES)
        self.steps = self._choice("MSDBG_AGENT_STEP", steps, STEPS)

    @staticmethod
    def _choice(variable, value, accepted):
        value = value or os.environ.get(variable) or accepted[0]
        if value not in accepted:
            _c.say(
                "%s is '%s': use one of %s; '%s' is used now"
                % (variable, value, ", ".join(accepted), accepted[0])
            )
            value = accepted[0]
        return value


def _enabled():
    # MindSpore's scheduler, which connects the ranks, runs the program, too, but no step of it.
    wanted = os.environ.get("ENABLE_MS_DEBUGGER", "").lower() in ("1", "true")
    return wanted and os.environ.get("MS_ROLE") != "MS_SCHED"


def _connect(backend):
    """The one connection of this process, or None."""
    from . import _process

    if _state["connection"] is None and not _state["failed"]:
        try:
            with _process.rank_told():
                _state["connection"] = _c.Connection(_c.load(), backend, backend != "GPU")
            _state["guard"] = _process.Guard(_state["connection"], _forget)
        except _c.LibraryProblem as problem:
            _state["failed"] = True
            _c.say("the training runs without the debugger: %s" % problem)
    return _state["connection"]


def _forget():
    """In a forked child: the debugger talks with the parent, or has not begun to."""
    for framework, agent in list(_agents.items()):
        if not agent.forget():
            del _agents[framework]
    if _agents:
        return
    _state.update(connection=None, guard=None, failed=True)


def attach(trace=None, steps=None):
    """Attaches to the frameworks that are imported already. `trace`: see MSDBG_AGENT_TRACE in
    docs/python-agent.md.

    Does nothing unless ENABLE_MS_DEBUGGER is 1. Never raises because of the debugger. Returns
    whether it is attached.
    """
    if not _enabled():
        return False
    for framework in ("torch", "mindspore"):
        if framework in sys.modules and framework not in _agents:
            _attach_to(framework, Settings(trace, steps))
    return bool(_agents)


def _attach_to(framework, settings):
    if _state["failed"]:
        return
    if _agents:
        _c.say(
            "%s is imported, too: the debugger follows %s alone" % (framework, next(iter(_agents)))
        )
        return
    connection = _connect("GPU" if framework == "torch" else "Ascend")
    if connection is None:
        return
    try:
        if framework == "torch":
            from . import torch_agent as part
        else:
            from . import mindspore_agent as part
        _agents[framework] = part.attach(connection, settings)
    except Exception as fault:  # a release that is not known to us must run all the same
        _state["failed"] = True
        connection.finish()
        _c.say("the training runs without the debugger: %s" % _c.line_of(fault))


def problem():
    """What is wrong between the training and the debugger now; "" if nothing is."""
    connection = _state["connection"]
    return connection.problem() if connection is not None else ""


def step_begin(network=None):
    """Begins a step, where MSDBG_AGENT_STEP=manual or no boundary can be found."""
    attach()
    for agent in _agents.values():
        agent.step_begin(network)


def step_end():
    """Ends a step; the debugger may hold the training here."""
    for agent in _agents.values():
        agent.step_end()


class session:
    """`with session(net, optimizer):` attaches, and says goodbye at the end of the block."""

    def __init__(self, network=None, optimizer=None, trace=None, steps=None):
        self._what, self._how = (network, optimizer), (trace, steps)

    def __enter__(self):
        if attach(*self._how):
            for agent in _agents.values():
                agent.add(*self._what)
        return self

    def __exit__(self, *_):
        for agent in _agents.values():
            agent.close()
        _agents.clear()
        guard, _state["guard"] = _state["guard"], None
        if guard is not None:
            guard.finish()
            _state["connection"] = None
        return False


def __getattr__(name):
    # The class is made when it is asked for: it needs MindSpore's own.
    if name == "Callback":
        from .mindspore_agent.callback import Callback

        return Callback
    raise AttributeError("module 'msdbg_agent' has no attribute '%s'" % name)
