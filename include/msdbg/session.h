// A debugging session: graphs, steps and tensors of a dump or of a training process, and the check that runs
// watchpoints over them.
//
// The thread that created the session owns it. `read`, `describe` and `previous` may also be called from the
// check's worker threads; everything else is for the owner only.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "msdbg/base.h"
#include "msdbg/expr.h"
#include "msdbg/graph.h"
#include "msdbg/simd.h"
#include "msdbg/tensor.h"
#include "msdbg/watch.h"

namespace msdbg {

/// Names one value: what a run wrote (or would write) for one slot of one execution of one node.
struct TensorId {
  int rank = 0;
  int graph = 0;          ///< Graph::id()
  int64_t step = 0;       ///< the run's own number, never shifted
  uint32_t execution = 0; ///< 0, 1, ... for a node that ran several times in the step
  NodeId node = kNoNode;
  Slot slot;
  auto operator<=>(const TensorId&) const = default;
};

/// How much of a tensor there is.
enum class Availability : uint8_t {
  kElements,
  kStatisticsOnly,  ///< a row of statistic.csv, no elements
  kUnreadable,      ///< listed, but `problem` says why it cannot be evaluated
};

struct TensorInfo {
  TensorId id;
  Availability availability = Availability::kElements;
  DType dtype = DType::kUnknown;
  Shape shape;
  uint64_t count = 0;
  uint64_t bytes = 0;   ///< of the elements
  std::string source;   ///< path of the file, or where it came from
  std::string format;   ///< "DefaultFormat", "NCHW", ...
  std::string note;     ///< uncertain pairing, shape taken from the graph, ...; for people
  Status problem;       ///< why it cannot be evaluated; ok when it can
};

/// Sequential access to the elements of one tensor, native byte order, row-major.
class ElementReader {
 public:
  virtual ~ElementReader() = default;
  virtual DType dtype() const = 0;
  virtual uint64_t count() const = 0;
  /// Fills `out` with elements from `first` on; `out.size()` is a multiple of the item size and stays within count().
  /// Error: kIoError when the file shrank or vanished, kInterrupted.
  virtual Status read(uint64_t first, std::span<std::byte> out) = 0;
};

struct SessionInfo {
  std::string kind;               ///< "dump" or "live"
  std::string source;             ///< path or peer, as the user gave it
  std::string short_name;         ///< for the prompt
  std::string layout, epoch;      ///< dump: "R", "V-sync", ...; "B".."E"
  std::string framework_version;  ///< "" when unknown
  std::string device_target;
  std::vector<std::string> nets;
};

/// Which tensors a call is about. Empty vectors mean all.
struct TensorQuery {
  IntSet ranks = IntSet::all();
  IntSet steps = IntSet::all();
  std::optional<int> graph;
  const std::vector<NodeRef>* nodes = nullptr;  ///< null: every node
  bool inputs = false;
  bool outputs = true;
  std::optional<uint32_t> slot;                 ///< only this slot index
};

struct Problem {
  Severity severity = Severity::kWarning;
  std::string path;
  std::string message;
};

/// What `doctor` reports.
struct SessionReport {
  std::map<int, std::vector<int64_t>> steps_by_graph;      ///< graph id -> steps with data, all ranks joined
  uint64_t tensor_files = 0, parameter_files = 0, constant_files = 0, statistic_rows = 0, device_files = 0, other_files = 0;
  std::vector<Problem> problems;
};

class Session {
 public:
  virtual ~Session();

  virtual const SessionInfo& info() const = 0;
  virtual bool can_step() const { return false; }  ///< a dump cannot; all its steps are there at once

  virtual std::span<const int> ranks() const = 0;
  virtual std::span<const GraphPtr> graphs() const = 0;  ///< by rank, then id
  const Graph* graph(int rank, int id) const;
  /// Steps with data, ascending; of all graphs and ranks, or of one graph.
  virtual std::vector<int64_t> steps() const = 0;
  virtual std::vector<int64_t> steps(int rank, int graph) const = 0;

  /// What exists, in order of rank, step, graph, execution order (a loop body: execution by execution), io, slot.
  /// Constants appear once, with step = the first step asked for of their graph.
  virtual std::vector<TensorId> tensors(const TensorQuery& query) = 0;
  /// Executions of a node in a step (0 when it did not run or was not dumped).
  virtual uint32_t executions(int rank, int graph, int64_t step, NodeId node) = 0;
  /// dtype, shape and whether it can be evaluated; reads at most the file's header.
  /// Error: kNotFound "not dumped: ..." saying what is there instead.
  virtual Result<TensorInfo> describe(const TensorId& id) = 0;
  /// Error: that of describe(), or TensorInfo::problem, or kNoData for statistics only.
  virtual Result<std::unique_ptr<ElementReader>> read(const TensorId& id) = 0;
  /// Statistics that came with the data (statistic.csv); nullopt when there are none.
  virtual std::optional<Stats> given_statistics(const TensorId& id) = 0;
  /// The same value in the last earlier step in which its graph ran and it was dumped; `kNotFound` otherwise.
  /// `history_missing` is set when nothing is known about the runs of the graph (error bit 16 besides 4).
  virtual Result<TensorId> previous(const TensorId& id, bool* history_missing) = 0;
  /// The hardware overflow flag of an execution; kUnsupported where the run did not record it.
  virtual Result<bool> operator_overflow(const TensorId& id) = 0;

  virtual SessionReport inspect() = 0;

  // Implemented once, on top of the above:

  /// All elements in memory. Error: kOutOfMemory when larger than `mem_limit_bytes`.
  Result<TensorPtr> load(const TensorId& id, uint64_t mem_limit_bytes = UINT64_MAX);
  /// Statistics of one tensor, kept for the life of the session and reused by check().
  Result<Stats> stats(const TensorId& id);
  Result<Stats> stats(const TensorId& id, const TensorId& previous, const StatsRequest& request);
  /// `NODE:output:0`, with `@step` etc. left out; for messages and JSON use the fields.
  std::string tensor_name(const TensorId& id) const;
  const Node& node(const TensorId& id) const;

  Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

 protected:
  // For sessions whose values change: what has been computed stays true only as long as the value does.
  /// Forgets the kept statistics of the tensors that `gone` names.
  void forget_stats(const std::function<bool(const TensorId&)>& gone);
  /// Tensors with kept statistics.
  std::vector<TensorId> tensors_with_stats() const;
  /// What was known about such a tensor when it was reduced.
  std::optional<TensorInfo> info_of_kept(const TensorId& id) const;

 private:
  friend class CheckRun;
  struct StatsCache;
  std::unique_ptr<StatsCache> stats_cache_;
};

/// Names a tensor from text: `NODE`, `NODE:0`, `NODE:output:0`, `NODE:input:1`; NODE as find_node() takes it.
Result<TensorId> resolve_tensor(const Session& session, std::string_view text, int64_t step, std::optional<int> rank = {},
                                std::optional<int> graph = {}, uint32_t execution = 0);

// ---- watchpoints and checks ----------------------------------------------------------------------------------------

struct CheckedTensor {
  TensorId id;
  const TensorInfo* info;
  const Stats* stats;
};

/// What a Lua function answered. `not_checked` with a reason when it failed.
struct ScriptVerdict {
  Verdict verdict = Verdict::kClean;
  std::string reason;
  std::optional<double> actual;
  std::vector<std::pair<std::string, std::string>> details;  ///< further fields of the returned table, printed
  uint32_t error_code = 0;                                   ///< when not checked
};
using ScriptCheck = std::function<ScriptVerdict(const CheckedTensor&)>;

/// What a rule found when a step or the run had ended.
struct ScriptFinding {
  TensorId tensor;
  std::optional<double> actual;
  std::vector<std::pair<std::string, std::string>> details;
};
struct ScriptPhase {
  std::vector<ScriptFinding> findings;
  std::string problem;  ///< why the rule gave no answer; "" when it did
};

/// What is said about a rule beside its findings.
struct RuleInfo {
  std::string name, abbr, summary, cause, next;
  std::string file;  ///< that it was read from; "" for the catalogue
  Severity severity = Severity::kWarning;

  /// `cause` and `next` in one text.
  std::string advice() const { return cause.empty() || next.empty() ? cause + next : cause + " " + next; }
};

struct Watchpoint {
  int id = 0;                    ///< 1, 2, ...; never reused in a session
  std::string name;              ///< "" or the user's
  std::string rule;              ///< what hits carry as `rule`: the catalogue id, or the rule's or watch's name
  Selector on;
  bool inputs = false, outputs = true;
  std::optional<uint32_t> slot;
  bool enabled = true;
  bool optional = false;         ///< a selector that matches nothing is no error
  std::optional<Condition> condition;  ///< exactly one of condition, expression and script is set
  std::optional<Expression> expression;
  ScriptCheck script;            ///< called on the thread that called check()
  bool needs_elements = true;    ///< false: the script is content with what a statistic row (count, min, max, mean) says
  Severity severity = Severity::kWarning;
  std::shared_ptr<const RuleInfo> info;  ///< of a rule; may be null
  /// Of rules with a script, on the thread that called check(): after the last tensor of a rank's step, after the last of all.
  std::function<ScriptPhase(int rank, int64_t step)> step_end;
  std::function<ScriptPhase()> finish;
  int turn = 0;                  ///< on one tensor, watchpoints with a lower turn are asked first
};

/// What `when` may be as text.
using When = std::variant<Condition, Expression>;
/// A condition of the catalogue (`TO`, `TL max_gt=3`) or an expression (`mean(abs(x)) > 10`).
/// Error: kInvalidArgument; for what is neither it names the nearest condition.
Result<When> parse_when(std::string_view text);

struct Hit {
  int watch_id = 0;
  std::string watch_name, rule, abbr;
  Severity severity = Severity::kWarning;
  TensorId tensor;
  DType dtype = DType::kUnknown;
  Shape shape;
  std::vector<ParamResult> params;
  std::vector<std::pair<std::string, std::string>> details;
  Stats stats;
  std::shared_ptr<const RuleInfo> info;  ///< of the rule; may be null
};

struct NotChecked {
  int watch_id = 0;
  std::string rule, abbr;
  TensorId tensor;
  std::string reason;
  uint32_t error_code = 0;
};

/// What it means for the verdict that a rule gave none as a whole.
enum class RuleProblemKind : uint8_t {
  kBroken,      ///< `rule error: ...`
  kUnset,       ///< a parameter is missing
  kIdle,        ///< nothing in this network or dump is what it looks at
  kNoSuchData,  ///< a step or a rank that was asked for does not exist; told of the rule `*`
};
/// A rule, or `*` for all of them, that could not do its work as a whole.
struct RuleProblem {
  std::string rule, reason;
  RuleProblemKind kind = RuleProblemKind::kBroken;
};

struct Coverage {
  uint64_t tensors = 0;      ///< named by at least one active watchpoint
  uint64_t checked = 0;      ///< of those, every such watchpoint reached a verdict
  uint64_t not_checked = 0;
  uint64_t bytes = 0;        ///< element bytes read
  uint64_t from_cache = 0;   ///< tensors decided from kept statistics
};

struct CheckOptions {
  IntSet steps = IntSet::all();
  IntSet ranks = IntSet::all();
  Semantics semantics = Semantics::kCompat;
  uint64_t mem_limit_bytes = uint64_t{16384} << 20;
  unsigned threads = 0;                ///< 0: one per processor
  bool report_missing = false;         ///< tensors that were not dumped become not_checked with code 32
  size_t max_hits = SIZE_MAX;          ///< hits beyond it are counted, not kept
  /// Called on the owner's thread a few times a second.
  std::function<void(uint64_t done, uint64_t total, uint64_t bytes)> progress{};
};

struct CheckResult {
  std::vector<Hit> hits;               ///< by rank, step, graph, execution order, execution, slot, then rule id
  std::vector<NotChecked> not_checked; ///< the same order
  std::vector<RuleProblem> rule_problems;  ///< rules that broke; what they would have found is not known
  std::vector<std::shared_ptr<const RuleInfo>> rules;  ///< rules that ran, with what is said about them
  Coverage coverage;
  uint64_t total_hits = 0;             ///< including those beyond max_hits
  Semantics semantics = Semantics::kCompat;
  bool interrupted = false;            ///< partial
  std::vector<int64_t> steps;          ///< steps that were looked at
};

/// Runs the watchpoints: every tensor is read once for all of them, workers share the tensors, script checks run on
/// the calling thread. Statistics are kept in the session, so a second call with other thresholds reads nothing.
/// Error: a selector that matches nothing (unless optional), no such step.
Result<CheckResult> check(Session& session, std::span<const Watchpoint> watchpoints, const CheckOptions& options);

// ---- dump sessions ---------------------------------------------------------------------------------------------------

struct DumpOptions {
  std::optional<std::string> net;   ///< where the dump holds several; default: all
  IntSet ranks = IntSet::all();
};

/// Opens a dump directory: graphs are read, directories listed once each and lazily, no tensor is read.
/// Error: kNotFound "no dump here" with the nearest candidates below the path; kIoError.
Result<std::unique_ptr<Session>> open_dump(const std::string& path, const DumpOptions& options = {});

}  // namespace msdbg
