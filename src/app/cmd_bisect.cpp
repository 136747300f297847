// msdbg bisect: the first step in which a condition holds.
#include "app/follow_command.h"

namespace msdbg::app {
namespace {

struct BisectWords {
  std::string target, when = "nan or inf";
};

Result<int> run_bisect(const BisectWords& words, Context& context) {
  const Options& options = context.options();
  const auto predicate = parse_predicate(words.when);
  if (!predicate) return predicate.status();
  const auto opened = context.session();
  if (!opened) return opened.status();
  Session& session = **opened;
  const auto target = follow_target(session, words.target, options.ranks, options.graph);
  if (!target) return target.status();
  Result<BisectResult> result = Status(Code::kInternal, "");
  {
    FollowOptions follow = follow_options(options);
    Progress progress(options, "bisecting", "step");
    follow.progress = progress.callback();
    result = bisect(session, *target, *predicate, follow);
  }
  if (!result) return result.status();
  if (const Status written = context.write(bisect_report(session, *result, context.style())); !written.ok()) return written;
  if (result->interrupted) return kExitInterrupted;
  bool judged = false;
  for (const BisectRank& rank : result->ranks) {
    if (rank.first) return kExitFindings;
    for (const BisectProbe& probe : rank.probes) judged = judged || probe.state == InputState::kGood;
  }
  if (!judged) return kExitInput;  // undecided is not "nowhere"
  return is_damaged(session) ? kExitInput : kExitClean;
}

Action declare_bisect(const Declaration& to) {
  auto words = std::make_shared<BisectWords>();
  add_selector(to.app, &words->target, "TENSOR", "NODE, NODE:1, NODE:input:0, or a selector: any of its tensors");
  to.app.get_option("TENSOR")->required();
  to.app.add_option("--when", words->when, "what to look for: 'nan or inf', nan, inf, a condition or an expression")
      ->capture_default_str()
      ->type_name("COND");
  add_graph(to);
  return [words](Context& context) { return run_bisect(*words, context); };
}

}  // namespace

CommandEntry bisect_command() {
  return {.name = "bisect",
          .group = kFollowGroup,
          .summary = "the first step in which a condition holds, by binary search",
          .details = "Of 1000 steps 11 are read at most. Ends with status 1 when there is such a step.",
          .examples = {{"conv1.weight", "since when NaN or Inf"}, {"@weight --when 'TL abs_mean_gt=1'", "any of them"},
                       {"@gradient --when 'max(abs(x)) > 100' --steps 0:50"}},
          .declare = declare_bisect,
          .steps = StepsWord::kAll,
          .selectors = true,
          .complete = "tensor"};
}

}  // namespace msdbg::app
