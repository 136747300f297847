// Parses statistic.csv: one line of statistics per tensor. Pure functions on the file's lines; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "msdbg/session.h"
#include "session/dump/file_name.h"

namespace msdbg::dump {

struct StatisticRow {
  std::string op_type, op;
  FileName name;  ///< the fields that a tensor file's name would have; its texts are those of this row
  Shape shape;
  DType dtype = DType::kUnknown;
  uint64_t bytes = 0;
  std::string dtype_text;  ///< as written
  uint32_t line = 0;       ///< in the file, from 1
  Stats stats;
  Status problem;  ///< kCorrupt when the counts contradict each other
};

struct StatisticTable {
  std::vector<StatisticRow> rows;
  std::vector<std::string> problems;  ///< missing columns, unreadable lines, contradictory lines
};

/// Finds columns by their titles: any order, subset or additional columns are accepted if the columns that name the tensor exist.
/// `Stats::known` says which statistics a row really has. NaN and Inf counts that follow from the printed extremes are set; a count
/// that is only known to be positive is 1 without its bit.
StatisticTable parse_statistics(std::span<const std::string> lines);

}  // namespace msdbg::dump
