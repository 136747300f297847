// Rules for programs: Script::choose_rules and Script::check_rules.
#include <fmt/format.h>

#include "script/command_calls.h"
#include "script/interrupt.h"
#include "script/objects.h"
#include "script/rule_run.h"
#include "script/state.h"

namespace msdbg {

using namespace script;

namespace script {
namespace {

constexpr const char* kPlan = "msdbg.rule_plan";  // registry key of the plan of choose_rules()

void push_module_function(lua_State* L, const char* module, const char* function) {
  lua_getglobal(L, "require");
  push(L, module);
  if (!protected_call(L, 1, 1)) throw PendingError();
  push_raw(L, -1, function);
  lua_remove(L, -2);
}

// (choice) -> nothing; stores the plan in the registry
int make_plan(lua_State* L) {
  const auto& choice = *static_cast<const RuleChoice*>(lua_touserdata(L, 1));
  push_module_function(L, "msdbg.rule_plan", "make");
  lua_newtable(L);
  set_field(L, "rules", choice.rules);
  set_field(L, "profile", text_or_nil(choice.profile));
  set_field(L, "slots", text_or_nil(choice.slots));
  set_field(L, "files", choice.files);
  set_field(L, "params", choice.params);
  set_field(L, "trust", choice.trust);
  set_field(L, "budget", choice.budget_s);
  if (!protected_call(L, 1, 1)) throw PendingError();
  lua_setfield(L, LUA_REGISTRYINDEX, kPlan);
  return 0;
}

struct RuleCheck {
  std::vector<Watchpoint> points;
  const CheckOptions* options;
  Result<CheckResult> result = Status(Code::kInternal, "");
};

// (call, session) -> nothing
int check_with_rules(lua_State* L) {
  auto& call = *static_cast<RuleCheck*>(lua_touserdata(L, 1));
  const auto box = object_argument<SessionBox>(L, 2, "check: session");
  lua_settop(L, 2);
  push_module_function(L, "msdbg.rule_run", "prepare");
  lua_pushvalue(L, 2);
  push_raw(L, LUA_REGISTRYINDEX, kPlan);
  if (!protected_call(L, 2, 2)) throw PendingError();
  call.result = check_with_rules(L, *box, 3, 4, std::move(call.points), *call.options);
  return 0;
}

}  // namespace

ChosenRules read_plan(lua_State* L, int index) {
  ChosenRules chosen;
  OptionTable plan(L, index, "rule plan");
  plan.with("chosen", [&](int at) { for_each_element(L, at, "chosen", [&](int) { chosen.names.push_back(text_field(L, -1, "name")); }); });
  chosen.notes = plan.list<std::string>("notes");
  chosen.asked = plan.text("expression").value_or("");
  if (chosen.asked == "default" || chosen.asked == "recommended") chosen.asked = "the " + chosen.asked + " rules";
  return chosen;
}

}  // namespace script

Result<ChosenRules> Script::choose_rules(const RuleChoice& choice) {
  lua_State* L = state_->vm.L;
  const Entry entry(state_->vm);
  const StackMark mark(L);
  lua_pushcfunction(L, guard<make_plan>);
  lua_pushlightuserdata(L, const_cast<RuleChoice*>(&choice));
  if (!protected_call(L, 1, 0)) {
    const Status why = status_of_error(L);
    // An unknown name is a usage error.
    return why.code() == Code::kNotFound ? Status(Code::kInvalidArgument, why.message()) : why;
  }
  push_raw(L, LUA_REGISTRYINDEX, kPlan);
  return read_plan(L, lua_gettop(L));
}

Result<CheckResult> Script::check_rules(std::vector<Watchpoint> also, const CheckOptions& options) {
  lua_State* L = state_->vm.L;
  const Entry entry(state_->vm);
  const StackMark mark(L);
  RuleCheck call{std::move(also), &options};
  lua_pushcfunction(L, guard<check_with_rules>);
  lua_pushlightuserdata(L, &call);
  push_session(state_->vm);
  if (!protected_call(L, 2, 0)) return status_of_error(L);
  return std::move(call.result);
}

}  // namespace msdbg
