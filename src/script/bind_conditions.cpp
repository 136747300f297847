// The conditions of the catalogue and the recommended rules, as tables.
#include "script/bind_parts.h"

namespace msdbg::script {
namespace {

// core.conditions() -> {{id, abbr, summary, params = {names}}}
int list_conditions(lua_State* L) {
  push_list(L, condition_catalogue(), [L](const ConditionSpec& spec) {
    lua_newtable(L);
    set_field(L, "id", spec.id);
    set_field(L, "abbr", spec.abbr);
    set_field(L, "summary", spec.summary);
    std::vector<std::string_view> names;
    for (const ParamSpec& param : spec.params) {
      if (param.kind != ParamKind::kHidden) names.push_back(param.name);
    }
    set_field(L, "params", names);
  });
  return 1;
}

// core.recommended_rules(session) -> {{name, on, when}}
int list_recommended(lua_State* L) {
  const auto box = object_argument<SessionBox>(L, 1, "recommended_rules: session");
  const auto* live = dynamic_cast<const LiveSession*>(&box->open());
  std::vector<PresetRule> rules;
  if (live != nullptr) rules = recommended_live_rules(live->peer().backend == "Ascend", live->peer().has_previous, live->peer().named);
  else rules.assign(recommended_rules().begin(), recommended_rules().end());
  push_list(L, rules, [L](const PresetRule& rule) {
    lua_newtable(L);
    set_field(L, "name", rule.name);
    set_field(L, "on", rule.on);
    set_field(L, "when", rule.when);
    if (rule.from_step > 0) set_field(L, "from_step", rule.from_step);
    if (rule.later) set_field(L, "later", true);
  });
  return 1;
}

}  // namespace

void bind_conditions(lua_State* L) {
  add_functions(L, {{"conditions", guard<list_conditions>}, {"recommended_rules", guard<list_recommended>}});
}

}  // namespace msdbg::script
