// The training side: a training program links this to be held, stepped and watched by msdbg (or by any debugger that speaks
// MindSpore's protocol).
//
// One Agent per process. Call everything except finish() on the training thread; heartbeats have their own thread. Tensors are
// published by reference: the memory must stay valid and unchanged until end_step() returns, and that of parameters until finish().
// Without a configured debugger, every publish() is one branch.
//
//   msdbg::agent::Agent agent(*msdbg::agent::options_from_environment());
//   agent.add_graph(describe_my_net());
//   while (training) {
//     if (agent.begin_step() == Control::kStop) break;
//     ... y = conv1(x);  agent.publish(kConv1, 0, y.data(), y.size() * sizeof(float));  agent.node_done(kConv1);
//     if (agent.end_step() == Control::kStop) break;
//   }
//   agent.finish();
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "msdbg/base.h"
#include "msdbg/graph.h"
#include "msdbg/tensor.h"

namespace msdbg::agent {

struct Options {
  bool enabled = false;
  std::string host = "127.0.0.1";
  int port = 50051;
  int device_id = 0;
  std::optional<int> rank;            ///< of this process among those of its training; a debugger of several ranks shows it as that one
  std::string backend = "GPU";        ///< "GPU": may stop after every operator; "Ascend": only at the end of a step
  std::string version = "2.2.0";      ///< reported in the handshake; the agent always behaves like MindSpore 2.2
  std::chrono::milliseconds heartbeat_period{30000};
  std::chrono::milliseconds retry_unit{1000};  ///< a failed WaitCMD is repeated after 1, 2, ... 5 units
};

/// Reads ENABLE_MS_DEBUGGER, MS_DEBUGGER_HOST and MS_DEBUGGER_PORT like MindSpore, and the rank from RANK_ID.
/// Error: kInvalidArgument with the variable, its value and what is accepted.
Result<Options> options_from_environment();

using NodeIndex = uint32_t;  ///< index into GraphDescription::nodes
using ParameterIndex = uint32_t;

struct ParameterDescription {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;
  const void* data = nullptr;  ///< null for data inputs, which have no value at the initial suspension
  bool is_weight = true;       ///< false: a data input
};

struct ConstantDescription {
  std::string name;            ///< `Default--data-2`
  DType dtype = DType::kFloat32;
  Shape shape;
  const void* data = nullptr;
};

/// The source of an input: output `slot` of an operator, a parameter or a constant, by full name.
struct InputDescription {
  std::string name;
  uint32_t slot = 0;
};

struct NodeDescription {
  std::string full_name;       ///< `Default/net-Net/fc1-Dense/MatMul-op1`
  std::string op;
  std::vector<InputDescription> inputs;
  std::vector<OutputType> outputs;
  std::vector<Attribute> attributes;
  std::vector<StackFrame> stack;  ///< innermost frame first
};

struct GraphDescription {
  int id = 1;                             ///< the graph is called kernel_graph_<id>
  std::vector<ParameterDescription> parameters;
  std::vector<ConstantDescription> constants;
  std::vector<NodeDescription> nodes;     ///< in execution order
};

enum class Control : uint8_t { kGo, kStop };  ///< kStop: the debugger ended the training, or gave up waiting for it

class Agent {
 public:
  explicit Agent(Options options);
  ~Agent();  ///< finish()
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  /// Call it before the first step, or between two steps for a graph that is compiled later. Error: kInvalidArgument for an empty
  /// or duplicate name, or an input that names nothing.
  Status add_graph(GraphDescription graph);

  /// Connects before the first step, once: a debugger that is not there then never gets graph or metadata, but is asked for
  /// commands at the end of every step, as in MindSpore. Blocks while the debugger holds the training.
  Control begin_step(int graph = 0);
  /// `bytes` is the size of the value; its shape is the described one unless `shape` is given.
  void publish(NodeIndex node, uint32_t slot, const void* data, size_t bytes) {
    if (attached()) publish_slow(node, slot, data, bytes, nullptr);
  }
  void publish(NodeIndex node, uint32_t slot, const void* data, size_t bytes, const Shape& shape) {
    if (attached()) publish_slow(node, slot, data, bytes, &shape);
  }
  /// Reports that the device flagged an overflow while the operator ran: condition operator_overflow hits each of its published
  /// outputs when the step ends. Call it before end_step(). Only for backend "Ascend", as in MindSpore; a GPU has no such flag.
  void overflowed(NodeIndex node) {
    if (attached()) overflowed_slow(node);
  }
  /// The operator has run; all its outputs are published. May block (GPU): a hit, or a stop at this node.
  void node_done(NodeIndex node) {
    if (attached()) node_done_slow(node);
  }
  Control end_step();
  /// Ends the conversation; the agent sends nothing afterwards. May be called on another thread: that ends a hold.
  void finish();

  bool attached() const { return active_.load(std::memory_order_relaxed); }
  /// The current problem, for the program's own log; "" if there is none or the debugger ended the training. Any thread.
  std::string problem() const;

 private:
  void publish_slow(NodeIndex node, uint32_t slot, const void* data, size_t bytes, const Shape* shape);
  void node_done_slow(NodeIndex node);
  void overflowed_slow(NodeIndex node);

  struct State;
  std::unique_ptr<State> state_;
  std::atomic<bool> active_{false};  ///< a debugger is configured and the conversation is active
};

}  // namespace msdbg::agent
