// msdbg ckpt show, diff, match: checkpoints.
#include <fmt/format.h>

#include <algorithm>

#include "app/follow_command.h"
#include "app/scripting.h"
#include "msdbg/checkpoint_report.h"

namespace msdbg::app {
namespace {

struct CkptWords {
  std::string first, second;  // files
  std::string selector;
  bool by_content = true;
  Result<int> (*verb)(const CkptWords&, Context&) = nullptr;
};

Result<std::optional<Selector>> selector_of(const CkptWords& words) {
  if (words.selector.empty()) return std::optional<Selector>();
  auto selector = Selector::parse(words.selector);
  if (!selector) return selector.status();
  return std::optional<Selector>(std::move(*selector));
}

/// Problems of a compared file become notes: the result has no field for them.
void print_problems(Context& context, const Checkpoint& checkpoint) {
  for (const Problem& problem : checkpoint.facts().problems) {
    if (problem.severity != Severity::kInfo) context.note(fmt::format("{}: {}", printable(problem.path), printable(problem.message)));
  }
}

Result<int> show(const CkptWords& words, Context& context) {
  const Options& options = context.options();
  const auto opened = open_checkpoint(words.first, options.checkpoint);
  if (!opened) return opened.status();
  Checkpoint& checkpoint = **opened;
  const auto selector = selector_of(words);
  if (!selector) return selector.status();
  std::vector<NodeRef> nodes;
  TensorQuery query;
  if (*selector) {
    auto found = resolve_or_explain(**selector, checkpoint.graphs());
    if (!found) return found.status();
    nodes = std::move(*found);
    query.nodes = &nodes;
  }
  // The check computes the statistics on all threads; they stay in the session.
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
    if (const Status warmed = check(checkpoint, std::span(&watch, 1), check_options).status(); !warmed.ok()) return warmed;
  }
  std::vector<StatsRow> rows;
  for (const TensorId& id : checkpoint.tensors(query)) {
    if (interrupt_requested()) return kExitInterrupted;
    auto info = checkpoint.describe(id);
    if (!info) return info.status();
    StatsRow row{std::move(*info), std::nullopt};
    if (row.info.problem.ok()) {
      auto stats = checkpoint.stats(id);
      if (stats) row.stats = std::move(*stats);
      else row.info.problem = stats.status();
    }
    rows.push_back(std::move(row));
  }
  if (const Status written = context.write(checkpoint_report(checkpoint, rows, context.style())); !written.ok()) return written;
  const bool damaged =
      std::ranges::any_of(checkpoint.facts().problems, [](const Problem& problem) { return problem.severity == Severity::kError; });
  return damaged ? kExitInput : kExitClean;
}

Result<int> diff(const CkptWords& words, Context& context) {
  const Options& options = context.options();
  const auto a = open_checkpoint(words.first, options.checkpoint);
  if (!a) return a.status();
  const auto b = open_checkpoint(words.second, options.checkpoint);
  if (!b) return b.status();
  print_problems(context, **a);
  print_problems(context, **b);
  auto selector = selector_of(words);
  if (!selector) return selector.status();
  ParameterDiffOptions diff_options;
  diff_options.on = std::move(*selector);
  diff_options.find_renamed = words.by_content;
  diff_options.threads = options.threads;
  const auto result = diff_parameters({a->get(), 0, 0, words.first}, {b->get(), 0, 0, words.second}, diff_options);
  if (!result) return result.status();
  if (const Status written = context.write(parameter_diff_report(*result, context.style())); !written.ok()) return written;
  if (result->interrupted) return kExitInterrupted;
  if (result->equal()) return kExitClean;
  const bool only_missing = result->count(ChangeKind::kUnchanged) + result->count(ChangeKind::kNotCompared) == result->changes.size();
  return only_missing ? kExitInput : kExitFindings;
}

Result<int> match(const CkptWords& words, Context& context) {
  const Options& options = context.options();
  const auto opened = context.session();
  if (!opened) return opened.status();
  Session* const dump = *opened;
  const std::string name = context.at_prompt() ? dump->info().source : options.dump;
  const auto checkpoint = open_checkpoint(words.first, options.checkpoint);
  if (!checkpoint) return checkpoint.status();
  print_problems(context, **checkpoint);
  ParameterSource source{dump, 0, 0, name};
  bool found = false;
  for (const int rank : dump->ranks()) {
    if (found || !options.ranks.contains(rank)) continue;
    source.rank = rank;
    found = true;
  }
  if (!found) {
    const std::vector<int64_t> ranks(dump->ranks().begin(), dump->ranks().end());
    return Status(Code::kNotFound, fmt::format("{} has no rank {}; have {}", name, options.ranks.text(), numbers_text(ranks)));
  }
  // Only one rank is compared; for people its number becomes part of the name.
  const bool for_people = options.format == Format::kTable || options.format == Format::kMarkdown;
  if (for_people && (dump->ranks().size() > 1 || source.rank != 0)) source.name += fmt::format(" (rank {})", source.rank);
  const auto result = match_checkpoint(source, options.steps, {checkpoint->get(), 0, 0, words.first}, options.threads);
  if (!result) return result.status();
  if (const Status written = context.write(checkpoint_match_report(*result, context.style())); !written.ok()) return written;
  const StepMatch& best = result->steps[result->best];
  if (!best.matches()) return best.different > 0 || (best.equal > 0 && best.not_compared == 0) ? kExitFindings : kExitInput;
  if ((*checkpoint)->facts().breaks_off) return kExitInput;  // what the file holds matches; the missing part is unknown
  return best.absent > 0 && options.strict ? kExitIncomplete : kExitClean;
}

Action declare_ckpt(const Declaration& to) {
  auto words = std::make_shared<CkptWords>();
  to.app.require_subcommand(1);
  const auto add = [&](const char* name, const char* summary, Result<int> (*verb)(const CkptWords&, Context&)) {
    CLI::App* sub = to.app.add_subcommand(name, summary);
    sub->fallthrough();
    sub->callback([words, verb] { words->verb = verb; });
    return sub;
  };
  CLI::App* sub = add("show", "names, types and statistics of the parameters", show);
  sub->add_option("FILE", words->first, ".ckpt or safetensors")->required();
  add_selector(*sub, &words->selector, "SEL", "selector; default: every parameter");
  sub = add("diff", "what changed from A to B; status 1 when anything did", diff);
  sub->add_option("A", words->first, "the earlier checkpoint")->required();
  sub->add_option("B", words->second, "the later one")->required();
  sub->add_option("--on", words->selector, "only these parameters")->type_name("SEL");
  sub->add_flag("!--by-name", words->by_content, "do not look for renamed parameters by their content");
  sub = add("match", "which step of a dump holds the parameters of a checkpoint, bit for bit", match);
  to.add_dump(*sub);
  sub->add_option("FILE", words->first, "checkpoint")->required();
  to.app.add_flag("--wide", to.options.wide, "full names, unchanged parameters too");
  to.app.add_flag("--strict", to.options.strict, "match: status 4 if parameters of the checkpoint are not in the dump");
  return [words](Context& context) { return words->verb(*words, context); };
}

}  // namespace

CommandEntry ckpt_command() {
  return {.name = "ckpt",
          .group = kResultGroup,
          .summary = "checkpoints: contents, differences, the matching dump step",
          .examples = {{"show model.ckpt @weight"},
                       {"diff lenet-1_0.ckpt lenet-1_1.safetensors", "update ratio of each parameter"},
                       {"show secret.ckpt --key env:CKPT_KEY"}},
          .declare = declare_ckpt,
          .first = FirstWord::kNone,
          .steps = StepsWord::kAll,
          .formats = "table, json, jsonl, csv or markdown",
          .last_format = Format::kMarkdown,
          .complete = "file"};
}

}  // namespace msdbg::app
