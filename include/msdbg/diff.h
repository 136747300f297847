// Two runs, or two parts of one, node by node: where do they diverge, and which node is to blame?
//
// The thread that owns both sessions only. What the measures and words mean: docs/diff.md.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "msdbg/compare.h"
#include "msdbg/session.h"

namespace msdbg {

// ---- which node is which -------------------------------------------------------------------------------------------

enum class MatchHow : uint8_t {
  kMap,        ///< the mapping file says so
  kName,       ///< the same full name; `-op` numbers apart where the two graphs count differently
  kStructure,  ///< the same operator type at the same place among nodes that are matched
  kValue,      ///< another operator, but matched consumers take its output at the same place, e.g. a fused kernel
};
std::string_view match_how_name(MatchHow how);  ///< "map", "name", "structure", "value"

struct NodeMatch {
  NodeId a = kNoNode, b = kNoNode;
  MatchHow how = MatchHow::kName;
  uint32_t slot_a = 0, slot_b = 0;  ///< kValue: the only outputs that correspond
};

struct GraphMatch {
  std::vector<NodeMatch> nodes;           ///< in the order in which b runs them, parameters and constants first
  std::vector<NodeId> only_a, only_b;     ///< in the same order; every node is in exactly one of the lists
};

/// One line `NAME_A = NAME_B` of a mapping file; names as find_node() takes them.
struct NameMap {
  struct Entry {
    std::string a, b;
    int line = 0;
  };
  std::vector<Entry> entries;
  std::string source;  ///< for messages
};
/// Empty lines and lines that begin with `#` are skipped.
/// Error: kInvalidArgument with the line's number.
Result<NameMap> parse_name_map(std::string_view text, std::string_view source);

/// Shapes by slot, for the nodes that were dumped.
using SlotShapes = std::map<Slot, Shape>;
using DumpedShapes = std::map<NodeId, SlotShapes>;

/// Deterministic: the same graphs give the same matches. `problems` takes one line per entry of `map` that names no
/// node of these graphs. A graph without a file (Graph::from_file) has no edges, and the numbers of its nodes are those
/// of file names: then operators need the same name, type and dumped shapes, and nothing is found by structure.
GraphMatch match_graphs(const Graph& a, const Graph& b, const NameMap& map = {}, std::vector<std::string>* problems = nullptr,
                        const DumpedShapes& shapes_a = {}, const DumpedShapes& shapes_b = {});

/// Products that are summed for one element of the node's output: inner dimension of MatMul, kernel times channels of
/// Conv2D, reduced elements of ReduceSum, BiasAddGrad, ...; 1 for operators that work element by element or are unknown.
uint64_t reduction_length(const Graph& graph, const Node& node);
/// The same with the shapes given.
uint64_t reduction_length(const Node& node, const SlotShapes& shapes);

/// The operators before a value, along the longest path to it.
struct PathLength {
  uint64_t additions = 0;  ///< sum of reduction_length() over the operators
  uint64_t operators = 0;  ///< that rounded the value to its type
};

/// The tolerance that rounding explains; atol in units of the RMS of the reference. Of two types the coarser counts;
/// integers and truth values are exact. See docs/diff.md for the table and its reasons.
CloseRequest default_tolerance(DType a, DType b, PathLength path);

// ---- the comparison ------------------------------------------------------------------------------------------------

struct DiffOptions {
  /// Sides are paired number by number where a number exists on both; sets that were chosen for each side are paired in
  /// ascending order instead (`steps_a` 1 with `steps_b` 2).
  IntSet steps_a = IntSet::all(), steps_b = IntSet::all();
  IntSet ranks_a = IntSet::all(), ranks_b = IntSet::all();
  std::optional<int> graph_a, graph_b;
  std::optional<double> rtol, atol;  ///< instead of the defaults; one alone makes the other 0
  std::optional<Selector> on;        ///< of nodes of either side; the default is every node
  NameMap map;
  unsigned threads = 0;              ///< 0: one per processor
  std::function<void(uint64_t done, uint64_t total, uint64_t bytes)> progress{};
};

enum class DiffState : uint8_t {
  kEqual,      ///< bit for bit
  kClose,      ///< every element within the tolerance
  kDifferent,
  kReshaped,   ///< element counts differ, so nothing was compared
  kUncompared, ///< `reason` says why
};
std::string_view diff_state_name(DiffState state);  ///< "equal", "close", "different", "reshaped", "uncompared"

enum class DiffRole : uint8_t {
  kNone,      ///< it does not differ
  kCulprit,   ///< it differs although every input agrees
  kVictim,    ///< an input differs already
  kUnknown,   ///< no input that was compared differs, but some input is unknown; or the edges are
};
std::string_view diff_role_name(DiffRole role);  ///< "", "culprit", "victim", "unknown"

struct TensorDiff {
  TensorId a, b;
  DType dtype_a = DType::kUnknown, dtype_b = DType::kUnknown;
  Shape shape_a, shape_b;
  MatchHow how = MatchHow::kName;
  DiffState state = DiffState::kUncompared;
  std::string reason;               ///< kReshaped and kUncompared
  Comparison measures;              ///< of kEqual, kClose and kDifferent
  CloseRequest tolerance = {};      ///< absolute, as it was applied
  PathLength path;                  ///< leading to the value, see default_tolerance()
  DiffRole role = DiffRole::kNone;
  std::optional<double> error_in;   ///< largest relative_error() among the inputs that are known
  std::optional<double> amplification;  ///< relative_error() / error_in; infinite when the inputs agree exactly
  std::string worst_input;          ///< `input:1 NODE`, whose error is error_in; "" without
  std::string unknown_input;        ///< first input that is unknown; "" if there is none
  bool edges_known = true;          ///< false: there is no graph file, so the inputs are unknown

  bool compared() const { return state <= DiffState::kDifferent; }
};

/// A node that only one side has, or whose tensors were left out with it.
struct UnmatchedNode {
  int rank = 0, graph = 0;
  NodeId node = kNoNode;
};

/// Ranks, steps and graphs that could not be compared, one sentence each.
struct DiffNote {
  std::string text;
};

struct DiffResult {
  std::vector<TensorDiff> tensors;      ///< by step, rank, graph and b's order; parameters that a step updates come after it
  std::optional<size_t> first;          ///< first of `tensors` that is kDifferent or kReshaped
  std::vector<size_t> culprits;         ///< in the step of `first`; indexes into `tensors`
  std::vector<UnmatchedNode> only_a, only_b;
  std::vector<DiffNote> notes;
  std::vector<std::string> unknown_edges;  ///< why no node is called culprit or victim: one sentence per graph without a file
  uint64_t matched_nodes = 0, by_name = 0, by_structure = 0, by_value = 0, by_map = 0;
  uint64_t equal = 0, close = 0, different = 0, reshaped = 0, uncompared = 0;
  uint64_t dtype_changes = 0;           ///< compared all the same
  uint64_t bytes = 0;
  bool interrupted = false;             ///< partial
  std::vector<std::pair<int64_t, int64_t>> steps;  ///< that were compared

  /// "different", "equal", "interrupted" (before a difference was seen), "nothing compared".
  std::string_view verdict() const {
    if (!is_equal()) return "different";
    return interrupted ? "interrupted" : equal + close > 0 ? "equal" : "nothing compared";
  }
  bool is_equal() const { return different + reshaped == 0; }
  /// True when something on either side has no counterpart or could not be read.
  bool is_complete() const { return only_a.empty() && only_b.empty() && notes.empty() && uncompared == 0 && !interrupted; }
};

/// `a` and `b` may be the same session. `b` is the reference.
/// Error: kInvalidArgument for two identical selections of one session; kNotFound when nothing matches.
Result<DiffResult> diff_sessions(Session& a, Session& b, const DiffOptions& options);

}  // namespace msdbg
