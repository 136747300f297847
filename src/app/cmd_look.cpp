// msdbg stats, nodes, doctor: show data without judging it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "app/follow_command.h"
#include "app/live.h"
#include "msdbg/settings_report.h"
#include "msdbg/team.h"
#include "msdbg/threads.h"

namespace msdbg::app {
namespace {

struct LookWords {
  std::string selector, slots = "output";
};

// The nodes that the positional selector names; without one, all nodes.
Result<std::vector<NodeRef>> selected_nodes(const LookWords& words, const Options& options, const Session& session) {
  auto selector = Selector::parse(words.selector.empty() ? "@all" : words.selector);
  if (!selector) return selector.status();
  auto nodes = resolve_or_explain(*selector, session.graphs());
  if (!nodes) return nodes.status();
  std::erase_if(*nodes, [&](const NodeRef& ref) { return !options.ranks.contains(ref.graph->rank()); });
  return nodes;
}

Status no_such_step(const Options& options, const Session& session) {
  return Status(Code::kNotFound, fmt::format("no data for step {}; have steps {}", options.steps.text(), numbers_text(session.steps())));
}

// Computes the statistics of the selected tensors in a check, which fetches those of a training in batches and divides those of a dump
// over the processes, and keeps them in the session.
Status warm_statistics(const LookWords& words, const Options& options, Session& session) {
  Watchpoint watch;
  watch.id = 1;
  watch.on = *Selector::parse(words.selector.empty() ? "@all" : words.selector);
  watch.inputs = !words.slots.starts_with("output");
  watch.outputs = !words.slots.starts_with("input");
  watch.optional = true;
  watch.condition = *make_condition("tensor_overflow", {});
  CheckOptions check_options;
  check_options.steps = options.steps;
  check_options.ranks = options.ranks;
  check_options.mem_limit_bytes = options.mem_limit_mb << 20;
  check_options.threads = options.threads;
  Progress progress(options, "reading");
  check_options.progress = progress.callback();
  return check(session, std::span(&watch, 1), check_options).status();
}

/// Rows of statistics in order, computed on all threads, a batch at a time.
class StatsReader {
 public:
  StatsReader(Session& session, std::vector<TensorId> ids, const Options& options)
      : session_(session),
        ids_(std::move(ids)),
        threads_(session.can_step() ? 1 : thread_count(options.threads, std::max<uint64_t>(1, options.mem_limit_mb / kMegabytesPerThread))),
        progress_(options, "reading") {}

  std::optional<StatsRow> next() {
    if (at_ == batch_.size() && !read_batch()) return std::nullopt;
    return std::move(batch_[at_++]);
  }
  std::vector<StatsRow> all() {
    std::vector<StatsRow> rows;
    rows.reserve(ids_.size());
    while (std::optional<StatsRow> row = next()) rows.push_back(std::move(*row));
    return rows;
  }
  bool failed() const { return failed_; }  ///< a row had no statistics
  size_t count() const { return ids_.size(); }

 private:
  static constexpr uint64_t kMegabytesPerThread = 1;  // for a block of elements

  bool read_batch() {
    constexpr size_t kBatch = 2048;
    at_ = 0;
    batch_.assign(std::min(kBatch, ids_.size() - read_), {});
    const bool more = !batch_.empty() && !interrupt_requested();
    if (!more || !parallel_for(batch_.size(), threads_, [&](uint64_t task, unsigned) {
                    batch_[task] = session_.stats_row(ids_[read_ + task]);
                    return Status();
                  }).ok()) {
      batch_.clear();
      return false;
    }
    read_ += batch_.size();
    for (const StatsRow& row : batch_) {
      failed_ = failed_ || !row.stats;
      bytes_ += row.info.bytes;
    }
    if (report_) report_(read_, ids_.size(), bytes_);
    return true;
  }

  Session& session_;
  const std::vector<TensorId> ids_;
  const unsigned threads_;
  Progress progress_;
  const ProgressCallback report_ = progress_.callback();
  std::vector<StatsRow> batch_;
  size_t at_ = 0, read_ = 0;
  uint64_t bytes_ = 0;
  bool failed_ = false;
};

Result<int> run_stats(const LookWords& words, Context& context) {
  const Options& options = context.options();
  const auto opened = context.session();
  if (!opened) return opened.status();
  Session& session = **opened;
  const auto nodes = selected_nodes(words, options, session);
  if (!nodes) return nodes.status();

  TensorQuery query;
  query.steps = options.steps;
  query.ranks = options.ranks;
  query.nodes = &*nodes;
  const auto slot = parse_slot(words.slots);
  if (!slot && words.slots != "output" && words.slots != "input" && words.slots != "all")
    return Status(Code::kInvalidArgument,
                  fmt::format("--slots '{}' is not known; use output, input, all, or one such as input:1", words.slots));
  query.inputs = !words.slots.starts_with("output");
  query.outputs = !words.slots.starts_with("input");
  std::vector<TensorId> tensors = session.tensors(query);
  if (slot) std::erase_if(tensors, [&](const TensorId& id) { return id.slot != *slot; });
  if (tensors.empty()) {
    const bool no_step = std::ranges::none_of(session.steps(), [&](int64_t step) { return options.steps.contains(step); });
    if (no_step) return no_such_step(options, session);
    if (const Status why = keep_for_next_step(session, *nodes); !why.ok()) return why;
    return Status(Code::kNotFound,
                  fmt::format("none of the {} selected nodes has a dumped {} in these steps; try --slots all, or {}", nodes->size(),
                              words.slots == "all" ? "tensor" : words.slots, context.typed("doctor")));
  }
  if (session.can_step() || Team::current() != nullptr) {
    if (const Status warmed = warm_statistics(words, options, session); !warmed.ok()) return warmed;
  }
  StatsReader reader(session, std::move(tensors), options);
  const ReportStyle style = context.style();
  Status written;
  if (context.at_prompt()) {
    const std::vector<StatsRow> rows = reader.all();
    const std::string shown = fmt::format("{}", fmt::join(stats_rows(session, rows, style), " "));
    context.list_rows("list_tensors", {words.selector.empty() ? "@all" : words.selector, options.steps.text(), options.ranks.text(),
                                       words.slots, shown});
    written = context.write(stats_report(session, rows, style, &query));
  } else {
    written = context.write_pieces([&](const TextSink& sink) {
      return stream_stats(session, [&] { return reader.next(); }, style, &query, sink);
    });
  }
  if (!written.ok()) return written;
  if (interrupt_requested()) return kExitInterrupted;
  const bool lost = session.info().kind == SessionKind::kCheckpoint && is_damaged(session);
  return lost || (reader.failed() && reader.count() == 1) ? kExitInput : kExitClean;
}

Result<int> run_nodes(const LookWords& words, Context& context) {
  const Options& options = context.options();
  const auto opened = context.session();
  if (!opened) return opened.status();
  Session& session = **opened;
  const auto nodes = selected_nodes(words, options, session);
  if (!nodes) return nodes.status();
  if (context.at_prompt()) {
    const std::string shown = fmt::format("{}", fmt::join(nodes_rows(session, *nodes), " "));
    context.list_rows("list_nodes", {words.selector.empty() ? "@all" : words.selector, options.ranks.text(), shown});
  }
  const ReportStyle style = context.style();
  const Status written =
      context.write_pieces([&](const TextSink& sink) { return stream_nodes(session, *nodes, style, false, sink); });
  if (!written.ok()) return written;
  return kExitClean;
}

Result<int> run_doctor(bool values, Context& context) {
  const auto opened = context.session();
  if (!opened) return opened.status();
  Session& session = **opened;
  const SessionReport report = session.inspect();
  std::optional<SettingsResult> sheet;
  if (values) {
    auto found = settings(session, follow_options(context.options()));
    if (!found) return found.status();
    sheet = std::move(*found);
  }
  const std::string text = doctor_report(session, report, context.style(), sheet ? &*sheet : nullptr);
  if (const Status written = context.write(text); !written.ok()) return written;
  const bool found = std::ranges::any_of(report.problems, [](const Problem& p) { return p.severity != Severity::kInfo; });
  return found ? kExitFindings : kExitClean;
}

Action declare_stats(const Declaration& to) {
  auto words = std::make_shared<LookWords>();
  to.options.asks_at_once = true;
  add_selector(to.app, &words->selector, "SEL", "selector; default: every node");
  to.app.add_option("--slots", words->slots, "output, input, all, or one slot such as input:1")->capture_default_str()->type_name("WHICH");
  to.app.add_flag("--wide", to.options.wide, "full names, all columns");
  return [words](Context& context) { return run_stats(*words, context); };
}

Action declare_nodes(const Declaration& to) {
  auto words = std::make_shared<LookWords>();
  add_selector(to.app, &words->selector, "SEL", "selector; default: every node");
  add_ranks(to);
  to.app.add_flag("--wide", to.options.wide, "inputs and shapes too");
  return [words](Context& context) { return run_nodes(*words, context); };
}

Action declare_doctor(const Declaration& to) {
  to.options.prints_damage = false;  // the report lists it
  auto values = std::make_shared<bool>(false);
  to.app.add_flag("--values", *values, "the learning rate and other settings, too: on each rank, in each step");
  to.app.add_flag("--wide", to.options.wide, "every problem, not only the first of each kind");
  return [values](Context& context) { return run_doctor(*values, context); };
}

}  // namespace

CommandEntry stats_command() {
  return {.name = "stats",
          .group = kLookGroup,
          .summary = "statistics of tensors",
          .examples = {{"@weight"}, {"op:MatMul --steps 0 --slots all"}},
          .declare = declare_stats,
          .steps = StepsWord::kCurrent,
          .formats = "table, json, jsonl, csv or markdown",
          .last_format = Format::kMarkdown,
          .selectors = true,
          .complete = "selector"};
}

CommandEntry nodes_command() {
  return {.name = "nodes",
          .group = kLookGroup,
          .summary = "list nodes",
          .examples = {{""}, {"relu and not @gradient"}, {"stack:train.py:70 --format json"}},
          .declare = declare_nodes,
          .formats = "table, json, jsonl, csv or markdown",
          .last_format = Format::kMarkdown,
          .selectors = true,
          .complete = "selector"};
}

CommandEntry doctor_command() {
  return {.name = "doctor",
          .group = kLookGroup,
          .summary = "what is in a dump, what is damaged or missing",
          .details = "Ends with status 1 when it found a problem.",
          .examples = {{""}, {"--values", "does every rank have the same learning rate?"}},
          .declare = declare_doctor};
}

}  // namespace msdbg::app
