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

std::vector<Attribute> updates(std::string slots) { return {{"updates", std::move(slots)}}; }

// Two weights, and two operators that change both, one after the other; the second takes gradients, too.
GraphPtr two_updates(const std::string& second = "0-1") {
  return fake_graph({{"w", "Parameter"},
                     {"v", "Parameter"},
                     {"g", "Grad", {"w", "v"}, 2},
                     {"mul", "_foreach_mul_", {"w", "v"}, 2, {}, updates("0-1")},
                     {"add", "_foreach_add_", {"mul:0", "mul:1", "g:0", "g:1"}, 2, {}, updates(second)}});
}

TEST(UpdatedSlots, AreThoseThatTheProgramNames) {
  const GraphPtr graph = two_updates();
  const Node& mul = *graph->find("mul");
  EXPECT_EQ(updated_slots(*graph, mul), (Slots{0, 1}));
  EXPECT_EQ(updated_parameter(*graph, mul, 1), graph->find("v")->id);
}

TEST(UpdatedSlots, FollowTheParameterThroughEarlierUpdates) {
  const GraphPtr graph = two_updates();
  const Node& add = *graph->find("add");
  EXPECT_EQ(updated_slots(*graph, add), (Slots{0, 1}));
  EXPECT_EQ(updated_parameter(*graph, add, 0), graph->find("w")->id);
  EXPECT_EQ(updated_parameter(*graph, add, 1), graph->find("v")->id);
}

TEST(UpdatedSlots, NamedByAnAttributeThatCannotBeReadAreNone) {
  for (const char* text : {"", "x", "-", "7", "1-0", "0-", "1,0x", "99999999999", "0,0"}) {
    const GraphPtr graph = two_updates(text);
    for (const uint32_t slot : updated_slots(*graph, *graph->find("add"))) EXPECT_LE(slot, 1u) << text;
  }
  EXPECT_EQ(updated_slots(*two_updates("0-4294967295"), *two_updates()->find("add")), (Slots{0, 1}));
}

TEST(ReplacesOldValue, IsFalseForWhatAddsOrScalesInPyTorch) {
  Node node;
  for (const char* op : {"add_", "_foreach_add_", "_foreach_addcdiv_", "_fused_adamw_", "lerp_"}) {
    node.op = op;
    EXPECT_FALSE(replaces_old_value(node)) << op;
  }
  for (const char* op : {"copy_", "_foreach_copy_", "zero_", "nan_to_num_", "clamp_", "normal_"}) {
    node.op = op;
    EXPECT_TRUE(replaces_old_value(node)) << op;
  }
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
