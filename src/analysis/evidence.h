// Verdicts of check() on the tensors of one step at a time, and details about single tensors.
//
// The session's owner thread only.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "msdbg/analysis.h"

namespace msdbg {

bool is_bad_element(Predicate::Builtin which, double value);
uint64_t bad_elements(Predicate::Builtin which, const Stats& stats);

struct JudgedTensor {
  InputState state = InputState::kUnknown;
  std::string reason;  ///< why unknown
};

class Evidence {
 public:
  Evidence(Session& session, const OriginOptions& options) : session_(session), options_(options) {}

  /// Counts the tensors to judge, for the progress over all steps.
  void expect_steps(const IntSet& steps);
  /// Judges every tensor of these steps; adds coverage, tensors that could not be judged, and an interrupt to `result`.
  Status judge_steps(const IntSet& steps, OriginResult& result);
  /// Judges parameters and optimizer outputs of a step that was not requested but holds the values before a requested one.
  Status judge_parameters(int64_t step, OriginResult& result);
  /// Forgets a step, except for what the next one needs: parameters and the outputs of optimizers.
  void forget_step(int64_t step);

  /// nullptr: the dump does not contain this tensor.
  const JudgedTensor* find(const TensorId& id) const;
  bool is_bad(const TensorId& id) const;
  /// Grows with every verdict that comes, changes or goes.
  uint64_t changes() const { return changes_; }
  /// From now on it counts as good.
  void absolve(const TensorId& id);
  std::optional<Stats> stats(const TensorId& id);
  /// The tensors of the last judge_steps(), in the session's order.
  const std::vector<TensorId>& listed() const { return listed_; }
  Session& session() { return session_; }
  const Predicate& predicate() const { return options_.predicate; }
  const Predicate::Builtin* builtin() const { return std::get_if<Predicate::Builtin>(&options_.predicate.when); }

 private:
  Watchpoint watch_for(int id, std::string_view selector) const;
  Status run(const IntSet& steps, std::string_view selector, bool inputs, OriginResult& result, bool counts);
  TensorId key(TensorId id) const;

  Session& session_;
  const OriginOptions& options_;
  std::map<TensorId, JudgedTensor> verdicts_;
  std::vector<TensorId> listed_;
  uint64_t expected_ = 0, changes_ = 0;
};

}  // namespace msdbg
