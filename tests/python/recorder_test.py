"""The recorder's graph and phases, against a library that logs calls."""

import contextlib
import io
import unittest

from fake_library import FakeLibrary
from msdbg_agent import _c
from msdbg_agent._left_out import LeftOut
from msdbg_agent._names import Node, Table, merged_order, usable_order
from msdbg_agent._recorder import REMOTE, Recorder, Terminated


def recorder(**answers):
    library = FakeLibrary(**answers)
    return Recorder(_c.Connection(library)), library


class Remote:
    """Notes which parameters it is asked to place."""

    def __init__(self):
        self.placed = []

    def place(self, connection, graph, name, known):
        self.placed.append((name, known.shape, known.keep))
        return True


def quiet():
    return contextlib.redirect_stderr(io.StringIO())


class Names(unittest.TestCase):
    def test_numbers_count_per_scope_and_kind_within_a_step(self):
        table = Table()
        first = [
            table.next("Default/a", "add", 0).name,
            table.next("Default/a", "add", 0).name,
            table.next("Default/b", "add", 0).name,
        ]
        self.assertEqual(first, ["Default/a/add-op0", "Default/a/add-op1", "Default/b/add-op0"])
        self.assertIs(table.next("Default/a", "add", 1), table.next("Default/a", "add", 2))

    def test_what_did_not_run_stays_behind_its_predecessor(self):
        self.assertEqual(merged_order(list("abcd"), list("axcd")), list("abxcd"))
        self.assertEqual(merged_order(list("abc"), list("xc")), list("abxc"))
        self.assertEqual(merged_order([], list("ab")), list("ab"))

    def test_a_node_comes_behind_what_it_reads(self):
        first, second = Node("first", "", ""), Node("second", "", "")
        first.inputs, second.inputs = [("second", 0)], [("weight", 0)]
        order, inputs = usable_order([first, second])
        self.assertEqual([node.name for node in order], ["second", "first"])
        self.assertEqual(inputs[first], [("second", 0)])

    def test_a_circle_is_cut(self):
        first, second = Node("first", "", ""), Node("second", "", "")
        first.inputs, second.inputs = [("second", 0)], [("first", 0)]
        order, inputs = usable_order([first, second])
        self.assertEqual(len(order), 2)
        self.assertEqual(sum(len(each) for each in inputs.values()), 1)

    def test_a_node_that_reads_itself_has_no_such_input(self):
        node = Node("state", "", "")
        node.inputs = [("state", 0)]
        self.assertEqual(usable_order([node])[1][node], [])

    def test_long_chains_need_no_deep_stack(self):
        nodes = [Node("n%d" % i, "", "") for i in range(20000)]
        for i, node in enumerate(nodes[:-1]):
            node.inputs = [("n%d" % (i + 1), 0)]
        self.assertEqual(usable_order(nodes)[0][0].name, "n19999")


class Phases(unittest.TestCase):
    def test_graphs_of_one_conversation_have_places_of_their_own(self):
        first, library = recorder()
        second = Recorder(first.connection)
        for each in (second, first, second):
            self.assertTrue(each.begin())
            each.node("Default/net", "mm").inputs = []
            self.assertTrue(each.describe())
            each.end()
        self.assertEqual(library.named("begin_step"), [(0,), (1,), (0,)])
        self.assertEqual([place for place, _ in library.named("replace_graph")], [0, 1])
        with quiet():
            first.give_up("over")
        self.assertTrue(second.off)
        self.assertFalse(second.begin())

    def test_the_first_step_has_parameters_alone(self):
        made, library = recorder()
        made.parameter("fc.weight", "float32", (2, 3), 4096)
        self.assertTrue(made.begin())
        self.assertEqual(
            library.names("graph_parameter", "add_graph", "begin_step"),
            ["graph_parameter", "add_graph", "begin_step"],
        )

    def test_a_step_is_quiet_if_it_passes_and_nothing_of_it_is_wanted(self):
        for passes, wanted, expected in ((1, 0, True), (1, 1, False), (0, 0, False)):
            made, library = recorder(passes=passes, wants_node=wanted)
            made.begin()
            made.node("Default/net", "mm").inputs = []
            made.describe()
            made.end()
            self.assertTrue(made.begin())
            self.assertEqual(made.quiet, expected)
            library.problem_text = b"no answer"
            with contextlib.redirect_stderr(io.StringIO()) as said:
                made.end()
            self.assertEqual("no answer" in said.getvalue(), not expected)  # another step tells it
        made, _ = recorder(passes=1, wants_node=0)
        made.begin()
        with quiet():
            made.cut_short("an exception", False)
        self.assertFalse(made.quiet)

    def test_inputs_are_let_go(self):
        made, library = recorder()
        kept = object()
        made.parameter("data.input", "float32", (2,), 4096, False, kept)
        made.parameter("fc.weight", "float32", (2,), 8192)
        made.begin()
        made.forget_inputs()
        self.assertIsNone(made.parameters["data.input"].keep)
        self.assertEqual([place for *_, place in library.named("set_parameter")], [None])

    def test_an_update_that_a_step_does_not_run_is_told(self):
        made, library = recorder()

        def step(*optimizers):
            made.begin()
            for name in ("net",) + optimizers:
                node = made.node("Default/" + name, "add_")
                node.inputs = [("fc.weight", 0)]
                node.updates = {("fc.weight", 0)} if name != "net" else ()
            made.describe()
            made.tell_skipped()
            made.end()
            return library.named("skipped")

        self.assertEqual(step("first"), [])
        self.assertEqual(len(step("second")), 1)  # without the first
        self.assertEqual(len(step("first", "second")), 1)
        self.assertEqual([list(numbers) for numbers, _ in step("second")], [[1], [1]])

    def test_new_names_are_described_when_the_step_ends_and_only_then(self):
        made, library = recorder()
        made.begin()
        made.node("Default/net", "mm").inputs = []
        self.assertEqual(library.named("replace_graph"), [])
        made.describe()
        made.end()
        self.assertEqual(library.names("replace_graph", "end_step"), ["replace_graph", "end_step"])
        self.assertEqual(library.graphs[-1], ["Default/net/mm-op0"])
        made.begin()
        made.node("Default/net", "mm")
        made.describe()
        made.end()
        self.assertEqual(len(library.named("replace_graph")), 1)

    def test_every_name_once_although_steps_differ(self):
        made, library = recorder()
        for kinds in (("a", "b"), ("a", "x", "b"), ("x",), ("b", "c")):
            made.begin()
            for kind in kinds:
                made.node("s", kind).inputs = []
            made.describe()
            made.end()
        names = library.graphs[-1]
        self.assertEqual(sorted(names), sorted(set(names)))
        self.assertEqual(set(names), {"s/%s-op0" % kind for kind in "abcx"})

    def test_parameters_elsewhere_are_placed_behind_their_description(self):
        made, library = recorder()
        made.remote = Remote()
        made.parameter("w", "float32", (2,), REMOTE, True, "first", None, 1)
        made.parameter("b", "float32", (2,), 4096)
        made.begin()
        self.assertEqual(made.remote.placed, [("w", (2,), "first")])
        self.assertIsNone(library.named("graph_parameter")[0][4])
        made.parameter("w", "float32", (2,), REMOTE, True, "second", None, 2)
        self.assertEqual(len(made.remote.placed), 1)  # it asks for what is kept
        made.parameter("w", "float32", (3,), REMOTE, True, "second", None, 2)
        self.assertEqual(made.remote.placed[1:], [("w", (3,), "second")])
        made.parameter("w", "float32", (3,), 8192, True, "third")
        made.parameter("w", "float32", (3,), None, True, None, None, 8192)
        self.assertEqual([each[-1] for each in library.named("set_parameter")], [8192, None])
        self.assertIsNone(made.parameters["w"].pointer)

    def test_a_parameter_that_moved_is_told_once(self):
        made, library = recorder()
        made.parameter("w", "float32", (2,), 4096)
        made.begin()
        made.end()
        for _ in range(3):
            made.parameter("w", "float32", (2,), 8192)
        self.assertEqual(len(library.named("set_parameter")), 1)

    def test_parameters_of_a_network_that_is_gone_have_no_value(self):
        made, library = recorder()
        for name in ("0.weight", "10.weight", "moments.exp_avg.0.weight"):
            made.parameter(name, "float32", (2,), 4096, keep=name)
        made.begin()
        made.release(["0.weight"])
        left = [name for name, each in made.parameters.items() if each.keep]
        self.assertEqual(left, ["10.weight"])
        self.assertEqual(len(library.named("set_parameter")), 2)

    def test_an_output_that_an_operator_does_not_have_is_no_input(self):
        made, library = recorder()
        made.begin()
        first, second = made.node("s", "a"), made.node("s", "b")
        first.inputs, first.outputs = [], [("float32", ())]
        second.inputs = [(first.name, 0), (first.name, 1)]
        made.describe()
        self.assertEqual(len(library.named("graph_input")), 1)

    def test_terminate_raises_and_says_goodbye(self):
        made, library = recorder(end_step=_c.STOP)
        made.begin()
        with quiet(), self.assertRaises(Terminated):
            made.end()
        self.assertEqual(library.names("finish"), ["finish"])
        self.assertFalse(made.begin())

    def test_a_debugger_that_is_gone_lets_the_training_go_on(self):
        made, library = recorder(end_step=_c.STOP)
        made.begin()
        library.problem_text = b"the debugger does not answer"
        with quiet():
            made.end()
        self.assertTrue(made.off)
        self.assertFalse(made.begin())
        self.assertEqual(len(library.named("begin_step")), 1)

    def test_a_reason_is_told_once(self):
        library = None

        def end(*_):
            library.problem_text = b"waiting at 127.0.0.1:1: refused"
            return _c.STOP

        def finish(*_):
            library.problem_text = b"farewell at 127.0.0.1:1: refused"

        made, library = recorder(end_step=end, finish=finish)
        library.problem_text = b"handshake at 127.0.0.1:1: refused"
        with contextlib.redirect_stderr(io.StringIO()) as said:
            made.begin()
            made.end()
        lines = ["handshake at 127.0.0.1:1: refused", "the training goes on without the debugger"]
        self.assertEqual(said.getvalue().splitlines(), ["msdbg_agent: " + line for line in lines])

    def test_a_refused_graph_ends_the_conversation_not_the_training(self):
        made, library = recorder(add_graph=1)
        library.problem_text = b"a name twice"
        with quiet():
            self.assertFalse(made.begin())
        self.assertEqual(library.named("begin_step"), [])

    def test_the_history_of_the_loss_alone_traces_nothing(self):
        watched = {"Default/_loss_fn-L/nll_loss_forward-op0", "Default/net/log_softmax-op0"}
        made, library = recorder(wants=_c.WANTS_SOME)
        library.answers["wants_node"] = lambda _, node: library.graphs[-1][node] in watched
        made.begin()
        made.node("Default/net", "mm").inputs = []
        soft = made.node("Default/net", "log_softmax")
        soft.inputs, soft.outputs = [("Default/net/mm-op0", 0)], [("float32", (8, 10))]
        loss = made.node("Default/_loss_fn-L", "nll_loss_forward")
        loss.inputs, loss.outputs = [(soft.name, 0)], [("float32", ())]
        made.describe()
        made.end()
        self.assertFalse(made.wants_traced())
        watched.add("Default/net/mm-op0")
        self.assertTrue(made.wants_traced())


class Iterations(unittest.TestCase):
    def test_what_tells_an_update_that_is_left_out(self):
        """`S`: an update ends the step. `-`: gradients are taken back in the midst of one."""
        for told, expected in (
            ("SS-S", [True]),
            ("S-SS-", [False, False]),  # too early, and then it is usual
            ("SSS--S-", [True] * 3),
            ("SS-S-S-S-S-S", [True] * 3 + [False] * 2),  # a second pass in each iteration
        ):
            left_out, found = LeftOut(), []
            left_out.begin()
            for each in told:
                if each == "-":
                    found.append(left_out.taken_back())
                else:
                    left_out.update_begins()
                    left_out.update_ended()
                if each == "S" or found[-1]:
                    left_out.begin()
            self.assertEqual(found, expected, told)

    def test_a_network_that_is_called_between_steps(self):
        """`c`: gradients are taken back between steps; `b`: a step begins."""
        for told, expected in (
            ("cbScbSb-ScbScb-bS", [False, True]),
            ("cbSbSb-b", [True]),  # here they are not taken back before each step
        ):
            left_out, found = LeftOut(), []
            for each in told:
                if each == "-":
                    found.append(left_out.taken_back())
                elif each == "S":
                    left_out.update_begins()
                    left_out.update_ended()
                else:
                    (left_out.begin if each == "b" else left_out.cleared)()
            self.assertEqual(found, expected, told)


if __name__ == "__main__":
    unittest.main()
