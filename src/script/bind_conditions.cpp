// What there is to watch for: the conditions of the catalogue and the recommended rules, as tables.
#include "script/bind_parts.h"

namespace msdbg::script {
namespace {

// core.conditions() -> {{id, abbr, summary, params = {names}}}
int list_conditions(lua_State* L) {
  lua_newtable(L);
  int i = 0;
  for (const ConditionSpec& spec : condition_catalogue()) {
    lua_newtable(L);
    set_field(L, "id", spec.id);
    set_field(L, "abbr", spec.abbr);
    set_field(L, "summary", spec.summary);
    lua_newtable(L);
    int k = 0;
    for (const ParamSpec& param : spec.params) {
      if (param.kind == ParamKind::kHidden) continue;
      push_text(L, param.name);
      lua_rawseti(L, -2, ++k);
    }
    lua_setfield(L, -2, "params");
    lua_rawseti(L, -2, ++i);
  }
  return 1;
}

// core.recommended_rules(session) -> {{name, on, when}}
int list_recommended(lua_State* L) {
  const auto box = object_argument<SessionBox>(L, 1, "recommended_rules: session");
  const auto* live = dynamic_cast<const LiveSession*>(&box->open());
  std::vector<PresetRule> rules;
  if (live != nullptr) rules = recommended_live_rules(live->peer().backend == "Ascend", live->peer().has_previous);
  else rules.assign(recommended_rules().begin(), recommended_rules().end());
  lua_newtable(L);
  int i = 0;
  for (const PresetRule& rule : rules) {
    lua_newtable(L);
    set_field(L, "name", rule.name);
    set_field(L, "on", rule.on);
    set_field(L, "when", rule.when);
    lua_rawseti(L, -2, ++i);
  }
  return 1;
}

}  // namespace

void bind_conditions(lua_State* L) {
  lua_pushcfunction(L, guard<list_conditions>);
  lua_setfield(L, -2, "conditions");
  lua_pushcfunction(L, guard<list_recommended>);
  lua_setfield(L, -2, "recommended_rules");
}

}  // namespace msdbg::script
