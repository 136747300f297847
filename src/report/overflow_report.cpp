#include "report/overflow_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "msdbg/table.h"
#include "report/table.h"

namespace msdbg {

std::string overflow_table(const Session& session, std::span<const OverflowRecord> records, const ReportStyle& style) {
  constexpr size_t kShown = 12;
  if (records.empty()) return "";
  const bool ranks = session.ranks().size() > 1;
  std::vector<Table::Column> columns;
  if (ranks) columns.push_back({"rank", Align::kRight});
  columns.push_back({"step", Align::kRight});
  columns.push_back({.title = "overflowed", .fit = Fit::kName});
  columns.push_back({"op"});
  columns.push_back({"unit"});
  columns.push_back({"task", Align::kRight});
  columns.push_back({"stream", Align::kRight});
  columns.push_back({"source"});
  Table table(std::move(columns));
  const size_t shown = style.wide || style.all ? records.size() : std::min(records.size(), kShown);
  for (const OverflowRecord& record : records.first(shown)) {
    std::vector<Table::Cell> row;
    if (ranks) row.emplace_back(std::to_string(record.rank));
    row.emplace_back(std::to_string(record.step));
    if (record.tensor) {
      const Node& node = session.node(*record.tensor);
      const std::string name = printable(short_name(session, *record.tensor));
      row.push_back(Table::Cell::name(style.wide ? printable(node.name) : name, name.size()));
      row.emplace_back(printable(node.op.get()));
    } else {
      row.emplace_back("(no dumped value has its numbers)");
      row.emplace_back("");
    }
    row.emplace_back(printable(record.unit));
    row.emplace_back(std::to_string(record.task));
    row.emplace_back(std::to_string(record.stream));
    row.emplace_back(record.tensor ? source_place(session.node(*record.tensor), style.wide) : "");
    table.add(std::move(row));
  }
  std::string out = fmt::format("overflow records of the hardware: {}, in execution order\n{}", counted(records.size(), "kernel"),
                                table.text(style));
  if (shown < records.size()) out += fmt::format("  ... {} more (all: --wide)\n", records.size() - shown);
  return out;
}

}  // namespace msdbg
