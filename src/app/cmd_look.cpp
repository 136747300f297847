// msdbg stats, show, nodes, doctor: looking without judging.
#include <fmt/format.h>

#include <algorithm>

#include "app/output.h"
#include "app/progress.h"
#include "app/run.h"

namespace msdbg::app {
namespace {

// The nodes that the positional selector names; all of them without one.
Result<std::vector<NodeRef>> selected_nodes(const Options& options, const Session& session) {
  auto selector = Selector::parse(options.subject.empty() ? "@all" : options.subject);
  if (!selector) return selector.status();
  auto nodes = resolve_or_explain(*selector, session.graphs());
  if (!nodes) return nodes.status();
  std::erase_if(*nodes, [&](const NodeRef& ref) { return !options.ranks.contains(ref.graph->rank()); });
  return nodes;
}

Status no_such_step(const Options& options, const Session& session) {
  return Status(Code::kNotFound, fmt::format("no data for step {}; have steps {}", options.steps.text(), numbers_text(session.steps())));
}

// The first step and rank asked for in which the node's graph has data and the tensor exists.
Result<TensorId> find_shown(const Options& options, Session& session) {
  Status last = no_such_step(options, session);
  for (const int rank : session.ranks()) {
    if (!options.ranks.contains(rank)) continue;
    for (const int64_t step : session.steps()) {
      if (!options.steps.contains(step)) continue;
      auto id = resolve_tensor(session, options.subject, step, rank, options.graph, options.execution);
      if (!id) {
        last = id.status();
        // A name that is wrong is wrong in every step.
        if (last.code() == Code::kInvalidArgument || last.code() == Code::kNotFound) return last;
        continue;
      }
      const auto info = session.describe(*id);
      if (info) return id;
      last = info.status();
    }
  }
  return last;
}

// Computes the statistics of the selected tensors with all threads; they stay in the session, where stats() finds them.
Status warm_statistics(const Options& options, Session& session) {
  Watchpoint watch;
  watch.id = 1;
  watch.on = *Selector::parse(options.subject.empty() ? "@all" : options.subject);
  watch.inputs = options.slots != "output";
  watch.outputs = options.slots != "input";
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

std::string source_line(const Node& node) {
  const StackFrame* frame = user_frame(node);
  if (frame == nullptr) return "";
  return fmt::format("  source   {}:{}   {}\n", printable(frame->file), frame->line, printable(frame->code));
}

}  // namespace

int run_stats(const Options& options) {
  int status = kExitClean;
  const auto session = open_session(options, &status);
  if (session == nullptr) return status;
  const auto nodes = selected_nodes(options, *session);
  if (!nodes) return report_failure(nodes.status());

  TensorQuery query;
  query.steps = options.steps;
  query.ranks = options.ranks;
  query.nodes = &*nodes;
  query.inputs = options.slots != "output";
  query.outputs = options.slots != "input";
  const std::vector<TensorId> tensors = session->tensors(query);
  if (tensors.empty()) {
    const bool no_step = std::ranges::none_of(session->steps(), [&](int64_t step) { return options.steps.contains(step); });
    return report_failure(
        no_step ? no_such_step(options, *session)
                : Status(Code::kNotFound,
                         fmt::format("none of the {} selected nodes has a dumped {} in these steps; try --slots all, or msdbg doctor {}",
                                     nodes->size(), options.slots == "all" ? "tensor" : options.slots, options.dump)));
  }
  if (const Status warmed = warm_statistics(options, *session); !warmed.ok()) return report_failure(warmed);
  std::vector<StatsRow> rows;
  rows.reserve(tensors.size());
  bool failed = false;
  for (const TensorId& id : tensors) {
    if (interrupt_requested()) break;
    auto info = session->describe(id);
    StatsRow row;
    if (info) {
      row.info = std::move(*info);
    } else {
      row.info.id = id;
      row.info.problem = info.status();
    }
    if (row.info.problem.ok()) {
      auto stats = session->stats(id);
      if (stats) row.stats = std::move(*stats);
      else row.info.problem = stats.status();
    }
    failed |= !row.stats;
    rows.push_back(std::move(row));
  }
  if (const Status written = write_result(options, stats_report(*session, rows, style_for(options))); !written.ok())
    return report_failure(written);
  if (interrupt_requested()) return kExitInterrupted;
  const bool lost = session->info().kind == SessionKind::kCheckpoint && is_damaged(*session);
  return lost || (failed && rows.size() == 1) ? kExitInput : kExitClean;
}

int run_show(const Options& options) {
  int status = kExitClean;
  const auto session = open_session(options, &status);
  if (session == nullptr) return status;
  const auto id = find_shown(options, *session);
  if (!id) return report_failure(id.status());
  auto info = session->describe(*id);
  if (!info) return report_failure(info.status());
  StatsRow row{std::move(*info), std::nullopt};
  if (row.info.problem.ok()) {
    auto stats = session->stats(*id);
    if (stats) row.stats = std::move(*stats);
    else row.info.problem = stats.status();
  }
  const ReportStyle style = style_for(options);
  if (options.format != Format::kTable) {
    const Status written = write_result(options, stats_report(*session, {row}, style));
    if (!written.ok()) return report_failure(written);
    return row.stats ? kExitClean : kExitInput;
  }

  const Node& node = session->node(*id);
  std::string out = fmt::format("{}:{}  {}{}  step {}", printable(node.name), slot_name(id->slot), dtype_name(row.info.dtype),
                                shape_text(row.info.shape), id->step);
  if (session->ranks().size() > 1) out += fmt::format("  rank {}", id->rank);
  const uint32_t executions = session->executions(id->rank, id->graph, id->step, id->node);
  if (executions > 1) out += fmt::format("  execution {} of {}", id->execution, executions);
  out += fmt::format("\n  {}   {}\n", node.kind == NodeKind::kOperator ? "operator" : node_kind_name(node.kind), printable(node.op));
  out += source_line(node);
  out += fmt::format("  file     {}\n", printable(row.info.source));
  if (!row.info.note.empty()) out += fmt::format("  note     {}\n", printable(row.info.note));
  if (row.stats) out += fmt::format("  values   {}\n", stats_line(*row.stats));

  Status problem = row.info.problem;
  if (row.info.availability == Availability::kElements && problem.ok()) {
    auto tensor = session->load(*id, options.mem_limit_mb << 20);
    if (tensor && !options.slice.empty()) tensor = slice((*tensor)->view(), options.slice);
    if (!tensor) return report_failure(tensor.status());
    const TensorView view = (*tensor)->view();
    if (!options.slice.empty()) out += fmt::format("  slice    [{}] {}\n", options.slice, shape_text(view.shape));
    out += elements_table(view, options.rows, style.width);
    if (options.bins > 0) {
      const auto bars = histogram(view, options.bins);
      if (!bars) return report_failure(bars.status());
      out += histogram_text(*bars);
    }
  } else if (problem.ok()) {
    out += "  elements are not in the dump, only these statistics\n";
  }
  if (const Status written = write_result(options, out); !written.ok()) return report_failure(written);
  return problem.ok() ? kExitClean : report_failure(problem);
}

int run_nodes(const Options& options) {
  int status = kExitClean;
  const auto session = open_session(options, &status);
  if (session == nullptr) return status;
  const auto nodes = selected_nodes(options, *session);
  if (!nodes) return report_failure(nodes.status());
  const Status written = write_result(options, nodes_report(*session, *nodes, style_for(options)));
  return written.ok() ? kExitClean : report_failure(written);
}

int run_doctor(const Options& options) {
  int status = kExitClean;
  const auto session = open_session(options, &status);
  if (session == nullptr) return status;
  const SessionReport report = session->inspect();
  const Status written = write_result(options, doctor_report(*session, report, style_for(options)));
  if (!written.ok()) return report_failure(written);
  const bool found = std::ranges::any_of(report.problems, [](const Problem& p) { return p.severity != Severity::kInfo; });
  return found ? kExitFindings : kExitClean;
}

}  // namespace msdbg::app
