// msdbg why: why a tensor has no value.
#include <fmt/format.h>

#include "app/follow_command.h"

namespace msdbg::app {
namespace {

struct WhyWords {
  std::string tensor;
  std::optional<int64_t> step;
  std::optional<int> rank;
  uint32_t execution = 0;
};

Result<int> run_why(const WhyWords& words, Context& context) {
  const Options& options = context.options();
  const auto opened = context.session();
  if (!opened) return opened.status();
  Session& session = **opened;
  WhyOptions asked;
  asked.step = words.step ? words.step : context.current_step();
  asked.rank = words.rank ? words.rank : context.current_rank();
  asked.graph = options.graph;
  asked.execution = words.execution;
  asked.mem_limit_bytes = options.mem_limit_mb << 20;
  const auto answer = why(session, words.tensor, asked);
  if (!answer) return answer.status();
  if (const Status written = context.write(why_report(session, *answer, context.style())); !written.ok()) return written;
  if (answer->kind == WhyKind::kNeverExisted) return kExitInput;  // a wrong name, not a missing value
  return answer->kind == WhyKind::kHasValue ? kExitClean : kExitFindings;
}

Action declare_why(const Declaration& to) {
  auto words = std::make_shared<WhyWords>();
  to.app.add_option("TENSOR", words->tensor, "NODE, NODE:1, NODE:input:0; NODE may be the end of the name")->required();
  const bool here = to.place == Place::kPrompt;
  to.app.add_option("--step", words->step, here ? "default: the current one" : "default: the first with data of its graph")
      ->type_name("STEP");
  add_rank(to, &words->rank);
  add_graph(to);
  to.app.add_option("--execution", words->execution, "which run within the step (loop bodies)")->type_name("N");
  return [words](Context& context) { return run_why(*words, context); };
}

}  // namespace

CommandEntry why_command() {
  return {.name = "why",
          .group = kFollowGroup,
          .summary = "why a tensor has no value",
          .details = "Ends with status 1 when there is no value, 0 when there is one.",
          .examples = {{"conv1.weight --step 7"}, {"fc1-Dense/MatMul-op0", "fused, perhaps"}},
          .declare = declare_why,
          .complete = "tensor"};
}

}  // namespace msdbg::app
