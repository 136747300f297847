// The graph model: nodes with slots, scopes, producers and users, and the selector language.
//
// A Graph is built once (GraphBuilder), then immutable, and may be read from any thread.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "msdbg/base.h"
#include "msdbg/shared_list.h"
#include "msdbg/tensor.h"

namespace msdbg {

using NodeId = uint32_t;
inline constexpr NodeId kNoNode = UINT32_MAX;

enum class NodeKind : uint8_t { kOperator, kParameter, kConstant };
std::string_view node_kind_name(NodeKind kind);  ///< "operator", "parameter", "constant"

enum class Io : uint8_t { kInput, kOutput };

/// `output:0`, `input:1`.
struct Slot {
  Io io = Io::kOutput;
  uint32_t index = 0;
  auto operator<=>(const Slot&) const = default;
};
std::string slot_name(Slot slot);
/// Accepts `output:0`, `input:1`, and `0` for output 0.
std::optional<Slot> parse_slot(std::string_view text);

/// One line of the user's program. `line` is 0 if unknown.
struct StackFrame {
  SharedText file;
  int line = 0;
  SharedText code;  ///< without indentation; may be empty
  bool operator==(const StackFrame&) const = default;
};

/// The source of an input: `slot` is the producer's output, looking through TupleGetItem.
struct Edge {
  NodeId node = kNoNode;
  uint32_t slot = 0;
  SharedText name;  ///< of an unknown producer, as in the file
};

struct OutputType {
  DType dtype = DType::kUnknown;
  std::optional<Shape> shape;  ///< nullopt: not in the file (elements of a sequence)
  bool operator==(const OutputType&) const = default;
};

struct Attribute {
  SharedText name;
  SharedText value;  ///< printed form
  bool operator==(const Attribute&) const = default;
};

/// The part of a node that is a recorded call (see Graph::recorded_calls); kNone for others.
enum class CallRole : uint8_t {
  kNone,
  kForward,            ///< a call of an API
  kOptimizer,          ///< the same, made by an optimizer
  kBackward,           ///< the gradient function of a forward call
  kModule,             ///< a call of a module, which may contain other calls
  kModuleBackward,     ///< its gradients
  kParameterGradients  ///< the gradients of its parameters
};

/// A graph may have a million: what nodes have in common is stored once.
struct Node {
  NodeId id = kNoNode;
  /// Position in the execution order, smaller runs earlier. Parameters and constants come before every operator.
  uint32_t order = 0;
  std::string name;  ///< full name with scopes, as MindSpore prints it
  SharedText op;     ///< operator type; "Parameter" and "Const" for those kinds
  SharedText scope;  ///< "" at top level
  std::vector<Edge> inputs;        ///< position k is input slot k
  SharedList<OutputType> outputs;  ///< element k is output slot k
  SharedList<Attribute> attributes;
  SharedList<StackFrame> stack;    ///< innermost frame first
  SharedText constant_value;       ///< printed inline value of a constant, if the file has one
  SharedText file_key;             ///< constants: the name in dump files (`data-3`, `cst1`)
  NodeKind kind = NodeKind::kOperator;
  bool trainable = false;           ///< a parameter that an optimizer updates
  bool optimizer_state = false;     ///< a parameter that only an optimizer uses (momentum, moments, step, rate)
  CallRole role = CallRole::kNone;

  std::string_view last_component() const;  ///< text after the last '/'
};

/// Other calls that belong to a recorded one.
struct CallLinks {
  NodeId caller = kNoNode;   ///< the module in which it ran
  NodeId forward = kNoNode;  ///< of a backward call: the forward call whose inputs and outputs it uses besides its own
  bool took_unknown = false; ///< what it took was not recorded
  uint64_t in_steps = 0;     ///< the same for calls that ran in the same steps, on all ranks
};

/// A consumer of an output: input `slot` of node `node`.
struct Use {
  NodeId node;
  uint32_t slot;         ///< input slot of the consumer
  uint32_t output_slot;  ///< the producer's output slot
};

class GradientTable;

/// A bit for each node of a graph, by its id.
using NodeBits = std::vector<uint64_t>;

enum class Category : uint8_t { kAll, kWeight, kGradient, kActivation, kParameter, kConstant, kOptimizer, kLoss, kFromWeights, kScaled };
inline constexpr size_t kCategories = 10;

class Graph {
 public:
  int rank() const { return rank_; }
  int id() const { return id_; }                        ///< the number in the file and directory names
  const std::string& name() const { return name_; }    ///< as in the file, e.g. "kernel_graph0"
  int root_id() const { return root_id_; }
  /// False if there was no graph file and the nodes come from the names of tensor files.
  bool from_file() const { return from_file_; }
  /// The graph file; set without from_file() if it could not be read.
  const std::string& source_path() const { return source_path_; }

  /// True if the nodes are calls that a tool recorded in the program, not the operators of a graph file. Then a recorded input is what
  /// the call got before it ran, a parameter is what it was when the step began, an edge joins equal values, and calls may be missing.
  bool recorded_calls() const { return !calls_.empty(); }
  /// Empty links without recorded_calls().
  CallLinks call_links(NodeId id) const { return id < calls_.size() ? calls_[id] : CallLinks(); }

  std::span<const Node> nodes() const { return nodes_; }
  const Node& node(NodeId id) const { return nodes_[id]; }
  /// Operators in execution order (from the execution-order csv if there is one, else in file order).
  std::span<const NodeId> execution_order() const { return execution_order_; }
  /// The node with exactly this full name.
  const Node* find(std::string_view full_name) const;
  std::span<const Use> users(NodeId id) const;
  /// Consumers, looking through structural nodes (Depend, Load, MakeTuple/TupleGetItem pairs, UpdateState).
  std::vector<Use> effective_users(NodeId id) const;
  /// Producer of an input, looking through structural nodes; node is kNoNode if unknown. Inputs that only define the order end at
  /// their UpdateState or monad (see carries_value).
  Edge effective_producer(NodeId id, uint32_t input_slot) const;

  /// The parameters by their gradients, paired when first asked for; see parameter_of_gradient(). Any thread.
  const GradientTable& gradient_table() const;
  /// in_category() of all nodes, decided when a category is first asked for. Any thread.
  const NodeBits& members(Category category) const;
  bool in(NodeId id, Category category) const { return (members(category)[id / 64] >> (id % 64) & 1) != 0; }
  /// Which nodes have the same operator type: numbers from 0, given when first asked for. Any thread.
  struct OpNumbers {
    std::vector<uint32_t> of;        ///< by node
    std::vector<SharedText> texts;   ///< by number
  };
  const OpNumbers& op_numbers() const;

 private:
  friend class GraphBuilder;
  template <typename From, typename Passes>
  NodeBits derived(From from, Passes passes) const;
  NodeBits from_weights() const;
  NodeBits scaled() const;
  /// Where the first node of this name is in by_name_, or the free place where it belongs.
  size_t place_of(std::string_view full_name) const;

  int rank_ = 0;
  int id_ = 0;
  int root_id_ = 0;
  bool from_file_ = true;
  std::string name_, source_path_;
  std::vector<Node> nodes_;
  std::vector<CallLinks> calls_;  // by node, or empty
  std::vector<NodeId> execution_order_;
  std::vector<NodeId> by_name_;      // a hash table: kNoNode is a free place
  std::vector<Use> uses_;            // grouped by producer
  std::vector<uint32_t> use_begin_;  // nodes_.size() + 1
  mutable std::once_flag gradients_paired_;
  mutable std::shared_ptr<const GradientTable> gradient_table_;
  struct Members {
    std::once_flag decided;
    NodeBits nodes;
  };
  mutable std::array<Members, kCategories> members_;
  mutable std::once_flag ops_numbered_;
  mutable OpNumbers op_numbers_;
};
using GraphPtr = std::shared_ptr<const Graph>;

/// The innermost line of the user's own program; a frame inside the framework only if there is no other. nullptr without a stack.
const StackFrame* user_frame(const Node& node);
/// user_frame() as "train.py:70", "" without a stack; `full` keeps the directories.
std::string source_place(const Node& node, bool full);

/// True for operators that have no tensor of their own and are never dumped.
bool is_structural(std::string_view op);

/// True for operators that draw random numbers, such as Dropout or `normal_`: two runs agree in them only with the same seeds.
bool draws_random_numbers(std::string_view op);

/// By the name of the parameter. A loss scale steers the training like a learning rate, but no optimizer takes it.
bool is_loss_scale(const Node& node);

/// By the name of the parameter: a value that another graph of the network computes, as in `Parameter_12` or `equiv_3_CNode_7`. MindSpore
/// splits a network where its control flow depends on a tensor. Or a value that the agent has not seen.
bool is_handed_over(const Node& node);

/// False for an input that only defines the order: its producer (UpdateState, a monad) has no output. True for an unknown producer.
bool carries_value(const Graph& graph, const Edge& edge);

/// Collects nodes in file order, then builds the indexes. Edges may name nodes that are added later.
class GraphBuilder {
 public:
  GraphBuilder(int rank, int id);
  GraphBuilder(GraphBuilder&& other) noexcept;
  GraphBuilder& operator=(GraphBuilder&& other) noexcept;
  ~GraphBuilder();
  void set_name(std::string name);
  void set_root_id(int id);
  int root_id() const;
  void set_from_file(bool value);
  void set_source_path(std::string path);
  /// Edge::node of the inputs is an id of this builder, or kNoNode with a name. A second node with the same full name is kept and
  /// addressable by id; `find` returns the first.
  NodeId add(Node node);
  Node& node(NodeId id);
  void set_outputs(NodeId id, std::vector<OutputType> outputs);
  size_t size() const;
  /// Before many more nodes are added.
  void reserve(size_t more);
  /// Sets the execution order by full names; returns unknown names. Nodes not listed follow in file order.
  std::vector<std::string> set_execution_order(std::span<const std::string> names);
  /// Marks the nodes as recorded calls, with a link for each.
  void set_calls(std::vector<CallLinks> calls);
  /// Sets the execution order by ids; nodes not listed follow in file order.
  void set_execution_order(std::vector<NodeId> nodes);
  /// Marks trainable parameters and optimizer state according to the operators that use them (docs/selectors.md, Collections).
  GraphPtr build();

 private:
  class Pool;

  std::unique_ptr<Graph> graph_;
  std::unique_ptr<Pool> pool_;
  std::vector<NodeId> listed_order_;
};

// ---- categories --------------------------------------------------------------------------------------------------

/// MindInsight's name rules, after the facts in the graph. See docs/selectors.md.
bool in_category(const Node& node, Category category);

// ---- selectors ---------------------------------------------------------------------------------------------------

struct NodeRef {
  const Graph* graph = nullptr;
  NodeId node = kNoNode;
  auto operator<=>(const NodeRef&) const = default;
};

/// A parsed selector; cheap to copy. Forms: glob on the full name, bare word (substring, case ignored), `=NAME`,
/// `/regex/`, `@collection`, `op:`, `dtype:`, `scope:`, `stack:FILE[:LINE]`, `rank:`, `graph:`, joined by `and or not ( )`.
class Selector {
 public:
  /// Error: kInvalidArgument with the position and, for an unknown collection or prefix, the nearest known one.
  static Result<Selector> parse(std::string_view text);
  static Selector any_of(std::span<const Selector> parts);
  /// Exactly these nodes, each with its rank and graph. The text is in the syntax of parse(), with `rank:` and `graph:` if another
  /// graph of `graphs` has a node with that name.
  static Selector of_nodes(std::span<const NodeRef> nodes, std::span<const GraphPtr> graphs);

  const std::string& text() const { return text_; }
  /// The same selector for these graphs: a word that is the name of one node, or a unique suffix of it, means that node.
  Selector in(std::span<const GraphPtr> graphs) const;
  /// Whether in(graphs) selects this node. Other words match parts of names.
  bool matches(const Graph& graph, const Node& node) const;
  /// Whether it asks for this constant by name, operator type or `@constant`. Watchpoints on `@all` or `*` do not mean constants.
  bool asks_for_constant(const Graph& graph, const Node& node) const;
  /// In order of graph, then execution order.
  std::vector<NodeRef> resolve(std::span<const GraphPtr> graphs) const;

  struct Term;  // defined in src/graph
 private:
  std::string text_;
  std::shared_ptr<const Term> root_;
};

/// resolve(), but an empty result is kNotFound with the three nearest nodes.
Result<std::vector<NodeRef>> resolve_or_explain(const Selector& selector, std::span<const GraphPtr> graphs);

/// Finds one node by full name, unique suffix (`conv1-Conv2d/Conv2D-op0`) or unique last component, as printed by ShortNames;
/// ignores a leading `.../` and a trailing slot (`:output:0`).
/// Error: kNotFound with the nearest names; kInvalidArgument with the candidates if it is ambiguous. The same full name in several
/// graphs is not ambiguous: `graph` or `rank` selects one, otherwise the first graph's node is returned.
Result<NodeRef> find_node(std::span<const GraphPtr> graphs, std::string_view name, std::optional<int> rank = {},
                          std::optional<int> graph_id = {});

}  // namespace msdbg
