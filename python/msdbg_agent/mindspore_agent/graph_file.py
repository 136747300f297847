"""The files that MindSpore writes for a compiled function: its graph, and the values of one run."""

import ast
import ctypes
import math
import mmap
import os
import re
import struct

_LINE = re.compile(r"In file ([^\n]*?):(\d+)(?:~\d+)?, [\d~]+/([^\n]*)/")
_THROUGH = ("Load", "Depend", "TupleGetItem", "UpdateState")
_HALVES = ("Float16", "BFloat16")
# The moving average, beside the weights.
_NO_WRITERS = ("BatchNorm", "SyncBatchNorm", "BatchNormExt", "MakeTuple")


def fields(data):
    """(number, value) of each field of a protobuf message."""
    at, end = 0, len(data)

    def varint(at):
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value, at

    while at < end:
        key, at = varint(at)
        kind = key & 7
        if kind == 0:
            value, at = varint(at)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
            value, at = data[at : at + size], at + size
        elif kind == 2:
            size, at = varint(at)
            value, at = data[at : at + size], at + size
        else:
            raise ValueError("not a graph")
        yield key >> 3, value


def _text(value):
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""


class Operator:
    __slots__ = ("name", "kind", "inputs", "lines")

    def __init__(self, data):
        self.name, self.kind, self.inputs, self.lines = "", "", [], ""
        for number, value in fields(data):
            if number == 1:
                part = dict(fields(value))
                if not part.get(2):  # not a control edge
                    self.inputs.append(_text(part.get(1)))
            elif number == 3:
                self.kind = _text(value)
            elif number == 8:
                self.name = _text(value)
            elif number == 9:
                self.lines = _text(value)

    def frames(self, hidden):
        """(file, line, code) of the user's program."""
        found = []
        for file, line, code in _LINE.findall(self.lines):
            if not file.startswith(hidden):
                found.append((file, int(line), code.strip()))
        return found


class GraphFile:
    """ms_output_trace_code_graph_N.pb, or what it would hold."""

    def __init__(self, path=None, data=None):
        self.operators, self.parameters, self._by_key = [], [], {}
        self._returned, self._numbers = [], {}  # keys; the values of constants
        if data is None:
            with open(path, "rb") as file:
                data = file.read()
        for number, graph in fields(data):
            if number != 4:
                continue
            for part, value in fields(graph):
                if part == 1:
                    operator = Operator(value)
                    key = next((_text(each) for at, each in fields(value) if at == 2), "")
                    self._by_key[key] = operator
                    self.operators.append(operator)
                elif part == 3:
                    self.parameters.append(_text(dict(fields(value)).get(1)))
                elif part == 4:
                    self._returned.append(_text(dict(fields(value)).get(1)))
                elif part == 5:
                    constant = dict(fields(value))
                    number = dict(fields(constant.get(2, b""))).get(3)
                    if isinstance(number, int):
                        self._numbers[_text(constant.get(1))] = number
        self.backward = any(each.name.startswith("Gradients/") for each in self.operators)

    def changed(self, parameters):
        """Which of these an operator writes to: it takes them as they are, not what Load has read,
        and has a place in the order of effects."""
        order = {key for key, each in self._by_key.items() if each.kind == "UpdateState"}
        order.update(
            each.inputs[1] for each in self.operators if each.kind == "Load" and each.inputs[1:]
        )
        found = set()
        for each in self.operators:
            if each.kind in _NO_WRITERS or each.kind in _THROUGH:
                continue
            if order.intersection(each.inputs):
                found |= parameters.intersection(each.inputs)
        return found

    def sources(self, operator):
        """What it reads: (operator with values, or name of a parameter or constant; slot) each."""
        found = []
        for key in operator.inputs:
            self._follow(key, (), found, set())
        return found

    def flattened(self):
        """Names of what stands for the members of a tuple that is a parameter, in order."""
        found = {}
        for operator in self.operators:
            if operator.kind == "MakeTuple":
                for key in operator.inputs:
                    if key.startswith("Parameter_") and key not in self.parameters:
                        found[key] = None
        return list(found)

    def returned(self):
        """What the function returns, flat and in order, as sources() tells it."""
        found = []
        for key in self._returned:
            self._follow(key, (), found, set())
        return found

    def _follow(self, key, path, found, seen):
        """`path` are the places in nested tuples that are still to be taken."""
        source = self._by_key.get(key)
        if source is None or (source.kind not in _THROUGH and source.kind != "MakeTuple"):
            found.append((source or key, path[0] if path else 0))
        elif (key, path) in seen or not source.inputs:
            return
        elif source.kind == "MakeTuple":
            seen.add((key, path))
            places = range(len(source.inputs))
            for place in places[path[0] : path[0] + 1] if path else places:
                each = source.inputs[place]
                if not path[1:] and each in self.parameters:
                    # The members of a tuple that is a parameter may all have its name.
                    found.append((each, source.inputs[:place].count(each)))
                else:
                    # The same value can be returned twice.
                    self._follow(each, path[1:], found, set(seen))
        else:
            seen.add((key, path))
            if source.kind == "TupleGetItem":
                path = (self._numbers.get(source.inputs[-1], 0),) + path
            self._follow(source.inputs[0], path, found, seen)


class Value:
    """A dumped tensor, with what is asked of the framework's own."""

    def __init__(self, path, dtype):
        with open(path, "rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        if self._map[:6] != b"\x93NUMPY":
            raise ValueError("%s is no array" % path)
        wide = self._map[6] > 1
        (size,) = struct.unpack_from("<I" if wide else "<H", self._map, 8)
        begin = 12 if wide else 10
        header = ast.literal_eval(self._map[begin : begin + size].decode("latin-1").strip())
        self.dtype, self.shape = dtype, tuple(header["shape"])
        self._begin = begin + size
        self.nbytes = len(self._map) - self._begin
        if dtype in _HALVES and self.nbytes == 4 * math.prod(self.shape):
            self.dtype = "Float32"  # it was computed so, and is written under the other's header

    def data_ptr(self):
        if not self.nbytes:
            return 0
        return ctypes.addressof(ctypes.c_char.from_buffer(self._map, self._begin))

    def is_contiguous(self):
        return True

    def content(self):
        return self._map[self._begin :]


def _key(name):
    """(the name as in files without its number, the number)."""
    plain = parameter_key(name)
    head, mark, number = plain.rpartition("-op")
    return (head, int(number)) if mark and number.isdigit() else (plain, 0)


def runs(directory, graph):
    """The runs of a graph that the files of one iteration show: (when, {Operator: {slot: (path,
    type)}}, {parameter as in files: (path, type)}) each, in order."""
    files, parameters = {}, {}  # key -> number -> slot -> [(when, path, type)]
    for name in os.listdir(directory):
        parts = name.split(".")
        if len(parts) != 10 or parts[5] != "output":
            continue
        if not (parts[4].isdigit() and parts[6].isdigit()):
            continue
        value = (int(parts[4]), os.path.join(directory, name), parts[8])
        if parts[0] == "Parameter":
            parameters.setdefault(parts[1], []).append(value)
            continue
        head, number = _key(parts[1])
        slots = files.setdefault(head, {}).setdefault(number, {})
        slots.setdefault(int(parts[6]), []).append(value)
    found = {}
    for operator, slots in _paired(graph, files):
        for slot, each in slots.items():
            for count, (when, path, dtype) in enumerate(sorted(each)):
                run = found.setdefault(count, [when, {}, {}])
                run[0] = min(run[0], when)
                run[1].setdefault(operator, {})[slot] = (path, dtype)
    for name, each in parameters.items():
        for count, (_, path, dtype) in enumerate(sorted(each)):
            if count in found:
                found[count][2][name] = (path, dtype)
    return [tuple(found[count]) for count in sorted(found)]


def _paired(graph, files):
    """(Operator, its files). The numbers in files and graph differ: pairs by position, else by
    number."""
    nodes = {}
    for operator in graph.operators:
        head, number = _key(operator.name)
        if head in files:
            nodes.setdefault(head, []).append((number, operator))
    for head, numbered in files.items():
        known = nodes.get(head, [])
        if len(known) == len(numbered):
            pairs = zip(sorted(numbered), (operator for _, operator in known))
        else:
            equal = dict(known)
            pairs = [(number, equal[number]) for number in numbered if number in equal]
        for number, operator in pairs:
            yield operator, numbered[number]


def parameter_key(name):
    """A parameter as the names of files have it."""
    return re.sub(r"[/\\. ]", "_", name)
