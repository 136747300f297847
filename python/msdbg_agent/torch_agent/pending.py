"""What a collective delivers while the program goes on: an AsyncCollectiveTensor, which waits for its
elements when an operator reads it."""

import torch

_NAME = "AsyncCollectiveTensor"


def _is_pending(value):
    return type(value).__name__ == _NAME


def _own(value):
    """What a DTensor has in this process, which may be pending, too."""
    part = getattr(value, "_local_tensor", None)
    return value if part is None else part


def pending_in(values, found=None):
    """All pending tensors in (nested) arguments."""
    if found is None:
        found = []
    for value in values:
        if isinstance(value, torch.Tensor):
            part = _own(value)
            if _is_pending(part):
                found.append(part)
        elif isinstance(value, (list, tuple)):
            pending_in(value, found)
        elif isinstance(value, dict):
            pending_in(value.values(), found)
    return found


def elements_of(value):
    """`value`, with the memory that a pending tensor waits for in its place."""
    if isinstance(value, torch.Tensor):
        part = _own(value)
        return part.elem if _is_pending(part) else value
    if isinstance(value, (list, tuple)):
        return [elements_of(each) for each in value]
    if isinstance(value, dict):
        return {name: elements_of(each) for name, each in value.items()}
    return value
