#include "msdbg/in_place.h"

#include <gtest/gtest.h>

#include "support/fake_session.h"

namespace msdbg {
namespace {

using testing::fake_graph;
using Slots = std::vector<uint32_t>;

TEST(UpdatedSlots, MomentumUpdatesWeightAndAccumulationButNotTheRate) {
  const GraphPtr graph = fake_graph({{"w", "Parameter"},
                                     {"m", "Parameter"},
                                     {"lr", "Parameter"},
                                     {"g", "Grad"},
                                     {"mu", "Parameter"},
                                     {"opt", "ApplyMomentum", {"w", "m", "lr", "g", "mu"}}});
  EXPECT_EQ(updated_slots(*graph, *graph->find("opt")), (Slots{0, 1}));
}

TEST(UpdatedSlots, AssignUpdatesItsFirstInput) {
  const GraphPtr graph = fake_graph({{"w", "Parameter"}, {"v", "Parameter"}, {"a", "AssignAdd", {"w", "v"}}});
  EXPECT_EQ(updated_slots(*graph, *graph->find("a")), (Slots{0}));
}

TEST(UpdatedSlots, ValueBehindALoadIsNotUpdated) {
  const GraphPtr graph = fake_graph({{"w", "Parameter"}, {"l", "Load", {"w"}}, {"a", "Assign", {"l", "w"}}});
  EXPECT_TRUE(updated_slots(*graph, *graph->find("a")).empty());
}

TEST(UpdatedSlots, UnknownOptimizerCountsEveryParameter) {
  const GraphPtr graph =
      fake_graph({{"w", "Parameter"}, {"s", "Parameter"}, {"g", "Grad"}, {"opt", "ApplyNovelty", {"w", "g", "s"}}});
  EXPECT_EQ(updated_slots(*graph, *graph->find("opt")), (Slots{0, 2}));
}

TEST(UpdatedSlots, BatchNormUpdatesItsMovingStatistics) {
  const GraphPtr graph = fake_graph({{"x", "Relu"},
                                     {"a", "Parameter"},
                                     {"b", "Parameter"},
                                     {"mean", "Parameter"},
                                     {"var", "Parameter"},
                                     {"bn", "BatchNorm", {"x", "a", "b", "mean", "var"}}});
  EXPECT_EQ(updated_slots(*graph, *graph->find("bn")), (Slots{3, 4}));
}

TEST(UpdatedSlots, OrdinaryOperatorUpdatesNothing) {
  const GraphPtr graph = fake_graph({{"w", "Parameter"}, {"mm", "MatMul", {"w"}}});
  EXPECT_TRUE(updated_slots(*graph, *graph->find("mm")).empty());
  EXPECT_TRUE(updated_slots(*graph, *graph->find("w")).empty());
}

TEST(ReplacesOldValue, HoldsForAssignOnly) {
  Node node;
  node.op = "Assign";
  EXPECT_TRUE(replaces_old_value(node));
  node.op = "AssignAdd";
  EXPECT_FALSE(replaces_old_value(node));
  node.op = "ApplyMomentum";
  EXPECT_FALSE(replaces_old_value(node));
}

}  // namespace
}  // namespace msdbg
