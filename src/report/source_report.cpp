// The user's program with its findings, for a terminal and for programs.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "msdbg/answers.h"
#include "msdbg/follow_report.h"
#include "report/follow_text.h"
#include "report/table.h"

namespace msdbg {
namespace {


constexpr size_t kNodesShown = 2;

/// Operator types of a line, with their numbers: `MatMul, 2 ReluGrad`.
std::string operators_text(const SourceRow& row) {
  std::vector<std::pair<std::string, size_t>> types;
  for (const NodeRef& ref : row.nodes) {
    const std::string type = printable(ref.graph->node(ref.node).op);
    const auto at = std::find_if(types.begin(), types.end(), [&](const auto& each) { return each.first == type; });
    if (at == types.end())
      types.emplace_back(type, 1);
    else
      ++at->second;
  }
  std::string out;
  for (size_t i = 0; i < types.size() && i < kNodesShown; ++i) {
    out += (i > 0 ? ", " : "") + (types[i].second > 1 ? fmt::format("{} {}", types[i].second, types[i].first) : types[i].first);
  }
  if (const size_t more = types.size() - std::min(types.size(), kNodesShown); more > 0)
    out += fmt::format(" and {} more {}", more, more == 1 ? "type" : "types");
  return out;
}

std::string hits_text(const SourceRow& row) {
  std::string out;
  for (const SourceHit& hit : row.hits) {
    out += fmt::format("{}{}", out.empty() ? "" : " ", printable(hit.abbr));
    if (hit.count > 1) out += fmt::format(" x{}", hit.count);
  }
  return out;
}

std::string worst_text(const SourceRow& row) {
  if (!row.worst) return "";
  return follow::values_text(*row.worst) + (nonfinite_text(*row.worst).empty() ? "" : fmt::format(" (step {})", row.worst_tensor->step));
}

std::vector<bool> shown_rows(const SourceFile& file, size_t context) {
  std::vector<bool> shown(file.rows.size(), context == SIZE_MAX);
  for (size_t i = 0; i < file.rows.size() && context != SIZE_MAX; ++i) {
    if (file.rows[i].nodes.empty()) continue;
    const size_t from = i > context ? i - context : 0, to = std::min(file.rows.size() - 1, i + context);
    for (size_t k = from; k <= to; ++k) shown[k] = true;
  }
  return shown;
}

std::string file_text(const SourceFile& file, const ReportStyle& style, size_t context) {
  std::string out = printable(file.path);
  if (!file.read_from.empty() && file.read_from != file.path) out += fmt::format(" (read from {})", printable(file.read_from));
  out += "\n";
  if (!file.note.empty()) out += fmt::format("  note: {}\n", printable(file.note));
  const bool markdown = style.format == Format::kMarkdown;
  std::string rows;
  Table table({{"line", Align::kRight},
               {.title = "code", .fit = Fit::kText, .least = 34},
               {.title = "operators", .fit = Fit::kText, .drop = 1, .least = 12},
               {.title = "hits", .fit = Fit::kText, .least = 12},
               {.title = "worst", .fit = Fit::kText, .least = 20}});
  const std::vector<bool> shown = shown_rows(file, context);
  bool gap = false;
  for (size_t i = 0; i < file.rows.size(); ++i) {
    const SourceRow& row = file.rows[i];
    if (!shown[i]) {
      gap = true;
      continue;
    }
    if (gap && !table.empty()) table.add({"...", "", "", "", ""});
    gap = false;
    std::string code = printable(row.code);
    if (row.differs) code += "   [ran: " + printable(row.recorded_code) + "]";
    const std::string hits = hits_text(row), worst = worst_text(row);
    if (markdown) rows += follow::markdown_line({std::to_string(row.line), code, operators_text(row), hits, worst});
    const bool bad = row.worst && !nonfinite_text(*row.worst).empty();
    table.add({std::to_string(row.line), code, operators_text(row), Table::Cell(hits, hits.empty() ? Paint::kNone : Paint::kError),
               Table::Cell(worst, bad ? Paint::kError : Paint::kNone)});
  }
  if (!markdown) return out + table.text(style);
  return fmt::format("## {}\n{}{}", out, follow::markdown_head({"line", "code", "operators", "hits", "worst"}), rows);
}

}  // namespace

std::string source_report(Session& session, const std::vector<SourceFile>& files, const CheckResult& result, const ReportStyle& style,
                          size_t context) {
  if (style.format == Format::kJson) return json_text(lines_answer(session, files, result));
  if (style.format == Format::kJsonl) {
    Answer answer = lines_answer(session, files, result), lines = Answer::array();
    for (Answer& file : answer["files"]) {
      for (Answer& line : file["lines"]) lines.push_back(std::move(line));
      file.erase("lines");
    }
    answer["lines"] = std::move(lines);
    return json_lines(answer, "lines");
  }
  std::string out;
  uint64_t findings = 0;
  for (const SourceFile& file : files) {
    out += (out.empty() ? "" : "\n") + file_text(file, style, context);
    findings += file.findings;
  }
  out += fmt::format("\n{} on these lines, {} {}; {} of {} tensors were checked\n", counted(findings, "finding"),
                     result.steps.size() == 1 ? "step" : "steps", numbers_text(result.steps), result.coverage.checked,
                     result.coverage.tensors);
  if (findings < result.total_hits)
    out += fmt::format("{} on nodes without a line, such as parameters: {} lists them\n",
                       counted(result.total_hits - findings, "finding"), hint_text(session, {"check", {}}, style.place));
  if (result.interrupted) out += "interrupted: not every tensor was checked\n";
  return style.format == Format::kTable ? fitted(std::move(out), style) : out;
}

}  // namespace msdbg
