// Values that have elements of another one: what is known to be finite is not read again.
#include <gtest/gtest.h>

#include <functional>

#include "agent/requests.h"

namespace msdbg::test {
namespace {

constexpr size_t kCount = 64;

/// Mul is judged while its memory is finite. Then a NaN comes there behind the agent's back, so that a hit of Split tells that the
/// elements of Split were read.
struct Views : testing::Test {
  using Program = std::function<void(agent::Agent&, const float*)>;
  ChainNet net;
  std::string problem;

  static void judged(agent::Agent& agent, const float* memory) {
    agent.publish(0, 0, memory, kCount * sizeof(float), Shape{kCount});
    agent.node_done(0);
  }
  static Program view(Shape shape, std::vector<int64_t> strides = {}, size_t first = 0, std::optional<DType> dtype = std::nullopt) {
    return [=](agent::Agent& agent, const float* memory) { agent.publish_view(1, 0, 0, 0, dtype, memory + first, shape, strides); };
  }
  bool is_read(const Program& mul, const Program& split, bool watched = true) {
    ScriptedServer server;
    server.script({(watched ? overflow(1).leaf(kMul).leaf(kSplit) : overflow(1).leaf(kSplit)).answer()});
    server.then_always(Answer::run());
    agent::Agent agent(options_for(server));
    EXPECT_TRUE(agent.add_graph(net.describe()).ok());
    agent.begin_step();
    std::vector<float> memory(kCount, 1.0f);
    mul(agent, memory.data());
    std::fill(memory.begin(), memory.end(), kNotANumber);
    split(agent, memory.data());
    agent.node_done(1);
    problem = agent.problem();
    const size_t hits = server.calls("SendWatchpointHits").size();
    agent.finish();
    return hits > 0;
  }
};

TEST_F(Views, OfWhatIsFiniteAreNotRead) {
  EXPECT_FALSE(is_read(judged, view({8, 8})));
  EXPECT_FALSE(is_read(judged, view({8, 8}, {1, 8})));
  EXPECT_FALSE(is_read(judged, view({4}, {2}, 3)));
  EXPECT_FALSE(is_read(judged, view({3}, {-2}, 9)));
  EXPECT_FALSE(is_read(judged, view({2}, {0}, kCount - 1)));
  EXPECT_EQ(problem, "");
}

TEST_F(Views, OfViewsAreNotReadEither) {
  const Program both = [](agent::Agent& agent, const float* memory) {
    judged(agent, memory);
    agent.publish_view(1, 0, 0, 0, std::nullopt, memory, {8, 8}, std::vector<int64_t>{1, 8});
  };
  const Program second = [](agent::Agent& agent, const float* memory) {
    agent.publish_view(1, 1, 1, 0, std::nullopt, memory + 8, {8, 7}, std::vector<int64_t>{1, 8});
  };
  EXPECT_FALSE(is_read(both, second));
  EXPECT_EQ(problem, "");
}

TEST_F(Views, OfWhatNobodyHasJudgedAreRead) {
  const Program published = [](agent::Agent& agent, const float* memory) {
    agent.publish(0, 0, memory, kCount * sizeof(float), Shape{kCount});
  };
  EXPECT_TRUE(is_read(published, view({8, 8})));
  EXPECT_TRUE(is_read(judged, view({8, 8}), false));
  EXPECT_TRUE(is_read([](agent::Agent&, const float*) {}, view({8, 8}, {1, 8})));
}

TEST_F(Views, WithAnotherTypeOrOtherMemoryAreRead) {
  EXPECT_TRUE(is_read(judged, view({kCount}, {}, 0, DType::kFloat16)));
  EXPECT_TRUE(is_read(judged, view({kCount / 2, 2}, {1, 2}, 0, DType::kFloat16)));
  const Program part = [](agent::Agent& agent, const float* memory) {
    agent.publish(0, 0, memory + 1, (kCount - 2) * sizeof(float), Shape{kCount - 2});
    agent.node_done(0);
  };
  EXPECT_FALSE(is_read(part, view({kCount - 2}, {}, 1)));
  EXPECT_TRUE(is_read(part, view({kCount - 2}, {}, 0)));
  EXPECT_TRUE(is_read(part, view({kCount - 2}, {}, 2)));
  EXPECT_TRUE(is_read(part, view({2}, {kCount - 3}, 2)));
}

TEST_F(Views, OfWhatWasPublishedAgainOrInAnotherStepAreRead) {
  const Program again = [](agent::Agent& agent, const float* memory) {
    judged(agent, memory);
    agent.publish(0, 0, memory, kCount * sizeof(float), Shape{kCount});
  };
  EXPECT_TRUE(is_read(again, view({8, 8})));
  const Program step = [](agent::Agent& agent, const float* memory) {
    judged(agent, memory);
    agent.end_step();
    agent.begin_step();
  };
  EXPECT_TRUE(is_read(step, view({8, 8})));
}

TEST_F(Views, OfValuesWithABadElementAreJudgedByThemselves) {
  const Program bad = [](agent::Agent& agent, const float* memory) {
    const_cast<float*>(memory)[kCount - 1] = kNotANumber;
    judged(agent, memory);
  };
  const Program finite = [](agent::Agent& agent, const float* memory) {
    const_cast<float*>(memory)[0] = 1;
    agent.publish_view(1, 0, 0, 0, std::nullopt, memory, {1}, {});
  };
  EXPECT_TRUE(is_read(bad, [](agent::Agent&, const float*) {}));  // Mul itself is the hit
  EXPECT_FALSE(is_read(bad, finite, false));  // the view has none
}

TEST_F(Views, ThatAreWrongAreRefusedByName) {
  is_read(judged, view({-1}));
  EXPECT_NE(problem.find("Split"), std::string::npos) << problem;
  is_read(judged, view({8, 8}, {1}));
  EXPECT_NE(problem.find("1 strides for 2 dimensions"), std::string::npos) << problem;
  const Program of_none = [](agent::Agent& agent, const float* memory) { agent.publish_view(1, 0, 77, 0, std::nullopt, memory, {8}, {}); };
  EXPECT_TRUE(is_read(judged, of_none)) << "the value itself is right";
  EXPECT_NE(problem.find("operator 77"), std::string::npos) << problem;
}

}  // namespace
}  // namespace msdbg::test
