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
  push_text(L, module);
  if (!protected_call(L, 1, 1)) throw PendingError();
  lua_getfield(L, -1, function);
  lua_remove(L, -2);
}

void set_list(lua_State* L, const char* key, const std::vector<std::string>& texts) {
  lua_createtable(L, static_cast<int>(texts.size()), 0);
  for (size_t i = 0; i < texts.size(); ++i) {
    push_text(L, texts[i]);
    lua_rawseti(L, -2, static_cast<int>(i) + 1);
  }
  lua_setfield(L, -2, key);
}

// [-0, +0, m] of the table on top
std::vector<std::string> texts_of(lua_State* L, const char* list, const char* field) {
  std::vector<std::string> out;
  lua_getfield(L, -1, list);
  for (int i = 1;; ++i) {
    lua_rawgeti(L, -1, i);
    if (lua_isnil(L, -1)) break;
    if (field != nullptr) {
      lua_getfield(L, -1, field);
      lua_remove(L, -2);
    }
    out.push_back(text_at(L, -1).value_or(""));
    lua_pop(L, 1);
  }
  lua_pop(L, 2);
  return out;
}

// (choice) -> nothing; the plan goes to the registry
int make_plan(lua_State* L) {
  const auto& choice = *static_cast<const RuleChoice*>(lua_touserdata(L, 1));
  push_module_function(L, "msdbg.rule_plan", "make");
  lua_newtable(L);
  if (choice.rules) set_field(L, "rules", *choice.rules);
  if (!choice.profile.empty()) set_field(L, "profile", choice.profile);
  if (!choice.slots.empty()) set_field(L, "slots", choice.slots);
  set_list(L, "files", choice.files);
  set_list(L, "params", choice.params);
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
  lua_getfield(L, LUA_REGISTRYINDEX, kPlan);
  if (!protected_call(L, 2, 2)) throw PendingError();
  // 3: instances, 4: problems
  CheckResult found;
  found.rule_problems = read_problems(L, 4);
  collect_rules(L, 3, *box, &call.points, &found);
  const InUse guard(*box, "check");
  box->thread = L;
  call.result = check(box->open(), call.points, *call.options);
  if (call.result) add_rules(std::move(found), &*call.result);
  return 0;
}

Status status_of_error(lua_State* L) {
  const ErrorView error = read_error(L, -1);
  lua_settop(L, 0);
  if (interrupt_requested()) return Status(Code::kInterrupted, "interrupted");
  if (!error.expected) return Status(Code::kInternal, error_text(error, true));
  // A file that is damaged or cannot be read is no mistake in the words of the command line.
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
  lua_getfield(L, LUA_REGISTRYINDEX, kPlan);
  chosen.names = texts_of(L, "chosen", "name");
  chosen.notes = texts_of(L, "notes", nullptr);
  lua_getfield(L, -1, "expression");
  chosen.expression = text_at(L, -1).value_or("");
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
