// Limits what one call into a rule may take: time and memory of the virtual machine.
//
// A timer ticks on the thread of the VM while rules may run. Past the limit it arms the hook that Ctrl-C uses, so compiled
// loops and pcall loops end as well. A call into C (a search for a pathological pattern) cannot be stopped and ends when it returns;
// once it is long past the limit, standard error says which rule is waited for.
#pragma once

#include <string>

#include "script/objects.h"

namespace msdbg::script {

inline constexpr double kDefaultRuleBudget = 10;  ///< seconds a call
inline constexpr double kRuleMemoryMb = 1024;     ///< of the whole virtual machine, unless set_rule_memory() said otherwise

/// Sets the limit of all later calls, in MB; returns the old one.
double set_rule_memory(double mb);

/// One call of a function of a rule. Calls nest: the limits of the outer one hold inside of the inner one, and go on after it.
class RuleCall {
 public:
  enum class Limit : int { kNone, kTime, kMemory };

  /// `rule` is its name, for the message about one that cannot be stopped; it must outlive the call.
  RuleCall(Vm& vm, double seconds, const char* rule = "");
  ~RuleCall();
  RuleCall(const RuleCall&) = delete;
  RuleCall& operator=(const RuleCall&) = delete;

  /// protected_call() under the limits. On an error, its text with place is in problem() and nothing is left on the stack, except
  /// for Ctrl-C and os.exit: then the error object stays and cancelled() is true.  [-(nargs + 1), +(nresults|0|1), -]
  bool call(lua_State* L, int nargs, int nresults);
  const std::string& problem() const { return problem_; }
  bool cancelled() const { return cancelled_; }
  /// It ran past a limit; calling it again would only cost as much again.
  bool exceeded_limit() const { return exceeded_limit_; }

 private:
  struct Running {
    Vm* vm;
    int64_t deadline_ns;
    Limit passed;
    double seconds;
    const char* rule;
    bool reported;
  };
  static void run(const Running& running);

  Vm& vm_;
  Running outer_;  ///< what ran when this call began; its vm is null when nothing did
  std::string problem_;
  bool cancelled_ = false, exceeded_limit_ = false;
};

/// What the hook raises: "" while no limit is passed.
std::string passed_limit(const Vm& vm);

}  // namespace msdbg::script
