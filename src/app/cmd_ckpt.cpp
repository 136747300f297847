// msdbg ckpt show, diff, match: checkpoints.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "app/command.h"
#include "app/output.h"
#include "app/progress.h"
#include "app/run.h"
#include "app/scripting.h"
#include "msdbg/checkpoint_report.h"

namespace msdbg::app {
namespace {

struct Words {
  std::string first, second;  // files, or a dump and a file
  std::string selector;
  bool by_content = true, wide = false, strict = false;
  int (*verb)(const Words&, const Options&) = nullptr;
};

Result<std::optional<Selector>> selector_of(const Words& words) {
  if (words.selector.empty()) return std::optional<Selector>();
  auto selector = Selector::parse(words.selector);
  if (!selector) return selector.status();
  return std::optional<Selector>(std::move(*selector));
}

/// Problems of a file that is compared are said on standard error, since the result has no room for them.
void tell_problems(const Options& options, const Checkpoint& checkpoint) {
  for (const Problem& problem : checkpoint.facts().problems) {
    if (problem.severity != Severity::kInfo) note(options, fmt::format("{}: {}", printable(problem.path), printable(problem.message)));
  }
}

int show(const Words& words, const Options& options) {
  const auto opened = open_checkpoint(words.first, options.checkpoint);
  if (!opened) return report_failure(opened.status());
  Checkpoint& checkpoint = **opened;
  const auto selector = selector_of(words);
  if (!selector) return report_failure(selector.status());
  std::vector<NodeRef> nodes;
  TensorQuery query;
  if (*selector) {
    auto found = resolve_or_explain(**selector, checkpoint.graphs());
    if (!found) return report_failure(found.status());
    nodes = std::move(*found);
    query.nodes = &nodes;
  }
  // A check computes the statistics with all threads; they stay in the session.
  Watchpoint watch;
  watch.id = 1;
  watch.on = *Selector::parse(words.selector.empty() ? "@all" : words.selector);
  watch.optional = true;
  watch.condition = *make_condition("tensor_overflow", {});
  CheckOptions check_options;
  check_options.threads = options.threads;
  check_options.mem_limit_bytes = options.mem_limit_mb << 20;
  {
    Progress progress(options, "reading");
    check_options.progress = progress.callback();
    if (const Status warmed = check(checkpoint, std::span(&watch, 1), check_options).status(); !warmed.ok()) return report_failure(warmed);
  }
  std::vector<StatsRow> rows;
  for (const TensorId& id : checkpoint.tensors(query)) {
    if (interrupt_requested()) return kExitInterrupted;
    auto info = checkpoint.describe(id);
    if (!info) return report_failure(info.status());
    StatsRow row{std::move(*info), std::nullopt};
    if (row.info.problem.ok()) {
      auto stats = checkpoint.stats(id);
      if (stats) row.stats = std::move(*stats);
      else row.info.problem = stats.status();
    }
    rows.push_back(std::move(row));
  }
  if (const Status written = write_result(options, checkpoint_report(checkpoint, rows, style_for(options))); !written.ok())
    return report_failure(written);
  const bool damaged =
      std::ranges::any_of(checkpoint.facts().problems, [](const Problem& problem) { return problem.severity == Severity::kError; });
  return damaged ? kExitInput : kExitClean;
}

int diff(const Words& words, const Options& options) {
  const auto a = open_checkpoint(words.first, options.checkpoint);
  if (!a) return report_failure(a.status());
  const auto b = open_checkpoint(words.second, options.checkpoint);
  if (!b) return report_failure(b.status());
  tell_problems(options, **a);
  tell_problems(options, **b);
  auto selector = selector_of(words);
  if (!selector) return report_failure(selector.status());
  ParameterDiffOptions diff_options;
  diff_options.on = std::move(*selector);
  diff_options.find_renamed = words.by_content;
  diff_options.threads = options.threads;
  const auto result = diff_parameters({a->get(), 0, 0, words.first}, {b->get(), 0, 0, words.second}, diff_options);
  if (!result) return report_failure(result.status());
  if (const Status written = write_result(options, parameter_diff_report(*result, style_for(options))); !written.ok())
    return report_failure(written);
  if (result->interrupted) return kExitInterrupted;
  if (result->equal()) return kExitClean;
  const bool only_missing = result->count(ChangeKind::kUnchanged) + result->count(ChangeKind::kNotCompared) == result->changes.size();
  return only_missing ? kExitInput : kExitFindings;
}

int match(const Words& words, const Options& common) {
  Options options = common;
  options.dump = words.first;
  int status = kExitClean;
  const auto dump = open_session(options, &status);
  if (dump == nullptr) return status;
  const auto checkpoint = open_checkpoint(words.second, options.checkpoint);
  if (!checkpoint) return report_failure(checkpoint.status());
  tell_problems(options, **checkpoint);
  ParameterSource source{dump.get(), 0, 0, words.first};
  bool found = false;
  for (const int rank : dump->ranks()) {
    if (found || !options.ranks.contains(rank)) continue;
    source.rank = rank;
    found = true;
  }
  if (!found) {
    const std::vector<int64_t> ranks(dump->ranks().begin(), dump->ranks().end());
    return report_failure(
        Status(Code::kNotFound, fmt::format("{} has no rank {}; have {}", words.first, options.ranks.text(), numbers_text(ranks))));
  }
  // One rank is looked at; for people its number belongs to the name.
  const bool for_people = options.format == Format::kTable || options.format == Format::kMarkdown;
  if (for_people && (dump->ranks().size() > 1 || source.rank != 0)) source.name += fmt::format(" (rank {})", source.rank);
  const auto result = match_checkpoint(source, options.steps, {checkpoint->get(), 0, 0, words.second}, options.threads);
  if (!result) return report_failure(result.status());
  if (const Status written = write_result(options, checkpoint_match_report(*result, style_for(options))); !written.ok())
    return report_failure(written);
  const StepMatch& best = result->steps[result->best];
  if (!best.matches()) return best.different > 0 || (best.equal > 0 && best.not_compared == 0) ? kExitFindings : kExitInput;
  if ((*checkpoint)->facts().breaks_off) return kExitInput;  // what there is fits; the rest nobody knows
  return best.absent > 0 && options.strict ? kExitIncomplete : kExitClean;
}

}  // namespace

Action declare_ckpt(CLI::App& app) {
  auto words = std::make_shared<Words>();
  app.require_subcommand(1);
  const auto add = [&](const char* name, const char* summary, int (*verb)(const Words&, const Options&)) {
    CLI::App* sub = app.add_subcommand(name, summary);
    sub->fallthrough();
    sub->callback([words, verb] { words->verb = verb; });
    return sub;
  };
  CLI::App* sub = add("show", "names, types and statistics of the parameters", show);
  sub->add_option("FILE", words->first, ".ckpt or safetensors")->required();
  sub->add_option("SEL", words->selector, "selector; default: every parameter");
  sub = add("diff", "what changed from A to B; status 1 when anything did", diff);
  sub->add_option("A", words->first, "the earlier checkpoint")->required();
  sub->add_option("B", words->second, "the later one")->required();
  sub->add_option("--on", words->selector, "only these parameters")->type_name("SEL");
  sub->add_flag("!--by-name", words->by_content, "do not look for renamed parameters by their content");
  sub = add("match", "which step of a dump holds the parameters of a checkpoint, bit for bit", match);
  sub->add_option("DUMP", words->first, "dump directory")->required();
  sub->add_option("FILE", words->second, "checkpoint")->required();
  app.add_flag("--wide", words->wide, "full names, unchanged parameters too");
  app.add_flag("--strict", words->strict, "match: status 4 when parameters of the checkpoint are not in the dump");
  return [words](const Options& common) {
    Options options = common;
    options.wide = words->wide;
    options.strict = words->strict;
    return words->verb(*words, options);
  };
}

}  // namespace msdbg::app
