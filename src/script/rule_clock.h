// Limits one call into a rule: its time, and the memory of the virtual machine.
//
// A timer ticks on the VM's thread while rules may run. Past the limit it arms the hook that Ctrl-C uses, which also ends compiled
// loops and pcall loops. A call into C (a search for a pathological pattern) cannot be stopped and ends when it returns; long past
// the limit, standard error names the rule that is still running.
#pragma once

#include <string>

#include "script/objects.h"

namespace msdbg::script {

inline constexpr double kDefaultRuleBudget = 10;  ///< seconds per call
inline constexpr double kRuleMemoryMb = 1024;     ///< for the whole virtual machine, unless changed by set_rule_memory()

/// Sets the limit for all later calls, in MB; returns the old one.
double set_rule_memory(double mb);

/// One call of a function of a rule. Calls nest: the limits of the outer call also apply to the inner one, and continue after it.
class RuleCall {
 public:
  enum class Limit : int { kNone, kTime, kMemory };

  /// `rule` is its name, for the message about a call that cannot be stopped; it must outlive the call.
  RuleCall(Vm& vm, double seconds, const char* rule = "");
  ~RuleCall();
  RuleCall(const RuleCall&) = delete;
  RuleCall& operator=(const RuleCall&) = delete;

  /// protected_call() under the limits. After an error, problem() has its text with the position, and the stack is empty, except
  /// for Ctrl-C and os.exit: these leave the error object and set cancelled().  [-(nargs + 1), +(nresults|0|1), -]
  bool call(lua_State* L, int nargs, int nresults);
  const std::string& problem() const { return problem_; }
  bool cancelled() const { return cancelled_; }
  /// It exceeded a limit; another call would only cost the same again.
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
  Running outer_;  ///< the call that was running when this one began; its vm is null if none was
  std::string problem_;
  bool cancelled_ = false, exceeded_limit_ = false;
};

/// The error text for the hook: "" unless a limit was passed.
std::string passed_limit(const Vm& vm);

}  // namespace msdbg::script
