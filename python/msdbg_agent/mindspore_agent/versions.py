"""Which private names this release of MindSpore has, and what is lost without them."""

import importlib


def find(path):
    """The object `package.module:name.name`, or None."""
    module, _, names = path.partition(":")
    try:
        found = importlib.import_module(module)
        for name in names.split("."):
            found = getattr(found, name)
        return found
    except (ImportError, AttributeError):
        return None


def first(*paths):
    """The first of these that is there."""
    for path in paths:
        found = find(path)
        if found is not None:
            return found
    return None


class Probe:
    """The private names, each None if it is missing."""

    def __init__(self):
        self.set_window = find("mindspore._c_expression:_set_init_iter")
        self.compile_and_run = find("mindspore.nn:Cell.compile_and_run")
        # 2.9 moved it.
        self.jit_executor = first(
            "mindspore.graph.api:_JitExecutor", "mindspore.common.api:_JitExecutor"
        )
        self.pynative_executor = first(
            "mindspore.graph.api:_PyNativeExecutor", "mindspore.common.api:_PyNativeExecutor"
        )
        self.sync = first(
            "mindspore.graph.api:_pynative_executor.sync",
            "mindspore.common.api:_pynative_executor.sync",
        )
        self.grad_flag = first(
            "mindspore.graph.api:_pynative_executor.grad_flag",
            "mindspore.common.api:_pynative_executor.grad_flag",
        )
        self.dispatch_mode = find("mindspore.utils:MsDispatchMode")

    def lost(self):
        """One line for each missing name."""
        lines = []
        if self.compile_and_run is None:
            lines.append(
                "this release of MindSpore lacks Cell.compile_and_run: steps in graph mode are not found; "
                "call msdbg_agent.step_begin() and step_end()"
            )
        if self.set_window is None:
            lines.append(
                "this release of MindSpore lacks _set_init_iter: operators are not seen, parameters are"
            )
        if self.grad_flag is None:
            lines.append(
                "this release of MindSpore lacks _PyNativeExecutor.grad_flag: a compiled update ends no step"
            )
        if self.pynative_executor is None or self.jit_executor is None:
            lines.append(
                "this release of MindSpore lacks _PyNativeExecutor or _JitExecutor: steps in PyNative mode are "
                "not found"
            )
        return lines
