"""Calls a function behind the import of a module, whoever imports it."""

import importlib.abc
import importlib.util
import sys

_functions = {}  # by the name of a module


def after_import(name, function):
    """Calls `function` without arguments once module `name` is there."""
    if name in sys.modules:
        function()
        return
    _functions[name] = function
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Loader(importlib.abc.Loader):
    """Runs the real loader, then the function."""

    def __init__(self, real, function):
        self._real, self._function = real, function

    def create_module(self, spec):
        return self._real.create_module(spec)

    def exec_module(self, module):
        # The module keeps its own loader: others look at it.
        module.__loader__ = self._real
        if module.__spec__ is not None:
            module.__spec__.loader = self._real
        self._real.exec_module(module)
        try:
            self._function()
        except Exception as fault:  # the program must run all the same
            sys.stderr.write(
                "msdbg_agent: the debugger does not see all of %s: %s: %s\n"
                % (module.__name__, type(fault).__name__, fault)
            )


class _Finder(importlib.abc.MetaPathFinder):
    """Stands in front of the others, and steps aside for everything else."""

    def find_spec(self, name, path=None, target=None):
        function = _functions.get(name)
        if function is None:
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                if spec.loader is not None and hasattr(spec.loader, "exec_module"):
                    spec.loader = _Loader(spec.loader, function)
                return spec
        return None
