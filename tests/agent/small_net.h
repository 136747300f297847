// The network of the protocol's worked example: a single operator, x + w.
#pragma once

#include <array>
#include <string>

#include "msdbg/agent.h"
#include "support/old_releases.h"
#include "support/scripted_server.h"

namespace msdbg::test {

inline constexpr const char* kAdd = "Default/net-Net/Add-op1";

struct SmallNet {
  std::array<float, 2> x{0, 1}, w{1, 2}, sum{};

  agent::GraphDescription describe(int id = 1) const {
    agent::GraphDescription graph;
    graph.id = id;
    graph.parameters = {{"x", DType::kFloat32, {2}, x.data(), false}, {"w", DType::kFloat32, {2}, w.data(), true}};
    agent::NodeDescription add;
    add.full_name = kAdd;
    add.op = "Add";
    add.inputs = {{"x", 0}, {"w", 0}};
    add.outputs = {{DType::kFloat32, Shape{2}}};
    graph.nodes = {add};
    return graph;
  }
};

inline const OldReleases kOldReleases;

/// For an agent that behaves like MindSpore `version`.
inline agent::Options options_for(const ScriptedServer& server, const std::string& version = "2.2.0") {
  agent::Options options;
  options.enabled = true;
  options.port = server.port();
  options.version = version;
  options.retry_unit = std::chrono::milliseconds(20);
  return options;
}

/// Runs steps of the small network until it is stopped; returns the number of steps that ran.
inline int train(agent::Agent& agent, SmallNet& net, int steps) {
  for (int step = 0; step < steps; ++step) {
    if (agent.begin_step() == agent::Control::kStop) return step;
    for (size_t i = 0; i < net.sum.size(); ++i) net.sum[i] = net.x[i] + net.w[i];
    agent.publish(0, 0, net.sum.data(), sizeof net.sum);
    agent.node_done(0);
    if (agent.end_step() == agent::Control::kStop) return step + 1;
  }
  return steps;
}

inline std::string hex(const std::string& bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    text += kDigits[static_cast<unsigned char>(c) >> 4];
    text += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return text;
}

}  // namespace msdbg::test
