"""Functions that MindSpore captures in other ways than by their source: they run as they are, and one
line says what is lost."""

import functools

from .versions import find, first

_LINE = (
    '@jit(capture_mode="%s"): its operators are not seen, and gradients that it makes begin no step'
)


class Captures:
    def __init__(self, say_once):
        self._say_once, self._undo = say_once, []
        for module in ("mindspore.graph.jit_trace", "mindspore.common.jit_trace"):
            owner = find(module + ":_jit_trace_begin") and __import__(module, fromlist=["_"])
            if owner is not None:
                self._wrap(owner, "_jit_trace_begin", "trace")
                break
        owner = first(
            "mindspore.graph._utils.pijit_context:PIJitCaptureContext",
            "mindspore.common._pijit_context:PIJitCaptureContext",
        )
        if owner is not None:
            self._wrap(owner, "__enter__", "bytecode")

    def _wrap(self, owner, name, how):
        original = getattr(owner, name)

        @functools.wraps(original)
        def wrapped(*args, **kwargs):
            self._say_once(_LINE % how)
            return original(*args, **kwargs)

        setattr(owner, name, wrapped)
        self._undo.append(lambda: setattr(owner, name, original))

    def close(self):
        for undo in self._undo:
            undo()
        self._undo = []
