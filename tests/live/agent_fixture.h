// A session and our agent in one process: the training is a function that runs between begin_step() and end_step().
#pragma once

#include <gtest/gtest.h>

#include <limits>
#include <mutex>
#include <thread>

#include "live/faults.h"
#include "msdbg/agent.h"

namespace msdbg::test {

using agent::Control;
using agent::Wants;

inline constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

/// Text that the training writes and the test reads.
class Told {
 public:
  void operator+=(const std::string& more) {
    const std::lock_guard lock(mutex_);
    text_ += more;
  }
  std::string text() const {
    const std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  mutable std::mutex mutex_;
  std::string text_;
};

class LiveAgent : public LiveFaults {
 protected:
  /// The training: `step(agent, k)` between begin_step() and end_step(), until it is stopped or has run `steps`.
  void start(const agent::GraphDescription& graph, int steps, std::function<void(agent::Agent&, int)> step,
             const std::string& backend = "GPU") {
    agent::Options options;
    options.enabled = true;
    options.port = d_.port();
    options.backend = backend;
    training_ = std::thread([=, this] {
      agent::Agent agent(options);
      EXPECT_TRUE(agent.set_option("program", "PyTorch").ok());
      EXPECT_TRUE(agent.set_option("version", "2.15.0").ok());
      EXPECT_TRUE(agent.add_graph(graph).ok());
      for (int k = 0; k < steps; ++k) {
        if (agent.begin_step() == Control::kStop) return;
        step(agent, k);
        if (agent.end_step() == Control::kStop) return;
      }
      agent.finish();
    });
    ASSERT_TRUE(d_.session->wait_until_held(10s).ok());
  }
  /// The last line of a test whose training uses its variables.
  void end() {
    (void)d_.session->terminate(10s);
    if (training_.joinable()) training_.join();
  }
  void TearDown() override {
    end();
    LiveFaults::TearDown();
  }
  RunResult run(RunKind kind, int64_t count = 1) {
    Result<RunResult> result = d_.session->run({kind, count, {}, {}, {}});
    EXPECT_TRUE(result.ok()) << result.status().message();
    return result ? std::move(*result) : RunResult();
  }
  agent::GraphDescription parameters() const {
    agent::GraphDescription graph;
    graph.parameters = {{"fc1.weight", DType::kFloat32, {2}, weight_.data()}};
    return graph;
  }
  /// With `count` operators in a row.
  agent::GraphDescription operators(int count = 2) const {
    agent::GraphDescription graph = parameters();
    for (int i = 0; i < count; ++i) {
      agent::NodeDescription node;
      node.full_name = "Default/network-Net/fc1-Linear/addmm-op" + std::to_string(i);
      node.op = "addmm";
      node.inputs = {{i == 0 ? "fc1.weight" : graph.nodes.back().full_name, 0}};
      node.outputs = {{DType::kFloat32, Shape{2}}};
      graph.nodes.push_back(node);
    }
    return graph;
  }
  void describe_again(agent::Agent& agent, int count) const {
    const Status status = agent.replace_graph(0, operators(count));
    EXPECT_TRUE(status.ok()) << status.message();
  }
  std::string text_of(Wants wants) const { return wants == Wants::kAll ? "a" : wants == Wants::kSome ? "s" : "n"; }

  Driver d_;
  std::array<float, 2> weight_{1, 2}, good_{3, 4}, bad_{5, kNaN};
  std::thread training_;
};

}  // namespace msdbg::test
