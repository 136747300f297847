"""Which module runs: scopes from qualified names, and the names of parameters."""

import gc
import inspect
import sys
import weakref

import torch

from .._names import library_folder, part
from .tensors import address_of, dtype_name, is_plain, own_part, shape_of

# What holds a user's module and runs it in another way -> where.
_WRAPPERS = {
    "OptimizedModule": "_orig_mod",
    "DistributedDataParallel": "module",
    "DataParallel": "module",
    "_FabricModule": "_forward_module",
    "DeepSpeedEngine": "module",
}
_NOWHERE = ({}, None)
_UTILS = library_folder(torch.nn.utils)
_PARAMETRIZE = ("register_parametrization", "remove_parametrizations")
MOST_SEARCHES = 4  # each looks at everything that the program holds


def inner_module(module):
    """The user's module inside the wrappers of torch.compile, data parallelism and Lightning."""
    for each in _wrapped(module):
        module = each
    return module


def _wrapped(module):
    """The module, and what it wraps, and what that wraps."""
    while module is not None:
        yield module
        name = _WRAPPERS.get(type(module).__name__)
        module = None if name is None else module._modules.get(name)


class _Held:
    """What a module of TorchScript holds; its own dictionaries have no get()."""

    def __init__(self, held):
        self._held = held

    def get(self, name):
        return self._held[name] if name in self._held else None


def _held_in(held):
    return held if hasattr(held, "get") else _Held(held)


def _kind(module):
    """The name of the user's class."""
    if isinstance(module, torch.jit.ScriptModule):
        return module.original_name
    return type(module).__name__


def holders_of(parameters):
    """The outermost modules that hold these parameters."""
    wanted = {id(each) for each in parameters}
    parents, inside = {}, []
    for each in gc.get_objects():
        if not issubclass(type(each), torch.nn.Module):
            continue
        for child in vars(each).get("_modules", {}).values():
            parents.setdefault(id(child), each)
        held = vars(each).get("_parameters", {}).values()
        if any(id(parameter) in wanted for parameter in held):
            inside.append(each)
    found = []
    for each in inside:
        seen = {id(each)}
        while id(each) in parents and id(parents[id(each)]) not in seen:
            each = parents[id(each)]
            seen.add(id(each))
        if not any(each is other for other in found):
            found.append(each)
    return found


def is_constructed():
    """Whether what runs now is for the sake of a network that is being made: a part of it is called
    to see what shape comes out, or it is parametrized, as by spectral_norm()."""
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if code.co_name in _PARAMETRIZE and code.co_filename.startswith(_UTILS):
            return True
        if code.co_name == "__init__" and code.co_argcount:
            if issubclass(type(frame.f_locals.get(code.co_varnames[0])), torch.nn.Module):
                return True
        frame = frame.f_back
    return False


def _caller(module):
    """The outermost module that holds this one and a method of which calls it: programs may call
    parts of a network from other methods than forward(), as Lightning does in training_step()."""
    found, frame = module, sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if code.co_argcount:
            owner = frame.f_locals.get(code.co_varnames[0])
            if issubclass(type(owner), torch.nn.Module) and owner is not found:
                if any(each is found for each in owner.modules()):
                    found = owner
        frame = frame.f_back
    return found


class Modules:
    """Paths of modules and names of parameters. Roots are modules that the training loop calls
    itself, or whose methods it calls."""

    def __init__(self):
        self._paths = {}  # id(module) -> path
        self._known = {}  # id(module) -> a reference to it, which takes all of this back
        self._roots = {}  # path -> id(module) of a root
        self._gone = []  # ids of roots that do not exist any more
        self._left = []  # names of their parameters, until the recorder has let go of them
        self.entries = []  # (name, path of the module, own name, where it is held, id of the root)
        self.by_id = {}  # id(parameter) -> its entry
        self._names = set()
        self._arguments = {}
        self._searches = 0  # for modules among everything that the program holds
        self._trainable = {}  # id(module) of a known one -> where it holds a trained parameter

    def add_root(self, module):
        """Names everything below a module that the training loop calls. Returns its path."""
        path = self._paths.get(id(module))
        if path is not None:
            return path
        self._forget_gone()
        module = _caller(module)
        inner = inner_module(module)
        path = self._free("Default/network-%s" % part(_kind(inner)), inner)
        self._add(module, inner, path)
        self._add_parameters(inner)
        return path

    def add_loss(self, module):
        """A criterion: a root that is called behind the network, without trainable parameters."""
        path = self._free("Default/_loss_fn-%s" % part(_kind(module)), module)
        self._add(module, module, path)
        return path

    def add_new_layers(self):
        """What networks hold that was not there when they were called first."""
        for path, number in list(self._roots.items()):
            inner = self._known[number]() if number in self._known else None
            if inner is not None:
                self._add_children(inner, path)
                self._add_parameters(inner)

    def _free(self, path, module):
        """`path`, with a number if another root has it."""
        free, number = path, 1
        while free in self._roots:
            free = "%s_%d" % (path, number)
            number += 1
        self._roots[free] = id(module)
        return free

    def _know(self, module, path):
        """Programs make modules anew in each step, or a network for each fold: nothing of ours
        keeps them."""
        number = id(module)
        self._paths[number] = path

        def forget(_, self=self, number=number, path=path):
            self._paths.pop(number, None)
            self._known.pop(number, None)
            self._trainable.pop(number, None)
            if self._roots.get(path) == number:
                del self._roots[path]
                self._gone.append(number)

        self._known[number] = weakref.ref(module, forget)

    def _forget_gone(self):
        """Names of parameters whose network does not exist any more are free again."""
        gone = set()
        while self._gone:
            gone.add(self._gone.pop())
        if not gone:
            return
        left = [entry[0] for entry in self.entries if entry[4] in gone]
        self._names.difference_update(left)
        self._left.extend(left)
        self.entries = [entry for entry in self.entries if entry[4] not in gone]
        for number in [key for key, entry in self.by_id.items() if entry[4] in gone]:
            del self.by_id[number]

    def _add(self, module, inner, root):
        for each in _wrapped(module):
            self._know(each, root)
        self._add_children(inner, root)

    def _add_children(self, inner, root):
        paths = {"": root}
        for name, child in inner.named_modules(remove_duplicate=False):
            if name:
                parent, _, own = name.rpartition(".")
                paths[name] = "%s/%s-%s" % (paths[parent], part(own), part(_kind(child)))
            if id(child) not in self._paths:
                self._know(child, paths[name])

    def _add_parameters(self, inner):
        seen = {id(entry[3].get(entry[2])) for entry in self.entries}
        for module_name, module in inner.named_modules():
            for held in (module._parameters, module._buffers):
                for name, tensor in held.items():
                    if tensor is None or id(tensor) in seen:
                        continue
                    seen.add(id(tensor))
                    full = "%s.%s" % (module_name, name) if module_name else name
                    free, number = full, 1
                    while free in self._names:
                        owner = _kind(inner)
                        owner = owner if number == 1 else "%s_%d" % (owner, number)
                        free, number = "%s.%s" % (owner, full), number + 1
                    self._names.add(free)
                    path = self._paths[id(module)]
                    self.entries.append((free, path, name, _held_in(held), id(inner)))

    def report(self, recorder):
        """Tells where each parameter is now: it may be another tensor than in the last step."""
        self._forget_gone()
        if self._left:
            recorder.release(name for name in self._left if name not in self._names)
            self._left = []
        known_of, by_id = recorder.parameters, self.by_id
        for entry in self.entries:
            tensor = entry[3].get(entry[2])
            if tensor is None:
                continue
            known = known_of.get(entry[0])
            if known is not None and known.keep is tensor and known.pointer == tensor.data_ptr():
                continue
            part = own_part(tensor)
            if known is not None and known.keep is tensor and known.pointer == part.data_ptr():
                continue
            if not is_plain(part):
                continue
            if known is not None:
                by_id.pop(id(known.keep), None)
            by_id[id(tensor)] = entry
            dtype, shape, address = dtype_name(part), shape_of(part), address_of(part)
            # An assignment to .data gives it other memory, maybe in the midst of a step.
            recorder.parameter(
                entry[0], dtype, shape, address, True, tensor, part.detach(), part.data_ptr()
            )

    def versions(self):
        """The trained parameters, each with the number of its changes."""
        held = (entry[3].get(entry[2]) for entry in self.entries)
        return [(each, each._version) for each in held if each is not None and each.requires_grad]

    def add_optimized(self, parameters):
        """Parameters that an optimizer changes and no known module holds: modules that are not
        called as such, as GPyTorch's, or a loop without modules."""
        own = torch.nn.Parameter
        unnamed = [each for each in parameters if id(each) not in self.by_id]
        if self._searches < MOST_SEARCHES and any(issubclass(type(each), own) for each in unnamed):
            self._searches += 1
            for module in holders_of(unnamed):
                self.add_root(module)
            known = {id(entry[3].get(entry[2])) for entry in self.entries}
            unnamed = [each for each in unnamed if id(each) not in known]
        for tensor in unnamed:
            if id(tensor) not in self.by_id:
                name = "parameter_%d" % len(self._names)
                self._names.add(name)
                self.entries.append((name, "Default", name, {name: tensor}, None))
                self.by_id[id(tensor)] = self.entries[-1]

    def path(self, module):
        return self._paths.get(id(module))

    def child_path(self, module, parent):
        """A module that no root holds: below the one that calls it."""
        path = "%s/%s" % (parent, part(_kind(module)))
        self._know(module, path)
        return path

    def has_trainable(self, module):
        """Whether the module or one below it has a parameter to train. Asked in each step."""
        held, name = self._trainable.get(id(module), _NOWHERE)
        found = held.get(name)
        if found is not None and found.requires_grad:
            return True
        for each in module.modules() if module._modules else (module,):
            for name, parameter in each._parameters.items():
                if parameter is not None and parameter.requires_grad:
                    if id(module) in self._paths:
                        self._trainable[id(module)] = _held_in(each._parameters), name
                    return True
        return False

    def has_parameters(self, module):
        if module._modules or module._parameters:
            return next(module.parameters(), None) is not None
        return False

    def argument_names(self, module):
        """Names of the positional arguments of forward(), as far as they are known."""
        inner = inner_module(module)
        names = self._arguments.get(type(inner))
        if names is None:
            try:
                names = [
                    name
                    for name, value in inspect.signature(inner.forward).parameters.items()
                    if value.kind in (value.POSITIONAL_ONLY, value.POSITIONAL_OR_KEYWORD)
                ]
            except (TypeError, ValueError):
                names = []
            self._arguments[type(inner)] = names
        return names
