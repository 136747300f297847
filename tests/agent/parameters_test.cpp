// Parameters that move, vanish, or are elsewhere.
#include <gtest/gtest.h>

#include "agent/requests.h"

namespace msdbg::test {
namespace {

using Condition = debugger::WatchCondition;
using Level = debugger::ViewCMD;

TEST_F(Requests, ParameterMovesAndVanishes) {
  begin({});
  const std::array<float, 2> moved{5, 6};
  EXPECT_TRUE(agent->set_parameter(0, "w", std::nullopt, {2}, moved.data()).ok());
  EXPECT_TRUE(agent->set_parameter(0, "moments.w", std::nullopt, {4}, nullptr).ok());
  EXPECT_TRUE(agent->set_parameter(0, "x", DType::kInt32, {4}, net.x.data()).ok());
  server.script({});
  agent->end_step();
  agent->finish();
  ScriptedServer other;
  other.script({Answer::run(), View(Level::value).tensor("w").tensor("moments.w").tensor("x").answer()});
  other.then_always(Answer::run());
  options = options_for(other);
  options.backend = "Ascend";
  agent::Agent second(options);
  ASSERT_TRUE(second.add_graph(net.describe()).ok());
  second.begin_step();
  EXPECT_TRUE(second.set_parameter(0, "w", std::nullopt, {2}, moved.data()).ok());
  EXPECT_TRUE(second.set_parameter(0, "moments.w", std::nullopt, {4}, nullptr).ok());
  EXPECT_TRUE(second.set_parameter(0, "x", DType::kInt32, {4}, net.x.data()).ok());
  second.end_step();
  const Call sent = other.calls("SendTensors").at(0);
  EXPECT_EQ(hex(sent.as<debugger::TensorProto>(0).tensor_content()), "0000a0400000c040");
  EXPECT_EQ(sent.as<debugger::TensorProto>(0).dims(0), 2);
  EXPECT_FALSE(sent.as<debugger::TensorProto>(1).has_tensor_content());
  EXPECT_EQ(sent.as<debugger::TensorProto>(2).data_type(), 4);
}

TEST_F(Requests, ParameterElsewhereIsDecidedByItsState) {
  int asked = 0, fetched = 0;
  agent::ValueState state = agent::kStateFinite;
  const agent::StateQuery query = [&] { return ++asked, state; };
  const agent::Fetch fetch = [&](std::span<std::byte> into) { return std::memset(into.data(), ++fetched, into.size()), true; };
  agent::traits_for = &agent::own_traits;
  begin({overflow(1).leaf("w").answer(), Watch(2, Condition::nan).leaf("w").answer()});
  ASSERT_TRUE(agent->set_parameter_remote(0, "w", std::nullopt, {4}, query, fetch).ok());
  agent->end_step();
  EXPECT_EQ(hits(), "");
  EXPECT_EQ(asked, 1);  // once for both
  agent->begin_step();
  state = agent::kStateNan;
  agent->end_step();
  EXPECT_EQ(hits(), "1:w:0 2:w:0");
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(fetched, 0);
}

TEST_F(Requests, ParameterElsewhereIsFetchedAnewWhenTheProgramHasRunOn) {
  int fetched = 0;
  const agent::Fetch fetch = [&](std::span<std::byte> into) { return std::memset(into.data(), ++fetched, into.size()), true; };
  const Answer look = View(Level::value).tensor("w").answer();
  begin({Answer::run_node(), look, look, Answer::run_node(), look, Answer::run(), look});
  ASSERT_TRUE(agent->set_parameter_remote(0, "w", DType::kInt8, {4}, nullptr, fetch).ok());
  run_all();
  agent->end_step();
  std::string seen;
  for (size_t i = 0; i < server.calls("SendTensors").size(); ++i) seen += content(i) + " ";
  EXPECT_EQ(seen, "01010101 01010101 02020202 03030303 ");
}

TEST_F(Requests, ParameterElsewhereKeepsItsPreviousValue) {
  float now = 5;
  const agent::Fetch fetch = [&](std::span<std::byte> into) {
    for (size_t at = 0; at < into.size(); at += sizeof now) std::memcpy(into.data() + at, &now, sizeof now);
    return true;
  };
  begin({Watch(1, Condition::tensor_not_changed).leaf("Default/w").answer()}, "Ascend");
  ASSERT_TRUE(agent->set_parameter_remote(0, "w", std::nullopt, {4}, nullptr, fetch).ok());
  agent->end_step();
  agent->begin_step();
  now = 6;
  agent->end_step();
  EXPECT_EQ(hits(), "");
  agent->begin_step();
  agent->end_step();
  EXPECT_EQ(hits(), "1:w:0");
}

TEST_F(Requests, ParameterElsewhereMayHaveNoValueForAWhile) {
  bool there = false;
  const agent::Fetch fetch = [&](std::span<std::byte> into) { return std::memset(into.data(), 7, into.size()), there; };
  const Answer look = View(Level::value).tensor("w").answer();
  begin({Answer::run(), look, Answer::run(), look}, "Ascend");
  ASSERT_TRUE(agent->set_parameter_remote(0, "w", DType::kInt8, {4}, nullptr, fetch).ok());
  agent->end_step();
  there = true;
  agent->begin_step();
  agent->end_step();
  agent->begin_step();
  EXPECT_FALSE(server.calls("SendTensors").at(0).as<debugger::TensorProto>().has_tensor_content());
  EXPECT_EQ(content(1), "07070707");
  EXPECT_EQ(agent->problem(), "");
  EXPECT_EQ(agent->set_parameter_remote(0, "w", std::nullopt, {4}, nullptr, nullptr).message(),
            "parameter 'w': no function that fetches its elements");
}

TEST_F(Requests, WrongParametersChangeNothing) {
  begin({});
  EXPECT_EQ(agent->set_parameter(1, "w", std::nullopt, {4}, net.w.data()).message(), "graph 1: there are 1, numbered from 0");
  EXPECT_FALSE(agent->set_parameter(-1, "w", std::nullopt, {4}, net.w.data()).ok());
  EXPECT_EQ(agent->set_parameter(0, "v", std::nullopt, {4}, net.w.data()).code(), Code::kNotFound);
  EXPECT_FALSE(agent->set_parameter(0, kMul, std::nullopt, {4}, net.w.data()).ok());
  EXPECT_FALSE(agent->set_parameter(0, "w", std::nullopt, {-4}, net.w.data()).ok());
  EXPECT_FALSE(agent->set_parameter(0, "w", DType::kUnknown, {4}, net.w.data()).ok());
}

/// Before the first step, nobody knows that minimum reads `lo` and makes something of it.
TEST_F(Requests, InfiniteBufferIsJudgedWhenItsReadersAreKnown) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::array<float, 2> lo{kInfinity, kInfinity}, var{1, kInfinity}, w{1, kInfinity};
  agent::GraphDescription graph;
  const auto add = [&](const char* name, const auto& data) { graph.parameters.push_back({name, DType::kFloat32, {2}, data.data(), true}); };
  add("lo", lo), add("var", var), add("w", w);
  agent::NodeDescription gradient;
  gradient.full_name = "Gradients/Grad_w/Gradient-op0", gradient.op = "Gradient", gradient.outputs = {{DType::kFloat32, Shape{2}}};
  gradient.attributes = {{"gradient_of", "w"}};
  graph.nodes = {gradient};
  agent::traits_for = &agent::own_traits;
  debugger::EventReply begins;
  begins.mutable_run_cmd()->set_run_level("step");
  begins.mutable_run_cmd()->set_begins(true);
  server.script({overflow(1).leaf("lo").leaf("var").leaf("w").answer(), Answer::of(begins)});
  server.then_always(Answer::of(begins));
  options = options_for(server);
  agent = std::make_unique<agent::Agent>(options);
  ASSERT_TRUE(agent->add_graph(graph).ok());
  ASSERT_EQ(agent->begin_step(), agent::Control::kGo);
  EXPECT_EQ(hits(), "1:w:0");  // a trained weight waits for nothing
  agent::NodeDescription lower;
  lower.full_name = "Default/minimum-op0", lower.op = "minimum", lower.inputs = {{"lo", 0}}, lower.outputs = gradient.outputs;
  graph.nodes.insert(graph.nodes.begin(), lower);
  ASSERT_TRUE(agent->replace_graph(0, graph).ok());
  agent->end_step();
  EXPECT_EQ(hits(), "1:w:0 | 1:w:0 1:var:0");
}

}  // namespace
}  // namespace msdbg::test
