// Following one question through a run: since when does it hold (bisect), how did a number move (trend), how did it
// spread in a step (propagation), and why is there no value (why).
//
// The session's owner thread only. Pictures, tables and JSON of the answers: msdbg/follow_report.h.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "msdbg/analysis.h"
#include "msdbg/session.h"

namespace msdbg {

/// The tensors that a question is about.
struct FollowTarget {
  Selector on;
  std::string text;            ///< as the user wrote it, for the output
  std::vector<NodeRef> nodes;  ///< what `on` matches, in all requested ranks and graphs
  bool inputs = false, outputs = true;
  std::optional<uint32_t> slot;  ///< only this slot
};
/// One tensor (`NODE`, `NODE:1`, `NODE:input:0`) when the text names one, else a selector. Every graph and rank that has the
/// node counts, unless `graph` or `ranks` picks.
/// Error: that of Selector::parse(), or kNotFound with the nearest names.
Result<FollowTarget> follow_target(const Session& session, std::string_view text, const IntSet& ranks = IntSet::all(),
                                   std::optional<int> graph = {});

/// Options that all questions share.
struct FollowOptions {
  IntSet steps = IntSet::all();
  IntSet ranks = IntSet::all();
  Semantics semantics = Semantics::kCompat;
  uint64_t mem_limit_bytes = uint64_t{16384} << 20;
  unsigned threads = 0;
  std::function<void(uint64_t done, uint64_t total, uint64_t bytes)> progress{};
  std::function<bool()> cancelled{};  ///< asked after each step of a search; true ends it, marked as interrupted
};

// ---- bisect ------------------------------------------------------------------------------------------------------------

/// One step that was examined.
struct BisectProbe {
  int64_t step = 0;
  Known state = Known::kUnknown;  ///< kBad: the predicate holds for at least one tensor of the target; kSound: for none, and all could be judged
  std::string reason;             ///< why unknown
  std::vector<TensorId> holds;    ///< tensors for which it holds
  std::optional<Stats> stats;     ///< of the first of them, or of the first tensor examined
  uint64_t tensors = 0;           ///< examined
  uint64_t undecided = 0;         ///< of those, how many could not be decided
};

struct BisectRank {
  int rank = 0;
  std::optional<int64_t> first;           ///< smallest step in which the predicate holds, if it is monotone
  std::optional<int64_t> last_before;     ///< nearest earlier step in which it was seen not to hold
  std::vector<BisectProbe> probes;        ///< in the order they were made
  std::vector<int64_t> skipped;           ///< steps without the tensor, or undecided, that the search met and passed over
  std::vector<int64_t> open;              ///< steps between last_before and first that are unknown
  uint64_t steps = 0;                     ///< that were there to be searched
  uint64_t reads = 0;                     ///< tensors read
  bool monotone = true;                   ///< in what was seen; false: it held in a step and not in a later one
  std::optional<int64_t> counterexample;  ///< not monotone: that later step
};

struct BisectResult {
  std::string target, predicate;
  std::vector<BisectRank> ranks;
  bool interrupted = false;
};

/// The first step in which `predicate` holds, found by halving: at most ceil(log2(n + 1)) + 1 of n steps are examined. Assumes that
/// what holds in a step holds in all later ones; the steps before and after the answer are examined, and `monotone` says whether
/// they agree. A step without the tensor is replaced by the nearest one that has it.
/// Error: kNotFound when no requested step has a tensor of the target; errors of check().
Result<BisectResult> bisect(Session& session, const FollowTarget& target, const Predicate& predicate, const FollowOptions& options = {});

// ---- trend -------------------------------------------------------------------------------------------------------------

/// The names that trend() takes: those of the statistics in JSON and Lua.
std::vector<std::string> statistic_names();
/// nullopt: unknown for this tensor or without a value (no finite element). `first_bad` is the flat index.
/// Error: kInvalidArgument with the nearest name.
Result<std::optional<double>> statistic_value(const Stats& stats, std::string_view name);

struct TrendPoint {
  int64_t step = 0;
  std::optional<double> value;
  std::string reason;  ///< why there is no value
};

struct ChangePoint {
  int64_t step = 0;              ///< first step of the second part
  double before = 0, after = 0;  ///< value in the last step before it and in it
  double p = 0;                  ///< bound on the probability of such a fit by chance
  bool log_scale = false;        ///< found in the logarithms
};

struct TrendLine {
  TensorId tensor;                 ///< step: that of the first point
  std::vector<TrendPoint> points;  ///< ascending steps
  std::optional<double> first, last, min, max;
  std::optional<int64_t> ends;  ///< from this step on there is no value, although there was one before
  std::optional<ChangePoint> change;
};

struct TrendResult {
  std::string statistic, target;
  std::vector<TrendLine> lines;  ///< by rank, graph, execution order, execution, slot
  std::vector<int64_t> steps;    ///< that any line has
  Coverage coverage;
  bool interrupted = false;
};

/// One line per tensor of the target: the statistic over the steps.
/// Error: kInvalidArgument for an unknown statistic; kNotFound when nothing of the target was dumped in these steps.
Result<TrendResult> trend(Session& session, const FollowTarget& target, std::string_view statistic, const FollowOptions& options = {});

/// Where a series changes direction: of all cuts into two parts of at least three points the one whose two straight lines leave the
/// smallest squared error, if an F test against a single straight line gives a probability below 0.001 after multiplication by the
/// number of cuts. Positive series that span more than two decades are judged by their logarithms. nullopt below six points.
std::optional<ChangePoint> change_point(const std::vector<std::pair<int64_t, double>>& series);

// ---- propagation -------------------------------------------------------------------------------------------------------

enum class Passage : uint8_t {
  kOrigin,    ///< bad, with no bad input (down: the requested tensor)
  kPassed,    ///< had a bad input and a bad output
  kAbsorbed,  ///< had a bad input; its output is sound
  kCannot,    ///< had a bad input; its output type cannot hold a bad value (bool, integer)
  kClean,     ///< had no bad input: a sound input going up, a sound consumer after an absorber going down
  kUnknown,   ///< had a bad input; its output is unknown
};
std::string_view passage_name(Passage passage);  ///< "origin", "passed on", "absorbed", "cannot hold it", "clean", "unknown"

struct PropagationNode {
  NodeId node = kNoNode;
  uint32_t execution = 0;
  Passage passage = Passage::kUnknown;
  bool parameter = false;          ///< a value that outlives the step: a parameter, or another graph input
  std::optional<TensorId> tensor;  ///< its output, as far as it was seen
  std::optional<Stats> stats;      ///< of `tensor`
  std::string reason;              ///< why unknown
  uint32_t distance = 0;           ///< operators between the requested tensor and this node
};

struct PropagationEdge {
  size_t from = 0, to = 0;  ///< indexes of Propagation::nodes, in the direction the values flow
  uint32_t output = 0, input = 0;
  bool update = false;  ///< an optimizer writing its parameter
  bool bad = true;
};

struct Propagation {
  TensorId tensor;  ///< the requested one
  std::string predicate;
  bool up = false;
  bool holds = true;                   ///< false: the tensor itself is sound, nothing spreads from it
  bool edges_known = true;             ///< false: no readable graph file, so producers and consumers are unknown
  std::optional<Stats> stats;          ///< of `tensor`
  std::vector<PropagationNode> nodes;  ///< by distance, then execution order
  std::vector<PropagationEdge> edges;
  uint64_t bad_in_step = 0;    ///< bad outputs and parameters of the graph in this step
  uint64_t bad_elsewhere = 0;  ///< of those, not connected with the tensor: other origins
  uint64_t clean_outputs = 0;  ///< outputs of the step that were examined and are sound
  std::vector<NotChecked> not_checked;
  Coverage coverage;
  bool interrupted = false;
};

struct PropagationOptions : FollowOptions {
  Predicate predicate;
  bool up = false;  ///< where it came from, instead of where it went
};

/// The cone of a bad tensor in its step. Error: that of describe() when the tensor is not there.
Result<Propagation> propagation(Session& session, const TensorId& tensor, const PropagationOptions& options);

// ---- why ---------------------------------------------------------------------------------------------------------------

enum class WhyKind : uint8_t {
  kHasValue,
  kStatisticsOnly,
  kUnreadable,
  kOverLimit,
  kNoSuchStep,
  kIterationNotDumped,
  kGraphNotRun,
  kNotExecuted,
  kKernelsFilter,
  kInputOutputFilter,
  kStructural,
  kInlineConstant,
  kNoSuchSlot,
  kNoSuchExecution,
  kFused,
  kOptimisedAway,
  kMissingFile,
  kNeverExisted,
};
std::string_view why_kind_name(WhyKind kind);  ///< "has_value", "fused", ...

struct WhyEvidence {
  std::string text;
  std::string path;  ///< file it rests on; may be empty
};

struct WhyAnswer {
  WhyKind kind = WhyKind::kNeverExisted;
  std::string asked;   ///< the user's words
  std::string answer;  ///< one sentence
  std::vector<WhyEvidence> evidence;
  std::optional<TensorId> tensor;    ///< when the name is in the graph
  std::vector<std::string> instead;  ///< nodes or tensors to look at instead
  std::string next;                  ///< what to do to have the value next time; may be empty
};

struct WhyOptions {
  std::optional<int64_t> step;  ///< default: the first step with data, or the current one of the caller
  std::optional<int> rank, graph;
  uint32_t execution = 0;
  uint64_t mem_limit_bytes = uint64_t{16384} << 20;
};

/// Why a tensor has no value. An ambiguous name is an error; a name that never existed is an answer.
Result<WhyAnswer> why(Session& session, std::string_view text, const WhyOptions& options = {});

}  // namespace msdbg
