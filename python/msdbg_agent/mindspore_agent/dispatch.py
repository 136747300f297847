"""Operators of PyNative mode from MindSpore 2.9 on: its own dispatch mode shows them."""

def mode_class(base):
    class Mode(base):
        """Runs each operator once, and notes it."""

        def __init__(self, agent):
            super().__init__()
            self.agent = agent

        def __ms_dispatch__(self, func, args, kwargs=None):
            out = func(*args, **(kwargs or {}))
            agent = self.agent
            if agent is not None:
                try:
                    agent.operators.note(func.name, args, out)
                except Exception as fault:
                    self.agent = None
                    agent.noting_failed(fault)
            return out

    return Mode
