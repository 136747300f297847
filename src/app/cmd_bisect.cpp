// msdbg bisect: the first step in which something holds.
#include "app/follow_command.h"
#include "app/progress.h"

namespace msdbg::app {
namespace {

struct Words {
  std::string dump, target, when = "nan or inf";
  int graph = -1;
};

int run(const Words& words, Options options) {
  options.dump = words.dump;
  const auto predicate = parse_predicate(words.when);
  if (!predicate) return report_failure(predicate.status());
  int status = kExitClean;
  const auto session = open_session(options, &status);
  if (session == nullptr) return status;
  const auto target = follow_target(*session, words.target, options.ranks, words.graph < 0 ? std::nullopt : std::optional(words.graph));
  if (!target) return report_failure(target.status());
  Result<BisectResult> result = Status(Code::kInternal, "");
  {
    FollowOptions follow = follow_options(options);
    Progress progress(options, "bisecting", "step");
    follow.progress = progress.callback();
    result = bisect(*session, *target, *predicate, follow);
  }
  if (!result) return report_failure(result.status());
  if (const Status written = write_result(options, bisect_report(*session, *result, style_for(options))); !written.ok())
    return report_failure(written);
  if (result->interrupted) return kExitInterrupted;
  bool judged = false;
  for (const BisectRank& rank : result->ranks) {
    if (rank.first) return kExitFindings;
    for (const BisectProbe& probe : rank.probes) judged = judged || probe.state == Known::kSound;
  }
  if (!judged) return kExitInput;  // nothing was decided: that is not "nowhere"
  return is_damaged(*session) ? kExitInput : kExitClean;
}

}  // namespace

Action declare_bisect(CLI::App& app) {
  auto words = std::make_shared<Words>();
  app.add_option("DUMP", words->dump, "dump directory")->required();
  app.add_option("TENSOR", words->target, "NODE, NODE:1, NODE:input:0, or a selector: any of its tensors")->required();
  app.add_option("--when", words->when, "what to look for: 'nan or inf', nan, inf, a condition or an expression")
      ->capture_default_str()
      ->type_name("COND");
  app.add_option("--graph", words->graph, "graph id where several have the node")->type_name("N")->check(CLI::Range(0, 1000000000));
  return [words](const Options& options) { return run(*words, options); };
}

}  // namespace msdbg::app
