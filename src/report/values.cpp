// One tensor: its statistics in a line, its elements, a name to copy.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <list>
#include <mutex>

#include "msdbg/report.h"
#include "msdbg/short_names.h"
#include "report/table.h"

namespace msdbg {
namespace {


std::string element_text(DType dtype, double value) {
  if (dtype == DType::kBool) return value != 0 ? "True" : "False";
  return is_float(dtype) ? format_short(value, 6) : fmt::format("{:.0f}", value);
}

/// The shown positions of an axis: all, or as many from each end, with a gap between.
struct Shown {
  std::vector<uint64_t> places;
  size_t gap_after = SIZE_MAX;  ///< index into places

  Shown(uint64_t length, uint64_t room) {
    if (length <= room) {
      for (uint64_t i = 0; i < length; ++i) places.push_back(i);
      return;
    }
    const uint64_t head = (room + 1) / 2;
    for (uint64_t i = 0; i < head; ++i) places.push_back(i);
    gap_after = head == 0 ? SIZE_MAX : head - 1;
    for (uint64_t i = length - (room - head); i < length; ++i) places.push_back(i);
  }
};

}  // namespace

Result<Format> parse_format(std::string_view text) {
  const std::string word = to_lower(trim(text));
  if (word == "table") return Format::kTable;
  if (word == "json") return Format::kJson;
  if (word == "jsonl") return Format::kJsonl;
  if (word == "csv") return Format::kCsv;
  if (word == "markdown" || word == "md") return Format::kMarkdown;
  if (word == "junit") return Format::kJunit;
  if (word == "sarif") return Format::kSarif;
  return Status(Code::kInvalidArgument,
                fmt::format("format '{}' is not known; use table, json, jsonl, csv, markdown, junit or sarif", printable(text)));
}

std::string nonfinite_text(const Stats& stats) {
  struct Kind {
    uint64_t count;
    uint32_t field;
    std::string_view name;
  };
  std::vector<Kind> present;
  for (const Kind& kind : {Kind{stats.nan_count, kStatNan, "NaN"}, Kind{stats.pos_inf_count, kStatPosInf, "+Inf"},
                           Kind{stats.neg_inf_count, kStatNegInf, "-Inf"}}) {
    if (kind.count > 0) present.push_back(kind);
  }
  std::stable_sort(present.begin(), present.end(), [](const Kind& a, const Kind& b) { return a.count > b.count; });
  std::string out;
  for (const Kind& kind : present) {
    // A statistic.csv without counts still shows that the kind occurs.
    const std::string count = stats.knows(kind.field) ? std::to_string(kind.count) : "some";
    const std::string of = out.empty() && stats.knows(kStatCount) ? fmt::format(" of {}", stats.count) : "";
    out += fmt::format("{}{}{} {}", out.empty() ? "" : ", ", count, of, kind.name);
  }
  return out;
}

std::string stats_line(const Stats& stats) {
  std::string out = stats.knows(kStatCount) ? counted(stats.count, "element") : "number of elements unknown";
  const bool all_finite = stats.nan_count + stats.inf_count() == 0;
  if (stats.knows(kStatCount | kStatNan | kStatPosInf | kStatNegInf) && !all_finite)
    out += fmt::format(", {} finite", stats.finite_count());
  std::string values;
  auto add = [&](std::string_view name, double value, uint32_t field) {
    if (stats.knows(field) && !std::isnan(value))
      values += fmt::format("{}{} {}", values.empty() ? "" : "  ", name, format_short(value));
  };
  add("min", stats.min, kStatMin);
  add("max", stats.max, kStatMax);
  add("mean", stats.mean, kStatMean);
  add("std", stats.std, kStatStd);
  if (!values.empty()) out += ": " + values;
  std::string rest;
  auto add_count = [&](std::string_view name, uint64_t count, uint32_t field) {
    if (count == 0) return;
    rest += fmt::format("{}{} {}", rest.empty() ? "" : ", ", stats.knows(field) ? std::to_string(count) : "some", name);
  };
  add_count(stats.zero_count == 1 ? "zero" : "zeros", stats.zero_count, kStatZero);
  add_count("NaN", stats.nan_count, kStatNan);
  add_count("+Inf", stats.pos_inf_count, kStatPosInf);
  add_count("-Inf", stats.neg_inf_count, kStatNegInf);
  return rest.empty() ? out : out + "   " + rest;
}

std::string elements_table(const TensorView& view, size_t max_rows, size_t width) {
  if (!is_evaluable(view.dtype)) return fmt::format("  elements of type {} cannot be shown\n", dtype_name(view.dtype));
  if (view.count == 0) return "  no elements\n";
  if (max_rows == 0) return "";
  const uint64_t columns = view.shape.empty() ? 1 : static_cast<uint64_t>(view.shape.back());
  const uint64_t rows = view.count / columns;
  const std::vector<int64_t> outer(view.shape.begin(), view.shape.empty() ? view.shape.end() : view.shape.end() - 1);

  // The widest shown element determines how many fit: start from a cautious guess and narrow down.
  const Shown shown_rows(rows, rows <= max_rows ? rows : std::max<size_t>(1, max_rows - 1));
  std::vector<std::string> labels;
  size_t label_width = 0;
  for (uint64_t row : shown_rows.places) {
    labels.push_back(outer.empty() ? "" : shape_text(coordinates(row, outer)));
    label_width = std::max(label_width, labels.back().size());
  }
  auto cell_width = [&](const Shown& shown) {
    size_t widest = 1;
    for (uint64_t row : shown_rows.places) {
      for (uint64_t column : shown.places)
        widest = std::max(widest, element_text(view.dtype, view.at(row * columns + column)).size());
    }
    return widest;
  };
  const size_t room = width > label_width + 6 ? width - label_width - 6 : 8;
  uint64_t fit = std::max<uint64_t>(1, room / 4);
  Shown shown_columns(columns, fit);
  size_t cell = cell_width(shown_columns);
  fit = std::max<uint64_t>(1, room / (cell + 1));
  if (fit < shown_columns.places.size()) shown_columns = Shown(columns, fit);

  std::string out;
  for (size_t i = 0; i < shown_rows.places.size(); ++i) {
    std::string line = "  " + labels[i] + std::string(label_width - labels[i].size(), ' ');
    for (size_t j = 0; j < shown_columns.places.size(); ++j) {
      const std::string text =
          element_text(view.dtype, view.at(shown_rows.places[i] * columns + shown_columns.places[j]));
      line += std::string(cell - std::min(cell, text.size()) + 1, ' ') + text;
      if (j == shown_columns.gap_after) line += " ...";
    }
    out += line + '\n';
    if (i == shown_rows.gap_after) out += fmt::format("  ... {} rows more\n", rows - shown_rows.places.size());
  }
  return out;
}

namespace {

template <typename F>
std::string from_names(const Session& session, const F& form) {
  // Names of the sessions used last: two when they are compared, few at a prompt.
  constexpr size_t kKept = 4;
  static std::mutex mutex;
  static std::list<ShortNames> kept;
  const std::lock_guard lock(mutex);
  const auto graphs = session.graphs();
  auto found = std::find_if(kept.begin(), kept.end(), [&](ShortNames& names) { return names.is_of(graphs); });
  if (found == kept.end()) {
    if (kept.size() == kKept) kept.pop_back();
    found = kept.emplace(kept.begin(), graphs);
  }
  kept.splice(kept.begin(), kept, found);
  return form(kept.front());
}

}  // namespace

std::string short_name(const Session& session, const TensorId& id) { return short_name(session, session.node(id).name); }

std::string short_name(const Session& session, std::string_view full_name) {
  return from_names(session, [&](ShortNames& names) { return names.of(full_name); });
}

std::string elided_name(const Session& session, std::string_view full_name) {
  return from_names(session, [&](ShortNames& names) { return names.elided(full_name); });
}

}  // namespace msdbg
