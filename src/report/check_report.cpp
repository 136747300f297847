// The findings of a check, for people.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "msdbg/answers.h"
#include "msdbg/rank_report.h"
#include "msdbg/report.h"
#include "report/check_formats.h"
#include "report/check_table.h"
#include "report/overflow_report.h"
#include "report/table.h"

namespace msdbg {
namespace {

class CheckText {
 public:
  CheckText(Session& session, const CheckResult& result, const ReportStyle& style)
      : session_(session), result_(result), style_(style) {}

  std::string text() {
    std::string out = causes();
    if (!result_.hits.empty()) out += style_.group ? hit_groups(session_, result_, style_) : hit_table(session_, result_, style_);
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
    const std::vector<std::string> lines = cause_lines(session_, result_);
    const size_t shown = style_.all ? lines.size() : std::min(lines.size(), kMostCauses);
    for (size_t i = 0; i < shown; ++i) out += lines[i] + "\n";
    if (shown < lines.size()) out += fmt::format("  ... {} more{}\n", counted(lines.size() - shown, "cause"), all_);
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
      const TensorId& first = earliest_hit(result_).tensor;
      const std::string rank = session_.ranks().size() > 1 ? fmt::format(", rank {}", first.rank) : "";
      out += fmt::format(" First: step {}{}, {}.", first.step, rank, tensor_name(session_, first, style_));
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
