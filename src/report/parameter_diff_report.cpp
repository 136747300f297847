// What changed between two sets of parameters.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "msdbg/answers.h"
#include "msdbg/checkpoint_report.h"
#include "report/follow_text.h"
#include "report/table.h"
#include "report/cell_text.h"
#include "report/markup.h"

namespace msdbg {
namespace {


constexpr ChangeKind kOrder[] = {ChangeKind::kChanged, ChangeKind::kRetyped, ChangeKind::kReshaped, ChangeKind::kRenamed,
                                 ChangeKind::kLost, ChangeKind::kAdded, ChangeKind::kNotCompared, ChangeKind::kUnchanged};

/// `float32[3,5]`, or `float32[3,5] -> float16[3,5]`.
std::string types_of(const ParameterChange& change) {
  if (change.kind == ChangeKind::kAdded) return type_text(change.dtype_b, change.shape_b);
  const std::string a = type_text(change.dtype_a, change.shape_a);
  if (change.kind == ChangeKind::kLost) return a;
  const std::string b = type_text(change.dtype_b, change.shape_b);
  if (change.kind == ChangeKind::kNotCompared && change.dtype_a == DType::kUnknown) return b;
  if (change.kind == ChangeKind::kNotCompared && change.dtype_b == DType::kUnknown) return a;
  return a == b ? a : a + " -> " + b;
}

std::string number_text(double value) { return std::isnan(value) ? "-" : format_short(value); }

uint64_t differing(const Comparison& values) { return values.count - values.within; }

/// `NaN 0 -> 75, Inf 3 -> 0`: counts of values that are not finite, if any.
std::string nonfinite_of(const Comparison& values) {
  std::string out;
  const auto add = [&](std::string_view word, uint64_t a, uint64_t b) {
    if (a + b == 0) return;
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", word, a == b ? std::to_string(a) : fmt::format("{} -> {}", a, b));
  };
  add("NaN", values.nan_a, values.nan_b);
  add("Inf", values.inf_a, values.inf_b);
  return out;
}

std::string remark_of(const ParameterChange& change) {
  std::string out = change.values ? nonfinite_of(*change.values) : "";
  if (change.kind == ChangeKind::kRenamed) out += fmt::format("{}now {}", out.empty() ? "" : "; ", printable(change.new_name));
  if (!change.note.empty()) out += fmt::format("{}{}", out.empty() ? "" : "; ", printable(change.note));
  return out;
}

std::string counts_text(const ParameterDiff& diff) {
  std::string out;
  for (const ChangeKind kind : kOrder) {
    if (const uint64_t n = diff.count(kind); n > 0) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", n, change_kind_name(kind));
  }
  return out.empty() ? "no parameters" : out;
}

std::string verdict_text(const ParameterDiff& diff) {
  const std::string_view word =
      diff.equal() ? "equal"
      : !diff.complete() && diff.count(ChangeKind::kUnchanged) + diff.count(ChangeKind::kNotCompared) == diff.changes.size()
          ? "not compared as a whole"
          : "different";
  std::string out = fmt::format("{}: {}", word, counts_text(diff));
  if (diff.interrupted) out += "; interrupted, the rest was not compared";
  const auto broken = std::ranges::count_if(diff.changes, [](const ParameterChange& change) { return change.breaks(); });
  if (broken > 0) out += fmt::format("; new NaN or Inf in {}", counted(static_cast<uint64_t>(broken), "parameter"));
  return out;
}

std::string table(const ParameterDiff& diff, const ReportStyle& style) {
  std::string out = verdict_text(diff) + "\n";
  Table sheet({{.title = "parameter", .fit = Fit::kName},
               {"change"},
               {.title = "type", .drop = 2},
               {"update ratio", Align::kRight},
               {"max change", Align::kRight},
               {.title = "elements", .align = Align::kRight, .drop = 1},
               {.title = "", .fit = Fit::kText, .drop = Table::kIfEmpty}});
  for (const ParameterChange& change : diff.changes) {
    if (change.kind == ChangeKind::kUnchanged && !style.wide) continue;
    const bool numbers = change.values && change.kind != ChangeKind::kRenamed;
    const bool bad = change.breaks() || change.kind == ChangeKind::kNotCompared;
    const std::string name = printable(change.name);
    sheet.add({Table::Cell::name(name, name.size()), std::string(change_kind_name(change.kind)), types_of(change),
               numbers ? number_text(update_ratio(*change.values)) : "-", numbers ? number_text(change.values->max_abs_error) : "-",
               numbers ? fmt::format("{} of {}", differing(*change.values), change.values->count) : "-",
               Table::Cell(remark_of(change), bad ? Paint::kError : Paint::kNone)});
  }
  return fitted(sheet.empty() ? out : out + sheet.text(style), style);
}

Answer object_of(const ParameterChange& change) {
  const auto side = [](DType dtype, const Shape& shape) -> Answer { return {{"dtype", dtype_name(dtype)}, {"shape", shape}}; };
  Answer out;
  out["name"] = change.name;
  out["change"] = change_kind_name(change.kind);
  out["new_name"] = change.new_name.empty() ? Answer() : Answer(change.new_name);
  // A parameter missing on one side has no type there.
  const bool only_one = change.kind == ChangeKind::kNotCompared;
  out["a"] =
      change.kind == ChangeKind::kAdded || (only_one && change.dtype_a == DType::kUnknown) ? Answer() : side(change.dtype_a, change.shape_a);
  out["b"] =
      change.kind == ChangeKind::kLost || (only_one && change.dtype_b == DType::kUnknown) ? Answer() : side(change.dtype_b, change.shape_b);
  if (change.values) {
    const Comparison& v = *change.values;
    const auto real = [](double value) { return number_answer(value); };
    out["values"] = {{"count", v.count},
                     {"differing", differing(v)},
                     {"bit_equal", v.bit_equal},
                     {"update_ratio", real(update_ratio(v))},
                     {"norm_a", real(v.norm_a)},
                     {"norm_b", real(v.norm_b)},
                     {"norm_difference", real(v.norm_error)},
                     {"max_abs_difference", real(v.max_abs_error)},
                     {"nan_a", v.nan_a},
                     {"nan_b", v.nan_b},
                     {"inf_a", v.inf_a},
                     {"inf_b", v.inf_b}};
  } else {
    out["values"] = Answer();
  }
  out["note"] = text_answer(change.note);
  return out;
}

const std::vector<std::string>& change_titles() {
  static const std::vector<std::string> kTitles = {"parameter", "change", "type",  "update_ratio", "max_abs_difference",
                                                   "differing", "count",  "nan_a", "nan_b",        "inf_a",
                                                   "inf_b",     "note"};
  return kTitles;
}

std::vector<std::string> fields_of(const ParameterChange& change) {
  std::vector<std::string> fields = {change.name, std::string(change_kind_name(change.kind)), types_of(change)};
  if (change.values) {
    const Comparison& v = *change.values;
    fields.push_back(format_double(update_ratio(v)));
    fields.push_back(format_double(v.max_abs_error));
    for (const uint64_t n : {differing(v), v.count, v.nan_a, v.nan_b, v.inf_a, v.inf_b}) fields.push_back(std::to_string(n));
  } else {
    fields.resize(fields.size() + 8);
  }
  std::string note = change.new_name.empty() ? change.note : "now " + change.new_name;
  fields.push_back(std::move(note));
  return fields;
}

}  // namespace

std::string parameter_diff_report(const ParameterDiff& diff, const ReportStyle& style) {
  std::string out;
  switch (style.format) {
    case Format::kJson: {
      Answer counts;
      for (const ChangeKind kind : kOrder)
        counts[kind == ChangeKind::kNotCompared ? "not_compared" : std::string(change_kind_name(kind))] = diff.count(kind);
      Answer object = {{"msdbg", kVersion},
                     {"a", diff.a},
                     {"b", diff.b},
                     {"equal", diff.equal()},
                     {"complete", diff.complete()},
                     {"counts", counts},
                     {"parameters", Answer::array()}};
      for (const ParameterChange& change : diff.changes) object["parameters"].push_back(object_of(change));
      return json_text(object);
    }
    case Format::kJsonl:
      for (const ParameterChange& change : diff.changes) out += json_line(object_of(change));
      return out;
    case Format::kCsv:
      out = csv_line(change_titles());
      for (const ParameterChange& change : diff.changes) out += csv_line(fields_of(change));
      return out;
    case Format::kMarkdown:
      out = verdict_text(diff) + "\n\n" + follow::markdown_head(change_titles());
      for (const ParameterChange& change : diff.changes) out += follow::markdown_line(fields_of(change));
      return out;
    default: return table(diff, style);
  }
}

}  // namespace msdbg
