// Follows one question through a run: since when a condition holds (bisect), how a number changed (trend), how a tensor spread in a
// step (propagation), and why a value is missing (why).
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

/// The tensors of a question.
struct FollowTarget {
  Selector on;
  std::string text;            ///< as written by the user, for output
  std::vector<NodeRef> nodes;  ///< the matches of `on` in all requested ranks and graphs
  bool inputs = false, outputs = true;
  std::optional<uint32_t> slot;  ///< only this slot
};
/// One tensor (`NODE`, `NODE:1`, `NODE:input:0`) if the text names one, else a selector. Includes every graph and rank that has the
/// node, unless `graph` or `ranks` selects some.
/// Error: that of Selector::parse(), or kNotFound with the nearest names.
Result<FollowTarget> follow_target(const Session& session, std::string_view text, const IntSet& ranks = IntSet::all(),
                                   std::optional<int> graph = {});

/// Options of all questions.
struct FollowOptions {
  IntSet steps = IntSet::all();
  IntSet ranks = IntSet::all();
  Semantics semantics = Semantics::kCompat;
  uint64_t mem_limit_bytes = uint64_t{16384} << 20;
  unsigned threads = 0;
  std::function<void(uint64_t done, uint64_t total, uint64_t bytes)> progress{};
  std::function<bool()> cancelled{};  ///< called after each step of a search; true ends it as interrupted
};

// ---- bisect ------------------------------------------------------------------------------------------------------------

/// One step that was examined.
struct BisectProbe {
  int64_t step = 0;
  /// kBad: the predicate holds for at least one tensor of the target; kGood: all could be judged and it holds for none.
  InputState state = InputState::kUnknown;
  std::string reason;             ///< reason why it is unknown
  std::vector<TensorId> holds;    ///< tensors for which the predicate holds
  std::optional<Stats> stats;     ///< of the first of these, or of the first tensor examined
  uint64_t tensors = 0;           ///< examined
  uint64_t undecided = 0;         ///< of those, the undecided ones
};

struct BisectRank {
  int rank = 0;
  std::optional<int64_t> first;           ///< first step in which the predicate holds, if it is monotone
  std::optional<int64_t> last_before;     ///< nearest earlier step in which it did not hold
  std::vector<BisectProbe> probes;        ///< in the order of the search
  std::vector<int64_t> skipped;           ///< steps without the tensor, or undecided, that the search skipped
  std::vector<int64_t> open;              ///< unknown steps between last_before and first
  uint64_t steps = 0;                     ///< number of steps to search
  uint64_t reads = 0;                     ///< tensors read
  bool monotone = true;                   ///< as far as examined; false: it held in a step and not in a later one
  std::optional<int64_t> counterexample;  ///< not monotone: that later step
};

struct BisectResult {
  std::string target, predicate;
  std::vector<BisectRank> ranks;
  /// With several ranks, those where the predicate holds first: in the earliest step, there in the earliest operator.
  std::vector<int> first_ranks;
  bool interrupted = false;
};

/// The first step in which `predicate` holds, found by binary search: examines at most ceil(log2(n + 1)) + 1 of n steps. Assumes
/// that a predicate that holds in a step also holds in all later ones; the steps before and after the answer are examined, and
/// `monotone` says whether they agree. A step without the tensor is replaced by the nearest one with it.
/// Error: kNotFound if no requested step has a tensor of the target; errors of check().
Result<BisectResult> bisect(Session& session, const FollowTarget& target, const Predicate& predicate, const FollowOptions& options = {});

// ---- trend -------------------------------------------------------------------------------------------------------------

/// The statistics for trend(), with their names in JSON and Lua.
std::vector<std::string> statistic_names();
/// nullopt: unknown for this tensor, or undefined (no finite element). `first_bad` is the flat index.
/// Error: kInvalidArgument with the nearest name.
Result<std::optional<double>> statistic_value(const Stats& stats, std::string_view name);

struct TrendPoint {
  int64_t step = 0;
  std::optional<double> value;
  std::string reason;  ///< reason if it is missing
  uint64_t count = 0, not_finite = 0;  ///< elements, and those that are NaN or infinite; 0 if unknown
};

struct ChangePoint {
  int64_t step = 0;              ///< first step of the second part
  double before = 0, after = 0;  ///< value in the step before it, and in it
  double p = 0;                  ///< bound on the probability of such a fit by chance
  bool log_scale = false;        ///< found in logarithms
};

struct TrendLine {
  TensorId tensor;                 ///< its step is that of the first point, its rank the first of `ranks`
  std::vector<int> ranks;          ///< those with the same points, ascending
  std::vector<TrendPoint> points;  ///< ascending steps
  std::optional<double> first, last, min, max;
  std::optional<int64_t> ends;  ///< first step without a value after steps with one
  std::optional<ChangePoint> change;
  /// First step in which other ranks have another value, after a step in which all of them agreed.
  std::optional<int64_t> departs;
  std::vector<int> departs_from;   ///< the ranks that most share then; empty: no majority, nobody can tell who departed
};

struct TrendResult {
  std::string statistic, target;
  std::vector<TrendLine> lines;  ///< by rank, graph, execution order, execution, slot
  std::vector<int64_t> steps;    ///< the steps of all lines
  Coverage coverage;
  bool interrupted = false;
};

/// One line per tensor of the target: the statistic over the steps. Ranks that agree in every step share a line.
/// Error: kInvalidArgument for an unknown statistic; kNotFound if nothing of the target was dumped in these steps.
Result<TrendResult> trend(Session& session, const FollowTarget& target, std::string_view statistic, const FollowOptions& options = {});

/// Where a series changes direction. Of all cuts into two parts of at least three points, takes the one whose two straight lines
/// have the smallest squared error, if an F test against a single line gives a probability below 0.001 after multiplication by the
/// number of cuts. Positive series that span more than two decades are judged by their logarithms. nullopt below six points.
std::optional<ChangePoint> change_point(const std::vector<std::pair<int64_t, double>>& series);

// ---- propagation -------------------------------------------------------------------------------------------------------

enum class PropagationRole : uint8_t {
  kOrigin,    ///< bad, with no bad input (down: the requested tensor)
  kPassed,    ///< had a bad input and a bad output
  kAbsorbed,  ///< had a bad input; its output is good
  kCannot,    ///< had a bad input; its output type cannot hold a bad value (bool, integer)
  kClean,     ///< had no bad input: a good input when going up, a good consumer after an absorber when going down
  kUnknown,   ///< had a bad input; its output is unknown
};
std::string_view propagation_role_name(PropagationRole role);  ///< "origin", "passed on", "absorbed", "cannot hold it", "clean", "unknown"

struct PropagationNode {
  int rank = 0, graph = 0;
  NodeId node = kNoNode;
  uint32_t execution = 0;
  PropagationRole role = PropagationRole::kUnknown;
  bool parameter = false;          ///< a value that outlives the step: a parameter, or another graph input
  std::optional<TensorId> tensor;  ///< its output, if it was seen
  std::optional<Stats> stats;      ///< of `tensor`
  std::string reason;              ///< reason why it is unknown
  uint32_t distance = 0;           ///< operators between the requested tensor and this node
};

struct PropagationEdge {
  size_t from = 0, to = 0;  ///< indexes of Propagation::nodes, in the direction the values flow
  uint32_t output = 0, input = 0;
  bool update = false;      ///< an optimizer writing its parameter
  bool bad = true;
  bool collective = false;  ///< to another rank, from a call of a collective to a call of the same one there
  std::string group;        ///< collective: "" if the graph does not name it
  bool assumed = false;     ///< collective: who takes part is not known
};

/// One station of the way back.
struct TrailLink {
  TensorId tensor;             ///< the operator's output, or the parameter or constant
  TensorId seen;               ///< where its value was seen: the same tensor, or the recorded input of a consumer
  std::optional<Stats> stats;  ///< of `seen`
};
enum class TrailEnd : uint8_t {
  kOrigin,   ///< the last operator broke while its inputs were sound
  kInput,    ///< it came in: data, a constant, or a parameter that no dumped step before wrote
  kUnknown,  ///< what comes before is unknown; `reason` says why
};
std::string_view trail_end_name(TrailEnd end);  ///< "origin", "input", "unknown"
/// From a bad tensor back to one origin, through the steps and graphs that handed it on.
struct Trail {
  std::vector<TrailLink> links;  ///< the requested tensor first
  TrailEnd end = TrailEnd::kUnknown;
  std::string reason;  ///< may be empty
};

/// When a parameter had a value, if the step may have changed it.
enum class ParameterMoment : uint8_t { kAny, kStart, kEnd };
std::string_view parameter_moment_name(ParameterMoment moment);  ///< "", "start", "end"

struct Propagation {
  TensorId tensor;  ///< the requested one
  std::string predicate;
  bool up = false;
  bool holds = true;                   ///< false: the tensor itself is good, and nothing spreads from it
  bool edges_known = true;             ///< false: no readable graph file; producers and consumers are unknown
  std::optional<Stats> stats;          ///< of `tensor`; of a parameter with which the step began bad, as it was then
  ParameterMoment moment = ParameterMoment::kAny;  ///< of `stats`
  bool broke_at_end = false;           ///< a parameter with which the step began good: only what reads it after its update can have it
  std::vector<PropagationNode> nodes;  ///< by distance, rank, graph, then execution order
  std::vector<PropagationEdge> edges;
  std::optional<Trail> trail;  ///< up only: one way back, beyond the step, too
  std::vector<RankReached> ranks_reached;  ///< down only: other ranks that got it through collectives, by rank; `tensors`: bad `nodes`
  uint64_t bad_in_step = 0;    ///< bad outputs and parameters of the graph in this step, on the rank of `tensor`
  uint64_t bad_elsewhere = 0;  ///< of those, not connected to the tensor: other origins
  uint64_t clean_outputs = 0;  ///< outputs of the step that were examined and are good
  std::vector<NotChecked> not_checked;
  Coverage coverage;
  bool interrupted = false;
};

struct PropagationOptions : FollowOptions {
  Predicate predicate;
  bool up = false;  ///< follow it to its source instead of its consumers
};

/// The cone of a bad tensor in its step, on all ranks that collectives join: `options.ranks` does not limit it.
/// Error: that of describe() if the tensor does not exist.
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
  std::string path;  ///< the file it is based on; may be empty
};

struct WhyAnswer {
  WhyKind kind = WhyKind::kNeverExisted;
  std::string asked;   ///< the user's words
  std::string answer;  ///< one sentence
  std::vector<WhyEvidence> evidence;
  std::optional<TensorId> tensor;    ///< if the name is in the graph
  std::vector<std::string> instead;  ///< nodes or tensors to look at instead
  std::string next;                  ///< how to get the value next time; may be empty
};

struct WhyOptions {
  std::optional<int64_t> step;  ///< default: the caller's current step, or the first step with data
  std::optional<int> rank, graph;
  uint32_t execution = 0;
  uint64_t mem_limit_bytes = uint64_t{16384} << 20;
};

/// Why a tensor has no value. An ambiguous name is an error; a name that never existed is an answer.
Result<WhyAnswer> why(Session& session, std::string_view text, const WhyOptions& options = {});

}  // namespace msdbg
