#include "report/diff_formats.h"

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "msdbg/answers.h"
#include "msdbg/picture.h"
#include "report/follow_text.h"
#include "report/markup.h"
#include "report/table.h"

namespace msdbg {
namespace {

std::string entry_name(Session& b, const TensorDiff& entry) {
  return fmt::format("{}:{} step {} rank {}{}", b.node(entry.b).name, slot_name(entry.b.slot), entry.b.step, entry.b.rank,
                     entry.b.execution > 0 ? fmt::format(" execution {}", entry.b.execution) : "");
}

}  // namespace

std::string diff_csv(Session& a, Session& b, const DiffResult& result) {
  // The columns are the keys of JSON: one page describes both.
  const Answer titles = diff_entry_answer(a, b, result.tensors.empty() ? TensorDiff() : result.tensors.front());
  std::vector<CsvColumn> columns;
  for (auto it = titles.begin(); it != titles.end(); ++it) columns.push_back({it.key(), it.key()});
  Answer rows = Answer::array();
  for (const TensorDiff& entry : result.tensors) rows.push_back(diff_entry_answer(a, b, entry));
  return csv_text(columns, rows);
}

std::string diff_markdown(Session& a, Session& b, const DiffResult& result) {
  std::string out = fmt::format("**{}**\n\nA: {}  \nB: {}\n\n", markdown_cell(diff_verdict(a, b, result)), markdown_cell(a.info().source),
                                markdown_cell(b.info().source));
  std::string rows;
  for (const TensorDiff& entry : result.tensors) {
    if (entry.state != DiffState::kDifferent && entry.state != DiffState::kReshaped) continue;
    const std::string share = entry.compared() && entry.evidence == DiffEvidence::kElements
                                  ? fmt::format("{:.2f} %", 100 * entry.measures.within_share())
                                  : "";
    rows += fmt::format("| {} | {} | {} | {} | {} | {} |\n", entry.b.step,
                        markdown_cell(follow::tensor_text(b, entry.b, true)), markdown_cell(diff_what(entry)),
                        share, entry.amplification ? format_short(*entry.amplification, 3) : "", diff_role_name(entry.role));
  }
  if (!rows.empty())
    out += "| step | tensor | what differs | within tolerance | amplification | role |\n|---|---|---|---|---|---|\n" + rows + "\n";
  const auto list = [&](Session& session, const std::vector<UnmatchedNode>& nodes, const char* side) {
    for (const UnmatchedNode& unmatched : nodes) {
      out +=
          fmt::format("- only in {}: {}\n", side, markdown_cell(session.graph(unmatched.rank, unmatched.graph)->node(unmatched.node).name));
    }
  };
  list(a, result.only_a, "A");
  list(b, result.only_b, "B");
  for (const std::string& text : result.unknown_edges) out += fmt::format("- edges unknown: {}\n", markdown_cell(text));
  for (const DiffNote& note : result.notes) out += fmt::format("- {}\n", markdown_cell(note.text));
  for (const auto& [reason, entries] : diff_uncompared(result)) {
    out += fmt::format("- {} not compared: {}\n", counted(entries.size(), "tensor"), markdown_cell(reason));
  }
  return out;
}

std::string diff_junit(Session&, Session& b, const DiffResult& result) {
  // One case per tensor: equal tensors pass, and the server shows how much was compared.
  std::string cases;
  std::map<std::string, int> seen;
  for (const TensorDiff& entry : result.tensors) {
    std::string name = entry_name(b, entry);
    if (const int turn = ++seen[name]; turn > 1) name += fmt::format(" ({})", turn);
    cases += fmt::format("    <testcase classname=\"msdbg.diff\" name=\"{}\"", xml_text(name));
    switch (entry.state) {
      case DiffState::kEqual:
      case DiffState::kClose: cases += "/>\n"; break;
      case DiffState::kUncompared: cases += fmt::format("><skipped message=\"{}\"/></testcase>\n", xml_text(entry.reason)); break;
      case DiffState::kDifferent:
      case DiffState::kReshaped:
        cases += fmt::format("><failure message=\"{}\">{}</failure></testcase>\n", xml_text(diff_what(entry)),
                             xml_text(diff_why(entry, b.node(entry.b).kind)));
    }
  }
  const uint64_t failures = result.different + result.reshaped;
  const std::string counts = fmt::format("tests=\"{}\" failures=\"{}\" errors=\"0\"", result.tensors.size(), failures);
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuites name=\"msdbg diff\" {0}>\n  <testsuite name=\"diff\" {0} skipped=\"{2}\">\n{1}  "
      "</testsuite>\n</testsuites>\n",
      counts, cases, result.uncompared);
}

}  // namespace msdbg
