// Turns measurements into hits and reasons, for all watchpoints of one tensor. The session's owner thread only.
#pragma once

#include <map>
#include <utility>

#include "msdbg/check.h"
#include "session/check_plan.h"
#include "session/check_tensor.h"

namespace msdbg {

class Verdicts {
 public:
  Verdicts(Session& session, const CheckOptions& options) : session_(session), options_(options) {}

  /// Appends to the result. True if every watchpoint reached a verdict. Without `scripts`, theirs stay open.
  bool judge(const PlannedTensor& planned, const WatchSet& set, const Measured& measured, bool scripts,
             CheckResult& result);
  /// Adds a finding that a rule reported at the end of a step or of the run.
  void add_finding(const Watchpoint& watch, ScriptFinding finding, CheckResult& result);

 private:
  struct Outcome {
    Verdict verdict = Verdict::kClean;
    uint32_t error_code = 0;
    std::string reason;
    std::vector<ParamResult> params;
    std::vector<std::pair<std::string, std::string>> details;
  };
  struct Evidence;

  Outcome judge_one(const Watchpoint& watch, const PlannedTensor& planned, const Evidence& evidence);
  static void apply_exception(const Watchpoint& watch, const TensorId& id, const Evidence& evidence, Outcome& outcome);
  Outcome judge_condition(const Watchpoint& watch, const TensorId& id, const Evidence& evidence);
  int64_t steps_since_previous(const TensorId& id, const Evidence& evidence);
  static std::string blinded(const Expression& expression, const ExpressionValue& value, const Evidence& evidence);
  Outcome judge_expression(const Expression& expression, const TensorId& id, const Evidence& evidence);
  Outcome judge_flag(const TensorId& id);
  void add_hit(const Watchpoint& watch, const TensorId& id, const Evidence& evidence, Outcome outcome,
               CheckResult& result);

  Session& session_;
  const CheckOptions& options_;
  std::map<std::pair<int64_t, int64_t>, int64_t> steps_between_;  ///< by step of the previous value and of this one
};

/// Restores the documented order if rules ran in another order or reported later.
void sort_results(const Session& session, CheckResult& result);

}  // namespace msdbg
