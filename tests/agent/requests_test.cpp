// What a program asks and says beyond its steps: what is wanted, copies, values elsewhere, options.
#include <gtest/gtest.h>

#include <limits>

#include "agent/requests.h"

namespace msdbg::test {
namespace {

using agent::Wants;
using Condition = debugger::WatchCondition;
using Level = debugger::ViewCMD;

/// A RunCMD that says whether somebody looks at the end of the step.
Answer run_looked_at(bool looked_at) {
  debugger::EventReply reply;
  reply.mutable_run_cmd()->set_run_level("step");
  reply.mutable_run_cmd()->set_looked_at(looked_at);
  return Answer::of(reply);
}

TEST_F(Requests, NothingIsWantedUnlessWatched) {
  begin({});
  EXPECT_EQ(wanted(), "nnn nothing");
  run_all();
  agent->end_step();
  EXPECT_EQ(wanted(), "nnn nothing");  // between steps
}

TEST_F(Requests, WatchedOperatorsAndTheirProducersAreWanted) {
  begin({above(1, 1e9).leaf(kSplit).answer()});
  EXPECT_EQ(wanted(), "yyn some");  // Split reads Mul
}

TEST_F(Requests, WatchOnEveryOperatorWantsAll) {
  begin({above(1, 1e9).leaf(kMul).leaf(kSplit).leaf(kAssign).answer()});
  EXPECT_EQ(wanted(), "yyy all");
}

TEST_F(Requests, ScopeOfEverythingWantsWhatComes) {
  begin({above(1, 1e9).scope("*").answer()});
  EXPECT_EQ(wanted(), "yyy all");
}

TEST_F(Requests, SteppingByOperatorWantsAllANameOnlyItself) {
  begin({Answer::run_node()});
  EXPECT_EQ(wanted(), "yyy all");
  agent->finish();
  ScriptedServer other;
  other.script({Answer::run_node(kAssign)});
  other.then_always(Answer::run());
  agent::Agent named(options_for(other));
  ASSERT_TRUE(named.add_graph(net.describe()).ok());
  named.begin_step();
  EXPECT_EQ(named.wants(), Wants::kSome);
  EXPECT_FALSE(named.wants_node(0));
  EXPECT_TRUE(named.wants_node(1));  // its outputs are read by Assign
  EXPECT_TRUE(named.wants_node(2));
  const agent::NodeIndex some[] = {0, 1}, none[] = {0, UINT32_MAX};
  EXPECT_TRUE(named.wants_any(some));
  EXPECT_FALSE(named.wants_any(none));
  EXPECT_FALSE(named.wants_any({}));
}

/// Mul hits while Split, which reads it, is published, too: what the debugger is shown of both.
struct StopAtMul : Requests {
  void stop(bool computed) {
    net.w = {100, 1, 1, 1};
    begin({above(1, 50).leaf(kMul).answer(), Answer::run(), View(Level::value).tensor(kMul).tensor(kSplit, "1").answer()});
    net.compute(0);
    agent->publish(0, 0, net.mul.data(), sizeof net.mul);
    agent->publish(1, 1, net.second.data(), sizeof net.second);
    if (computed) agent->step_computed();
    agent->node_done(0);
    ASSERT_EQ(server.calls("SendWatchpointHits").size(), 1u);
    EXPECT_EQ(floats(0, 0), (std::vector<float>{100, 2, 3, 4}));
  }
};

TEST_F(StopAtMul, BehindAStepThatHasRunEverythingPublishedIsShown) {
  stop(true);
  EXPECT_EQ(floats(0, 1), (std::vector<float>{-100, -2, -3, -4}));
}

TEST_F(StopAtMul, InTheMidstOfAStepWhatFollowsHasNotRun) {
  stop(false);
  EXPECT_EQ(floats(0, 1), std::vector<float>{});
}

TEST_F(Requests, OperatorsThatAStepSkipsAreToldAtItsEnd) {
  begin({});
  const auto told = [&] { return server.calls("WaitCMD").back().metadata().skipped(); };
  const agent::NodeIndex last[] = {2}, none[] = {0, 77};
  agent->skipped(last);
  net.compute(0);
  agent->end_step();
  ASSERT_EQ(told().size(), 1);
  EXPECT_EQ(told().Get(0), kAssign);
  agent->begin_step();
  agent->end_step();
  EXPECT_EQ(told().size(), 0);
  agent->begin_step();
  agent->skipped(none);
  EXPECT_EQ(agent->problem(), "operator 77 was skipped, which the graph does not have");
}

TEST_F(Requests, AStepThatIsCutShortHoldsTheTraining) {
  debugger::EventReply on;
  on.mutable_run_cmd()->set_run_level("step");
  on.mutable_run_cmd()->mutable_ahead()->set_steps(100);
  on.mutable_run_cmd()->mutable_ahead()->set_milliseconds(1000000);
  begin({Answer::of(on), Answer::of(on)});
  const size_t before = server.calls("WaitCMD").size();
  agent->end_step();
  EXPECT_EQ(server.calls("WaitCMD").size(), before);
  agent->begin_step();
  agent->cut_short(std::string(5000, 'x'));
  agent->end_step();
  ASSERT_EQ(server.calls("WaitCMD").size(), before + 1);
  EXPECT_EQ(server.calls("WaitCMD").back().metadata().cut_short(), std::string(1000, 'x'));
  agent->cut_short("between two steps");
  agent->begin_step();
  agent->end_step();
  EXPECT_EQ(server.calls("WaitCMD").size(), before + 1);
}

TEST_F(Requests, AscendWantsAllUnlessNobodyLooks) {
  begin({Answer::run(), run_looked_at(false), run_looked_at(true)}, "Ascend");
  EXPECT_EQ(wanted(), "yyy all");  // a debugger that does not say may look
  agent->end_step(), agent->begin_step();
  EXPECT_EQ(wanted(), "nnn nothing");
  agent->end_step(), agent->begin_step();
  EXPECT_EQ(wanted(), "yyy all");
}

TEST_F(Requests, AscendWithoutLookersWantsWhatIsWatched) {
  begin({above(1, 1e9).leaf(kMul).answer(), run_looked_at(false)}, "Ascend");
  EXPECT_EQ(wanted(), "ynn some");
}

TEST_F(Requests, NothingIsWantedOfATrainingThatNobodyGreeted) {
  server.stop();
  options.enabled = true;
  options.port = 1;  // nobody listens there
  options.backend = "Ascend";
  options.retry_unit = std::chrono::milliseconds(1);
  agent = std::make_unique<agent::Agent>(options);
  ASSERT_TRUE(agent->add_graph(net.describe()).ok());
  agent->begin_step();
  EXPECT_EQ(wanted(), "nnn nothing");
  EXPECT_FALSE(agent->publish_copy(0, 0, std::nullopt, net.mul.data(), {4}));
}

TEST_F(Requests, NothingIsWantedOfOperatorsThatDoNotExist) {
  begin({Answer::run_node()});
  EXPECT_FALSE(agent->wants_node(3));
  EXPECT_FALSE(agent->wants_node(UINT32_MAX));
}

TEST_F(Requests, CopyOutlivesItsMemory) {
  begin({above(1, 1e9).leaf(kMul).answer(), Answer::run(), View(Level::value).tensor(kMul).answer()});
  {
    std::vector<float> gone{1, 2, 3, 4};
    EXPECT_TRUE(agent->publish_copy(0, 0, std::nullopt, gone.data(), {4}));
    gone.assign(4, kNotANumber);
  }
  agent->node_done(0);
  agent->end_step();
  EXPECT_EQ(floats(), (std::vector<float>{1, 2, 3, 4}));
}

TEST_F(Requests, CopyOfWhatNobodyWantsIsNotMade) {
  begin({});
  EXPECT_FALSE(agent->publish_copy(0, 0, std::nullopt, net.mul.data(), {4}));
  EXPECT_EQ(agent->problem(), "");
}

TEST_F(Requests, StridesAreGatheredRowByRow) {
  const float matrix[6] = {1, 2, 3, 4, 5, 6};
  begin({Answer::run_node(), View(Level::value).tensor(kMul).answer(), Answer::run(),
         View(Level::value).tensor(kMul).answer()});
  const int64_t transposed[] = {1, 3}, repeated[] = {0, 2};
  EXPECT_TRUE(agent->publish_copy(0, 0, std::nullopt, matrix, {3, 2}, transposed));
  agent->node_done(0);
  EXPECT_EQ(floats(), (std::vector<float>{1, 4, 2, 5, 3, 6}));
  agent->end_step();
  const auto sent = server.calls("SendTensors").at(0).as<debugger::TensorProto>();
  ASSERT_EQ(sent.dims_size(), 2);
  EXPECT_EQ(sent.dims(0), 3);
  agent->finish();
  ScriptedServer other;
  other.script({Answer::run_node(), View(Level::value).tensor(kMul).answer()});
  other.then_always(Answer::run());
  agent::Agent second(options_for(other));
  ASSERT_TRUE(second.add_graph(net.describe()).ok());
  second.begin_step();
  EXPECT_TRUE(second.publish_copy(0, 0, DType::kFloat32, matrix, {2, 3}, repeated));
  second.node_done(0);
  const std::string bytes = other.calls("SendTensors").at(0).as<debugger::TensorProto>().tensor_content();
  float got[6];
  ASSERT_EQ(bytes.size(), sizeof got);
  std::memcpy(got, bytes.data(), sizeof got);
  EXPECT_EQ(std::vector<float>(got, got + 6), (std::vector<float>{1, 3, 5, 1, 3, 5}));
}

TEST_F(Requests, NegativeStridesAndNoElements) {
  const int32_t row[3] = {7, 8, 9};
  begin({Answer::run_node(), View(Level::value).tensor(kMul).answer()});
  const int64_t backwards[] = {-1}, any[] = {5};
  EXPECT_TRUE(agent->publish_copy(1, 0, std::nullopt, nullptr, {0}, any));
  EXPECT_TRUE(agent->publish_copy(0, 0, DType::kInt32, row + 2, {3}, backwards));
  agent->node_done(0);
  EXPECT_EQ(content(), "090000000800000007000000");
  EXPECT_EQ(server.calls("SendTensors").at(0).as<debugger::TensorProto>().data_type(), 4);  // int32, not as described
  EXPECT_EQ(agent->problem(), "");
}

TEST_F(Requests, StridedValueIsReadWhenItIsLookedAt) {
  float matrix[6] = {1, 2, 3, 4, 5, 6};
  begin({Answer::run_node(), View(Level::value).tensor(kMul).answer()});
  const int64_t transposed[] = {1, 3};
  agent->publish_strided(0, 0, std::nullopt, matrix, {3, 2}, transposed);
  matrix[3] = 40;  // it stays where it is: what it holds now is what the debugger sees
  agent->node_done(0);
  EXPECT_EQ(floats(), (std::vector<float>{1, 40, 2, 5, 3, 6}));
  EXPECT_EQ(agent->problem(), "");
}

TEST_F(Requests, OverflowIsFoundInStridedValues) {
  constexpr int64_t kRows = 40, kColumns = 30;
  const std::vector<std::vector<int64_t>> shapes = {{kColumns, kRows}, {3, kRows, 10}, {kRows, 2, 15}, {2, kRows, kColumns}, {kColumns}};
  const std::vector<std::vector<int64_t>> strides = {{1, kColumns}, {10, kColumns, 1}, {kColumns, 15, 1}, {0, kColumns, 1}, {-1}};
  for (size_t i = 0; i < shapes.size(); ++i) {
    for (const bool inside : {false, true}) {
      SCOPED_TRACE(shape_text(shapes[i]) + (inside ? ", a NaN inside" : ", a NaN after the end"));
      ScriptedServer other;
      other.script({overflow(1).leaf(kMul).answer()});
      other.then_always(Answer::run());
      agent::Agent one(options_for(other));
      ASSERT_TRUE(one.add_graph(net.describe()).ok());
      one.begin_step();
      std::vector<float> memory(kRows * kColumns + 1, 1.0f);
      memory[inside ? (i == 4 ? kColumns - 1 : kRows * kColumns - 1) : kRows * kColumns] = kNotANumber;
      const float* first = memory.data() + (i == 4 ? kColumns - 1 : 0);
      one.publish_strided(0, 0, std::nullopt, first, shapes[i], strides[i]);
      one.node_done(0);
      EXPECT_EQ(other.calls("SendWatchpointHits").size(), inside ? 1u : 0u) << one.problem();
      one.finish();
    }
  }
}

TEST_F(Requests, WrongStridedValuesAreRefusedByName) {
  begin({Answer::run_node()});
  const float value = 1;
  const int64_t one_stride[] = {1};
  agent->publish_strided(0, 0, std::nullopt, &value, {2, 1}, one_stride);
  EXPECT_NE(agent->problem().find("Mul-op1: 1 strides for 2 dimensions"), std::string::npos);
  agent->publish_strided(0, 0, DType::kFloat16, nullptr, {2}, one_stride);
  EXPECT_NE(agent->problem().find("data is null"), std::string::npos);
  agent->publish_strided(9, 0, std::nullopt, &value, {1}, one_stride);
  EXPECT_NE(agent->problem().find("operator 9"), std::string::npos);
}

TEST_F(Requests, WrongCopiesAreRefusedByName) {
  begin({Answer::run_node()});
  const float value = 1;
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max(), kLeast = std::numeric_limits<int64_t>::min();
  const auto refused = [&](const Shape& shape, std::vector<int64_t> strides, const void* data) {
    EXPECT_FALSE(agent->publish_copy(0, 0, std::nullopt, data, shape, strides));
    return agent->problem();
  };
  EXPECT_NE(refused({-1}, {}, &value).find("Mul-op1: a shape that no tensor has: [-1]"), std::string::npos);
  EXPECT_NE(refused({kMost, kMost}, {}, &value).find("a shape that no tensor has"), std::string::npos);
  EXPECT_NE(refused({2}, {kMost}, &value).find("strides that lead out of memory"), std::string::npos);
  EXPECT_NE(refused({2}, {kLeast}, &value).find("strides that lead out of memory"), std::string::npos);
  EXPECT_NE(refused({2, 1}, {1}, &value).find("1 strides for 2 dimensions"), std::string::npos);
  EXPECT_NE(refused({2}, {}, nullptr).find("data is null"), std::string::npos);
  EXPECT_FALSE(agent->publish_copy(9, 0, std::nullopt, &value, {}));
  EXPECT_NE(agent->problem().find("operator 9"), std::string::npos);
  EXPECT_FALSE(agent->publish_copy(0, 1, std::nullopt, &value, {}));
  EXPECT_FALSE(agent->publish_copy(0, 0, DType::kUnknown, &value, {}));
}

TEST_F(Requests, StateAloneDecidesOverflow) {
  int fetched = 0;
  const agent::Fetch fetch = [&](std::span<std::byte>) { return ++fetched, true; };
  begin({overflow(1).leaf(kMul).leaf(kSplit).leaf(kAssign).answer(), Watch(2, Condition::nan).leaf(kMul).leaf(kSplit).answer(),
         Watch(3, Condition::inf).leaf(kMul).leaf(kSplit).answer()});
  agent->publish_remote(0, 0, std::nullopt, {4}, agent::kStateFinite, fetch);
  agent->node_done(0);
  EXPECT_EQ(hits(), "");
  agent->publish_remote(1, 0, std::nullopt, {4}, agent::kStateInf, fetch);
  agent->node_done(1);
  agent->publish_remote(2, 0, DType::kFloat16, {4}, agent::kStateNan | agent::kStateInf, fetch);
  agent->node_done(2);
  agent->end_step();
  EXPECT_EQ(hits(), "1:Split-op2:0 3:Split-op2:0 | 1:Assign-op3:0");
  EXPECT_EQ(fetched, 0);
  EXPECT_EQ(agent->problem(), "");
}

TEST_F(Requests, ElementsAreFetchedWhenTheyAreNeeded) {
  int fetched = 0;
  const auto values = [&](float last) {
    return [&fetched, last](std::span<std::byte> into) {
      const float all[4] = {1, 2, 3, last};
      EXPECT_EQ(into.size(), sizeof all);
      std::memcpy(into.data(), all, sizeof all);
      return ++fetched, true;
    };
  };
  begin({above(1, 3).leaf(kMul).answer(), overflow(2).leaf(kSplit).answer(), Answer::run(),
         View(Level::base).tensor(kMul).answer(), View(Level::value).tensor(kMul).tensor(kMul).answer()});
  agent->publish_remote(0, 0, std::nullopt, {4}, agent::kStateFinite, values(4));  // the threshold needs elements
  agent->node_done(0);
  EXPECT_EQ(hits(), "1:Mul-op1:0");
  EXPECT_EQ(fetched, 2);  // to judge, and for the debugger
  EXPECT_EQ(floats(), (std::vector<float>{1, 2, 3, 4}));
  agent->publish_remote(1, 0, std::nullopt, {4}, 0, values(kNotANumber));  // nothing is known: it must be looked at
  agent->node_done(1);
  EXPECT_EQ(hits(), "1:Mul-op1:0 | 2:Split-op2:0");
  agent->publish_remote(2, 0, std::nullopt, {4}, 0, values(1));  // nobody wants it
  agent->node_done(2);
  agent->end_step();
  EXPECT_EQ(fetched, 3);
}

TEST_F(Requests, FetchedElementsAreGoneWithTheStep) {
  int fetched = 0;
  const agent::Fetch fetch = [&](std::span<std::byte> into) { return std::memset(into.data(), ++fetched, into.size()), true; };
  const Answer look = View(Level::value).tensor(kMul).answer();
  begin({above(1, 1e9).leaf(kMul).answer(), Answer::run(), look, Answer::run(), look, look}, "Ascend");
  for (int step = 0; step < 2; ++step) {
    agent->publish_remote(0, 0, DType::kInt8, {4}, 0, fetch);
    agent->end_step();
    agent->begin_step();
  }
  EXPECT_EQ(fetched, 4);  // in each step to judge, and once for the debugger
  EXPECT_EQ(content(0), "02020202");
  EXPECT_EQ(content(1), "04040404");
  EXPECT_EQ(content(2), "04040404");
}

TEST_F(Requests, ValueThatCannotBeFetchedIsNeitherCleanNorThere) {
  begin({above(1, 3).leaf(kMul).answer(), Answer::run(), View(Level::value).tensor(kMul).answer()});
  agent->publish_remote(0, 0, std::nullopt, {4}, 0, [](std::span<std::byte>) { return false; });
  agent->node_done(0);
  EXPECT_EQ(hits(), "1:Mul-op1:0/32");  // not checked: no value
  EXPECT_FALSE(server.calls("SendTensors").at(0).as<debugger::TensorProto>().has_tensor_content());
  EXPECT_EQ(agent->problem(), "the elements of Default/net-Net/Mul-op1:0 could not be fetched");
}

TEST_F(Requests, WrongRemotesAreRefused) {
  begin({overflow(1).leaf(kMul).answer()});
  const agent::Fetch fetch = [](std::span<std::byte>) { return true; };
  agent->publish_remote(0, 0, std::nullopt, {4}, 3, fetch);
  EXPECT_NE(agent->problem().find("state 3"), std::string::npos);
  agent->publish_remote(0, 0, std::nullopt, {4}, 1, nullptr);
  EXPECT_NE(agent->problem().find("no function"), std::string::npos);
  agent->publish_remote(0, 0, std::nullopt, {-4}, 1, fetch);
  EXPECT_NE(agent->problem().find("[-4]"), std::string::npos);
  agent->publish_remote(7, 0, std::nullopt, {4}, 1, fetch);
  EXPECT_NE(agent->problem().find("operator 7"), std::string::npos);
  agent->node_done(0);
  EXPECT_EQ(hits(), "");
}

TEST_F(Requests, OptionsPresentTheProgram) {
  server.then_always(Answer::run());
  agent::Agent torch(options_for(server));
  EXPECT_TRUE(torch.set_option("program", "PyTorch").ok());
  EXPECT_TRUE(torch.set_option("version", "2.15.0+cu132").ok());
  EXPECT_TRUE(torch.set_option("profile", "2.2.14").ok());
  EXPECT_TRUE(torch.set_option("retry_unit_ms", "20").ok());
  EXPECT_EQ(torch.set_option("profile", "2.3").code(), Code::kInvalidArgument);
  EXPECT_EQ(torch.set_option("profile", "2.20.1").code(), Code::kInvalidArgument);
  EXPECT_EQ(torch.set_option("retry_unit_ms", "0").code(), Code::kInvalidArgument);
  EXPECT_EQ(torch.set_option("retry_unit_ms", "60001").code(), Code::kInvalidArgument);
  EXPECT_EQ(torch.set_option("colour", "red").code(), Code::kInvalidArgument);
  ASSERT_TRUE(torch.add_graph(net.describe()).ok());
  torch.begin_step();
  EXPECT_EQ(torch.set_option("program", "late").code(), Code::kUnsupported);
  const debugger::Metadata metadata = server.calls("SendMetadata").at(0).metadata();
  EXPECT_EQ(metadata.program(), "PyTorch");
  EXPECT_EQ(metadata.program_version(), "2.15.0+cu132");
  EXPECT_EQ(metadata.ms_version(), "2.2.14");
}

}  // namespace
}  // namespace msdbg::test
