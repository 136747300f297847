// Which tensors are readable, and how they are sent.
#include <gtest/gtest.h>

#include <limits>
#include <numeric>

#include "agent/chain_net.h"

namespace msdbg::test {
namespace {

using Level = debugger::ViewCMD;

View value() { return View(Level::value); }
View base() { return View(Level::base); }
View statistics() { return View(Level::statistics); }

struct Viewing : testing::Test, Chain {
  Viewing() { steps = 1; }

  std::vector<debugger::TensorProto> slices(size_t upload = 0) const {
    std::vector<debugger::TensorProto> found;
    const std::vector<Call> calls = server.calls("SendTensors");
    for (size_t i = 0; i < calls.at(upload).messages.size(); ++i) {
      found.push_back(calls[upload].as<debugger::TensorProto>(i));
    }
    return found;
  }
};

/// "yn": found and not found, in the order of one SendTensorBase upload.
std::string found(const Chain& chain, size_t upload = 0) {
  std::string text;
  const std::vector<Call> calls = chain.server.calls("SendTensorBase");
  for (size_t i = 0; i < calls.at(upload).messages.size(); ++i) {
    text += calls[upload].as<debugger::TensorBase>(i).data_type() == 0 ? 'n' : 'y';
  }
  return text;
}

TEST_F(Viewing, AnswersComeInTheOrderOfTheRequestRepeatsIncluded) {
  run({value().tensor("w").tensor("none").tensor("q/w", "0", "", true).tensor("w").answer()});
  const auto got = slices();
  ASSERT_EQ(got.size(), 4u);
  EXPECT_EQ(got[0].node_name(), "w");
  EXPECT_EQ(got[0].tensor_content().size(), 16u);
  EXPECT_EQ(got[1].node_name(), "none");
  EXPECT_TRUE(got[1].finished());
  EXPECT_FALSE(got[1].has_tensor_content());
  EXPECT_FALSE(got[1].has_data_type());
  EXPECT_EQ(got[2].node_name(), "q/w");  // as requested, not as found
  EXPECT_TRUE(got[2].truncate());
  EXPECT_EQ(got[2].tensor_content(), got[0].tensor_content());
  EXPECT_EQ(got[3].tensor_content(), got[0].tensor_content());
}

TEST_F(Viewing, WeightsAndConstantsAreReadableInitiallyDataIsNot) {
  run({base().tensor("w").tensor("moments.w").tensor("Default--data-0").tensor("x").tensor(kMul).answer()});
  EXPECT_EQ(found(*this), "yyynn");
}

TEST_F(Viewing, ConstantsGoByTheirOwnName) {
  run({base().tensor("x/Default--data-0", "0", "", true).tensor("Default/data-0").answer()});
  EXPECT_EQ(found(*this), "yn");
}

TEST_F(Viewing, OldReleasesHaveDataButNoConstants) {
  run({base().tensor("w").tensor("Default--data-0").tensor("x").answer()}, "1.5.0");
  EXPECT_EQ(found(*this), "yny");
}

TEST_F(Viewing, FirstReleaseHasNothingInitially) {
  run({value().tensor("w").answer()}, "1.0.1");
  EXPECT_FALSE(slices().at(0).has_tensor_content());
}

TEST_F(Viewing, OnGpuOnlyReadOperatorsAndTheirInputsAreThere) {
  steps = 2;
  const Answer look = base().tensor(kMul).tensor("x").tensor(kSplit).tensor("w").answer();
  run({Answer::run_node(kMul), look, Answer::run(), look, Answer::run(), look});
  EXPECT_EQ(found(*this, 0), "yyny");
  EXPECT_EQ(found(*this, 1), "yyny");
  EXPECT_EQ(found(*this, 2), "nnnn");  // nothing was read in the second step, and the initial weights are no longer readable
}

TEST_F(Viewing, InputFromATupleIsKnownByTheOperatorThatPicksIt) {
  run({Answer::run_node(kAssign), base().tensor(kSplit, "0").tensor(kSplit, "1").answer(),
       value().tensor("Default/TupleGetItem-op4", "0").answer()});
  EXPECT_EQ(found(*this), "nn");
  EXPECT_EQ(slices().at(0).tensor_content(), std::string(reinterpret_cast<const char*>(net.second.data()), 16));
}

TEST_F(Viewing, AscendHasEverythingAtTheEndOfAStep) {
  run({Answer::run(), base().tensor(kMul).tensor(kSplit, "1").tensor("x").tensor("w").answer()}, "2.2.0",
      "Ascend");
  EXPECT_EQ(found(*this), "yyyy");
}

TEST_F(Viewing, PreviousValueExistsFromTheEndOfTheFirstStep) {
  net.update = [this](int) { net.w = {7, 7, 7, 7}; };
  const View look = value().tensor("w", "0", "prev").tensor("w");
  run({look.answer(), Answer::run(), look.answer()}, "2.2.0", "Ascend");
  EXPECT_FALSE(slices(0).at(0).has_tensor_content());
  const std::array<float, 4> before = {1, 1, 1, 1};
  EXPECT_EQ(slices(1).at(0).tensor_content(), std::string(reinterpret_cast<const char*>(before.data()), 16));
  EXPECT_EQ(slices(1).at(0).iter(), "prev");
  EXPECT_EQ(slices(1).at(1).tensor_content(), std::string(reinterpret_cast<const char*>(net.w.data()), 16));
}

TEST_F(Viewing, NewGpuReleasesNeverHaveAPreviousValue) {
  steps = 3;
  const Answer look = base().tensor("w", "0", "prev").answer();
  run({Answer::run_node(kAssign), look, Answer::run_node(kAssign), look});
  EXPECT_EQ(found(*this, 0) + found(*this, 1), "nn");
}

TEST_F(Viewing, SlotIsComparedAsText) {
  run({base().tensor("w", "").tensor("w", "00").tensor("w", "1").tensor("w", "-0").tensor("w", "0", "next").answer()});
  EXPECT_EQ(found(*this), "nnnnn");
}

TEST_F(Viewing, ReleasesBefore15AnswerEveryLevelWithValues) {
  run({base().tensor("w").answer(), statistics().tensor("w").answer()}, "1.3.0");
  EXPECT_EQ(server.order(), "SendMetadata SendGraph WaitCMD SendTensors WaitCMD SendTensors WaitCMD SendMetadata");
}

TEST_F(Viewing, EmptyListIsAnEmptyUpload) {
  run({value().answer(), base().answer()});
  EXPECT_EQ(server.calls("SendTensors").at(0).messages.size(), 0u);
  EXPECT_EQ(server.calls("SendTensorBase").at(0).messages.size(), 0u);
}

TEST_F(Viewing, UnknownLevelUploadsNothing) {
  run({View(static_cast<Level::Level>(9)).tensor("w").answer()});
  EXPECT_EQ(server.order(), "SendMetadata SendGraph WaitCMD WaitCMD WaitCMD SendMetadata");
}

TEST_F(Viewing, BaseViewGivesTypeShapeAndSize) {
  run({base().tensor("w").tensor("none").answer()});
  const Call upload = server.calls("SendTensorBase").at(0);
  const auto there = upload.as<debugger::TensorBase>(0), absent = upload.as<debugger::TensorBase>(1);
  EXPECT_EQ(there.data_type(), 11);
  EXPECT_EQ(std::vector<int64_t>(there.shape().begin(), there.shape().end()), std::vector<int64_t>{4});
  EXPECT_EQ(there.data_size(), 16);
  EXPECT_EQ(std::vector<int64_t>(absent.shape().begin(), absent.shape().end()), std::vector<int64_t>{0});
}

TEST_F(Viewing, StatisticsLeaveNonFiniteElementsOut) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  net.w = {-2, kInfinity, std::numeric_limits<float>::quiet_NaN(), 0};
  run({statistics().tensor("w").answer()});
  const auto got = server.calls("SendTensorStats").at(0).as<debugger::TensorSummary>().statistics();
  EXPECT_EQ(got.max_value(), 0);
  EXPECT_EQ(got.min_value(), -2);
  EXPECT_EQ(got.avg_value(), -1);
  EXPECT_EQ(got.count(), 4u);
  EXPECT_EQ(got.neg_zero_count(), 1u);
  EXPECT_EQ(got.pos_zero_count(), 0u);
  EXPECT_EQ(got.nan_count(), 1u);
  EXPECT_EQ(got.pos_inf_count(), 1u);
  EXPECT_EQ(got.zero_count(), 1u);
}

TEST_F(Viewing, StatisticsOf23LetNonFiniteElementsIn) {
  net.w = {-2, std::numeric_limits<float>::infinity(), 1, 0};
  run({statistics().tensor("w").answer()}, "2.3.0");
  const auto got = server.calls("SendTensorStats").at(0).as<debugger::TensorSummary>().statistics();
  EXPECT_EQ(got.max_value(), std::numeric_limits<float>::infinity());
  EXPECT_EQ(got.pos_zero_count(), 2u);
}

TEST_F(Viewing, FailedUploadIsFollowedByTheNextWait) {
  server.always("SendTensors", Answer::broken());
  run({value().tensor("w").answer()});
  EXPECT_EQ(server.order(), "SendMetadata SendGraph WaitCMD SendTensors WaitCMD WaitCMD SendMetadata");
}

/// One parameter of any size.
struct BigNet {
  std::vector<float> big;
  agent::GraphDescription describe() const {
    agent::GraphDescription graph;
    graph.parameters = {{"big", DType::kFloat32, {static_cast<int64_t>(big.size())}, big.data(), true}};
    agent::NodeDescription node;
    node.full_name = "Default/Identity-op1", node.op = "Identity", node.inputs = {{"big", 0}};
    node.outputs = {{DType::kFloat32, Shape{1}}};
    graph.nodes = {node};
    return graph;
  }
};

TEST(ViewingLarge, TensorIsCutIntoSlicesOfThreeMebibytes) {
  ScriptedServer server;
  BigNet net;
  net.big.resize(1'750'000);
  std::iota(net.big.begin(), net.big.end(), 0.0F);
  server.script({value().tensor("big").answer()});
  server.then_always(Answer::run());
  agent::Agent agent(options_for(server));
  ASSERT_TRUE(agent.add_graph(net.describe()).ok());
  agent.begin_step();
  std::string joined;
  std::vector<size_t> sizes;
  const Call upload = server.calls("SendTensors").at(0);
  for (size_t i = 0; i < upload.messages.size(); ++i) {
    const auto slice = upload.as<debugger::TensorProto>(i);
    sizes.push_back(slice.tensor_content().size());
    joined += slice.tensor_content();
    EXPECT_EQ(slice.finished(), i + 1 == upload.messages.size());
    EXPECT_EQ(slice.data_type(), 11);
    ASSERT_EQ(slice.dims_size(), 1);
    EXPECT_EQ(slice.dims(0), 1'750'000);
  }
  EXPECT_EQ(sizes, (std::vector<size_t>{3'145'728, 3'145'728, 708'544}));
  EXPECT_TRUE(joined == std::string(reinterpret_cast<const char*>(net.big.data()), net.big.size() * sizeof(float)));
}

TEST(ViewingLarge, TensorWithoutElementsHasNoSlice) {
  ScriptedServer server;
  BigNet net;
  net.big.reserve(1);  // a non-null pointer
  server.script({value().tensor("big").tensor("none").answer(), base().tensor("big").answer()});
  server.then_always(Answer::run());
  agent::Agent agent(options_for(server));
  ASSERT_TRUE(agent.add_graph(net.describe()).ok());
  agent.begin_step();
  const Call upload = server.calls("SendTensors").at(0);
  ASSERT_EQ(upload.messages.size(), 1u);
  EXPECT_EQ(upload.as<debugger::TensorProto>().node_name(), "none");
  EXPECT_EQ(server.calls("SendTensorBase").at(0).as<debugger::TensorBase>().data_type(), 11);
}

TEST(ViewingLarge, PublishedShapeMayDifferFromTheDescribedOne) {
  ScriptedServer server;
  BigNet net;
  net.big = {1, 2};
  server.script({Answer::run_node(), base().tensor("Default/Identity-op1").answer()});
  server.then_always(Answer::run());
  agent::Agent agent(options_for(server));
  ASSERT_TRUE(agent.add_graph(net.describe()).ok());
  agent.begin_step();
  agent.publish(0, 0, net.big.data(), 8, Shape{2, 1});
  agent.node_done(0);
  const auto got = server.calls("SendTensorBase").at(0).as<debugger::TensorBase>();
  EXPECT_EQ(std::vector<int64_t>(got.shape().begin(), got.shape().end()), (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(got.data_size(), 8);
}

TEST(ViewingLarge, ValueThatNoMessageCanHoldIsNotFound) {
  ScriptedServer server;
  BigNet net;
  net.big = {1};
  server.script({Answer::run_node(), value().tensor("Default/Identity-op1").answer(),
                 base().tensor("Default/Identity-op1").answer()});
  server.then_always(Answer::run());
  agent::Agent agent(options_for(server));
  ASSERT_TRUE(agent.add_graph(net.describe()).ok());
  agent.begin_step();
  constexpr size_t kTwoGibibytes = size_t{2} << 30;  // never read
  agent.publish(0, 0, net.big.data(), kTwoGibibytes);
  agent.node_done(0);
  const Call upload = server.calls("SendTensors").at(0);
  ASSERT_EQ(upload.messages.size(), 1u);
  EXPECT_FALSE(upload.as<debugger::TensorProto>().has_tensor_content());
  EXPECT_EQ(server.calls("SendTensorBase").at(0).as<debugger::TensorBase>().data_size(), int64_t{kTwoGibibytes});
}

TEST(ViewingLarge, UploadThatIsBrokenOffLeavesTheTensorAlone) {
  ScriptedServer server;
  BigNet net;
  net.big.resize(20'000'000);
  server.refuse("SendTensors");
  server.script({value().tensor("big").answer()});
  server.then_always(Answer::run());
  agent::Agent agent(options_for(server));
  ASSERT_TRUE(agent.add_graph(net.describe()).ok());
  agent.begin_step();
  EXPECT_NE(agent.problem().find("refused on purpose"), std::string::npos) << agent.problem();
  net.big = std::vector<float>();  // no longer used by anyone
  EXPECT_EQ(agent.end_step(), agent::Control::kGo);
}

TEST(ViewingLarge, NullPointerIsNoTensor) {
  ScriptedServer server;
  BigNet net;
  net.big = {1};
  server.script({Answer::run_node(), base().tensor("Default/Identity-op1").answer()});
  server.then_always(Answer::run());
  agent::Agent agent(options_for(server));
  ASSERT_TRUE(agent.add_graph(net.describe()).ok());
  agent.begin_step();
  agent.publish(0, 0, nullptr, 4);
  agent.node_done(0);
  EXPECT_EQ(server.calls("SendTensorBase").at(0).as<debugger::TensorBase>().data_type(), 0);
}

TEST(ViewingLarge, OutputThatTheGraphDoesNotHaveIsReported) {
  ScriptedServer server;
  BigNet net;
  server.then_always(Answer::run());
  agent::Agent agent(options_for(server));
  ASSERT_TRUE(agent.add_graph(net.describe()).ok());
  agent.begin_step();
  agent.publish(0, 5, net.big.data(), 0);
  EXPECT_NE(agent.problem().find("output 5"), std::string::npos);
}

}  // namespace
}  // namespace msdbg::test
