"""Values that are in a GPU: a flag for each, computed there, and the elements only when somebody
asks.

A flag is the largest magnitude of a tensor: NaN if it holds a NaN, Inf if it holds an Inf. It is
computed on the current stream into one element of a buffer on the device. While operators are
watched, each flag is read at once, because the debugger may stop behind that operator.
"""
import ctypes
import math

import torch

from .. import _c


class Devices:
    """Publishes tensors that the processor cannot read at their address."""

    def __init__(self):
        self._calls = []    # FETCH objects, kept until the step has ended

    def end(self):
        self._calls = []

    def publish(self, connection, node, slot, dtype, tensor):
        shape = tuple(tensor.shape)
        fetch = _c.FETCH(_fetcher(tensor))
        self._calls.append(fetch)
        connection.publish_remote(node, slot, dtype, shape, state_of(tensor), fetch)


def state_of(tensor):
    """Whether there is a NaN or an Inf, by one reduction on the tensor's device."""
    if not (tensor.is_floating_point() or tensor.is_complex()) or tensor.numel() == 0:
        return _c.STATE_FINITE
    try:
        largest = float(torch.linalg.vector_norm(tensor, math.inf))
    except RuntimeError:
        return _c.STATE_UNKNOWN  # no such kernel for this element type
    if math.isnan(largest):
        # An Inf beside a NaN does not show in the largest magnitude.
        return _c.STATE_NAN | (_c.STATE_INF if bool(torch.isinf(tensor).any()) else 0)
    return _c.STATE_INF if math.isinf(largest) else _c.STATE_FINITE


def _fetcher(tensor):
    def fetch(_user, _node, _slot, into, size):
        try:
            here = tensor.resolve_conj().resolve_neg().to("cpu").contiguous()
            if here.numel() * here.element_size() != size:
                return 1
            ctypes.memmove(into, here.data_ptr(), size)
            return 0
        except Exception:  # the debugger is told that there is no such value
            return 1
    return fetch
