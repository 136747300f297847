// The session on an open checkpoint. Immutable after construction.
#pragma once

#include <string>
#include <vector>

#include "ckpt/contents.h"
#include "msdbg/checkpoint.h"

namespace msdbg::ckpt {

class CheckpointSession : public Checkpoint {
 public:
  CheckpointSession(const std::string& path, Contents contents);

  const CheckpointFacts& facts() const override { return contents_.facts; }
  const SessionInfo& info() const override { return info_; }
  std::span<const int> ranks() const override { return ranks_; }
  std::span<const GraphPtr> graphs() const override { return graphs_; }
  std::vector<int64_t> steps() const override { return {0}; }
  std::vector<int64_t> steps(int rank, int graph) const override;
  std::vector<TensorId> tensors(const TensorQuery& query) override;
  uint32_t executions(int rank, int graph, int64_t step, NodeId node) override;
  Result<OpenTensor> open(const TensorId& id) override;
  std::optional<Stats> given_statistics(const TensorId&) override { return std::nullopt; }
  Result<TensorId> previous(const TensorId& id, bool* history_missing) override;
  Result<bool> operator_overflow(const TensorId& id) override;
  SessionReport inspect() override;

 private:
  Result<const Entry*> find(const TensorId& id) const;

  Contents contents_;  // entry k is node k
  SessionInfo info_;
  std::vector<int> ranks_{0};
  std::vector<GraphPtr> graphs_;
};

}  // namespace msdbg::ckpt
