// msdbg trend: a statistic over the steps.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/follow_command.h"
#include "msdbg/answers.h"

namespace msdbg::app {
namespace {

struct TrendWords {
  std::string statistic, target = "@all";
  bool ascii = false;
};

Result<int> run_trend(const TrendWords& words, Context& context) {
  const Options& options = context.options();
  const auto opened = context.session();
  if (!opened) return opened.status();
  Session& session = **opened;
  const auto target = follow_target(session, words.target, options.ranks, options.graph);
  if (!target) return target.status();
  Result<TrendResult> result = Status(Code::kInternal, "");
  {
    FollowOptions follow = follow_options(options);
    Progress progress(options, "reading");
    follow.progress = progress.callback();
    result = trend(session, *target, words.statistic, follow);
  }
  if (!result) return result.status();
  if (context.at_prompt()) {
    AnswerRows list{"trend"};
    for (const TrendLine& line : result->lines) {
      Answer row = trend_entry_answer(session, *result, line);
      row.erase("points");  // a row is what the table shows
      list.rows.push_back(std::move(row));
    }
    context.list_rows(list);
  }
  const bool ascii = words.ascii || (options.output_file.empty() && plain_terminal());
  if (const Status written = context.write(trend_report(session, *result, context.style(), ascii)); !written.ok()) return written;
  if (result->interrupted) return kExitInterrupted;
  return session.info().kind == SessionKind::kCheckpoint && is_damaged(session) ? kExitInput : kExitClean;
}

Action declare_trend(const Declaration& to) {
  auto words = std::make_shared<TrendWords>();
  to.app.add_option("STATISTIC", words->statistic, fmt::format("{}", fmt::join(statistic_names(), ", ")))->required();
  add_selector(to.app, &words->target, "SEL", "selector, or one tensor; default: every node");
  add_graph(to);
  to.app.add_flag("--ascii", words->ascii, "sparklines of plain characters");
  to.app.add_flag("--wide", to.options.wide, "full names");
  return [words](Context& context) { return run_trend(*words, context); };
}

}  // namespace

CommandEntry trend_command() {
  return {.name = "trend",
          .group = kFollowGroup,
          .summary = "a statistic over the steps, with change points",
          .examples = {{"abs_mean @gradient"}, {"l2_norm fc1.weight --steps 0:50"}, {"zero_percentage op:ReLU --format csv -o zeros.csv"}},
          .declare = declare_trend,
          .steps = StepsWord::kAll,
          .formats = "table, json, jsonl, csv or markdown",
          .last_format = Format::kMarkdown,
          .selectors = true,
          .complete = "trend"};
}

}  // namespace msdbg::app
