// Rules for programs: Script::choose_rules and Script::check_rules.
#include <fmt/format.h>

#include "script/interrupt.h"
#include "script/objects.h"
#include "script/rule_run.h"
#include "script/state.h"

namespace msdbg {

using namespace script;

namespace script {
namespace {

constexpr const char* kPlan = "msdbg.rule_plan";  // registry: what choose_rules() chose

void push_module_function(lua_State* L, const char* module, const char* function) {
  lua_getglobal(L, "require");
  push(L, module);
  if (!protected_call(L, 1, 1)) throw PendingError();
  push_raw(L, -1, function);
  lua_remove(L, -2);
}

// (choice) -> nothing; the plan goes to the registry
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

struct CheckCall {
  std::vector<Watchpoint> points;
  const CheckOptions* options;
  Result<CheckResult> result = Status(Code::kInternal, "");
};

// (call, session) -> nothing
int run_check(lua_State* L) {
  auto& call = *static_cast<CheckCall*>(lua_touserdata(L, 1));
  const auto box = object_argument<SessionBox>(L, 2, "check: session");
  lua_settop(L, 2);
  push_module_function(L, "msdbg.rule_run", "prepare");
  lua_pushvalue(L, 2);
  push_raw(L, LUA_REGISTRYINDEX, kPlan);
  if (!protected_call(L, 2, 2)) throw PendingError();
  call.result = check_with_rules(L, *box, 3, 4, std::move(call.points), *call.options);
  return 0;
}

Status status_of_error(lua_State* L) {
  const ErrorView error = read_error(L, -1);
  lua_settop(L, 0);
  if (interrupt_requested()) return Status(Code::kInterrupted, "interrupted");
  if (!error.expected) return Status(Code::kInternal, error_text(error, true));
  // A file that is damaged or cannot be read is not a mistake in the words of the command line.
  for (const Code code : {Code::kUnsupported, Code::kIoError, Code::kCorrupt, Code::kNoData, Code::kOutOfMemory, Code::kPeerLost}) {
    if (error.code == code_name(code)) return Status(code, error.message);
  }
  return Status(Code::kInvalidArgument, error.message);
}

}  // namespace
}  // namespace script

Result<ChosenRules> Script::choose_rules(const RuleChoice& choice) {
  Vm& vm = state_->vm;
  lua_State* L = vm.L;
  Entry entry(vm);
  lua_pushcfunction(L, guard<make_plan>);
  lua_pushlightuserdata(L, const_cast<RuleChoice*>(&choice));
  if (!protected_call(L, 1, 0)) return status_of_error(L);
  ChosenRules chosen;
  push_raw(L, LUA_REGISTRYINDEX, kPlan);
  OptionTable plan(L, -1, "rule plan");
  plan.with("chosen", [&](int at) { for_each_element(L, at, "chosen", [&](int) { chosen.names.push_back(text_field(L, -1, "name")); }); });
  chosen.notes = plan.list<std::string>("notes");
  chosen.expression = plan.text("expression").value_or("");
  lua_settop(L, 0);
  return chosen;
}

Result<CheckResult> Script::check_rules(std::vector<Watchpoint> also, const CheckOptions& options) {
  Vm& vm = state_->vm;
  lua_State* L = vm.L;
  Entry entry(vm);
  CheckCall call{std::move(also), &options};
  lua_pushcfunction(L, guard<run_check>);
  lua_pushlightuserdata(L, &call);
  lua_getglobal(L, "s");
  if (!protected_call(L, 2, 0)) return status_of_error(L);
  return std::move(call.result);
}

}  // namespace msdbg
