"""Operators of PyNative mode that no dispatch mode shows: the functions that run them are replaced for
the steps in which operators are wanted. Before MindSpore 2.9 there is no such mode. Later, it does not
show what takes tensors in a list, nor parts of tensors, and then much of what reads those: it shows
functions with an argument that Python has made, or one that comes out of an operator that it has shown.
"""

import functools
import importlib

_CLASSES = "mindspore.ops.auto_generate.pyboost_inner_prim"
_MODULES = (
    "mindspore.ops.auto_generate.gen_ops_prim",
    "mindspore.ops.auto_generate.gen_ops_def",
    _CLASSES,
)
_IN_C = ("method_descriptor", "wrapper_descriptor")
_NO_OPERATORS = {"contiguous", "register_hook", "asnumpy", "data_ptr", "is_contiguous"}
_SYMBOLS = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "neg")
_PARTS = ("getitem", "setitem")


class Patches:
    def __init__(self, operators, failed):
        self._operators, self._failed = operators, failed
        self._inside = self._active = self._broken = False
        self._places = None  # (owner, name, replacement, original or None)

    def enter(self):
        """Raises if this release is not as the others."""
        if self._places is None:
            self._places = list(self._find())
            if not self._places:
                raise RuntimeError("its functions pyboost_* are not where they were")
        self._inside = True
        self.resume()

    def again(self):
        """A fault in noting was the program's own."""
        self._broken = False

    def leave(self):
        self.pause()
        self._inside = False

    def resume(self):
        if self._inside and not self._active:
            for owner, name, replacement, _ in self._places:
                setattr(owner, name, replacement)
            self._active = True

    def pause(self):
        """The framework's own are back: the compiler reads them."""
        if self._active:
            self._active = False
            for owner, name, _, original in self._places:
                if original is None:
                    delattr(owner, name)
                else:
                    setattr(owner, name, original)

    def _find(self):
        for name, owner in _functions(_CLASSES):
            call = vars(owner).get("__call__") if isinstance(owner, type) else None
            if name.startswith("_Pyboost") and hasattr(call, "__code__"):
                kind = name[len("_Pyboost") :].removesuffix("Prim")
                yield owner, "__call__", self._wrapped(call, kind), call
        for path in _MODULES:
            for name, function in _functions(path):
                if name.startswith("pyboost_"):
                    yield self._place(path, name, function, _kind(name[len("pyboost_") :]))
        for name, function in _functions("mindspore.ops.primitive"):
            if name == "_run_op":
                yield self._place("mindspore.ops.primitive", name, function, "")
        path = "mindspore.ops.functional_overload"
        for name, function in _functions(path):
            if name.startswith("_") and name.endswith("_instance"):
                yield self._place(path, name, function, _kind(name[1 : -len("_instance")]))
        yield from self._methods()

    def _place(self, path, name, function, kind):
        module = importlib.import_module(path)
        return module, name, self._wrapped(function, kind), function

    def _methods(self):
        """Methods of tensors that are written in C++."""
        from mindspore import Tensor

        symbols = {"__%s__" % each for each in _PARTS}
        symbols.update("__%s%s__" % (side, each) for each in _SYMBOLS for side in ("", "r"))
        for base in Tensor.__mro__[1:]:
            for name, method in list(vars(base).items()):
                plain = not name.startswith("_") and name not in _NO_OPERATORS
                if type(method).__name__ not in _IN_C or name in vars(Tensor):
                    continue
                if plain or name in symbols:
                    inner = name.strip("_")
                    if name in symbols and inner[0] == "r" and inner[1:] in _SYMBOLS:
                        inner = inner[1:]
                    yield Tensor, name, self._wrapped(method, _kind(inner)), None

    def _wrapped(self, function, kind):
        operators = self._operators

        @functools.wraps(function, updated=())
        def wrapped(*args, **kwargs):
            if not self._active:
                return function(*args, **kwargs)
            before = operators.count
            out = function(*args, **kwargs)
            if self._active and not self._broken and operators.count == before:
                # Nothing below has noted it.
                try:
                    name = kind
                    if args and not kind:
                        name = str(args[1])
                    elif args and isinstance(getattr(args[0], "name", None), str):
                        name = args[0].name if hasattr(args[0], "add_prim_attr") else kind
                    made = args[0] if kind == "Setitem" else out
                    operators.note(name, args + tuple(kwargs.values()), made)
                except Exception as fault:
                    self._broken = True
                    self._failed(fault)
            return out

        return wrapped


def _functions(path):
    try:
        module = importlib.import_module(path)
    except ImportError:
        return []
    return [(name, value) for name, value in vars(module).items() if callable(value)]


def _kind(name):
    """reduce_sum -> ReduceSum."""
    return "".join(each[:1].upper() + each[1:] for each in name.split("_"))
