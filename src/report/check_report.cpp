// The findings of a check, for people.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "msdbg/answers.h"
#include "msdbg/rank_report.h"
#include "msdbg/report.h"
#include "msdbg/short_names.h"
#include "report/check_formats.h"
#include "report/overflow_report.h"
#include "report/table.h"

namespace msdbg {
namespace {

constexpr size_t kMaxRows = 60;

/// `max_gt` -> `max 12.3 > 10`; conditions of old releases carry the statistic in their own name.
std::string param_text(const Hit& hit, const ParamResult& param) {
  const std::string_view name = param.name == "param" ? std::string_view(hit.rule) : std::string_view(param.name);
  static constexpr std::pair<std::string_view, std::string_view> kSigns[] = {
      {"_gt", ">"}, {"_lt", "<"}, {"_ge", ">="}, {"_le", "<="}};
  for (const auto& [suffix, sign] : kSigns) {
    if (!name.ends_with(suffix)) continue;
    const std::string_view what = name.substr(0, name.size() - suffix.size());
    const std::string actual = param.actual ? format_short(*param.actual) : "?";
    return fmt::format("{} {} {} {}", what, actual, sign, format_short(param.threshold));
  }
  if (param.name == "rtol") return fmt::format("unchanged within rtol {}", format_short(param.threshold));
  return fmt::format("{} {}", name, format_short(param.threshold));
}

}  // namespace

std::string what_text(const Hit& hit) {
  std::string out;
  auto add = [&](const std::string& part) {
    if (part.empty()) return;
    if (!out.empty()) out += "; ";
    out += part;
  };
  for (const ParamResult& param : hit.params) {
    // The tolerances of weight_not_changed decide together; none of them hits by itself.
    if (param.hit || param.name == "rtol") add(param_text(hit, param));
  }
  // A message says in words what the other fields hold.
  const auto message = std::find_if(hit.details.begin(), hit.details.end(), [](const auto& detail) { return detail.first == "message"; });
  if (message != hit.details.end()) {
    add(printable(message->second));
  } else {
    for (const auto& [name, value] : hit.details) add(fmt::format("{} {}", printable(name), printable(value)));
  }
  add(nonfinite_text(hit.stats));
  // An expression joined by `and` has no single value to show.
  if (out.empty() && hit.info) out = printable(hit.info->summary);
  return out;
}

namespace {

class CheckText {
 public:
  CheckText(Session& session, const CheckResult& result, const ReportStyle& style)
      : session_(session), result_(result), style_(style), folded_(folded_hits(result, style)) {}

  std::string text() {
    std::string out = causes();
    if (!result_.hits.empty()) out += style_.group ? groups() : table();
    out += explained();
    out += overflow_table(session_, result_.overflows, style_);
    out += rank_table_text(hits_grid(session_, result_), style_);
    out += not_checked_text(session_, result_.not_checked, result_.coverage, style_);
    out += problems();
    if (style_.gate) {
      for (const Suppression& unused : style_.gate->unused) out += unused_text(unused) + "\n";
    }
    out += result_.total_hits > 0 ? found_line() : clean_line();
    if (style_.gate && result_.total_hits > 0) out += counts_text(result_, style_) + "\n";
    if (result_.interrupted) out += interrupted_text(result_) + "\n";
    return out;
  }

 private:
  /// What findings follow from, the earliest first.
  std::string causes() const {
    constexpr size_t kMostCauses = 8;
    std::string out;
    size_t told = 0;
    if (result_.causes) {
      for (const Cause& cause : *result_.causes) {
        if (is_worth_telling(cause) && (++told <= kMostCauses || style_.all)) out += follow_text(session_, cause) + "\n";
      }
    }
    if (told > kMostCauses && !style_.all) out += fmt::format("  ... {} more{}\n", counted(told - kMostCauses, "cause"), all_);
    return out;
  }

  /// Findings that are no faults, with what put them there.
  std::string explained() const {
    constexpr size_t kShown = 3;
    if (result_.explained.empty()) return "";
    // One line for a place, whatever the number of steps and ranks.
    struct Line {
      const Explained* first;
      uint64_t hits = 0;
      std::set<int64_t> steps;
      std::set<int> ranks;
    };
    std::vector<Line> lines;
    std::map<std::pair<std::string, Slot>, size_t> line_of;
    for (const Explained& each : result_.explained) {
      const auto [at, fresh] = line_of.try_emplace({session_.node(each.from).name, each.from.slot}, lines.size());
      if (fresh) lines.push_back({&each, 0, {}, {}});
      Line& line = lines[at->second];
      ++line.hits;
      line.steps.insert(each.from.step);
      line.ranks.insert(each.from.rank);
    }
    std::string out = fmt::format("no fault: {}: {}\n", counted(result_.explained.size(), "finding"),
                                  result_.explained.front().what);
    for (size_t i = 0; i < lines.size() && (i < kShown || style_.wide || style_.all); ++i) {
      const Line& line = lines[i];
      const std::vector<int64_t> steps(line.steps.begin(), line.steps.end());
      const std::vector<int> ranks(line.ranks.begin(), line.ranks.end());
      const std::string on = session_.ranks().size() > 1 ? fmt::format(", {}", ranks_text(ranks)) : "";
      const TensorId& from = line.first->from;
      const std::string place = source_place(session_.node(from), false);
      out += fmt::format("  {} {}{}  {}  {}{}{}\n", steps.size() > 1 ? "steps" : "step", numbers_text(steps), on,
                         tensor_name(session_, from, style_), printable(line.first->evidence), place.empty() ? "" : "  ", place);
    }
    if (lines.size() > kShown && !style_.wide && !style_.all) out += fmt::format("  ... {} more{}\n", lines.size() - kShown, all_);
    return out;
  }

  /// Rules that gave no verdict, joined where the reason is the same.
  std::string problems() const {
    // It is not news that a network has no such layers; --wide shows all names.
    constexpr size_t kMostNames = 8, kMostIdle = 3;
    std::vector<std::pair<std::string_view, std::vector<std::string>>> by_reason;
    std::set<std::string_view> idle;
    for (const RuleProblem& problem : result_.rule_problems) {
      const auto same = [&](const auto& entry) { return entry.first == problem.reason; };
      auto found = std::find_if(by_reason.begin(), by_reason.end(), same);
      if (found == by_reason.end()) found = by_reason.insert(found, {problem.reason, {}});
      if (problem.kind == RuleProblemKind::kIdle) idle.insert(problem.reason);
      if (problem.rule != "*") found->second.push_back(printable(problem.rule));
    }
    std::string out;
    for (auto& [reason, rules] : by_reason) {
      const size_t most = idle.contains(reason) ? kMostIdle : kMostNames;
      const size_t more = style_.wide || style_.all || rules.size() <= most ? 0 : rules.size() - most;
      rules.resize(rules.size() - more);
      out += "not checked: ";
      if (!rules.empty()) out += fmt::format("{} {}", rules.size() == 1 ? "rule" : "rules", fmt::join(rules, ", "));
      if (more > 0) out += fmt::format(" and {} more{}", more, all_);
      out += fmt::format("{}{}\n", rules.empty() ? "" : ": ", lines_text(reason));
    }
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

  std::string table() {
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
    for (size_t i = 0; i < hits.size() && shown < most; ++i) {
      if (ranks_of[i].empty()) continue;
      ++shown;
      const Hit& hit = hits[i];
      const Node& node = session_.node(hit.tensor);
      const bool first = first_of_step.insert({hit.tensor.rank, hit.tensor.step, hit.tensor.graph}).second;
      std::vector<Table::Cell> row;
      if (style_.numbered) row.emplace_back(std::to_string(i + 1));
      if (style_.gate) row.emplace_back(std::string(gate_status_name(gate_status_of(style_, i))));
      if (ranks) row.emplace_back(ranks_numbers(ranks_of[i]));
      if (graphs) row.emplace_back(std::to_string(hit.tensor.graph));
      row.emplace_back(std::to_string(hit.tensor.step), first ? Paint::kStrong : Paint::kNone);
      row.emplace_back(std::string(severity_name(hit.severity)), paint_for(hit.severity));
      row.emplace_back(rule_name(hit));
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

  static std::string rule_name(const Hit& hit) { return printable(hit.abbr.empty() ? hit.rule : hit.abbr); }

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

  std::string groups() {
    struct Group {
      std::vector<const Hit*> hits;
      std::map<GateStatus, size_t> standing;
      std::set<int64_t> steps;
      std::set<std::string> rules;
    };
    std::vector<std::string> order;
    std::map<std::string, Group> groups;
    for (size_t i = 0; i < result_.hits.size(); ++i) {
      const Hit& hit = result_.hits[i];
      const Node& node = session_.node(hit.tensor);
      const std::string scope = node.kind == NodeKind::kParameter ? "(parameters)"
                                : node.scope.empty()              ? "(top level)"
                                                                  : node.scope;
      Group& group = groups[scope];
      if (group.hits.empty()) order.push_back(scope);
      group.hits.push_back(&hit);
      ++group.standing[gate_status_of(style_, i)];
      group.steps.insert(hit.tensor.step);
      group.rules.insert(rule_name(hit));
    }
    ShortNames short_scopes(order);
    std::vector<Table::Column> columns{{.title = "scope", .fit = Fit::kName}, {"hits", Align::kRight}};
    const GateStatus statuses[] = {GateStatus::kNew, GateStatus::kKnown, GateStatus::kSuppressed};
    if (style_.gate) {
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
      if (style_.gate) {
        for (GateStatus standing : statuses) row.emplace_back(std::to_string(group.standing[standing]));
      }
      row.emplace_back(numbers_text(std::vector<int64_t>(group.steps.begin(), group.steps.end())));
      row.emplace_back(fmt::format("{}", fmt::join(group.rules, ",")));
      const std::string name = printable(short_name(session_, first.tensor)) + slot_suffix(first.tensor.slot);
      const std::string elided = printable(elided_name(session_, session_.node(first.tensor).name)) + slot_suffix(first.tensor.slot);
      row.emplace_back(Table::Cell::name(name, name.size(), Paint::kNone, elided));
      row.emplace_back(what_text(first));
      table.add(std::move(row));
    }
    return table.text(style_);
  }

  std::string found_line() const {
    std::set<int64_t> steps;
    for (const Hit& hit : result_.hits) steps.insert(hit.tensor.step);
    // The steps of hits that were not kept are unknown.
    const bool all = result_.total_hits == result_.hits.size();
    const std::string where = all ? fmt::format(" in {} of {}", steps.size(), counted(result_.steps.size(), "step")) : "";
    std::string out = fmt::format("{}{}, on {}; {} not checked.", counted(result_.total_hits, "hit"), where,
                                  counted(result_.coverage.tensors, "tensor"), result_.coverage.not_checked);
    if (!all) out += fmt::format(" {} listed (--max-hits).", result_.hits.size());
    if (!result_.hits.empty()) {
      const TensorId& first = result_.hits.front().tensor;
      out += fmt::format(" First: step {}, {}.", first.step, tensor_name(session_, first, style_));
    }
    if (style_.place == Place::kScript) return out + "\n";
    std::vector<std::string> hints;
    if (!style_.group) hints.push_back("Grouped by scope: --group");
    if (!style_.wide) hints.push_back("all columns: --wide");
    hints.push_back("machine readable: --format json");
    hints.front()[0] = static_cast<char>(std::toupper(hints.front()[0]));
    return out + fmt::format(" {}\n", fmt::join(hints, "; "));
  }

  std::string clean_line() const {
    const Coverage& coverage = result_.coverage;
    const std::string rules = style_.rules.empty() ? "every watchpoint" : style_.rules;
    const auto unable = [&](const std::string& rule) {
      return std::any_of(result_.rule_problems.begin(), result_.rule_problems.end(), [&](const RuleProblem& problem) {
        return problem.rule == rule && problem.kind != RuleProblemKind::kIdle;
      });
    };
    const std::vector<std::string>& run = style_.rules_run;
    if (!run.empty() && std::all_of(run.begin(), run.end(), unable)) return "nothing could be checked\n";
    if (coverage.tensors == 0 && (result_.interrupted || !result_.rule_problems.empty())) return "nothing was checked\n";
    if (coverage.tensors == 0)
      return "nothing was checked: no tensor of these steps and ranks is named by a watchpoint\n";
    if (coverage.checked == 0) {
      // If one rule fails everywhere, no tensor was judged by every rule, although the others judged it.
      std::set<std::string_view> silent;
      for (const NotChecked& entry : result_.not_checked) silent.insert(entry.rule);
      for (const RuleProblem& problem : result_.rule_problems) silent.insert(problem.rule);
      const auto others =
          std::count_if(style_.rules_run.begin(), style_.rules_run.end(), [&](const std::string& rule) { return !silent.contains(rule); });
      if (others == 0) return "nothing could be checked\n";
      return fmt::format("clean otherwise: {} on {}\n", counted(static_cast<size_t>(others), "other rule"),
                         counted(coverage.tensors, "tensor"));
    }
    if (is_incomplete(result_))
      return fmt::format("clean otherwise: {} on {}\n", rules, counted(coverage.checked, "tensor"));
    return fmt::format("clean: {} of {}, every one checked against {}\n",
                       counted(coverage.checked, style_.tensors + " tensor"), counted(result_.steps.size(), "step"),
                       rules);
  }

  Session& session_;
  const CheckResult& result_;
  const ReportStyle& style_;
  const std::vector<bool> folded_;
  const std::string_view all_ = style_.place != Place::kScript ? " (all: --all)" : "";
};

}  // namespace

std::string check_report(Session& session, const CheckResult& result, const ReportStyle& style) {
  switch (style.format) {
    case Format::kTable: break;
    case Format::kJson: return json_text(check_answer(session, result, style.gate));
    case Format::kJsonl: return json_lines(check_answer(session, result, style.gate), "hits");
    case Format::kCsv: return check_csv(session, result, style);
    case Format::kMarkdown: return check_markdown(session, result, style);
    case Format::kJunit: return check_junit(session, result, style);
    case Format::kSarif: return check_sarif(session, result, style);
  }
  return fitted(CheckText(session, result, style).text(), style);
}

}  // namespace msdbg
