"""Where the elements of MindSpore's tensors are. On a CPU they are read at their address. The address
of a tensor on an Ascend or a GPU is one of that device: the framework copies its elements."""

import ctypes

from .. import _c
from .._recorder import REMOTE
from .graph_file import Value

_host = None


def on_host():
    """Whether addresses of tensors are those of this process. Asked when a step begins: the program
    has chosen its device by then."""
    global _host
    if _host is None:
        from mindspore import get_context

        _host = get_context("device_target") == "CPU"
    return _host


def is_readable(tensor):
    """Whether its elements can be read at its address. A value of a dump is in a file."""
    return on_host() or isinstance(tensor, Value)


def address_of(tensor):
    """What the recorder takes: REMOTE on a device, None without memory. Waits for the tensor."""
    if not hasattr(tensor, "data_ptr"):
        return None
    return (tensor.data_ptr() or None) if on_host() else REMOTE


def bytes_of(tensor):
    """The elements, row by row; b"" if there are none. Waits for the tensor."""
    if isinstance(tensor, Value):
        return tensor.content()
    if not on_host():
        return tensor.asnumpy().tobytes()
    plain = tensor if tensor.is_contiguous() else tensor.contiguous()
    address = plain.data_ptr()
    return ctypes.string_at(address, plain.nbytes) if address else b""


class Remote:
    """Tensors on a device: the debugger has their elements copied when it needs them."""

    def __init__(self):
        self._parameters = []  # by the number that the callback gets
        self._numbers = {}  # (graph, name) -> this number
        self._outputs = []
        self._fetch_parameter = _c.FETCH(self._read_parameter)
        self._fetch_output = _c.FETCH(self._read_output)

    def place(self, connection, graph, name, known):
        """A parameter: what its `keep` is when it is read."""
        number = self._numbers.get((graph, name))
        if number is None:
            self._parameters.append(None)
            number = self._numbers[graph, name] = len(self._parameters)
        self._parameters[number - 1] = known
        return connection.set_parameter_remote(
            graph, name, known.dtype, known.shape, _c.NO_STATE, self._fetch_parameter, number
        )

    def publish(self, connection, node, slot, dtype, shape, tensor):
        """An output, until the step has ended."""
        self._outputs.append(tensor)
        connection.publish_remote(
            node, slot, dtype, shape, _c.STATE_UNKNOWN, self._fetch_output, len(self._outputs)
        )

    def forget_outputs(self):
        self._outputs = []

    def _read_parameter(self, number, _node, _slot, into, size):
        return _copy(self._parameters[number - 1].keep, into, size)

    def _read_output(self, number, _node, _slot, into, size):
        return _copy(self._outputs[number - 1], into, size)


def _copy(tensor, into, size):
    """What a FETCH does: 0, or 1 if there are no such elements."""
    try:
        content = bytes_of(tensor)
        if len(content) != size:
            return 1
        ctypes.memmove(into, content, size)
        return 0
    except Exception:  # the debugger is told that there is no such value
        return 1
