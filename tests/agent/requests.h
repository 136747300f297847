// A fixture for what a program asks and says beyond its steps: a chain of operators whose steps the test writes itself.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <memory>

#include "agent/chain_net.h"

namespace msdbg::test {

inline constexpr float kNotANumber = std::numeric_limits<float>::quiet_NaN();

inline Watch overflow(int id) { return Watch(id, debugger::WatchCondition::tensor_general_overflow); }
inline Watch above(int id, double max) {
  return Watch(id, debugger::WatchCondition::tensor_too_large)
      .unused("abs_mean_gt").param("max_gt", max).unused("min_gt").unused("mean_gt");
}

struct Requests : testing::Test, Chain {
  agent::Options options;
  std::unique_ptr<agent::Agent> agent;

  void begin(std::vector<Answer> script, const std::string& backend = "GPU", Answer then = Answer::run()) {
    server.script(std::move(script));
    server.then_always(std::move(then));
    options = options_for(server);
    options.backend = backend;
    agent = std::make_unique<agent::Agent>(options);
    ASSERT_TRUE(agent->add_graph(net.describe()).ok());
    ASSERT_EQ(agent->begin_step(), agent::Control::kGo);
  }
  /// "yyn some": one letter per operator, then the step.
  std::string wanted(uint32_t nodes = 3) {
    std::string text;
    for (uint32_t node = 0; node < nodes; ++node) text += agent->wants_node(node) ? 'y' : 'n';
    const agent::Wants wants = agent->wants();
    return text + (wants == agent::Wants::kAll ? " all" : wants == agent::Wants::kSome ? " some" : " nothing");
  }
  std::string content(size_t upload = 0, size_t at = 0) const {
    return hex(server.calls("SendTensors").at(upload).as<debugger::TensorProto>(at).tensor_content());
  }
  std::vector<float> floats(size_t upload = 0, size_t at = 0) const {
    const std::string bytes = server.calls("SendTensors").at(upload).as<debugger::TensorProto>(at).tensor_content();
    std::vector<float> out(bytes.size() / sizeof(float));
    std::memcpy(out.data(), bytes.data(), out.size() * sizeof(float));
    return out;
  }
  void run_all() {
    for (uint32_t node = 0; node < 3; ++node) agent->node_done(node);
  }
};

}  // namespace msdbg::test
