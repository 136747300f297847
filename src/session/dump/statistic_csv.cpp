#include "session/dump/statistic_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace msdbg::dump {
namespace {

enum Column : size_t {
  kOpType,
  kOpName,
  kTask,
  kStream,
  kTimestamp,
  kIo,
  kSlot,
  kSize,
  kType,
  kShape,
  kMax,
  kMin,
  kAvg,
  kCount,
  kNegative,
  kPositive,
  kNan,
  kNegativeInf,
  kPositiveInf,
  kZero,
  kL2Norm,
  kColumns
};

// "Negative Zero Count" counts elements below zero, despite its title; likewise "Positive Zero Count".
constexpr std::array<std::string_view, kColumns> kTitles = {"op type",
                                                            "op name",
                                                            "task id",
                                                            "stream id",
                                                            "timestamp",
                                                            "io",
                                                            "slot",
                                                            "data size",
                                                            "data type",
                                                            "shape",
                                                            "max value",
                                                            "min value",
                                                            "avg value",
                                                            "count",
                                                            "negative zero count",
                                                            "positive zero count",
                                                            "nan count",
                                                            "negative inf count",
                                                            "positive inf count",
                                                            "zero count",
                                                            "l2norm value"};

struct Columns {
  std::array<std::optional<size_t>, kColumns> at;
  size_t width = 0;  ///< number of fields in the heading
};

/// Commas within double quotes do not separate fields.
std::vector<std::string_view> split_row(std::string_view line) {
  std::vector<std::string_view> fields;
  size_t begin = 0;
  bool quoted = false;
  for (size_t i = 0; i <= line.size(); ++i) {
    if (i < line.size() && line[i] == '"') quoted = !quoted;
    if (i < line.size() && (quoted || line[i] != ',')) continue;
    std::string_view field = trim(line.substr(begin, i - begin));
    if (field.size() >= 2 && field.front() == '"' && field.back() == '"') field = field.substr(1, field.size() - 2);
    fields.push_back(field);
    begin = i + 1;
  }
  return fields;
}

bool is_heading(std::string_view line) { return starts_with_nocase(trim(line), "op type,"); }

Columns find_columns(std::string_view heading) {
  Columns columns;
  const std::vector<std::string_view> titles = split_row(heading);
  columns.width = titles.size();
  for (size_t i = 0; i < titles.size(); ++i) {
    const std::string title = to_lower(titles[i]);
    for (size_t column = 0; column < kColumns; ++column) {
      if (title == kTitles[column]) columns.at[column] = i;
    }
  }
  return columns;
}

std::optional<Shape> parse_shape(std::string_view text) {
  text = trim(text);
  if (!text.starts_with('(') || !text.ends_with(')')) return std::nullopt;
  Shape shape;
  for (std::string_view part : split(text.substr(1, text.size() - 2), ',')) {
    part = trim(part);
    if (part.empty()) continue;
    const std::optional<int64_t> length = parse_digits(part);
    if (!length) return std::nullopt;
    shape.push_back(*length);
  }
  return shape;
}

class RowReader {
 public:
  RowReader(const Columns& columns, std::string_view line) : columns_(columns), fields_(split_row(line)) {}

  std::optional<StatisticRow> read() {
    StatisticRow row;
    FileName& name = row.name;
    const std::string_view io = text(kIo);
    const std::optional<int64_t> slot = parse_digits(text(kSlot));
    if (text(kOpType).empty() || (io != "input" && io != "output") || !slot || *slot > kMaxSlot) return std::nullopt;
    name.kind = FileKind::kStatistics;
    row.op_type = text(kOpType);
    row.op = text(kOpName);
    name.io = io == "input" ? Io::kInput : Io::kOutput;
    name.slot = static_cast<uint32_t>(*slot);
    name.task = parse_digits(text(kTask)).value_or(0);
    name.stream = parse_digits(text(kStream)).value_or(0);
    name.timestamp = static_cast<uint64_t>(parse_digits(text(kTimestamp)).value_or(0));
    name.format = "DefaultFormat";
    row.dtype_text = text(kType);
    row.dtype = dtype_from_name(row.dtype_text);
    row.bytes = static_cast<uint64_t>(parse_digits(text(kSize)).value_or(0));
    const std::optional<Shape> shape = parse_shape(text(kShape));
    row.shape = shape.value_or(Shape());
    row.stats.dtype = row.dtype;
    if (const std::optional<uint64_t> count = shape ? element_count(*shape) : std::nullopt) {
      row.stats.count = *count;
      row.stats.known |= kStatCount;
    }
    read_counts(row.stats);
    read_values(row.stats);
    row.problem = compare_counts(row.stats);
    return row;
  }

 private:
  std::string_view text(Column column) const {
    const std::optional<size_t> at = columns_.at[column];
    return at && *at < fields_.size() ? fields_[*at] : std::string_view();
  }

  void count(Column column, StatField field, uint64_t& out, Stats& stats) {
    const std::optional<int64_t> value = parse_digits(text(column));
    if (!value) return;
    out = static_cast<uint64_t>(*value);
    stats.known |= field;
  }

  void read_counts(Stats& stats) {
    count(kCount, kStatCount, stats.count, stats);
    count(kNegative, kStatNeg, stats.neg_count, stats);
    count(kPositive, kStatPos, stats.pos_count, stats);
    count(kNan, kStatNan, stats.nan_count, stats);
    count(kNegativeInf, kStatNegInf, stats.neg_inf_count, stats);
    count(kPositiveInf, kStatPosInf, stats.pos_inf_count, stats);
    count(kZero, kStatZero, stats.zero_count, stats);
    // Since 2.3.0, recognizable by a comma at the end of each line, Inf also counts as positive or negative.
    if (fields_.size() <= columns_.width) return;
    finite_only(kStatPos, stats.pos_count, kStatPosInf, stats.pos_inf_count, stats);
    finite_only(kStatNeg, stats.neg_count, kStatNegInf, stats.neg_inf_count, stats);
  }

  /// Checks partial counts against the total, from which the code below subtracts them.
  static Status compare_counts(Stats& stats) {
    const auto sum = [](std::initializer_list<uint64_t> counts) {
      uint64_t total = 0;
      for (const uint64_t count : counts) total = count > UINT64_MAX - total ? UINT64_MAX : total + count;
      return total;
    };
    // In releases that the lines do not identify, Inf may also count as positive or negative.
    const uint64_t nonfinite = sum({stats.nan_count, stats.pos_inf_count, stats.neg_inf_count});
    const uint64_t ordered = sum({stats.nan_count, stats.neg_count, stats.pos_count, stats.zero_count});
    if (!stats.knows(kStatCount)) stats.count = std::max({stats.count, nonfinite, ordered});
    if (nonfinite <= stats.count && ordered <= stats.count) return {};
    return {Code::kCorrupt,
            fmt::format("the counts contradict each other: {} elements, but {} NaN, {} Inf, {} -Inf, {} negative, {} positive and {} zero",
                        stats.count, stats.nan_count, stats.pos_inf_count, stats.neg_inf_count, stats.neg_count, stats.pos_count,
                        stats.zero_count)};
  }

  void finite_only(StatField field, uint64_t& count, StatField inf_field, uint64_t inf_count, Stats& stats) {
    if (stats.knows(inf_field)) {
      count -= std::min(count, inf_count);
    } else {
      stats.known &= ~uint32_t{field};
    }
  }

  void read_values(Stats& stats) {
    // Up to 2.3.0-rc2 the extremes are those of the finite elements, `null` without any. Later releases include Inf, and any NaN
    // makes the extremes NaN. We define extremes over finite elements, so only finite texts are used.
    const std::optional<double> max = value(kMax, kStatMax, stats.max, stats);
    const std::optional<double> min = value(kMin, kStatMin, stats.min, stats);
    const std::optional<double> mean = value(kAvg, kStatMean, stats.mean, stats);
    const std::optional<double> norm = value(kL2Norm, kStatL2Norm, stats.l2_norm, stats);
    const bool integral = stats.dtype != DType::kUnknown && !is_float(stats.dtype) && is_evaluable(stats.dtype);
    for (const std::optional<double>& number : {max, min, mean, norm}) {
      if (number && std::isnan(*number)) at_least_one(kStatNan, stats.nan_count, stats);
    }
    if (max && std::isinf(*max) && *max > 0) at_least_one(kStatPosInf, stats.pos_inf_count, stats);
    if (min && std::isinf(*min) && *min < 0) at_least_one(kStatNegInf, stats.neg_inf_count, stats);
    // A finite norm proves that no element is NaN or Inf: it is a sum over all of them.
    if (integral || (norm && std::isfinite(*norm))) {
      none(kStatNan, stats.nan_count, stats);
      none(kStatPosInf, stats.pos_inf_count, stats);
      none(kStatNegInf, stats.neg_inf_count, stats);
    }
  }

  std::optional<double> value(Column column, StatField field, double& out, Stats& stats) {
    if (text(column) == "null") {
      stats.known |= field;  // no finite element; our statistics represent that as NaN
      return std::nullopt;
    }
    const std::optional<double> number = parse_double(text(column));
    if (number && std::isfinite(*number)) {
      out = *number;
      stats.known |= field;
    }
    return number;
  }

  void at_least_one(StatField field, uint64_t& count, const Stats& stats) {
    if (!stats.knows(field)) count = std::max<uint64_t>(count, 1);
  }

  void none(StatField field, const uint64_t& count, Stats& stats) {
    if (!stats.knows(field) && count == 0) stats.known |= field;
  }

  const Columns& columns_;
  std::vector<std::string_view> fields_;
};

}  // namespace

StatisticTable parse_statistics(std::span<const std::string> lines) {
  StatisticTable table;
  Columns columns;
  bool usable = false;
  size_t bad = 0, first_bad = 0, contradictions = 0;
  std::string first_contradiction;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].empty()) continue;
    if (is_heading(lines[i])) {
      columns = find_columns(lines[i]);  // another run may append its own heading
      std::string missing;
      for (Column needed : {kOpType, kOpName, kIo, kSlot}) {
        if (!columns.at[needed]) missing += (missing.empty() ? "'" : ", '") + std::string(kTitles[needed]) + "'";
      }
      usable = missing.empty();
      if (!usable) table.problems.push_back(fmt::format("line {}: the heading lacks the columns {}", i + 1, missing));
      continue;
    }
    std::optional<StatisticRow> row = usable ? RowReader(columns, lines[i]).read() : std::nullopt;
    if (row) {
      row->line = static_cast<uint32_t>(i + 1);
      if (!row->problem.ok() && contradictions++ == 0) first_contradiction = fmt::format("line {}: {}", i + 1, row->problem.message());
      table.rows.push_back(std::move(*row));
    } else if (bad++ == 0) {
      first_bad = i + 1;
    }
  }
  for (StatisticRow& row : table.rows) {
    row.name.op_type = row.op_type;
    row.name.op = row.op;
  }
  if (bad > 0) table.problems.push_back(fmt::format("{} lines cannot be read, the first is line {}", bad, first_bad));
  if (contradictions > 0)
    table.problems.push_back(fmt::format("{} lines are not used, the first is {}", contradictions, first_contradiction));
  return table;
}

}  // namespace msdbg::dump
