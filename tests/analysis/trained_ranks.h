// A data-parallel training on sessions in memory.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "msdbg/replicas.h"
#include "support/fake_session.h"

namespace msdbg::replica_test {

using testing::f32;
using testing::fake_graph;
using testing::FakeNode;
using testing::FakeSession;
using Ranks = std::vector<int>;
inline constexpr Slot kIn0{Io::kInput, 0}, kIn1{Io::kInput, 1}, kIn2{Io::kInput, 2}, kIn3{Io::kInput, 3};
inline const std::string kApply = "Default/optimizer-M/ApplyMomentum-op0", kReduce = "Default/AllReduce-op0", kForward = "Default/MatMul-op0";

struct Net {
  std::string group = "hccl_world_group";
  std::string reduction = "AllReduce";
  std::vector<FakeNode> more = {};  ///< behind the others
};

/// x -> MatMul(w); its gradient is reduced and taken by ApplyMomentum. BatchNorm writes moving averages of the data.
inline GraphPtr training(int rank, const Net& net = {}) {
  std::vector<FakeNode> nodes = {{"x", "Parameter"},
                                 {"fc.weight", "Parameter"},
                                 {"moments.fc.weight", "Parameter"},
                                 {"learning_rate", "Parameter"},
                                 {"momentum", "Parameter"},
                                 {"bn.moving_mean", "Parameter"},
                                 {kForward, "MatMul", {"x", "fc.weight"}},
                                 {"Default/Assign-op0", "Assign", {"bn.moving_mean", kForward}},
                                 {"Gradients/MatMul-op1", "MatMul", {kForward}}};
  std::string gradient = "Gradients/MatMul-op1";
  if (!net.reduction.empty()) {
    FakeNode node{kReduce, net.reduction, {gradient}};
    if (!net.group.empty()) node.attributes = {{"group", net.group}};
    nodes.push_back(node);
    gradient = kReduce;
  }
  nodes.push_back({"Default/Mul-op0", "Mul", {gradient}});
  nodes.push_back({kApply, "ApplyMomentum", {"fc.weight", "moments.fc.weight", "learning_rate", "Default/Mul-op0", "momentum"}});
  nodes.insert(nodes.end(), net.more.begin(), net.more.end());
  return fake_graph(nodes, rank);
}

/// All ranks in step: what they share depends on the step alone.
class Trained : public FakeSession {
 public:
  explicit Trained(int ranks, int steps = 2, const std::function<Net(int)>& net = nullptr) : FakeSession(graphs_of(ranks, net)) {
    for (int rank = 0; rank < ranks; ++rank) {
      for (int step = 0; step < steps; ++step) put_step(rank, step);
    }
  }
  void set(int rank, int64_t step, const std::string& name, TensorPtr value, Slot slot = {}) {
    put(id(name, step, slot, 0, rank), std::move(value));
  }
  void put_step(int rank, int step) { put_step(rank, step, step); }
  /// The values of `step` as those of step `at`.
  void put_step(int rank, int step, int at) {
    const double shared = 1 + step, own = 10 * rank + step;
    set(rank, at, "x", f32({own}));
    for (const char* name : {"fc.weight", "moments.fc.weight"}) set(rank, at, name, f32({shared, 2 * shared, 3 * shared}));
    set(rank, at, "bn.moving_mean", f32({own, own}));
    for (const char* name : {"learning_rate", "momentum"}) set(rank, at, name, f32(Shape{}, std::vector<double>{0.5}));
    set(rank, at, kForward, f32({own}));
    set(rank, at, "Gradients/MatMul-op1", f32({own, own, own}));
    if (graph(rank, 0)->find(kReduce) != nullptr) set(rank, at, kReduce, f32({shared, shared, shared}));
    set(rank, at, "Default/Mul-op0", f32({shared, 0, shared}));
    set(rank, at, kApply, f32({shared, 2 * shared, 3 * shared}));
  }
  ReplicasResult compare(const FollowOptions& options = {}) {
    Result<ReplicasResult> result = replicas(*this, options);
    EXPECT_TRUE(result.ok()) << result.status().message();
    return result ? *result : ReplicasResult{};
  }
  std::string name(const TensorId& id) const { return tensor_name(id); }

 private:
  static std::vector<GraphPtr> graphs_of(int ranks, const std::function<Net(int)>& net) {
    std::vector<GraphPtr> out;
    for (int rank = 0; rank < ranks; ++rank) out.push_back(training(rank, net ? net(rank) : Net{}));
    return out;
  }
};

inline const ReplicaSet* set_of(const ReplicasResult& result, ReplicaKind what) {
  for (const ReplicaSet& set : result.sets) {
    if (set.what == what) return &set;
  }
  return nullptr;
}

inline const NotReplicated* left_out(const ReplicasResult& result, const std::string& part) {
  for (const NotReplicated& entry : result.not_replicated) {
    if (entry.reason.find(part) != std::string::npos) return &entry;
  }
  return nullptr;
}

}  // namespace msdbg::replica_test
