"""What is known of a tensor without reading it, and how its value reaches the agent."""

import torch
from torch.nn.parameter import UninitializedTensorMixin

from .._recorder import REMOTE

_NAMES = {}
for _name in (
    "bool",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
):
    if hasattr(torch, _name):
        _NAMES[getattr(torch, _name)] = _name
# Complex numbers are shown as pairs of a real and an imaginary part: see shape_of().
_PAIRS = {torch.complex32: "float16", torch.complex64: "float32", torch.complex128: "float64"}
_NAMES.update(_PAIRS)

_KINDS = {torch.Tensor: True, torch.nn.Parameter: True}  # whether a class has elements as these do
own_kinds = set()  # classes of the program among them
# Inside it, the functions of such a class are not called for what we ask of a tensor.
NoFunctions = getattr(
    torch._C, "DisableTorchFunctionSubclass", getattr(torch._C, "DisableTorchFunction", None)
)
_SYMBOLS = ("FakeTensor", "KerasTensor", "Proxy")
# Inside torch.func a tensor may stand for others and have no memory.
_is_wrapped = getattr(getattr(torch._C, "_functorch", None), "is_functorch_wrapped_tensor", None)


def dtype_name(tensor):
    """The debugger's name of the element type, or None for one that it does not have."""
    return _NAMES.get(tensor.dtype)


def shape_of(tensor):
    """The shape that the debugger has of it: complex numbers are pairs in one more dimension."""
    return (*tensor.shape, 2) if tensor.dtype in _PAIRS else tuple(tensor.shape)


def alias_of(tensor):
    """Another tensor with the same elements in the same memory, for the debugger: with the shape of
    shape_of(). Only of a view of conjugated numbers it is a copy, because pairs cannot be one."""
    if tensor.dtype not in _PAIRS:
        return tensor.detach()
    with torch.no_grad(), torch._C._DisableTorchDispatch():  # it is no operator of the program
        return torch.view_as_real(tensor.detach().resolve_conj())


def _is_usual(tensor):
    """Whether it has elements in memory as torch.Tensor has: its class may change functions, but no
    operators, and it has a shape from the beginning."""
    usual = _KINDS.get(type(tensor))
    return _is_of_usual_kind(tensor) if usual is None else usual


def _is_of_usual_kind(tensor):
    kind = type(tensor)
    if not issubclass(kind, torch.Tensor):
        return False
    usual = kind.__torch_dispatch__ is torch.Tensor.__torch_dispatch__
    _KINDS[kind] = usual = usual and not issubclass(kind, UninitializedTensorMixin)
    if usual:
        own_kinds.add(kind)
    return usual


def is_plain(tensor):
    """A tensor with memory of its own kind: no sparse, nested, quantized or meta tensor, no
    subclass with operators of its own, none of torch.func, and no zero without memory that
    autograd's forward mode uses."""
    return (
        _is_usual(tensor)
        and tensor.layout is torch.strided
        and not tensor.is_meta
        and not tensor.is_nested
        and tensor.dtype in _NAMES
        and not tensor._is_zerotensor()
        and not (_is_wrapped is not None and _is_wrapped(tensor))
    )


def is_symbol(value):
    """A tensor without a value: a module that is called with it computes shapes alone."""
    return type(value).__name__ in _SYMBOLS or (isinstance(value, torch.Tensor) and value.is_meta)


def own_part(tensor):
    """The plain tensor with the elements that are in this process: of a DTensor, whose elements
    several processes share, a sparse tensor, or a NestedTensor, whose rows are of different
    lengths."""
    if _is_usual(tensor):
        return _stored(tensor) if tensor.layout is torch.sparse_coo else tensor
    part = getattr(tensor, "_values" if _is_nested(tensor) else "_local_tensor", None)
    return tensor if part is None else part


def _stored(tensor):
    with torch._C._DisableTorchDispatch():  # it is no operator of the program
        return tensor._values()


def _is_nested(tensor):
    return type(tensor).__name__ == "NestedTensor"


def has_memory(tensor):
    """False if its memory was given back, as FSDP does with weights that are not used now. Its
    address may still look like one."""
    first, last = extent_of(tensor)
    before = tensor.storage_offset() * tensor.element_size()
    return before + last - first <= tensor.untyped_storage().nbytes()


def is_readable(tensor):
    """Its elements can be read at its address, as they are."""
    return tensor.is_cpu and not tensor.is_conj() and not tensor.is_neg()


def address_of(tensor):
    """Where the elements are, row by row; REMOTE if they are in another order or in a GPU, None if
    there are none."""
    if not is_plain(tensor) or not has_memory(tensor):
        return None
    if not is_readable(tensor) or not tensor.is_contiguous():
        return REMOTE
    return tensor.data_ptr() or None


def storage_of(tensor):
    """Equal for tensors that share memory."""
    return tensor.untyped_storage()._cdata


def extent_of(tensor):
    """The address of the first byte, and the one behind the last, whatever lies between."""
    first = tensor.data_ptr()
    if tensor.is_contiguous():
        return first, first + tensor.numel() * tensor.element_size()
    if not tensor.numel():
        return first, first
    reach = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
    return first, first + (reach + 1) * tensor.element_size()


def fills_storage(tensor):
    """Whether no other element is in its memory."""
    return tensor.numel() * tensor.element_size() >= tensor.untyped_storage().nbytes()


def tensors_in(values, found=None):
    """All tensors in (nested) arguments, in order: what is in this process."""
    if found is None:
        found = []
    for value in values:
        if isinstance(value, torch.Tensor):
            found.append(own_part(value))
        elif isinstance(value, (list, tuple)):
            tensors_in(value, found)
        elif isinstance(value, dict):
            tensors_in(value.values(), found)
    return found
