// msdbg origin: the first tensor that broke.
#include "app/follow_command.h"
#include "msdbg/answers.h"
#include "msdbg/unfinished.h"

namespace msdbg::app {
namespace {

Result<int> run_origin(const std::string& when, Context& context) {
  const Options& options = context.options();
  auto predicate = parse_predicate(when);
  if (!predicate) return predicate.status();
  const auto opened = context.session();
  if (!opened) return opened.status();
  Session& session = **opened;

  OriginOptions origin_options;
  origin_options.predicate = std::move(*predicate);
  origin_options.steps = options.steps;
  origin_options.ranks = options.ranks;
  origin_options.semantics = options.semantics;
  origin_options.mem_limit_bytes = options.mem_limit_mb << 20;
  origin_options.threads = options.threads;
  Result<OriginResult> result = Status(Code::kInternal, "");
  {
    Progress progress(options, "checking");
    origin_options.progress = progress.callback();
    result = find_origins(session, origin_options);
  }
  if (!result) return result.status();
  if (context.at_prompt()) context.list_rows(AnswerRows{"origins", origin_answer(session, *result)["origins"]});
  if (const Status written = context.write(origin_report(session, *result, context.style())); !written.ok()) return written;
  if (result->interrupted) return kExitInterrupted;
  if (!result->steps.empty() || !result->overwritten.empty()) return kExitFindings;
  if (is_damaged(session)) return kExitInput;
  if (!options.strict) return kExitClean;
  const bool complete = result->not_checked.empty() && unfinished_steps(session, options.steps, options.ranks).empty();
  return complete ? kExitClean : kExitIncomplete;
}

Action declare_origin(const Declaration& to) {
  to.options.asks_at_once = true;
  auto when = std::make_shared<std::string>("nan or inf");
  to.app.add_option("--when", *when, "what counts as bad: 'nan or inf', nan, inf, or a condition")
      ->capture_default_str()
      ->type_name("COND");
  to.app.add_flag("--strict", to.options.strict, "status 4 if anything was not checked");
  to.app.add_flag("--wide", to.options.wide, "full names");
  return [when](Context& context) { return run_origin(*when, context); };
}

}  // namespace

CommandEntry origin_command() {
  return {.name = "origin",
          .group = kWrongGroup,
          .summary = "the first tensor that broke, its source line, its spread",
          .examples = {{""}, {"--steps 4 --when inf"}, {"--when 'TL max_gt=1e6' --format json"}},
          .declare = declare_origin,
          .steps = StepsWord::kAllHeld};
}

}  // namespace msdbg::app
