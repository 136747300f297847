"""MindSpore's own dump as a window into one run of a graph: files in memory, switched on and off
from call to call.

The framework reads its dump configuration once, when the first network starts. Ours names
iterations that are far away, so that nothing is dumped; `opened()` moves the counter there for one
call.
"""

import contextlib
import json
import multiprocessing
import os
import shutil
import tempfile

from .. import _c
from .graph_file import GraphFile

FAR = 1000000000
_PREFIX = "msdbg-agent-"
_MEMORY = "/dev/shm"
# On the CPU, these update the parameters and never write to their outputs, which hold what another
# operator left there.
UNWRITTEN = ("Adam", "AdamWeightDecay", "ApplyRMSProp", "ApplyCenteredRMSProp")


def remove_leftovers(root=_MEMORY):
    """Removes the directories of processes that were killed."""
    try:
        names = os.listdir(root)
    except OSError:
        return
    for name in names:
        number = name[len(_PREFIX) :].partition("-")[0]
        if not name.startswith(_PREFIX) or not number.isdigit():
            continue
        try:
            os.kill(int(number), 0)
        except ProcessLookupError:
            shutil.rmtree(os.path.join(root, name), ignore_errors=True)
        except OSError:
            pass  # it lives, and belongs to somebody else


def _of_a_launcher(config):
    """Whether the configuration is that of the agent in the process that started this one, such as
    msrun, and not in the training whose data this one prepares."""
    ours = os.path.basename(os.path.dirname(config)).startswith(_PREFIX)
    worker = getattr(multiprocessing.current_process(), "_inheriting", False)
    return ours and not worker and multiprocessing.parent_process() is None


class Window:
    """`usable` is false if the framework cannot dump for us; `why` says so in one line."""

    def __init__(self, probe, readable):
        self._set = probe.set_window
        self.root, self._owner, self.why = None, os.getpid(), ""
        if self._set is None or not readable:
            self.why = "operators are not seen: %s" % (
                "this release of MindSpore lacks _set_init_iter"
                if self._set is None
                else "the library reads no dumps"
            )
            return
        config = os.environ.get("MINDSPORE_DUMP_CONFIG")
        if config and not _of_a_launcher(config):
            self.why = (
                "MINDSPORE_DUMP_CONFIG is set, so MindSpore dumps for you and not for the debugger: operators "
                "are not seen; unset it to see them"
            )
            return
        remove_leftovers()
        memory = _MEMORY if os.access(_MEMORY, os.W_OK) else tempfile.gettempdir()
        # Neither dots nor blanks are allowed in the path.
        root = os.path.join(memory, "%s%d-%s" % (_PREFIX, self._owner, os.urandom(4).hex()))
        try:
            os.mkdir(root, 0o700)
            config = os.path.join(root, "config.json")
            with open(config, "w", encoding="utf-8") as file:
                json.dump(_configuration(root), file)
        except OSError as problem:
            self.why = "operators are not seen: %s" % problem
            return
        self.root = root
        os.environ["MINDSPORE_DUMP_CONFIG"] = config

    @property
    def usable(self):
        return self.root is not None

    def rank_directory(self):
        """Where the framework writes, or None as long as it has not."""
        if not self.usable:
            return None
        places = sorted(
            os.path.join(self.root, name)
            for name in os.listdir(self.root)
            if name.startswith("rank_")
        )
        # Each rank writes its metadata as rank 0, before it knows its number.
        written = [place for place in places if os.path.isdir(os.path.join(place, "graphs"))]
        return (written or places or [None])[0]

    def numbers(self):
        """Of the graphs that this process has compiled so far; asked for each call of a compiled
        function."""
        rank = self.rank_directory()
        directory = os.path.join(rank, "graphs") if rank else ""
        found = set()
        for name in os.listdir(directory) if os.path.isdir(directory) else ():
            number = name[: -len(".pb")].rpartition("_")[2]
            if (
                name.startswith("ms_output_trace_code_graph_")
                and name.endswith(".pb")
                and number.isdigit()
            ):
                found.add(int(number))
        return found

    def order(self, graph):
        """The operators of a graph, in execution order."""
        path = os.path.join(
            self.rank_directory() or "",
            "execution_order",
            "ms_execution_order_graph_%d.csv" % graph,
        )
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                return [line.partition(",")[0].strip() for line in file if "/" in line]
        except OSError:
            return []

    def parameters(self, graph):
        """What a graph reads from outside; empty if that cannot be told."""
        name = "ms_output_trace_code_graph_%d.pb" % graph
        try:
            return set(GraphFile(os.path.join(self.rank_directory(), "graphs", name)).parameters)
        except (OSError, ValueError, IndexError, TypeError):
            return set()

    @contextlib.contextmanager
    def opened(self, step):
        """What runs inside is dumped as iteration FAR + step."""
        self.enter(step)
        try:
            yield
        finally:
            self.leave()

    def enter(self, step):
        self._set(FAR + step)

    def leave(self):
        self._set(0)

    def iterations(self, step):
        """{graph: the directory of that run}, in the order in which the graphs began."""
        rank, found = self.rank_directory(), []
        for place, names, _ in os.walk(rank or ""):
            if str(FAR + step) in names and os.path.basename(place).isdigit():
                directory = os.path.join(place, str(FAR + step))
                found.append((_began(directory), int(os.path.basename(place)), directory))
        return {number: directory for _, number, directory in sorted(found)}

    @staticmethod
    def remove_unwritten(directory):
        """Removes the files of outputs that no operator has written."""
        for name in os.listdir(directory):
            if name.partition(".")[0] in UNWRITTEN and ".output." in name:
                _remove_file(os.path.join(directory, name))

    def remove(self, step):
        for directory in self.iterations(step).values():
            _remove(directory)

    def close(self):
        """Frees the memory; only in the process that made it."""
        if self.root and os.getpid() == self._owner:
            _remove(self.root)
            if os.environ.get("MINDSPORE_DUMP_CONFIG", "").startswith(self.root):
                del os.environ["MINDSPORE_DUMP_CONFIG"]
        self.root = None


def _began(directory):
    """When the first operator wrote its value, as in the names of the files. Parameters are written
    when the step ends."""
    parts = [name.split(".") for name in os.listdir(directory)]
    return min((each[4] for each in parts if each[0] != "Parameter" and each[5:]), default="")


def _remove_file(path):
    try:
        os.unlink(path)
    except OSError:
        # The framework makes directories that nobody may write to.
        os.chmod(os.path.dirname(path), 0o700)
        os.unlink(path)


def _remove(directory):
    def again(function, path, _):
        # The framework makes directories that nobody may write to.
        try:
            os.chmod(os.path.dirname(path), 0o700)
            os.chmod(path, 0o700)
            function(path)
        except OSError as problem:
            _c.say("%s stays: %s" % (path, problem))

    shutil.rmtree(directory, onerror=again)


def _configuration(root):
    return {
        "common_dump_settings": {
            "op_debug_mode": 0,
            "dump_mode": 0,
            "path": root,
            "net_name": "Net",
            "iteration": "%d-%d" % (FAR, 4 * FAR),
            "saved_data": "tensor",
            "input_output": 2,
            "kernels": [],
            "support_device": list(range(8)),
        },
        "e2e_dump_settings": {"enable": True, "trans_flag": True},
    }
