// Rules as part of a check: tables of scripts/msdbg/rule_run.lua become watchpoints whose functions run under limits.
#pragma once

#include <memory>
#include <vector>

#include "script/objects.h"

namespace msdbg::script {

struct TensorAtHand;
/// The watchpoint for the instance table at `index`; its functions run on SessionBox::thread.
/// Fields: rule, abbr, summary, cause, next, file, severity, name, on, slots, optional, turn, budget, needs (list), when (text), or
/// check, step_end, finish (functions).
/// `at_hand`: shared by the rules of one check.
/// Error (ScriptError): an invalid selector or condition.
Watchpoint rule_watchpoint(lua_State* L, int index, SessionBox& box, int id, std::shared_ptr<TensorAtHand> at_hand = nullptr);

/// Reads the result of rule_plan.make() at `index`.
ChosenRules read_plan(lua_State* L, int index);
/// Checks `points` and the rules in the list of instance tables at `instances`. The result includes the problems in the list at
/// `problems`, and rules with an invalid selector or condition. Error: that of check(); ScriptError for an entry that is not a rule.
Result<CheckResult> check_with_rules(lua_State* L, SessionBox& box, int instances, int problems, std::vector<Watchpoint> points,
                                     const CheckOptions& options);

/// The result of a watchpoint's function, on top of the stack; fields in `ignored` are not details.  [-1, +0, m]
ScriptVerdict read_verdict(lua_State* L, std::span<const std::string_view> ignored = {});
/// read_slots() for a watchpoint.
void set_slots(Watchpoint* point, const std::string& slots);

}  // namespace msdbg::script
