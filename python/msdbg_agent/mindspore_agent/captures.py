"""Functions that MindSpore captures in other ways than by their source: they run as they are, and one
line says what is lost."""

import contextlib
import functools
import threading

from .versions import find, first

_LINE = (
    '@jit(capture_mode="%s"): its operators are not seen, and gradients that it makes begin no step'
)


class Captures:
    def __init__(self, say_once, set_aside):
        self._say_once, self._set_aside, self._undo = say_once, set_aside, []
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
            self._wrap_bytecode(owner)

    def _wrap(self, owner, name, how):
        original = getattr(owner, name)

        @functools.wraps(original)
        def wrapped(*args, **kwargs):
            self._say_once(_LINE % how)
            return original(*args, **kwargs)

        setattr(owner, name, wrapped)
        self._undo.append(lambda: setattr(owner, name, original))

    def _wrap_bytecode(self, owner):
        """Where the capture meets functions of ours, it can give the value of another operator."""
        begin, end = owner.__enter__, owner.__exit__
        running = threading.local()  # .calls: one inside of the other

        @functools.wraps(begin)
        def begins(context):
            self._say_once(_LINE % "bytecode")
            with contextlib.ExitStack() as aside:
                aside.enter_context(self._set_aside())
                out = begin(context)
                vars(running).setdefault("calls", []).append(aside.pop_all())
                return out

        @functools.wraps(end)
        def ends(context, *fault):
            calls = vars(running).get("calls")
            with calls.pop() if calls else contextlib.nullcontext():
                return end(context, *fault)

        def undo():
            owner.__enter__, owner.__exit__ = begin, end

        owner.__enter__, owner.__exit__ = begins, ends
        self._undo.append(undo)

    def close(self):
        for undo in self._undo:
            undo()
        self._undo = []
