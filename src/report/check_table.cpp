#include "report/check_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <vector>

#include "msdbg/rank_report.h"
#include "msdbg/short_names.h"
#include "report/check_formats.h"
#include "report/table.h"

namespace msdbg {
namespace {

constexpr size_t kMaxRows = 60;

std::string rule_shown(const Hit& hit) { return printable(hit.abbr.empty() ? hit.rule : hit.abbr); }

class HitTable {
 public:
  HitTable(Session& session, const CheckResult& result, const ReportStyle& style)
      : session_(session), result_(result), style_(style), folded_(folded_hits(result, style)) {}

  std::string text() {
    const std::vector<Hit>& hits = result_.hits;
    const bool ranks = session_.ranks().size() > 1;
    const bool graphs =
        std::any_of(hits.begin(), hits.end(), [&](const Hit& hit) { return hit.tensor.graph != hits[0].tensor.graph; });
    const bool executions =
        std::any_of(hits.begin(), hits.end(), [](const Hit& hit) { return hit.tensor.execution > 0; });
    std::vector<Table::Column> columns;
    if (style_.numbered) columns.push_back({"", Align::kRight});
    if (style_.gate) columns.push_back({"status"});
    if (ranks) columns.push_back({"rank", Align::kRight});
    if (graphs) columns.push_back({"graph", Align::kRight});
    columns.push_back({"step", Align::kRight});
    columns.push_back({"severity"});
    columns.push_back({"rule"});
    columns.push_back({.title = "tensor", .fit = Fit::kName});
    if (executions) columns.push_back({"execution", Align::kRight});
    if (style_.wide) columns.push_back({"type"});
    columns.push_back({.title = "what", .fit = Fit::kText});
    if (style_.wide) columns.push_back({"source"});
    Table table(std::move(columns));
    const std::vector<std::vector<int>> ranks_of = ranks_of_rows();
    const auto has_row = [](const std::vector<int>& row) { return !row.empty(); };
    const auto rows = static_cast<size_t>(std::count_if(ranks_of.begin(), ranks_of.end(), has_row));
    const size_t open = static_cast<size_t>(std::count(folded_.begin(), folded_.end(), false));
    const size_t most = style_.wide || style_.all ? hits.size() : kMaxRows;
    size_t shown = 0;
    std::set<std::tuple<int, int64_t, int>> first_of_step;
    for (const size_t i : in_order()) {
      if (shown == most) break;
      if (ranks_of[i].empty()) continue;
      ++shown;
      const Hit& hit = hits[i];
      const Node& node = session_.node(hit.tensor);
      const bool first = first_of_step.insert({hit.tensor.rank, hit.tensor.step, hit.tensor.graph}).second;
      std::vector<Table::Cell> row;
      if (style_.numbered) row.emplace_back(std::to_string(i + 1));
      if (style_.gate) row.emplace_back(std::string(gate_status_name(gate_status_of(style_, i))));
      if (ranks) row.emplace_back(ranks_cell(ranks_of[i]));
      if (graphs) row.emplace_back(std::to_string(hit.tensor.graph));
      row.emplace_back(std::to_string(hit.tensor.step), first ? Paint::kStrong : Paint::kNone);
      row.emplace_back(std::string(severity_name(hit.severity)), paint_for(hit.severity));
      row.emplace_back(rule_shown(hit));
      row.emplace_back(name_cell(session_, hit.tensor, slot_suffix(hit.tensor.slot)));
      if (executions) row.emplace_back(std::to_string(hit.tensor.execution));
      if (style_.wide) row.emplace_back(fmt::format("{}{}", dtype_name(hit.dtype), shape_text(hit.shape)));
      std::string what = what_text(hit);
      if (const std::string parameter = gradient_of_name(session_, hit.tensor);
          !parameter.empty() && what.find("gradient of") == std::string::npos) {
        what = fmt::format("gradient of {}: {}", printable(parameter), what);
      }
      if (first) {
        if (const std::string inputs = inputs_text(hit); !inputs.empty()) what += fmt::format("   {}", inputs);
      }
      if (const std::string reason = reason_of(style_, i); !reason.empty()) what += fmt::format("   ({})", printable(reason));
      row.emplace_back(std::move(what));
      if (style_.wide) row.emplace_back(source_place(node, true));
      table.add(std::move(row));
    }
    std::string out = table.empty() ? "" : table.text(style_);
    if (shown < rows) out += fmt::format("  ... {} more{}\n", rows - shown, all_);
    if (open < hits.size()) out += fmt::format("  ... {} that {} from {}{}\n", hits.size() - open,
                                               hits.size() - open == 1 ? "follows" : "follow", open == 0 ? "the cause" : "others", all_);
    return out;
  }

 private:
  /// Hits come by rank; who reads them wants the earliest step first.
  std::vector<size_t> in_order() const {
    std::vector<size_t> out(result_.hits.size());
    std::iota(out.begin(), out.end(), 0);
    std::ranges::stable_sort(out, {}, [&](size_t i) { return result_.hits[i].tensor.step; });
    return out;
  }

  /// For each hit of the table the ranks that have the same one; empty for a hit that the line of another rank shows.
  std::vector<std::vector<int>> ranks_of_rows() const {
    const std::vector<Hit>& hits = result_.hits;
    std::vector<std::vector<int>> out(hits.size());
    std::map<std::tuple<int64_t, int, uint32_t, Slot, std::string, std::string, std::string, GateStatus>, size_t> rows;
    for (size_t i = 0; i < hits.size(); ++i) {
      if (folded_[i]) continue;
      const TensorId& id = hits[i].tensor;
      size_t row = i;
      if (session_.ranks().size() > 1 && !style_.all && !style_.wide) {
        row = rows.try_emplace({id.step, id.graph, id.execution, id.slot, hits[i].rule + " " + hits[i].watch_name, session_.node(id).name,
                                what_text(hits[i]), gate_status_of(style_, i)}, i).first->second;
      }
      out[row].push_back(id.rank);
    }
    return out;
  }

  /// For the first overflow of a step: whether its inputs were bad already. The others usually follow from it.
  std::string inputs_text(const Hit& hit) {
    const bool overflow = hit.severity == Severity::kError && hit.stats.nan_count + hit.stats.inf_count() > 0;
    const Node& node = session_.node(hit.tensor);
    if (!overflow || hit.tensor.slot.io != Io::kOutput || node.kind != NodeKind::kOperator) return "";
    uint64_t bad = 0, seen = 0;
    double largest = 0;
    for (uint32_t slot = 0; slot < node.inputs.size(); ++slot) {
      TensorId input = hit.tensor;
      input.slot = {Io::kInput, slot};
      const Result<Stats> stats = session_.stats(input);
      if (!stats || !is_float(stats->dtype)) continue;
      ++seen;
      bad += stats->nan_count + stats->inf_count();
      for (double edge : {stats->min, stats->max}) {
        if (!std::isnan(edge)) largest = std::max(largest, std::abs(edge));
      }
    }
    if (seen == 0 || bad > 0) return "";
    return fmt::format("{} finite, up to {}", seen == 1 ? "input" : "inputs", format_short(largest, 2));
  }

  Session& session_;
  const CheckResult& result_;
  const ReportStyle& style_;
  const std::vector<bool> folded_;
  const std::string_view all_ = style_.place != Place::kScript ? " (all: --all)" : "";
};

}  // namespace

std::string hit_table(Session& session, const CheckResult& result, const ReportStyle& style) {
  return HitTable(session, result, style).text();
}

std::string hit_groups(const Session& session, const CheckResult& result, const ReportStyle& style) {
  struct Group {
    std::vector<const Hit*> hits;
    std::map<GateStatus, size_t> standing;
    std::set<int64_t> steps;
    std::set<std::string> rules;
  };
  std::vector<std::string> order;
  std::map<std::string, Group> groups;
  for (size_t i = 0; i < result.hits.size(); ++i) {
    const Hit& hit = result.hits[i];
    const Node& node = session.node(hit.tensor);
    const std::string scope = node.kind == NodeKind::kParameter ? "(parameters)"
                              : node.scope.empty()              ? "(top level)"
                                                                : node.scope;
    Group& group = groups[scope];
    if (group.hits.empty()) order.push_back(scope);
    group.hits.push_back(&hit);
    ++group.standing[gate_status_of(style, i)];
    group.steps.insert(hit.tensor.step);
    group.rules.insert(rule_shown(hit));
  }
  ShortNames short_scopes(order);
  std::vector<Table::Column> columns{{.title = "scope", .fit = Fit::kName}, {"hits", Align::kRight}};
  const GateStatus statuses[] = {GateStatus::kNew, GateStatus::kKnown, GateStatus::kSuppressed};
  if (style.gate) {
    for (GateStatus standing : statuses) columns.push_back({std::string(gate_status_name(standing)), Align::kRight});
  }
  columns.push_back({.title = "steps", .fit = Fit::kText, .drop = 2, .least = 8});
  columns.push_back({.title = "rules", .fit = Fit::kText, .least = 8});
  columns.push_back({.title = "first", .fit = Fit::kName});
  columns.push_back({.title = "what", .fit = Fit::kText, .drop = 1, .least = 16});
  Table table(std::move(columns));
  for (const std::string& scope : order) {
    Group& group = groups[scope];
    const Hit& first = *group.hits.front();
    std::vector<Table::Cell> row{Table::Cell::name(printable(scope), printable(short_scopes.of(scope)).size()),
                                 std::to_string(group.hits.size())};
    if (style.gate) {
      for (GateStatus standing : statuses) row.emplace_back(std::to_string(group.standing[standing]));
    }
    row.emplace_back(numbers_text(std::vector<int64_t>(group.steps.begin(), group.steps.end())));
    row.emplace_back(fmt::format("{}", fmt::join(group.rules, ",")));
    const std::string name = printable(short_name(session, first.tensor)) + slot_suffix(first.tensor.slot);
    const std::string elided = printable(elided_name(session, session.node(first.tensor).name)) + slot_suffix(first.tensor.slot);
    row.emplace_back(Table::Cell::name(name, name.size(), Paint::kNone, elided));
    row.emplace_back(what_text(first));
    table.add(std::move(row));
  }
  return table.text(style);
}

}  // namespace msdbg
