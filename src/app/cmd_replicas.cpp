// msdbg replicas: values that ranks must share, and the rank that differs.
#include <fmt/format.h>

#include "app/follow_command.h"
#include "msdbg/replicas_report.h"

namespace msdbg::app {
namespace {

Result<int> run_replicas(Context& context) {
  const Options& options = context.options();
  const auto opened = context.session();
  if (!opened) return opened.status();
  Session& session = **opened;
  FollowOptions asked = follow_options(options);
  Result<ReplicasResult> result = Status(Code::kInternal, "");
  {
    Progress progress(options, "comparing");
    asked.progress = progress.callback();
    result = replicas(session, asked);
  }
  if (!result) return result.status();
  if (const Status written = context.write(replicas_report(session, *result, context.style())); !written.ok()) return written;
  if (result->interrupted) return kExitInterrupted;
  if (!result->differences.empty()) return kExitFindings;
  if (!result->nothing.empty() || (options.strict && !result->not_checked.empty())) return kExitIncomplete;
  return is_damaged(session) ? kExitInput : kExitClean;
}

Action declare_replicas(const Declaration& to) {
  to.options.asks_at_once = true;
  to.app.add_flag("--strict", to.options.strict, "status 4 when a rank lacks a value that others have");
  to.app.add_flag("--wide", to.options.wide, "full names, all elements and values");
  return run_replicas;
}

}  // namespace

CommandEntry replicas_command() {
  return {.name = "replicas",
          .group = kWrongGroup,
          .summary = "do all ranks hold the same weights, bit for bit",
          .details = "Weights, optimizer states, outputs of AllReduce and what is computed from them; docs/ranks.md.",
          .examples = {{""}, {"--steps 0:10 --ranks 0:3"}, {"--format json -o replicas.json"}},
          .declare = declare_replicas,
          .steps = StepsWord::kAll,
          .formats = "table, json, jsonl, csv or markdown",
          .last_format = Format::kMarkdown,
          .every_rank = true};
}

}  // namespace msdbg::app
