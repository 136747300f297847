// msdbg repro: one operator with its values and a program that runs it again (scripts/msdbg/repro.lua).
#include <fmt/format.h>

#include "app/follow_command.h"

namespace msdbg::app {
namespace {

struct ReproWords {
  std::string node, directory;
  std::optional<int64_t> step;
  std::optional<int> rank;
  uint32_t execution = 0;
};

Result<int> run_repro(const ReproWords& words, Context& context) {
  const auto opened = context.session();
  if (!opened) return opened.status();
  const std::optional<int> rank = words.rank ? words.rank : context.current_rank();
  const auto ref = find_node((*opened)->graphs(), words.node, rank, context.options().graph);
  if (!ref) return ref.status();
  const Graph& graph = *ref->graph;
  std::optional<int64_t> step = words.step ? words.step : context.current_step();
  if (!step) {
    const std::vector<int64_t> steps = (*opened)->steps(graph.rank(), graph.id());
    if (steps.empty()) return Status(Code::kNotFound, fmt::format("repro: no step of the graph of {} was dumped", printable(words.node)));
    step = steps.front();
  }
  const auto script = context.script();
  if (!script) return script.status();
  const auto answer = (*script)->call(
      "msdbg.repro", "main",
      {"name=" + graph.node(ref->node).name, "directory=" + words.directory, fmt::format("step={}", *step),
       fmt::format("rank={}", graph.rank()), fmt::format("graph={}", graph.id()), fmt::format("execution={}", words.execution)});
  if (!answer) return answer.status();
  if (const Status written = context.write(answer->text); !written.ok()) return written;
  return answer->exit_status;
}

Action declare_repro(const Declaration& to) {
  auto words = std::make_shared<ReproWords>();
  to.app.add_option("NODE", words->node, "the operator; the end of its name is enough")->required();
  to.app.add_option("-o,--output", words->directory, "directory to make")->type_name("DIR")->required();
  const bool here = to.place == Place::kPrompt;
  to.app.add_option("--step", words->step, here ? "default: the current one" : "default: the first with data of its graph")
      ->type_name("STEP");
  add_rank(to, &words->rank);
  add_graph(to);
  to.app.add_option("--execution", words->execution, "which run within the step (loop bodies)")->type_name("N");
  return [words](Context& context) { return run_repro(*words, context); };
}

}  // namespace

CommandEntry repro_command() {
  return {.name = "repro",
          .group = kResultGroup,
          .summary = "one operator to run again: its values and a program",
          .details = "Writes inputs, outputs and attributes, and repro.py, which computes the outputs again\n"
                     "with NumPy or with the framework and compares. Status 4 when an input was not dumped.",
          .examples = {{"Log-op0 -o log"}, {"fc1-Dense/MatMul-op0 --step 1 -o matmul"}},
          .declare = declare_repro,
          .formats = "",
          .complete = "node"};
}

}  // namespace msdbg::app
