// Three operators in a row, one with two outputs, one that changes a weight; the test sets every value.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "agent/small_net.h"

namespace msdbg::test {

inline const std::string kMul = "Default/net-Net/Mul-op1";
inline const std::string kSplit = "Default/net-Net/Split-op2";
inline const std::string kAssign = "Default/opt-Sgd/Assign-op3";

struct ChainNet {
  std::array<float, 4> x{1, 2, 3, 4}, w{1, 1, 1, 1}, moment{0, 0, 0, 0}, scale{2, 2, 2, 2};
  std::array<float, 4> mul{}, first{}, second{}, assign{};
  std::function<void(int step)> compute = [this](int) {
    for (size_t i = 0; i < 4; ++i) {
      mul[i] = x[i] * w[i];
      first[i] = mul[i] * scale[i];
      second[i] = -mul[i];
    }
  };
  std::function<void(int step)> update = [](int) {};
  std::function<void(agent::Agent&, int step)> flag = [](agent::Agent&, int) {};

  agent::GraphDescription describe() const {
    const OutputType vector{DType::kFloat32, Shape{4}};
    agent::GraphDescription graph;
    graph.parameters = {{"x", DType::kFloat32, {4}, x.data(), false},
                        {"w", DType::kFloat32, {4}, w.data(), true},
                        {"moments.w", DType::kFloat32, {4}, moment.data(), true}};
    graph.constants = {{"Default--data-0", DType::kFloat32, {4}, scale.data()}};
    agent::NodeDescription node;
    node.full_name = kMul, node.op = "Mul", node.inputs = {{"x", 0}, {"w", 0}}, node.outputs = {vector};
    graph.nodes.push_back(node);
    node.full_name = kSplit, node.op = "Split", node.inputs = {{kMul, 0}, {"Default--data-0", 0}};
    node.outputs = {vector, vector};
    graph.nodes.push_back(node);
    node.full_name = kAssign, node.op = "Assign", node.inputs = {{"w", 0}, {"moments.w", 0}, {kSplit, 1}};
    node.outputs = {vector};
    graph.nodes.push_back(node);
    return graph;
  }

  int train(agent::Agent& agent, int steps) {
    for (int step = 0; step < steps; ++step) {
      if (agent.begin_step() == agent::Control::kStop) return step;
      compute(step);
      agent.publish(0, 0, mul.data(), sizeof mul);
      flag(agent, step);
      agent.node_done(0);
      agent.publish(1, 0, first.data(), sizeof first);
      agent.publish(1, 1, second.data(), sizeof second);
      agent.node_done(1);
      update(step);
      assign = w;
      agent.publish(2, 0, assign.data(), sizeof assign);
      agent.node_done(2);
      if (agent.end_step() == agent::Control::kStop) return step + 1;
    }
    return steps;
  }
};

/// Runs a conversation about a chain of operators and keeps what arrived.
struct Chain {
  ScriptedServer server;
  ChainNet net;
  int steps = 3;

  /// After the script, the answer is "run one step" forever.
  void run(std::vector<Answer> script, const std::string& version = "2.2.0", const std::string& backend = "GPU") {
    server.script(std::move(script));
    server.then_always(Answer::run());
    agent::Options options = options_for(server, version);
    options.backend = backend;
    agent::Agent agent(options);
    if (!agent.add_graph(net.describe()).ok()) return;
    net.train(agent, steps);
    agent.finish();
  }
  /// "1 Mul-op1, 1 Assign-op3": step and operator of every suspension.
  std::string holds() const {
    std::string text;
    for (const Call& call : server.calls("WaitCMD")) {
      const debugger::Metadata metadata = call.metadata();
      const std::string& node = metadata.cur_node();
      text += (text.empty() ? "" : ", ") + std::to_string(metadata.cur_step());
      if (!node.empty()) text += " " + node.substr(node.rfind('/') + 1);
    }
    return text;
  }
  debugger::WatchpointHit hit(size_t stream, size_t index) const {
    return server.calls("SendWatchpointHits").at(stream).as<debugger::WatchpointHit>(index);
  }
  /// "1:Mul-op1:0 2:w:0/4 | ...": id, node, slot and error code of every hit, streams separated.
  std::string hits() const {
    std::string text;
    for (const Call& call : server.calls("SendWatchpointHits")) {
      text += text.empty() ? "" : " |";
      for (size_t i = 0; i < call.messages.size(); ++i) {
        const auto hit = call.as<debugger::WatchpointHit>(i);
        text += (text.empty() ? "" : " ") + std::to_string(hit.id()) + ":" +
                hit.tensor().node_name().substr(hit.tensor().node_name().rfind('/') + 1) + ":" + hit.tensor().slot();
        if (hit.error_code() != 0) text += "/" + std::to_string(hit.error_code());
      }
    }
    return text;
  }
};

}  // namespace msdbg::test
