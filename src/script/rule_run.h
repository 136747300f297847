// Rules in the middle of a check: tables of scripts/msdbg/rule_run.lua as watchpoints whose functions run under limits.
#pragma once

#include <memory>
#include <vector>

#include "script/objects.h"

namespace msdbg::script {

/// The watchpoint that the instance table at `index` describes; its functions run on SessionBox::thread.
/// Fields: rule, abbr, summary, cause, next, file, severity, name, on, slots, optional, turn, budget, needs (list), when (text), or
/// check, step_end, finish (functions).
/// Error (ScriptError): a selector or condition that is wrong.
Watchpoint rule_watchpoint(lua_State* L, int index, SessionBox& box, int id);

/// The watchpoints of the list of instance tables at `index`, numbered behind those that are there; rules whose selector or condition
/// is wrong become problems. What is said about them goes to `rules`.
void collect_rules(lua_State* L, int index, SessionBox& box, std::vector<Watchpoint>* points, CheckResult* result);
/// Puts what collect_rules() said before those of the run.
void add_rules(CheckResult found, CheckResult* result);
/// {{rule, reason, plain}} at `index` as problems; `plain` ones are no errors of the rule.
std::vector<RuleProblem> read_problems(lua_State* L, int index);

/// What a function of a watchpoint answered, on top of the stack.  [-1, +0, m]
ScriptVerdict read_verdict(lua_State* L);
/// 'output', 'input', 'all' or a slot. Error (ScriptError).
void set_slots(Watchpoint* point, const std::string& slots);

}  // namespace msdbg::script
