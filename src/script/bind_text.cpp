// Texts for people that the report module makes: what `print`, t:show() and the prompt's commands show.
#include <fmt/format.h>

#include <map>
#include <set>

#include "script/objects.h"

namespace msdbg::script {
namespace {

constexpr size_t kShownNames = 5000;  // names that completion looks at

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
  push_lines(L, stats_report(session->open(), rows, {}));
  return 1;
}

// core.doctor_text(session)
int doctor_text(lua_State* L) {
  const auto session = object_argument<SessionBox>(L, 1, "info: session");
  push_lines(L, doctor_report(session->open(), session->open().inspect(), {}));
  return 1;
}

// core.node_names(session, part, limit): names that begin with `part`, then those whose last components do, then those
// that contain it.
int node_names(lua_State* L) {
  const auto session = object_argument<SessionBox>(L, 1, "node_names: session");
  const std::string part = text_argument(L, 2, "node_names: part");
  const auto limit = static_cast<size_t>(integer_argument(L, 3, "node_names: limit"));
  std::vector<std::string> groups[3];
  std::set<std::string_view> seen;
  for (const GraphPtr& graph : session->open().graphs()) {
    for (const Node& node : graph->nodes()) {
      if (seen.size() >= kShownNames || is_structural(node.op) || !seen.insert(node.name).second) continue;
      if (starts_with_nocase(node.name, part)) {
        groups[0].push_back(node.name);
        continue;
      }
      bool from_component = false;
      for (size_t at = node.name.find('/'); at != std::string::npos && !from_component;
           at = node.name.find('/', at + 1)) {
        if (!starts_with_nocase(std::string_view(node.name).substr(at + 1), part)) continue;
        // The shorter spelling that begins with what was typed is a name as well.
        groups[1].push_back(node.name.substr(at + 1));
        from_component = true;
      }
      if (!from_component && contains_nocase(node.name, part)) groups[2].push_back(node.name);
    }
  }
  lua_newtable(L);
  int i = 0;
  for (const auto& group : groups) {
    for (const std::string& name : group) {
      if (static_cast<size_t>(i) >= limit) return 1;
      push_text(L, name);
      lua_rawseti(L, -2, ++i);
    }
  }
  return 1;
}

int short_tensor_name(lua_State* L) {
  const auto tensor = object_argument<TensorBox>(L, 1, "short_name: tensor");
  push_text(L, short_name(tensor->session->open(), tensor->info.id));
  return 1;
}

}  // namespace

void bind_text(lua_State* L) {
  for (const Member& member :
       {Member{"stats_line", guard<tensor_line>}, Member{"elements_text", guard<elements_text>},
        Member{"stats_text", guard<stats_text>}, Member{"doctor_text", guard<doctor_text>},
        Member{"node_names", guard<node_names>}, Member{"short_name", guard<short_tensor_name>}}) {
    lua_pushcfunction(L, member.function);
    lua_setfield(L, -2, member.name);
  }
}

}  // namespace msdbg::script
