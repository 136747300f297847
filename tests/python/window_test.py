"""The directory in memory for MindSpore's dumps."""

import contextlib
import os
import subprocess
import sys
import tempfile
import unittest

from msdbg_agent.mindspore_agent import window
from msdbg_agent.mindspore_agent.graph_file import GraphFile


class Leftovers(unittest.TestCase):
    def test_only_dead_owners_lose_their_directory(self):
        ended = subprocess.Popen([sys.executable, "-c", ""])
        ended.wait()
        with tempfile.TemporaryDirectory() as root:
            names = [
                "msdbg-agent-%d-aa" % ended.pid,
                "msdbg-agent-%d-bb" % os.getpid(),
                "msdbg-agent-x",
                "other-1-a",
            ]
            for name in names:
                os.mkdir(os.path.join(root, name))
            window.remove_leftovers(root)
            self.assertEqual(sorted(os.listdir(root)), sorted(names[1:]))

    def test_read_only_directories_are_removed(self):
        with tempfile.TemporaryDirectory() as root:
            place = os.path.join(root, "rank_0", "Net")
            os.makedirs(place)
            with open(os.path.join(place, "a.npy"), "wb") as file:
                file.write(b"x")
            os.chmod(os.path.join(place, "a.npy"), 0o400)
            os.chmod(place, 0o500)
            window._remove(os.path.join(root, "rank_0"))
            self.assertEqual(os.listdir(root), [])


def field(number, value):
    """One field of a protobuf message; short ones alone."""
    if isinstance(value, int):
        return bytes([number << 3, value])
    data = value.encode() if isinstance(value, str) else value
    return bytes([number << 3 | 2, len(data)]) + data


def graph(parameters, constants, operators, returned):
    text = b"".join(
        field(
            1,
            b"".join(field(1, field(1, each)) for each in inputs)
            + field(2, key)
            + field(3, kind)
            + field(8, name),
        )
        for key, kind, name, inputs in operators
    )
    text += b"".join(field(3, field(1, each)) for each in parameters) + field(4, field(1, returned))
    for key, number in constants.items():
        text += field(5, field(1, key) + field(2, field(3, number)))
    # Longer than a short field.
    return bytes([4 << 3 | 2, len(text) & 127 | 128, len(text) >> 7]) + text


class Graphs(unittest.TestCase):
    def setUp(self):
        operators = [
            ("1", "Load", "Load-op0", ["weight", "state"]),
            ("2", "BatchNorm", "BatchNorm-op0", ["x", "1"]),
            ("3", "TupleGetItem", "TupleGetItem-op0", ["2", "two"]),
            ("4", "Assign", "Assign-op0", ["moment", "3", "state"]),
            ("5", "MakeTuple", "MakeTuple-op0", ["3", "4", "3"]),
            ("6", "MakeTuple", "MakeTuple-op1", ["x", "5"]),
            ("7", "Depend", "Depend-op0", ["6", "state"]),
        ]
        self.graph = GraphFile(data=graph(["x", "weight", "moment"], {"two": 2}, operators, "7"))

    def test_what_an_operator_reads_has_slots(self):
        norm, assign = self.graph.operators[1], self.graph.operators[3]
        self.assertEqual(self.graph.sources(norm), [("x", 0), ("weight", 0)])
        self.assertEqual(self.graph.sources(assign)[:2], [("moment", 0), (norm, 2)])

    def test_what_is_returned_is_flat(self):
        norm, assign = self.graph.operators[1], self.graph.operators[3]
        self.assertEqual(self.graph.returned(), [("x", 0), (norm, 2), (assign, 0), (norm, 2)])

    def test_what_is_read_through_a_load_is_not_changed(self):
        self.assertEqual(self.graph.changed({"weight", "moment"}), {"moment"})


@contextlib.contextmanager
def made_window(moved=None):
    """A window whose framework notes in `moved` where it is; the environment is as it was behind it."""

    class Probe:
        set_window = staticmethod((moved if moved is not None else []).append)

    before = os.environ.pop("MINDSPORE_DUMP_CONFIG", None)
    made = window.Window(Probe, True)
    try:
        yield made
    finally:
        made.close()
        left = os.environ.get("MINDSPORE_DUMP_CONFIG")
        if before is not None:
            os.environ["MINDSPORE_DUMP_CONFIG"] = before
    assert left is None, left


class Opened(unittest.TestCase):
    def test_is_left_after_an_exception(self):
        moved = []
        with made_window(moved) as made:
            self.assertTrue(made.usable, made.why)
            with self.assertRaises(KeyError), made.opened(7):
                raise KeyError
            self.assertEqual(moved, [window.FAR + 7, 0])
            root = made.root
            self.assertNotIn(".", root)
        self.assertFalse(os.path.exists(root))

    def test_a_rank_is_where_its_graphs_are(self):
        with made_window() as made:
            self.assertIsNone(made.rank_directory())
            # As MindSpore 2.10 does on rank 1.
            os.makedirs(os.path.join(made.root, "rank_0", ".dump_metadata"))
            self.assertEqual(os.path.basename(made.rank_directory()), "rank_0")
            graphs = os.path.join(made.root, "rank_1", "graphs")
            os.makedirs(graphs)
            with open(os.path.join(graphs, "ms_output_trace_code_graph_3.pb"), "wb") as file:
                file.write(b"graph")
            self.assertEqual(os.path.basename(made.rank_directory()), "rank_1")
            self.assertEqual(made.numbers(), {3})

    def test_graphs_come_in_the_order_in_which_they_ran(self):
        with made_window() as made:
            # Parameters are written when the step ends.
            for graph, operator, parameter in ((0, 100, 900), (1, 300, 901), (5, 200, 902)):
                place = os.path.join(made.root, "rank_0", "Net", str(graph), str(window.FAR + 2))
                os.makedirs(place)
                for kind, name, when in (
                    ("Add", "Default_Add-op0", operator),
                    ("Parameter", "w", parameter),
                ):
                    file = "%s.%s.0.0.%d.output.0.DefaultFormat.Float32.npy" % (kind, name, when)
                    open(os.path.join(place, file), "wb").close()
            self.assertEqual(list(made.iterations(2)), [0, 5, 1])
            self.assertEqual(made.iterations(3), {})

    def test_somebody_elses_dump_excludes_ours(self):
        class Probe:
            set_window = staticmethod(lambda _: None)

        os.environ["MINDSPORE_DUMP_CONFIG"] = "mine.json"
        try:
            made = window.Window(Probe, True)
            self.assertFalse(made.usable)
            self.assertIn("MINDSPORE_DUMP_CONFIG", made.why)
        finally:
            del os.environ["MINDSPORE_DUMP_CONFIG"]

    def test_that_of_a_launcher_does_not(self):
        """msrun imports MindSpore, and the ranks that it starts inherit its environment."""

        class Probe:
            set_window = staticmethod(lambda _: None)

        before = os.environ.pop("MINDSPORE_DUMP_CONFIG", None)
        launcher = window.Window(Probe, True)
        inherited = os.environ["MINDSPORE_DUMP_CONFIG"]
        rank = window.Window(Probe, True)
        try:
            self.assertTrue(rank.usable, rank.why)
            self.assertNotEqual(rank.root, launcher.root)
            self.assertNotEqual(os.environ["MINDSPORE_DUMP_CONFIG"], inherited)
        finally:
            rank.close()
            launcher.close()
            os.environ.pop("MINDSPORE_DUMP_CONFIG", None)
            if before is not None:
                os.environ["MINDSPORE_DUMP_CONFIG"] = before


if __name__ == "__main__":
    unittest.main()
