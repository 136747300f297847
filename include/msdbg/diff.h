// Compares two runs, or two parts of one, node by node: where do they diverge, and which node is to blame?
//
// Only on the thread that owns both sessions. docs/diff.md defines the measures and terms.
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

// ---- matching nodes ------------------------------------------------------------------------------------------------

enum class MatchMethod : uint8_t {
  kMap,        ///< by the mapping file
  kName,       ///< the same full name; ignores `-op` numbers if the two graphs count differently
  kStructure,  ///< the same operator type at the same position relative to matched nodes
  kValue,      ///< another operator, but matched consumers use its output at the same position, e.g. a fused kernel
};
std::string_view match_method_name(MatchMethod how);  ///< "map", "name", "structure", "value"

struct NodeMatch {
  NodeId a = kNoNode, b = kNoNode;
  MatchMethod how = MatchMethod::kName;
  uint32_t slot_a = 0, slot_b = 0;  ///< kValue: the only outputs that correspond
};

struct GraphMatch {
  std::vector<NodeMatch> nodes;           ///< in b's execution order, parameters and constants first
  std::vector<NodeId> only_a, only_b;     ///< in the same order; every node is in exactly one of the lists
};

/// One line `NAME_A = NAME_B` of a mapping file; names in the forms of find_node().
struct NameMap {
  struct Entry {
    std::string a, b;
    int line = 0;
  };
  std::vector<Entry> entries;
  std::string source;  ///< for messages
};
/// Skips empty lines and lines that start with `#`.
/// Error: kInvalidArgument with the line number.
Result<NameMap> parse_name_map(std::string_view text, std::string_view source);

/// Shapes by slot, for dumped nodes.
using SlotShapes = std::map<Slot, Shape>;
using DumpedShapes = std::map<NodeId, SlotShapes>;

/// Deterministic: the same graphs give the same matches. `problems` receives one line per entry of `map` that names no node of
/// these graphs. A graph without a file (Graph::from_file) has no edges, and its nodes have the numbers of file names: then
/// operators need the same name, type and dumped shapes, and nothing is matched by structure.
GraphMatch match_graphs(const Graph& a, const Graph& b, const NameMap& map = {}, std::vector<std::string>* problems = nullptr,
                        const DumpedShapes& shapes_a = {}, const DumpedShapes& shapes_b = {});

/// The number of products summed for one element of the node's output: inner dimension of MatMul, kernel times channels of Conv2D,
/// reduced elements of ReduceSum, BiasAddGrad, ...; 1 for element-wise and unknown operators.
uint64_t reduction_length(const Graph& graph, const Node& node);
/// The same for given shapes.
uint64_t reduction_length(const Node& node, const SlotShapes& shapes);

/// The operators before a value, on the longest path to it.
struct PathLength {
  uint64_t additions = 0;  ///< sum of reduction_length() over the operators
  uint64_t operators = 0;  ///< number of operators that rounded the value to its type
};

/// The tolerance that rounding explains; atol in units of the RMS of the reference. The coarser of two types counts; integers and
/// truth values are exact. docs/diff.md has the table and the reasons.
CloseRequest default_tolerance(DType a, DType b, PathLength path);

// ---- the comparison ------------------------------------------------------------------------------------------------

struct DiffOptions {
  /// Pairs equal numbers that exist on both sides; sets that were given for each side are paired in ascending order instead
  /// (`steps_a` 1 with `steps_b` 2).
  IntSet steps_a = IntSet::all(), steps_b = IntSet::all();
  IntSet ranks_a = IntSet::all(), ranks_b = IntSet::all();
  std::optional<int> graph_a, graph_b;
  std::optional<double> rtol, atol;  ///< replace the defaults; if only one is set, the other is 0
  std::optional<Selector> on;        ///< nodes of either side; default: every node
  NameMap map;
  unsigned threads = 0;              ///< 0: one per processor
  std::function<void(uint64_t done, uint64_t total, uint64_t bytes)> progress{};
};

enum class DiffState : uint8_t {
  kEqual,      ///< bit for bit
  kClose,      ///< every element within the tolerance
  kDifferent,
  kReshaped,   ///< element counts differ: not compared
  kUncompared, ///< see `reason`
};
std::string_view diff_state_name(DiffState state);  ///< "equal", "close", "different", "reshaped", "uncompared"

enum class DiffRole : uint8_t {
  kNone,      ///< it does not differ
  kCulprit,   ///< it differs although every input agrees
  kVictim,    ///< an input already differs
  kUnknown,   ///< no compared input differs, but some input or the edges are unknown
  kRandom,    ///< it draws random numbers, and no input that was compared differs
};
std::string_view diff_role_name(DiffRole role);  ///< "", "culprit", "victim", "unknown", "random"

/// What a comparison is based on.
enum class DiffEvidence : uint8_t {
  kElements,
  kChecksum,    ///< equal ones all but prove equal elements
  kStatistics,  ///< minimum, maximum, mean and norm: equal ones prove nothing more
};
std::string_view diff_evidence_name(DiffEvidence evidence);  ///< "elements", "checksum", "statistics"

/// A statistic that both sides have.
struct StatisticPair {
  std::string_view name;  ///< "min", "max", "mean", "l2_norm", "nan", "inf"
  double a = 0, b = 0;    ///< "nan", "inf": 1 if there are any
  double error = 0;       ///< of the magnitudes in B; infinite if only one side is finite
};

struct TensorDiff {
  TensorId a, b;
  DType dtype_a = DType::kUnknown, dtype_b = DType::kUnknown;
  Shape shape_a, shape_b;
  MatchMethod how = MatchMethod::kName;
  DiffState state = DiffState::kUncompared;
  std::string reason;               ///< for kReshaped and kUncompared
  DiffEvidence evidence = DiffEvidence::kElements;
  Comparison measures;              ///< for kEqual, kClose and kDifferent by elements
  std::vector<StatisticPair> statistics = {};  ///< by kStatistics, and by a checksum that differs
  CloseRequest tolerance = {};      ///< absolute, as applied
  PathLength path;                  ///< of the value, see default_tolerance()
  DiffRole role = DiffRole::kNone;
  std::optional<double> error_in;   ///< largest relative_error() among the known inputs
  std::optional<double> amplification;  ///< relative_error() / error_in; infinite when the inputs agree exactly
  std::string worst_input;          ///< `input:1 NODE`, whose error is error_in; "" if none
  std::string unknown_input;        ///< first unknown input; "" if none
  bool behind_random = false;       ///< kRandom, or every input that differs comes from random operators
  bool edges_known = true;          ///< false without a graph file: the inputs are unknown
  std::string argument = {};        ///< recorded calls: "input_args.1 is 4.0 in A, 2.83 in B", the culprit's first scalar that differs

  bool compared() const { return state <= DiffState::kDifferent; }
  /// Of the elements, or the largest of the statistics.
  double relative_error() const;
};

/// A node that only one side has, or whose tensors were skipped with it.
struct UnmatchedNode {
  int rank = 0, graph = 0;
  NodeId node = kNoNode;
};

/// Ranks, steps and graphs that could not be compared, one sentence each.
struct DiffNote {
  std::string text;
};

struct DiffResult {
  std::vector<TensorDiff> tensors;      ///< by step, rank, graph and b's order; parameters updated by a step come after it
  /// First of `tensors` that is kDifferent or kReshaped; one behind random operators only if there is no other.
  std::optional<size_t> first;
  std::vector<size_t> culprits;         ///< in the step of `first`; indexes into `tensors`
  std::vector<size_t> random;           ///< of kRandom, each node once; indexes into `tensors`
  std::vector<UnmatchedNode> only_a, only_b;
  std::vector<DiffNote> notes;
  std::vector<std::string> unknown_edges;  ///< why no node is called culprit or victim: one sentence per graph without a file
  uint64_t matched_nodes = 0, by_name = 0, by_structure = 0, by_value = 0, by_map = 0;
  uint64_t equal = 0, close = 0, different = 0, reshaped = 0, uncompared = 0;
  uint64_t by_checksum = 0, by_statistics = 0;  ///< of those compared, without elements
  uint64_t dtype_changes = 0;           ///< different types, but still compared
  uint64_t bytes = 0;
  bool interrupted = false;             ///< the result is partial
  std::vector<std::pair<int64_t, int64_t>> steps;  ///< that were compared

  /// "different", "equal", "interrupted" (before any difference was seen), "nothing compared".
  std::string_view verdict() const {
    if (!is_equal()) return "different";
    return interrupted ? "interrupted" : equal + close > 0 ? "equal" : "nothing compared";
  }
  /// True when all differences follow from random operators.
  bool is_only_random() const { return first && tensors[*first].behind_random; }
  bool is_equal() const { return different + reshaped == 0; }
  /// True if everything had a counterpart and could be read.
  bool is_complete() const { return only_a.empty() && only_b.empty() && notes.empty() && uncompared == 0 && !interrupted; }
};

/// `a` and `b` may be the same session. `b` is the reference.
/// Error: kInvalidArgument for two identical selections of one session; kNotFound if nothing matches.
Result<DiffResult> diff_sessions(Session& a, Session& b, const DiffOptions& options);

}  // namespace msdbg
