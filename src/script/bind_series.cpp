// Losses and metrics side by side: what msdbg.series asks of C++.
#include "script/bind_series.h"

#include <fmt/format.h>

#include <cmath>

#include "msdbg/file.h"
#include "msdbg/series.h"
#include "script/objects.h"

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
  for (const char* key : {"steps", "values"}) {
    lua_createtable(L, static_cast<int>(series.points.size()), 0);
    for (size_t i = 0; i < series.points.size(); ++i) {
      const SeriesPoint& point = series.points[i];
      lua_pushnumber(L, *key == 's' ? static_cast<double>(point.step) : point.value);
      lua_rawseti(L, -2, static_cast<int>(i) + 1);
    }
    lua_setfield(L, -2, key);
  }
  return 1;
}

Series series_at(lua_State* L, int index, const char* name) {
  Series series;
  lua_getfield(L, index, "source");
  series.source = text_at(L, -1).value_or(name);
  lua_getfield(L, index, "counted");
  series.counted = lua_toboolean(L, -1) != 0;
  lua_getfield(L, index, "late");
  series.late = lua_toboolean(L, -1) != 0;
  lua_getfield(L, index, "steps");
  lua_getfield(L, index, "values");
  const int values = lua_gettop(L), steps = values - 1;
  for (int i = 1; i <= static_cast<int>(lua_objlen(L, values)); ++i) {
    lua_rawgeti(L, steps, i);
    lua_rawgeti(L, values, i);
    series.points.push_back({static_cast<int64_t>(lua_tonumber(L, -2)), lua_tonumber(L, -1)});
    lua_pop(L, 2);
  }
  lua_pop(L, 5);
  return series;
}

// core.compare_series(a, b, tolerance) -> table, text
int compare_two_series(lua_State* L) {
  const Series a = series_at(L, 1, "A"), b = series_at(L, 2, "B");
  const SeriesComparison found = value_or_throw(compare_series(a, b, number_at(L, 3).value_or(1e-3)));
  lua_newtable(L);
  set_field(L, "verdict", series_verdict_name(found.verdict));
  set_field(L, "count", found.count);
  set_field(L, "tolerance", found.tolerance);
  if (!std::isnan(found.mean_abs_error)) set_field(L, "mean_abs_error", found.mean_abs_error);
  set_field(L, "max_abs_error", found.max_abs_error);
  set_field(L, "max_rel_error", found.max_rel_error);
  if (found.worst_step) set_field(L, "worst_step", *found.worst_step);
  set_field(L, "nonfinite_mismatch", found.nonfinite_mismatch);
  if (found.parts_at) {
    set_field(L, "parts_at", *found.parts_at);
    set_field(L, "a_there", found.a_there);
    set_field(L, "b_there", found.b_there);
  }
  push_shape(L, found.only_a);
  lua_setfield(L, -2, "only_a");
  push_shape(L, found.only_b);
  lua_setfield(L, -2, "only_b");
  set_field(L, "next", found.next);
  std::string text = series_report(a, b, found, {});
  while (text.ends_with('\n')) text.pop_back();
  push_text(L, text);
  return 2;
}

}  // namespace

std::string file_text(const std::string& path, std::string_view call) {
  Result<std::string> text = read_input(path);
  if (!text) throw ScriptError("io_error", fmt::format("{}: {}", call, text.status().message()), true);
  return std::move(*text);
}

void bind_series(lua_State* L) {
  for (const Member& each : {Member{"read_series", guard<read_series>}, Member{"compare_series", guard<compare_two_series>}}) {
    lua_pushcfunction(L, each.function);
    lua_setfield(L, -2, each.name);
  }
}

}  // namespace msdbg::script
