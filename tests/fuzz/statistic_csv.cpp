// statistic.csv: the input is the file.
#include "fuzz/input.h"
#include "session/dump/statistic_csv.h"

using namespace msdbg;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  std::vector<std::string> lines;
  while (!input.empty()) lines.emplace_back(input.line());
  const dump::StatisticTable table = dump::parse_statistics(lines);
  fuzz::require(table.rows.size() <= lines.size(), "more rows than lines");
  for (const dump::StatisticRow& row : table.rows) {
    fuzz::require(row.line >= 1 && row.line <= lines.size(), "a row of no line");
    fuzz::expect_no_defect(row.problem);
    fuzz::require(!row.name.op_type.empty(), "a row without an operator");
  }
  return 0;
}
