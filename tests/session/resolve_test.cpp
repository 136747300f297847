#include <gtest/gtest.h>

#include "support/fake_session.h"

namespace msdbg {
namespace {

using testing::f32;
using testing::fake_graph;
using testing::FakeSession;

/// The same operator in two graphs; graph 0 ran in step 0, graph 1 in step 5.
struct TwoGraphs : FakeSession {
  TwoGraphs()
      : FakeSession({fake_graph({{"Default/conv1-Conv2d/Conv2D-op0", "Conv2D", {"a", "b"}},
                                 {"Default/TopK-op1", "TopK", {}, 2}},
                                0, 0),
                     fake_graph({{"Default/TopK-op1", "TopK", {}, 2}}, 0, 1)}) {
    put(id("Default/conv1-Conv2d/Conv2D-op0", 0), f32({1}));
    put(id("Default/TopK-op1", 0), f32({1}));
    put(id("Default/TopK-op1", 5, {}, 0, 0, 1), f32({1}));
  }
};

TEST(ResolveTensor, TakesEveryFormOfASlot) {
  TwoGraphs session;
  EXPECT_EQ(resolve_tensor(session, "Default/TopK-op1", 0)->slot, (Slot{Io::kOutput, 0}));
  EXPECT_EQ(resolve_tensor(session, "Default/TopK-op1:1", 0)->slot, (Slot{Io::kOutput, 1}));
  EXPECT_EQ(resolve_tensor(session, "Default/TopK-op1:output:1", 0)->slot, (Slot{Io::kOutput, 1}));
  EXPECT_EQ(resolve_tensor(session, "conv1-Conv2d/Conv2D-op0:input:1", 0)->slot, (Slot{Io::kInput, 1}));
}

TEST(ResolveTensor, PrefersTheGraphThatRanInTheStep) {
  TwoGraphs session;
  EXPECT_EQ(resolve_tensor(session, "Default/TopK-op1", 0)->graph, 0);
  EXPECT_EQ(resolve_tensor(session, "Default/TopK-op1", 5)->graph, 1);
  EXPECT_EQ(resolve_tensor(session, "Default/TopK-op1", 5, {}, 0)->graph, 0);
}

TEST(ResolveTensor, CarriesStepAndExecution) {
  TwoGraphs session;
  const auto id = resolve_tensor(session, "Default/TopK-op1:1", 0, 0, 0, 3);
  ASSERT_TRUE(id.ok());
  EXPECT_EQ(id->step, 0);
  EXPECT_EQ(id->execution, 3u);
}

TEST(ResolveTensor, RefusesASlotTheNodeDoesNotHave) {
  TwoGraphs session;
  const auto output = resolve_tensor(session, "Default/TopK-op1:2", 0);
  EXPECT_EQ(output.status().code(), Code::kNotFound);
  EXPECT_EQ(output.status().message(), "Default/TopK-op1 has no output:2 (it has output:0 to output:1)");
  const auto only = resolve_tensor(session, "conv1-Conv2d/Conv2D-op0:1", 0);
  EXPECT_EQ(only.status().message(), "Default/conv1-Conv2d/Conv2D-op0 has no output:1 (it has only output:0)");
}

TEST(ResolveTensor, NamesTheNearestNode) {
  TwoGraphs session;
  const auto found = resolve_tensor(session, "Default/TopKK-op1:0", 0);
  EXPECT_EQ(found.status().code(), Code::kNotFound);
  EXPECT_NE(found.status().message().find("TopK-op1"), std::string::npos) << found.status().message();
}

TEST(ResolveTensor, AnEmptyNameIsExplained) {
  TwoGraphs session;
  EXPECT_EQ(resolve_tensor(session, ":0", 0).status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace msdbg
