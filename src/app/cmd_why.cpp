// msdbg why: why a tensor has no value.
#include <fmt/format.h>

#include "app/follow_command.h"

namespace msdbg::app {
namespace {

struct Words {
  std::string dump, tensor;
  std::optional<int64_t> step;
  int rank = -1, graph = -1;
  uint32_t execution = 0;
};

int run(const Words& words, Options options) {
  options.dump = words.dump;
  int status = kExitClean;
  const auto session = open_session(options, &status);
  if (session == nullptr) return status;
  WhyOptions asked;
  asked.step = words.step;
  if (words.rank >= 0) asked.rank = words.rank;
  if (words.graph >= 0) asked.graph = words.graph;
  asked.execution = words.execution;
  asked.mem_limit_bytes = options.mem_limit_mb << 20;
  const auto answer = why(*session, words.tensor, asked);
  if (!answer) return report_failure(answer.status());
  if (const Status written = write_result(options, why_report(*session, *answer, style_for(options))); !written.ok())
    return report_failure(written);
  if (answer->kind == WhyKind::kNeverExisted) return kExitInput;  // a name that is wrong, not a value that is missing
  return answer->kind == WhyKind::kHasValue ? kExitClean : kExitFindings;
}

}  // namespace

Action declare_why(CLI::App& app) {
  auto words = std::make_shared<Words>();
  app.add_option("DUMP", words->dump, "dump directory")->required();
  app.add_option("TENSOR", words->tensor, "NODE, NODE:1, NODE:input:0; NODE may be the end of the name")->required();
  app.add_option("--step", words->step, "default: the first with data of its graph")->type_name("STEP");
  app.add_option("--rank", words->rank, "default: the first that has the node")->type_name("RANK")->check(CLI::Range(0, 1000000000));
  app.add_option("--graph", words->graph, "graph id where several have the node")->type_name("N")->check(CLI::Range(0, 1000000000));
  app.add_option("--execution", words->execution, "which run within the step (loop bodies)")->type_name("N");
  return [words](const Options& options) { return run(*words, options); };
}

}  // namespace msdbg::app
