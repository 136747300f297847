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

/// A check of `points` and of the rules in the list of instance tables at `instances`. Problems in the list at `problems`, and rules
/// whose selector or condition is wrong, are in the result. Error: that of check(); ScriptError: what the lists hold is not a rule.
/// What rule_plan.make() gave, the table at `index`.
ChosenRules read_plan(lua_State* L, int index);
Result<CheckResult> check_with_rules(lua_State* L, SessionBox& box, int instances, int problems, std::vector<Watchpoint> points,
                                     const CheckOptions& options);

/// What a function of a watchpoint answered, on top of the stack; fields in `ignored` are not details.  [-1, +0, m]
ScriptVerdict read_verdict(lua_State* L, std::span<const std::string_view> ignored = {});
/// read_slots() for a watchpoint.
void set_slots(Watchpoint* point, const std::string& slots);

}  // namespace msdbg::script
