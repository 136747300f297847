// A session on tensors that are given as literals instead of recorded ones: for the test cases of rules.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "msdbg/session.h"

namespace msdbg::script {

/// One value of one node in one step.
struct MemoryTensor {
  std::string node, op;  ///< `op` "Parameter" and "Const" create those kinds
  std::vector<std::string> inputs;
  int rank = 0;
  int64_t step = 0;
  Slot slot;
  TensorPtr value;
  std::optional<bool> overflow;  ///< the hardware flag
  bool trainable = false;
  std::string equals = {};       ///< the node whose first output it should equal and does not
};

class MemorySession : public Session {
 public:
  /// Operators run in the order in which they are first named. `kind` becomes SessionInfo::kind.
  MemorySession(const std::vector<MemoryTensor>& tensors, SessionKind kind);

  const SessionInfo& info() const override { return info_; }
  std::span<const int> ranks() const override { return ranks_; }
  std::span<const GraphPtr> graphs() const override { return graphs_; }
  std::vector<int64_t> steps() const override { return {steps_.begin(), steps_.end()}; }
  std::vector<int64_t> steps(int rank, int graph) const override;
  std::vector<TensorId> tensors(const TensorQuery& query) override;
  uint32_t executions(int rank, int graph, int64_t step, NodeId node) override;
  Result<OpenTensor> open(const TensorId& id) override;
  std::optional<Stats> given_statistics(const TensorId&) override { return std::nullopt; }
  Result<TensorId> previous(const TensorId& id, bool* history_missing) override;
  Result<bool> operator_overflow(const TensorId& id) override;
  std::vector<Overwritten> overwritten(int rank, int64_t step) override;
  SessionReport inspect() override;

 private:
  struct Value {
    TensorPtr tensor;
    std::optional<bool> overflow;
  };
  SessionInfo info_;
  std::vector<int> ranks_;
  std::vector<GraphPtr> graphs_;
  std::set<int64_t> steps_;
  std::map<TensorId, Value> values_;
  std::vector<Overwritten> overwritten_;
};

/// Rounds `values` to `dtype`. Error: kInvalidArgument if the type cannot be evaluated or the count does not match the shape.
Result<TensorPtr> tensor_of(DType dtype, Shape shape, std::span<const double> values);

}  // namespace msdbg::script
