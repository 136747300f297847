// Texts for people that the report module makes: what `print`, t:show() and the prompt's commands show.
#include <fmt/format.h>

#include "script/objects.h"

namespace msdbg::script {
namespace {

void push_lines(lua_State* L, std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  push_text(L, text);
}

// core.stats_line(tensor) -> text; or nil, why
int tensor_line(lua_State* L) {
  const auto tensor = object_argument<TensorBox>(L, 1, "stats_line: tensor");
  if (!tensor->stats && !tensor->info.problem.ok()) return push_absence(L, tensor->info.problem);
  push_lines(L, stats_line(stats_of(*tensor)));
  return 1;
}

// core.elements_text(tensor, rows) -> table of elements; or nil, why
int elements_text(lua_State* L) {
  const auto tensor = object_argument<TensorBox>(L, 1, "show: tensor");
  const int64_t rows = lua_isnoneornil(L, 2) ? 20 : integer_argument(L, 2, "show: option 'rows'");
  if (rows < 1) misuse(fmt::format("show: option 'rows': 1 or more is expected, not {}", rows));
  if (!tensor->memory && tensor->info.availability == Availability::kStatisticsOnly) {
    return push_absence(L, Status(Code::kNoData, "only statistics were dumped, no elements"));
  }
  if (!tensor->memory && !tensor->info.problem.ok()) return push_absence(L, tensor->info.problem);
  push_lines(L, elements_table(tensor->session->elements(*tensor)->view(), static_cast<size_t>(rows)));
  return 1;
}

// core.stats_text(session, tensors) -> the table of `msdbg stats`
int stats_text(lua_State* L) {
  const auto session = object_argument<SessionBox>(L, 1, "stats: session");
  std::vector<StatsRow> rows;
  for (int i = 1;; ++i) {
    lua_rawgeti(L, 2, i);
    const auto* holder = holder_at<TensorBox>(L, -1);
    const std::shared_ptr<TensorBox> tensor = holder != nullptr ? *holder : nullptr;
    lua_pop(L, 1);
    if (!tensor) break;
    StatsRow row{tensor->info, {}};
    if (const auto stats = session->open().stats(tensor->info.id))
      row.stats = *stats;
    else if (row.info.problem.ok())
      row.info.problem = stats.status();
    rows.push_back(std::move(row));
  }
  push_lines(L, stats_report(session->open(), rows, table_style()));
  return 1;
}

// core.doctor_text(session)
int doctor_text(lua_State* L) {
  const auto session = object_argument<SessionBox>(L, 1, "info: session");
  push_lines(L, doctor_report(session->open(), session->open().inspect(), table_style()));
  return 1;
}

int short_tensor_name(lua_State* L) {
  const auto tensor = object_argument<TensorBox>(L, 1, "short_name: tensor");
  push_text(L, short_name(tensor->session->open(), tensor->info.id));
  return 1;
}

// core.session_of(tensor)
int session_of(lua_State* L) {
  push_object(L, object_argument<TensorBox>(L, 1, "session_of: tensor")->session);
  return 1;
}

}  // namespace

void bind_text(lua_State* L) {
  for (const Member& member :
       {Member{"stats_line", guard<tensor_line>}, Member{"elements_text", guard<elements_text>},
        Member{"stats_text", guard<stats_text>}, Member{"doctor_text", guard<doctor_text>},
        Member{"short_name", guard<short_tensor_name>},
        Member{"session_of", guard<session_of>}}) {
    lua_pushcfunction(L, member.function);
    lua_setfield(L, -2, member.name);
  }
}

}  // namespace msdbg::script
