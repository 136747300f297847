// The training side: a training program links this to be held, stepped and watched by msdbg (or by any debugger that speaks
// MindSpore's protocol).
//
// One Agent per process. Any thread may call, but one call at a time, each after the one before it returned; finish(), attached() and
// problem() may be called on any thread at any time. Heartbeats have their own thread. After fork(), the child must not call anything.
// Tensors are published by reference: the memory must stay valid and unchanged until end_step() returns, and that of parameters until
// finish() or set_parameter(). Without a configured debugger, every publish() is one branch.
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
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
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
  std::string version = "2.2.0";      ///< of MindSpore, reported in the handshake; the agent always behaves like MindSpore 2.2
  std::string program;                ///< the name that the debugger shows for this training, such as "PyTorch"; "": MindSpore
  std::string program_version;        ///< of that program
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

struct DumpSource;

struct GraphDescription {
  int id = 1;                             ///< the graph is called kernel_graph_<id>
  std::vector<ParameterDescription> parameters;
  std::vector<ConstantDescription> constants;
  std::vector<NodeDescription> nodes;     ///< in execution order
  std::shared_ptr<DumpSource> dump;       ///< of graph_from_dump(), for publish_dump()
};

/// A description from the files that MindSpore writes beside its dump: graph number `graph` of `rank_directory` (".../rank_0"), in the
/// order of its execution_order. Parameters have no value until set_parameter() gives them one.
/// Error: kNotFound without the graph file, kIoError, kCorrupt.
Result<GraphDescription> graph_from_dump(const std::string& rank_directory, int graph, int id = 1);

/// Adds another graph of the same network, which control flow on tensors has split: its operators come behind those that are there.
/// Error: as graph_from_dump(); then nothing was added.
Status add_dumped_graph(GraphDescription& to, const std::string& rank_directory, int graph);

/// What is known of a value that is elsewhere: 0, or one or two of these.
using ValueState = uint8_t;
inline constexpr ValueState kStateFinite = 1, kStateNan = 2, kStateInf = 4;

/// Writes all elements of a value, contiguous, row by row. False: they cannot be had.
using Fetch = std::function<bool(std::span<std::byte> into)>;
/// What is known of a parameter that is elsewhere.
using StateQuery = std::function<ValueState()>;

/// What of a step is looked at.
enum class Wants : uint8_t {
  kNothing,  ///< no operator is watched or stepped to
  kSome,     ///< wants_node() says which
  kAll,      ///< a watch on everything, stepping by operator without a name, or "Ascend" in a step at whose end somebody may look
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
  /// The description of graph `graph` (the number of begin_step()) again: more operators, other shapes. Its id stays; node numbers are
  /// those of the new description from now on. What was published in this step stays, by full name and slot, and so do previous values
  /// of parameters. Allowed between steps and inside one. The debugger gets it where the training could be held next, and passes over
  /// that suspension; its watchpoints then cover the new operators already at the end of this step.
  /// Error: kInvalidArgument as in add_graph(), kNotFound for a number without a graph; then nothing has changed.
  Status replace_graph(int graph, GraphDescription description);
  /// Where parameter, data input or constant `name` of graph `graph` is now. No `dtype`: as described; null `data`: it has no value.
  /// Error: kNotFound, kInvalidArgument for a shape or type without a size; then nothing has changed.
  Status set_parameter(int graph, std::string_view name, std::optional<DType> dtype, const Shape& shape, const void* data);
  /// The same for one that is elsewhere, such as in a GPU. `state` may be empty; it is called when a condition may be decided by it,
  /// as in publish_remote(), and `fetch` when elements are needed: both at most once between two points where the program runs on, in
  /// the thread of the call that needs them, begin_step(), node_done() or end_step(). They must not call the agent, and stay valid until
  /// the parameter is set again or finish() returned. Error: kInvalidArgument without `fetch`, too.
  Status set_parameter_remote(int graph, std::string_view name, std::optional<DType> dtype, const Shape& shape, StateQuery state,
                              Fetch fetch);
  /// Before the first begin_step(). "program", "version" (of the program), "profile" (a release of MindSpore: 2.2 and its patches),
  /// "retry_unit_ms" (1 to 60000). Error: kInvalidArgument, with what is accepted; kUnsupported when it is too late.
  Status set_option(std::string_view name, std::string_view value);

  /// Connects before the first step, within two retry units (1 to 3 seconds): a debugger that is not there then never gets graph or
  /// metadata, but is asked for commands at the end of every step, as in MindSpore. Blocks while the debugger holds the training,
  /// also for a watched weight that has become NaN or Inf since the end of the last step.
  Control begin_step(int graph = 0);
  /// `bytes` is the size of the value; its shape is the described one unless `shape` is given.
  void publish(NodeIndex node, uint32_t slot, const void* data, size_t bytes) {
    if (attached()) publish_slow(node, slot, data, bytes, nullptr);
  }
  void publish(NodeIndex node, uint32_t slot, const void* data, size_t bytes, const Shape& shape) {
    if (attached()) publish_slow(node, slot, data, bytes, &shape);
  }
  /// A value that does not stay: copied if it is looked at, else forgotten (false), as is one with a wrong type, shape or number of
  /// strides (see problem()). No `dtype`: as described. `strides` in elements, one per dimension; none: contiguous.
  bool publish_copy(NodeIndex node, uint32_t slot, std::optional<DType> dtype, const void* data, const Shape& shape,
                    std::span<const int64_t> strides = {});
  /// A value that stays until end_step() has returned, with any strides and type, as in publish_copy(). Gathered when its elements are
  /// looked at.
  void publish_strided(NodeIndex node, uint32_t slot, std::optional<DType> dtype, const void* data, const Shape& shape,
                       std::span<const int64_t> strides);
  /// A value as in publish_strided() whose elements are all among those of output `of_slot` of operator `of`, which was published before
  /// in this step and has not changed since. What is known to be finite is not read again.
  void publish_view(NodeIndex node, uint32_t slot, NodeIndex of, uint32_t of_slot, std::optional<DType> dtype, const void* data,
                    const Shape& shape, std::span<const int64_t> strides);
  /// A value that is elsewhere, such as in a GPU. Conditions tensor_overflow, nan and inf are decided by `state` alone unless it is 0.
  /// `fetch` is called when elements are needed, in the thread of the call that needs them: node_done(), end_step(). It may be called
  /// several times, must not call the agent, and the value must stay until end_step() returned.
  void publish_remote(NodeIndex node, uint32_t slot, std::optional<DType> dtype, const Shape& shape, ValueState state, Fetch fetch);
  /// Inside a step whose graph came from graph_from_dump(): publishes what the dump of one iteration (".../rank_0/Net/0/1000000007")
  /// holds for its operators (of a description of several graphs: those of graph 0), and reports each operator done, in order of
  /// execution. Files are read when their elements are needed: remove them only when end_step() has returned. Returns how many outputs
  /// were published; those that nobody looks at are not.
  /// Error: kNotFound, kIoError for the directory; kUnsupported outside a step, or for another graph. Files that cannot be read
  /// are left out, see problem().
  Result<size_t> publish_dump(const std::string& iteration_directory);
  /// Reports that the device flagged an overflow while the operator ran: condition operator_overflow hits each of its published
  /// outputs when the step ends. Call it before end_step(). Only for backend "Ascend", as in MindSpore; a GPU has no such flag.
  void overflowed(NodeIndex node) {
    if (attached()) overflowed_slow(node);
  }
  /// All operators of the step have run: node_done() comes late from here on, and parameters have the values of the end of the step.
  /// Blocks if the graph was described again: the debugger gets it now.
  void step_computed() {
    if (attached()) step_computed_slow();
  }
  /// These operators do not run in the step that has begun: what they change in place keeps its value, so the debugger can show what
  /// others have read of it. Without the call, it takes operators of the graph for run. A second call in a step replaces the first.
  void skipped(std::span<const NodeIndex> nodes) {
    if (attached()) skipped_slow(nodes);
  }
  /// The step that has begun ends in its midst: `why`, such as the text of an exception. end_step() holds the training, whatever the
  /// debugger has asked for, unless it has detached.
  void cut_short(std::string_view why) {
    if (attached()) cut_short_slow(why);
  }
  /// The operator has run; all its outputs are published. May block (GPU): a hit, or a stop at this node.
  void node_done(NodeIndex node) {
    if (attached()) node_done_slow(node);
  }
  Control end_step();
  /// What of the step that has begun is looked at. Ask after begin_step(), and again after each node_done(), which may have held.
  Wants wants() const;
  /// Whether the outputs of an operator are looked at: by a watchpoint, by a stop behind it, or as inputs of such an operator.
  bool wants_node(NodeIndex node);
  /// Whether wants_node() is true for any of them.
  bool wants_any(std::span<const NodeIndex> nodes);
  /// Whether the step that has begun ends without a word to the debugger, which looks at nothing that the step leaves. Then only the
  /// outputs that wants_node() tells have to be published: what else there is can wait for a step that ends otherwise. A step that is
  /// cut short holds all the same. Ask once, after begin_step().
  bool passes();
  /// Ends the conversation; the agent sends nothing afterwards. May be called on another thread: that ends a hold.
  void finish();

  bool attached() const { return active_.load(std::memory_order_relaxed); }
  /// The current problem, for the program's own log; "" if there is none or the debugger ended the training. Any thread.
  std::string problem() const;

 private:
  void publish_slow(NodeIndex node, uint32_t slot, const void* data, size_t bytes, const Shape* shape);
  void node_done_slow(NodeIndex node);
  void overflowed_slow(NodeIndex node);
  void step_computed_slow();
  void skipped_slow(std::span<const NodeIndex> nodes);
  void cut_short_slow(std::string_view why);

  struct State;
  std::unique_ptr<State> state_;
  std::atomic<bool> active_{false};  ///< a debugger is configured and the conversation is active
};

}  // namespace msdbg::agent
