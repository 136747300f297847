"""Names of operators, their order, and the lines of the user's program.

A full name is `<scope>/<kind>-op<number>`. The number counts per scope and kind within a step, so
an operator that comes or goes in another step moves only few names.
"""

import linecache
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
MOST_FRAMES = 12
_REACHED_BY_ALL = "__torch_function__"  # of a class of tensors: no line of it says what is computed


_INFINITY = float("inf")


def infinite_argument(args, kwargs=None):
    """(name, value) of an argument that is an infinity, such as the value of a mask, or None."""
    named = [("args.%d" % place, value) for place, value in enumerate(args)]
    for name, value in named + list((kwargs or {}).items()):
        if isinstance(value, float) and value in (_INFINITY, -_INFINITY):
            return name, "Infinity" if value > 0 else "-Infinity"
    return None


class Node:
    """An operator, or another thing with values: a gradient, a loss, a module."""

    __slots__ = (
        "name",
        "scope",
        "kind",
        "inputs",
        "data",
        "updates",
        "changes",
        "infinite",
        "attributes",
        "gradient_of",
        "outputs",
        "_sources",
        "frames",
        "frames_of",
        "number",
        "step",
        "light",
    )

    def __init__(self, name, scope, kind):
        self.name, self.scope, self.kind = name, scope, kind
        self.inputs = None  # [(name, slot)], or None as long as it did not run
        self.data = ()  # [(position among the inputs, name)]: which inputs are data
        self.updates = ()  # of the inputs, those that it changes in place
        self.changes = 0  # how often it read something else than before
        self.infinite = None  # (argument, "Infinity" or "-Infinity"): it was told to write that
        self.attributes = ()  # [(name, value)]: what else the debugger is told of it
        self.gradient_of = None  # name of the parameter whose gradient it is
        self.outputs = []  # [(dtype, shape)]
        self._sources = []
        self.frames = ()  # [(file, line, code)], innermost first
        self.frames_of = None  # of a backward operator: the frames of its forward one in them
        self.number = -1  # in the graph that the debugger has
        self.step = -1  # when it ran last
        self.light = False  # its value is known without tracing

    def source(self, slot):
        """(name, slot), the same object in each step: readers compare them."""
        sources = self._sources
        while slot >= len(sources):
            sources.append((self.name, len(sources)))
        return sources[slot]


class Table:
    """All nodes that were ever seen, by scope and kind."""

    def __init__(self):
        self._series = {}

    def next(self, scope, kind, step):
        """The next node of this kind in this scope within `step`; made if it is new."""
        series = self._series.get((scope, kind))
        if series is None:
            series = self._series[(scope, kind)] = [step, 0, []]
        elif series[0] != step:
            series[0], series[1] = step, 0
        place = series[1]
        series[1] = place + 1
        nodes = series[2]
        if place < len(nodes):
            return nodes[place]
        node = Node("%s/%s-op%d" % (scope, kind, place), scope, kind)
        nodes.append(node)
        return node

    def again(self):
        """The step counts from the beginning."""
        for series in self._series.values():
            series[1] = 0


def merged_order(old, ran):
    """The order of a graph with the nodes of `old` and `ran`: that of `ran`, where the last step
    contradicts the earlier ones. What did not run stays behind the node that it followed before.
    Each node once."""
    running = set(ran)
    followers, before = {}, None
    for node in old:
        if node in running:
            before = node
        else:
            followers.setdefault(before, []).append(node)
    merged = list(followers.get(None, ()))
    for node in ran:
        merged.append(node)
        merged.extend(followers.get(node, ()))
    return merged


def usable_order(nodes):
    """`nodes` with each one behind those that it reads, otherwise in the given order. A description
    has no circles: what a node reads of a later one (a value of the step before) is left out of the
    result's second part.

    Returns (nodes, {node: its inputs})."""
    by_name = {node.name: node for node in nodes}
    placed, entered, order, inputs = set(), set(), [], {}
    for first in nodes:
        stack = [first]
        while stack:
            node = stack[-1]
            if node in placed:
                stack.pop()
                continue
            missing = []
            if node not in entered:
                entered.add(node)
                for name, _ in node.inputs or ():
                    source = by_name.get(name)
                    if source is not None and source not in entered:
                        missing.append(source)
            if missing:
                stack.extend(reversed(missing))
                continue
            stack.pop()
            placed.add(node)
            order.append(node)
            inputs[node] = [
                (name, slot)
                for name, slot in node.inputs or ()
                if name not in by_name or (by_name[name] in placed and by_name[name] is not node)
            ]
    return order, inputs


def ranges(numbers):
    """[0, 1, 2, 5] as "0-2,5"."""
    runs = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join("%d-%d" % (a, b) if a < b else "%d" % a for a, b in runs)


def part(value):
    """A part of a name: no separators of our own."""
    return str(value).replace("/", "|") or "_"


def _is_users(frame, hidden):
    file = frame.f_code.co_filename
    return not (
        file.startswith(hidden)
        or file.startswith(_HERE)
        or file.startswith("<frozen")
        or file.endswith("runpy.py")
    )


_users = {}  # hidden -> {file: whether the user wrote it}; asked for every operator


def user_frame(hidden, start=2):
    """The innermost frame of a function that the user wrote, or None."""
    frame, known = sys._getframe(start), _users.setdefault(hidden, {})
    while frame is not None:
        file = frame.f_code.co_filename
        users = known.get(file)
        if users is None:
            users = known[file] = _is_users(frame, hidden)
        if users and frame.f_code.co_name != _REACHED_BY_ALL:
            return frame
        frame = frame.f_back
    return None


def moved_frames(known, hidden, start=2):
    """user_frames(), or None if the innermost one is the same as in `known`. For calls that repeat:
    no line is looked up."""
    frame = user_frame(hidden, start + 1)
    if frame is None:
        return None
    if known and known[0][1] == frame.f_lineno and known[0][0] == frame.f_code.co_filename:
        return None
    return user_frames(hidden, start + 1)


def user_frames(hidden, start=2, until=None, above=None):
    """The lines that the user wrote, innermost first. `hidden` are folders whose frames are left
    out; `until` is the function of theirs whose callers do not count, and `above` a frame that does
    not count, nor do its callers."""
    frames, frame = [], sys._getframe(start)
    while frame is not None and frame is not above and len(frames) < MOST_FRAMES:
        code = frame.f_code
        file = code.co_filename
        if code.co_name == until and file.startswith(hidden):
            break
        if code.co_name != _REACHED_BY_ALL and _is_users(frame, hidden):
            frames.append((file, frame.f_lineno, linecache.getline(file, frame.f_lineno).strip()))
        frame = frame.f_back
    return tuple(frames)


def library_folder(module):
    """Where a package's files are, with a separator at the end: for `hidden`."""
    return os.path.dirname(os.path.abspath(module.__file__)) + os.sep
