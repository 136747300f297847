"""The C interface of the agent (msdbg/agent_c.h) through ctypes.

`load()` finds the shared library, `Connection` is one agent. Calls release the interpreter's lock,
so other threads run on while the debugger holds the training. Every method may be called from any
thread, one after the other; only `finish()` may be called while another call is running.
"""

import ctypes
import os
import sys

GO, STOP = 0, 1
WANTS_NOTHING, WANTS_SOME, WANTS_ALL = 0, 1, 2
# What the user reads when an exception ends a step
_NOT_KEPT = "values of its operators were not kept: watch them, or set MSDBG_AGENT_TRACE=always"
STATE_UNKNOWN, STATE_FINITE, STATE_NAN, STATE_INF = 0, 1, 2, 4

LIBRARY = "libmsdbg-agent.so"
_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib")
# Only MindSpore's graph mode needs these.
_OPTIONAL = ("graph_from_dump", "graph_add_dump", "publish_dump")

_P, _S, _I, _Z = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_size_t
_U, _L = ctypes.c_uint32, ctypes.POINTER(ctypes.c_int64)
FETCH = ctypes.CFUNCTYPE(_I, _P, _U, _U, _P, _Z)
STATE = ctypes.CFUNCTYPE(_I, _P)
NO_STATE = STATE()  # nothing is known of a parameter without its elements


class _Options(ctypes.Structure):
    """msdbg_agent_options."""

    _fields_ = [
        ("enabled", _I),
        ("host", _S),
        ("port", _I),
        ("device_id", _I),
        ("backend", _S),
        ("heartbeat_period_ms", _I),
        ("has_rank", _I),
        ("rank", _I),
    ]


# Name, result, arguments: the text of agent_c.h.
_FUNCTIONS = (
    ("from_environment", _P, (_S, _Z)),
    ("new", _P, (ctypes.POINTER(_Options),)),
    ("free", None, (_P,)),
    ("set_option", _I, (_P, _S, _S)),
    ("graph_new", _P, (_I,)),
    ("graph_free", None, (_P,)),
    ("graph_parameter", None, (_P, _S, _S, _L, _Z, _P, _I)),
    ("graph_node", _U, (_P, _S, _S)),
    ("graph_input", None, (_P, _U, _S, _U)),
    ("graph_output", None, (_P, _U, _S, _L, _Z)),
    ("graph_attribute", None, (_P, _U, _S, _S)),
    ("graph_frame", None, (_P, _U, _S, _I, _S)),
    ("graph_from_dump", _P, (_I, _S, _I, _S, _Z)),
    ("graph_add_dump", _I, (_P, _S, _I, _S, _Z)),
    ("add_graph", _I, (_P, _P)),
    ("replace_graph", _I, (_P, _I, _P)),
    ("set_parameter", _I, (_P, _I, _S, _S, _L, _Z, _P)),
    ("set_parameter_remote", _I, (_P, _I, _S, _S, _L, _Z, STATE, FETCH, _P)),
    ("begin_step", _I, (_P, _I)),
    ("wants", _I, (_P,)),
    ("wants_node", _I, (_P, _U)),
    ("wants_any", _I, (_P, ctypes.POINTER(_U), _Z)),
    ("publish", None, (_P, _U, _U, _P, _Z)),
    ("publish_shaped", None, (_P, _U, _U, _P, _Z, _L, _Z)),
    ("publish_copy", _I, (_P, _U, _U, _S, _P, _L, _L, _Z)),
    ("publish_strided", None, (_P, _U, _U, _S, _P, _L, _L, _Z)),
    ("publish_view", None, (_P, _U, _U, _U, _U, _S, _P, _L, _L, _Z)),
    ("publish_remote", None, (_P, _U, _U, _S, _L, _Z, _I, FETCH, _P)),
    ("publish_dump", _I, (_P, _S)),
    ("step_computed", None, (_P,)),
    ("skipped", None, (_P, ctypes.POINTER(_U), _Z)),
    ("cut_short", None, (_P, _S)),
    ("passes", _I, (_P,)),
    ("node_done", None, (_P, _U)),
    ("end_step", _I, (_P,)),
    ("finish", None, (_P,)),
    ("attached", _I, (_P,)),
    ("problem", _Z, (_P, _S, _Z)),
)


class LibraryProblem(Exception):
    """The library is not there, or is not the one of this package; the text says what to do."""


def candidates():
    """Where the library may be: MSDBG_AGENT_LIBRARY alone if it is set, else in the package, else
    by name."""
    named = os.environ.get("MSDBG_AGENT_LIBRARY")
    if named:
        return [named]
    return [os.path.join(_FOLDER, LIBRARY), LIBRARY]


def load(paths=None):
    """Returns the loaded library with typed functions `msdbg_agent_*`. Raises LibraryProblem."""
    problems = []
    for path in paths or candidates():
        try:
            library = ctypes.CDLL(path)
        except OSError as error:
            problems.append(str(error))
            continue
        for name, result, arguments in _FUNCTIONS:
            try:
                function = getattr(library, "msdbg_agent_" + name)
            except AttributeError:
                if name in _OPTIONAL:
                    continue
                raise LibraryProblem(
                    "%s has no function msdbg_agent_%s: it belongs to another release of "
                    "msdbg; install msdbg-agent again" % (path, name)
                ) from None
            function.restype, function.argtypes = result, list(arguments)
        return library
    raise LibraryProblem(
        "%s; install msdbg-agent, or set MSDBG_AGENT_LIBRARY to the path of %s"
        % ("; ".join(problems), LIBRARY)
    )


def text(value):
    """Text for the library: UTF-8 without NUL, whatever the program calls its things."""
    return str(value).replace("\0", "?").encode("utf-8", "backslashreplace")


_shapes = {}


def int64s(values):
    """A C array of `values`; the same one for equal values, because shapes recur."""
    values = tuple(values)
    found = _shapes.get(values)
    if found is None:
        if len(_shapes) > 4096:
            _shapes.clear()
        found = (ctypes.c_int64 * max(1, len(values)))(*values)
        _shapes[values] = found
    return found


def _elements(dtype, address, shape, strides):
    """Where they are, as a function takes it; no `strides`: row by row."""
    steps = None if strides is None else int64s(strides)
    return text(dtype), address, int64s(shape), steps, len(shape)


def _layout(dtype, shape):
    """How a function takes them; no `dtype`: as described."""
    return None if dtype is None else text(dtype), int64s(shape), len(shape)


def numbers(values):
    """A C array of the numbers of nodes."""
    return (_U * len(values))(*values)


def goes_on(problem, told):
    """The line that ends the conversation; `told` is the problem of which the program knows."""
    line = "the training goes on without the debugger"
    reason = problem.partition(": ")[2]  # behind what was tried, and where
    return line if reason and reason == told.partition(": ")[2] else "%s: %s" % (line, problem)


class Conversing:
    """A part of the agent that talks over a connection."""

    @property
    def off(self):
        """The conversation has ended."""
        return self.connection.over

    @off.setter
    def off(self, ended):
        self.connection.over = ended


class Connection:
    """One agent. `in_call` is true while the training waits inside begin_step, node_done or
    end_step."""

    def __init__(self, library, backend="GPU", at_once=True):
        """`backend`: "GPU" may hold behind every operator, "Ascend" at the end of a step alone. Not
        `at_once`: nothing begins before renew(), so that the program may fork."""
        self._library, self._backend, self._options = library, backend, {}
        self.in_call = False
        self.over = False  # the conversation has ended, whichever part of the agent ended it
        self.graphs = 0  # that were handed over
        self._numbers = set()
        self.can_read_dumps = hasattr(library, "msdbg_agent_publish_dump")
        self.handle = self._made() if at_once else None
        # Bound once: these are called for every operator.
        self._publish = library.msdbg_agent_publish
        self._publish_shaped = library.msdbg_agent_publish_shaped
        self._publish_view = library.msdbg_agent_publish_view
        self._done = library.msdbg_agent_node_done
        self._wants_node = library.msdbg_agent_wants_node
        self._wants = library.msdbg_agent_wants

    def _made(self):
        """A handle. The variables tell where msdbg is, and the rank."""
        library = self._library
        buffer = ctypes.create_string_buffer(512)
        handle = library.msdbg_agent_from_environment(buffer, len(buffer))
        if not handle:
            raise LibraryProblem(
                buffer.value.decode("utf-8", "replace") or "the agent cannot start"
            )
        if self._backend != "GPU":
            # The variables are right; the same again, for another kind of device.
            library.msdbg_agent_free(handle)
            variable = os.environ.get
            rank = variable("RANK_ID", "")
            handle = library.msdbg_agent_new(
                ctypes.byref(
                    _Options(
                        enabled=1,
                        host=text(variable("MS_DEBUGGER_HOST") or "127.0.0.1"),
                        port=int(variable("MS_DEBUGGER_PORT") or 0),
                        backend=text(self._backend),
                        has_rank=1 if rank.isdigit() else 0,
                        rank=int(rank) if rank.isdigit() else 0,
                    )
                )
            )
            if not handle:
                raise LibraryProblem("the agent cannot start: out of memory")
        return handle

    def renew(self):
        """Before the first step: reads the variables, again if it has before."""
        old, self.handle = self.handle, self._made()
        if old:
            self._library.msdbg_agent_free(old)
        for name, value in self._options.items():
            self.set_option(name, value)

    def set_option(self, name, value):
        self._options[name] = value
        if not self.handle:
            return True
        return self._library.msdbg_agent_set_option(self.handle, text(name), text(value)) == 0

    def begin_step(self, graph=0):
        self.in_call = True
        try:
            return self._library.msdbg_agent_begin_step(self.handle, graph)
        finally:
            self.in_call = False

    def end_step(self):
        self.in_call = True
        try:
            return self._library.msdbg_agent_end_step(self.handle)
        finally:
            self.in_call = False

    def step_computed(self):
        """The step has run: node_done() comes late from here on."""
        self.in_call = True
        try:
            self._library.msdbg_agent_step_computed(self.handle)
        finally:
            self.in_call = False

    def node_done(self, node):
        self.in_call = True
        try:
            self._done(self.handle, node)
        finally:
            self.in_call = False

    def wants(self):
        return self._wants(self.handle)

    def wants_node(self, node):
        return self._wants_node(self.handle, node)

    def passes(self):
        return self._library.msdbg_agent_passes(self.handle) != 0

    def wants_any(self, nodes):
        """`nodes`: as numbers() returns them."""
        return self._library.msdbg_agent_wants_any(self.handle, nodes, len(nodes)) != 0

    def skipped(self, nodes):
        """`nodes`: as numbers() returns them."""
        self._library.msdbg_agent_skipped(self.handle, nodes, len(nodes))

    def cut_short(self, step, why, traced):
        """The program leaves the open step in its midst."""
        why = why.rstrip(".")
        say("step %d was cut short: %s; the debugger sees what it has computed" % (step, why))
        if not traced:
            why = "%s; %s" % (why, _NOT_KEPT)
        self._library.msdbg_agent_cut_short(self.handle, text(why))

    def publish(self, node, slot, address, size, shape=None):
        """By reference: the memory stays as it is until end_step() returned. `shape`: as described
        if it is None."""
        if shape is None:
            self._publish(self.handle, node, slot, address, size)
        else:
            self._publish_shaped(self.handle, node, slot, address, size, int64s(shape), len(shape))

    def publish_copy(self, node, slot, dtype, address, shape, strides):
        return self._library.msdbg_agent_publish_copy(
            self.handle, node, slot, *_elements(dtype, address, shape, strides)
        )

    def publish_strided(self, node, slot, dtype, address, shape, strides):
        """By reference, as publish(), with a type of its own and strides in elements."""
        self._library.msdbg_agent_publish_strided(
            self.handle, node, slot, *_elements(dtype, address, shape, strides)
        )

    def publish_view(self, node, slot, of, dtype, address, shape, strides):
        """A value as in publish(), or publish_strided() if there are strides, whose elements are
        all among those of the published output `of` (node, slot), which has not changed since."""
        self._publish_view(self.handle, node, slot, *of, *_elements(dtype, address, shape, strides))

    def publish_remote(self, node, slot, dtype, shape, state, fetch, number):
        """`fetch` is a FETCH object, which the caller keeps until end_step() returned; `number`,
        not 0, is what it gets."""
        self._library.msdbg_agent_publish_remote(
            self.handle, node, slot, text(dtype), int64s(shape), len(shape), state, fetch, number
        )

    def publish_dump(self, directory):
        self.in_call = True
        try:
            return self._library.msdbg_agent_publish_dump(self.handle, os.fsencode(directory))
        finally:
            self.in_call = False

    def set_parameter(self, graph, name, dtype, shape, address):
        return (
            self._library.msdbg_agent_set_parameter(
                self.handle,
                graph,
                text(name),
                *_layout(dtype, shape),
                address,
            )
            == 0
        )

    def set_parameter_remote(self, graph, name, dtype, shape, state, fetch, number):
        """`state` and `fetch`: a STATE and a FETCH object, which the caller keeps; `number`, not 0,
        is what they get."""
        return (
            self._library.msdbg_agent_set_parameter_remote(
                self.handle,
                graph,
                text(name),
                *_layout(dtype, shape),
                state,
                fetch,
                number,
            )
            == 0
        )

    def send_graph(self, graph, replaced=None):
        """Hands a `Description` over, as a new graph or in place of number `replaced`. False: see
        problem()."""
        made, graph.handle = graph.handle, None
        if replaced is None:
            added = self._library.msdbg_agent_add_graph(self.handle, made) == 0
            self.graphs += 1 if added else 0
            return added
        return self._library.msdbg_agent_replace_graph(self.handle, replaced, made) == 0

    def finish(self):
        if self.handle:
            self._library.msdbg_agent_finish(self.handle)

    def attached(self):
        return bool(self.handle) and self._library.msdbg_agent_attached(self.handle) != 0

    def problem(self):
        if not self.handle or not self._library.msdbg_agent_problem(self.handle, None, 0):
            return ""
        buffer = ctypes.create_string_buffer(1024)
        self._library.msdbg_agent_problem(self.handle, buffer, len(buffer))
        return buffer.value.decode("utf-8", "replace")

    def free_number(self, wanted):
        """For a new graph: `wanted`, or the next one that no other graph has."""
        while wanted in self._numbers:
            wanted += 1
        self._numbers.add(wanted)
        return wanted

    def description(self, number):
        return Description(self._library, self._library.msdbg_agent_graph_new(number))

    def description_of_dump(self, number, directory, graphs):
        """Returns (Description, {graph of the framework: number of its first operator}), in the
        order of `graphs`, or (None, problem)."""
        buffer, made, first = ctypes.create_string_buffer(1024), None, {}
        for graph in graphs:
            place = os.fsencode(directory), graph, buffer, len(buffer)
            if made is None:
                handle = self._library.msdbg_agent_graph_from_dump(number, *place)
                made = Description(self._library, handle) if handle else None
                first[graph] = 0 if handle else -1
            else:
                first[graph] = self._library.msdbg_agent_graph_add_dump(made.handle, *place)
            if first[graph] < 0:
                return None, buffer.value.decode("utf-8", "replace")
        return made, first

    def abandon(self):
        """In a forked child: the conversation belongs to the parent, so nothing is called any more,
        nor freed."""
        self.handle = None


class Description:
    """A graph under construction; freed unless it was handed over."""

    def __init__(self, library, handle):
        self._library, self.handle = library, handle

    def __del__(self):
        if self.handle:
            self._library.msdbg_agent_graph_free(self.handle)

    def parameter(self, name, dtype, shape, address, weight=True):
        self._library.msdbg_agent_graph_parameter(
            self.handle,
            text(name),
            text(dtype),
            int64s(shape),
            len(shape),
            address,
            1 if weight else 0,
        )

    def node(self, name, kind):
        return self._library.msdbg_agent_graph_node(self.handle, text(name), text(kind))

    def input(self, node, name, slot):
        self._library.msdbg_agent_graph_input(self.handle, node, text(name), slot)

    def output(self, node, dtype, shape):
        self._library.msdbg_agent_graph_output(
            self.handle, node, text(dtype), int64s(shape), len(shape)
        )

    def attribute(self, node, name, value):
        self._library.msdbg_agent_graph_attribute(self.handle, node, text(name), text(value))

    def frame(self, node, file, line, code):
        self._library.msdbg_agent_graph_frame(self.handle, node, text(file), line, text(code))


def line_of(fault):
    """An exception in one line."""
    lines = str(fault).splitlines()
    # MindSpore draws lines of dashes.
    said = (line.strip() for line in lines if any(c.isalnum() for c in line))
    return "%s: %s" % (type(fault).__name__, next(said, ""))


def say(line):
    """One line for the user, on the standard error stream."""
    try:
        sys.stderr.write("msdbg_agent: %s\n" % line)
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        pass  # the stream is closed; the training matters more
