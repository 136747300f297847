// Comparing losses and metrics: C++ support for msdbg.series.
#include "script/bind_series.h"

#include <fmt/format.h>

#include <ranges>

#include "msdbg/file.h"
#include "msdbg/series.h"
#include "script/objects.h"
#include "script/push_answer.h"

namespace msdbg::script {
namespace {

// core.read_series(path, pattern, column) -> { source, what, counted, steps = {}, values = {} }
int read_series(lua_State* L) {
  const std::string path = text_argument(L, 1, "series.read: path");
  const Series series = value_or_throw(
      parse_series(file_text(path, "series.read"), path, {text_at(L, 2).value_or(""), text_at(L, 3).value_or("")}));
  lua_newtable(L);
  set_field(L, "source", series.source);
  set_field(L, "what", series.what);
  set_field(L, "counted", series.counted);
  set_field(L, "late", series.late);
  set_field(L, "steps", series.points | std::views::transform(&SeriesPoint::step));
  set_field(L, "values", series.points | std::views::transform(&SeriesPoint::value));
  return 1;
}

Series series_at(lua_State* L, int index, const char* name) {
  OptionTable given(L, index, fmt::format("series.compare: {}", name));
  Series series;
  series.source = given.text("source").value_or(name);
  series.counted = given.boolean("counted").value_or(false);
  series.late = given.boolean("late").value_or(false);
  const auto steps = given.list<int64_t>("steps");
  const auto values = given.list<double>("values");
  if (steps.size() != values.size()) {
    misuse(fmt::format("series.compare: {}: {} steps, but {} values", name, steps.size(), values.size()));
  }
  for (size_t i = 0; i < steps.size(); ++i) series.points.push_back({steps[i], values[i]});
  return series;
}

// core.compare_series(a, b, tolerance) -> table, text
int compare_two_series(lua_State* L) {
  const Series a = series_at(L, 1, "A"), b = series_at(L, 2, "B");
  const SeriesComparison found = value_or_throw(compare_series(a, b, number_at(L, 3).value_or(1e-3)));
  Series left = a, right = b;
  align_series(left, right);
  push_answer(L, series_answer(left, right, found));
  push(L, without_last_newline(series_report(a, b, found, {})));
  return 2;
}

}  // namespace

std::string file_text(const std::string& path, std::string_view call) {
  Result<std::string> text = read_input(path);
  if (!text) throw ScriptError("io_error", fmt::format("{}: {}", call, text.status().message()), true);
  return std::move(*text);
}

void bind_series(lua_State* L) {
  add_functions(L, {{"read_series", guard<read_series>}, {"compare_series", guard<compare_two_series>}});
}

}  // namespace msdbg::script
