"""Where modules are called.

PyTorch runs a slower path for every module while there is any global hook. That is worth it where
operators are wanted, for their scopes. Elsewhere, only calls by the training loop matter: inside
such a call the hooks are taken off, and a hook of the called module puts them back.
"""

import sys
import warnings
from threading import get_ident

from torch.nn.modules import module as modules

from .compiler import is_compiling

# Private to PyTorch: without them, our hooks stay on, and an interrupted call is not noticed.
_CALL = getattr(getattr(modules.Module, "_call_impl", None), "__code__", None)
_PRE_HOOKS = getattr(modules, "_global_forward_pre_hooks", None)
_HOOKS = getattr(modules, "_global_forward_hooks", None)

_installed = None  # the hooks of this process


def _returned(module, args, output):
    """A hook of a module that is called by the training loop, while it runs. Copies of the module
    that are made meanwhile have it, too."""
    if _installed is not None:
        _installed.returned(module, args, output)


class ModuleHooks:
    def __init__(self, scopes):
        self._scopes = scopes
        # The dictionaries with _returned() of the module inside which ours are off.
        self._around = None
        self._left = []  # the hooks of modules that have raised an exception
        self._functions = self._before = self._after = None

    def install(self, training):
        global _installed
        # Ours may fire an extra time; they count on it.
        warnings.filterwarnings(
            "ignore", message="Using `torch.compile\\(module\\)` when there are global hooks"
        )
        before, after = self._functions = _hooks(training, self)
        self._before = modules.register_module_forward_pre_hook(before)
        self._after = modules.register_module_forward_hook(after, always_call=True)
        _installed = self

    def remove(self):
        global _installed
        self.on()
        self._before.remove()
        self._after.remove()
        _installed = None

    def on(self):
        """All modules are seen from here on."""
        around, self._around = self._around, None
        if around is None:
            return
        before, after = self._functions
        _PRE_HOOKS[self._before.id] = before
        _HOOKS[self._after.id] = after
        for held in around:
            held.pop(self._after.id, None)

    def off(self, module):
        """No module is seen until `module`, which is called now, has returned."""
        while self._left:
            self._left.pop().pop(self._after.id, None)
        own = vars(module)
        around = own.get("_forward_hooks"), own.get("_forward_hooks_always_called")
        if self._around is not None or None in (*around, _PRE_HOOKS, _HOOKS):
            return
        self._around = around
        around[0][self._after.id] = _returned
        around[1][self._after.id] = True
        _PRE_HOOKS.pop(self._before.id, None)
        _HOOKS.pop(self._after.id, None)

    def returned(self, module, args, output):
        own, around = vars(module), self._around
        if around is None or around[0] is not own.get("_forward_hooks"):
            return
        if sys.exc_info()[0] is not None:
            # PyTorch may walk through the hooks of a module that has raised an exception. Of hooks
            # that the program has added, it may hold references to where they are.
            hooks = around[0]
            if len(hooks) > 1:
                self._left.append(hooks)
            else:
                own["_forward_hooks"] = type(hooks)()
            self._around = (around[1],)
        self.on()
        self._functions[1](module, args, output)

    def check(self):
        """The program may have left modules by an exception that hooks do not see, such as a
        KeyboardInterrupt."""
        if not self._scopes.stack or _CALL is None:
            return
        frame = sys._getframe(1)
        while frame is not None:
            if frame.f_code is _CALL:
                return
            frame = frame.f_back
        self._scopes.stack.clear()
        self.on()


def _hooks(training, all_hooks):
    """Both are compiled into nothing by torch.compile, and return None: anything else would replace
    the module's values."""
    scopes, recorder, owner = training.scopes, training.recorder, training.owner
    by_module = training.degree == "module"
    connection = recorder.connection

    def before(module, args):
        if is_compiling() or connection.over:
            return
        if get_ident() != owner.ident and owner.is_another():
            return
        called = not scopes.stack
        if called:
            training.guarded(training.called, module, args)
        if training.tracing or by_module:
            scopes.push(module, recorder.open)
        else:
            scopes.stack.append(None)  # nobody asks for the path
            if called and recorder.open:
                all_hooks.off(module)

    def after(module, args, output):
        if is_compiling() or connection.over:
            return
        if get_ident() != owner.ident and owner.is_another():
            return
        scopes.pop()
        if by_module and recorder.open and output is not None:
            training.guarded(training.module_degree.ran, module, args, output)

    return before, after
