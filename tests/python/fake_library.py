"""A stand-in for libmsdbg-agent.so that logs what it is asked to do. No compiled code is needed."""


class FakeLibrary:
    """Functions msdbg_agent_*. `calls` holds (name, arguments without the handle); `answers` what
    functions return."""

    def __init__(self, **answers):
        self.calls = []
        self.answers = {"from_environment": 1, "wants": 2, "wants_node": 1, "graph_new": 100}
        self.answers.update(answers)
        self.graphs = []  # the nodes of each graph, in order of their making
        self.problem_text = b""

    def __getattr__(self, name):
        if not name.startswith("msdbg_agent_"):
            raise AttributeError(name)
        short = name[len("msdbg_agent_") :]

        def call(*arguments):
            return self._call(short, arguments)

        return call

    def _call(self, name, arguments):
        if name == "problem":
            if arguments[1] is not None:
                arguments[1].value = self.problem_text
            return len(self.problem_text)
        self.calls.append((name, arguments[1:]))
        if name == "graph_new":
            self.graphs.append([])
        if name == "graph_node":
            self.graphs[-1].append(arguments[1].decode())
            return len(self.graphs[-1]) - 1
        if name == "wants_any":
            wants_node = self.answers["wants_node"]
            nodes = arguments[1]
            return any(
                wants_node(arguments[0], node) if callable(wants_node) else wants_node
                for node in nodes
            )
        answer = self.answers.get(name, 0)
        return answer(*arguments) if callable(answer) else answer

    def named(self, name):
        """The arguments of each call of this function."""
        return [arguments for called, arguments in self.calls if called == name]

    def names(self, *wanted):
        """The names of the calls in order; of `wanted` alone if given."""
        return [name for name, _ in self.calls if not wanted or name in wanted]
