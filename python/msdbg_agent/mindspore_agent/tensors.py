"""What is read of MindSpore's tensors, parameters and cells."""

import functools
import inspect

from .memory import address_of, bytes_of
from .versions import find

TYPES = {
    "Bool": "bool",
    "Int8": "int8",
    "Int16": "int16",
    "Int32": "int32",
    "Int64": "int64",
    "UInt8": "uint8",
    "UInt16": "uint16",
    "UInt32": "uint32",
    "UInt64": "uint64",
    "Float16": "float16",
    "BFloat16": "bfloat16",
    "Float32": "float32",
    "Float64": "float64",
    "Complex64": "complex64",
    "Complex128": "complex128",
}

_LARGEST_MASK = 1 << 22  # elements
_LARGEST_COMPARED = 1 << 26  # bytes


@functools.lru_cache(maxsize=None)
def optimizer_types():
    """The base classes: mint.optim has one of its own."""
    from mindspore import nn

    other = find("mindspore.experimental.optim.optimizer:Optimizer")
    return (nn.Optimizer,) if other is None else (nn.Optimizer, other)


def is_optimizer(cell):
    return isinstance(cell, optimizer_types())


def is_loss_scaler(each):
    """One of mindspore.amp that keeps its scale in a parameter."""
    from mindspore import amp

    return isinstance(each, amp.LossScaler) and hasattr(
        getattr(each, "scale_value", None), "asnumpy"
    )


def is_training(cell):
    """A network that holds an optimizer; others are evaluations."""
    known = getattr(cell, "_msdbg_agent_training", None)
    if known is None:
        known = any(is_optimizer(each) for _, each in cell.cells_and_names())
        try:
            object.__setattr__(cell, "_msdbg_agent_training", known)
        except (AttributeError, TypeError):
            pass  # asked again next time
    return known


def parameters_of(cell):
    """(name, type, shape, address, parameter) of each one whose elements can be read."""
    for parameter in cell.get_parameters():
        dtype = TYPES.get(str(parameter.dtype))
        if dtype is None:
            continue
        yield parameter.name, dtype, tuple(parameter.shape), address_of(parameter), parameter


def is_mask(tensor):
    """Nothing but 0 and -Inf, as it is added to what a softmax takes. Waits for the tensor."""
    if str(tensor.dtype) not in ("Float16", "Float32", "Float64") or tensor.size > _LARGEST_MASK:
        return False
    values = tensor.asnumpy()
    infinite = values == -float("inf")
    return bool(infinite.any()) and not values[~infinite].any()


def same_content(one, other):
    """Waits for both."""
    if tuple(one.shape) != tuple(other.shape) or str(one.dtype) != str(other.dtype):
        return False
    if one.nbytes > _LARGEST_COMPARED:
        return False
    first = bytes_of(one)
    return bool(first) and first == bytes_of(other)


def input_names(cell, count):
    """What the positional arguments of construct(), or of a function, are called, in a graph as
    well."""
    names = []
    try:
        for name, value in inspect.signature(getattr(cell, "construct", cell)).parameters.items():
            if value.kind == value.VAR_POSITIONAL:
                names.extend("%s%d" % (name, number) for number in range(count - len(names)))
            elif value.kind in (value.POSITIONAL_ONLY, value.POSITIONAL_OR_KEYWORD):
                names.append(name)
    except (TypeError, ValueError):
        return []
    return names[:count]


def note_inputs(recorder, what, args, turn=0):
    """The arguments of a function or cell are data inputs of the recorder's graph, called data.x, or
    data.x.1 and so on in the next passes of a step."""
    for name, value in zip(input_names(what, len(args)), args):
        dtype = TYPES.get(str(getattr(value, "dtype", None)))
        if dtype and hasattr(value, "data_ptr") and value.is_contiguous():
            address = address_of(value)
            name = "data.%s.%d" % (name, turn) if turn else "data.%s" % name
            pointer = value.data_ptr()
            recorder.parameter(
                name, dtype, tuple(value.shape), address, False, value, None, pointer
            )


def tensors_in(values, found=None):
    """All tensors in (nested) arguments, in order."""
    from mindspore import Tensor

    if found is None:
        found = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            tensors_in(value, found)
    return found
