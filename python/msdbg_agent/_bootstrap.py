"""The switch for unmodified programs: attaches behind `import torch` or `import mindspore`.

Imported by msdbg_agent.pth in every process that starts with ENABLE_MS_DEBUGGER=1.
"""

import importlib.abc
import importlib.util
import sys

FRAMEWORKS = ("torch", "mindspore")


class _Loader(importlib.abc.Loader):
    """Runs the real loader, then attaches."""

    def __init__(self, real):
        self._real = real

    def create_module(self, spec):
        return self._real.create_module(spec)

    def exec_module(self, module):
        # The module keeps its own loader: others look at it.
        module.__loader__ = self._real
        if module.__spec__ is not None:
            module.__spec__.loader = self._real
        self._real.exec_module(module)
        try:
            import msdbg_agent

            msdbg_agent.attach()
        except Exception as fault:  # the program must run all the same
            sys.stderr.write(
                "msdbg_agent: the training runs without the debugger: %s: %s\n"
                % (type(fault).__name__, fault)
            )


class Finder(importlib.abc.MetaPathFinder):
    """Stands in front of the others, and steps aside for everything else."""

    def find_spec(self, name, path=None, target=None):
        if name not in FRAMEWORKS:
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                if spec.loader is not None and hasattr(spec.loader, "exec_module"):
                    spec.loader = _Loader(spec.loader)
                return spec
        return None


def install():
    """Once in a process."""
    if not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, Finder())


install()
