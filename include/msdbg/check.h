// Watchpoints on a session, and the check that runs them.
//
// A watchpoint is a selector (where) and a condition, an expression or a function (when). check() reads each tensor once for all of
// them. Functions are called on the thread that called check(); everything else runs on worker threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "msdbg/expr.h"
#include "msdbg/session.h"
#include "msdbg/watch.h"

namespace msdbg {

struct CheckedTensor {
  TensorId id;
  const TensorInfo* info;
  const Stats* stats;
};

/// The result of a Lua function. `not_checked` with a reason if it failed.
struct ScriptVerdict {
  Verdict verdict = Verdict::kClean;
  std::string reason;
  std::optional<double> actual;
  std::vector<std::pair<std::string, std::string>> details;  ///< further fields of the returned table, printed
  uint32_t error_code = 0;                                   ///< for kNotChecked
};
using ScriptCheck = std::function<ScriptVerdict(const CheckedTensor&)>;

/// A finding about a parameter as the step took it. What is recorded of the parameter shows it after its update.
struct BeforeUpdate {
  double times = 0;  ///< how many times larger than it should be the worst element is; 0: it is not finite
};

/// A finding that a rule reported at the end of a step or of the run.
struct ScriptFinding {
  TensorId tensor;
  std::optional<double> actual;
  std::vector<std::pair<std::string, std::string>> details;
  std::optional<BeforeUpdate> before_update = {};
};
struct ReplicasResult;
struct ScriptPhase {
  std::vector<ScriptFinding> findings;
  std::string problem;  ///< why the rule returned no answer, or ""
  std::string gap;      ///< what it had nothing to look at for, although it ran, or ""
  std::shared_ptr<const ReplicasResult> replicas = {};  ///< of a rule that compares ranks
};

/// The description of a rule in reports.
struct RuleInfo {
  std::string name, abbr, summary, cause, next;
  std::string file;  ///< the file it was read from; "" for the catalogue
  Severity severity = Severity::kWarning;
  bool remembers = false;  ///< what it says about a step may depend on the steps before

  /// `cause` and `next` in one text.
  std::string advice() const { return cause.empty() || next.empty() ? cause + next : cause + " " + next; }
};

struct Watchpoint {
  int id = 0;                    ///< 1, 2, ...; never reused in a session
  std::string name;              ///< the user's, or ""
  std::string rule;              ///< the `rule` of its hits: the catalogue id, or the name of the rule or watchpoint
  Selector on;
  bool inputs = false, outputs = true;
  std::optional<uint32_t> slot;
  bool inputs_instead = false;   ///< inputs, too, on ranks where no operator's output was dumped
  bool enabled = true;
  bool optional = false;         ///< a selector that matches nothing is not an error
  std::optional<Condition> condition;  ///< exactly one of condition, expression and script is set
  std::optional<Expression> expression;
  ScriptCheck script;            ///< called on the thread that called check()
  bool needs_elements = true;    ///< false: a statistics row (count, min, max, mean) is enough
  bool compares_bits = false;    ///< finish() asks read_bits() about the tensors of the check: they are read once for both
  bool asks_for_counts = false;  ///< `script` calls Session::counts_above_zero()
  Severity severity = Severity::kWarning;
  std::shared_ptr<const RuleInfo> info;  ///< for rules; may be null
  /// For rules with a script, on the thread that called check(): after the last tensor of a rank's step, and after the last tensor
  /// of all.
  std::function<ScriptPhase(int rank, int64_t step)> step_end;
  std::function<ScriptPhase()> finish;
  /// Asked about each tensor that is not clean, on the thread that called check(). A verdict of kHit: the exception holds, so the
  /// tensor is clean.
  ScriptCheck except;
  int turn = 0;                  ///< on one tensor, watchpoints with a lower turn run first
};

/// The parsed forms of `when`.
using When = std::variant<Condition, Expression>;
/// A condition of the catalogue (`TO`, `TL max_gt=3`) or an expression (`mean(abs(x)) > 10`).
/// Error: kInvalidArgument; for a text that is neither, with the nearest condition.
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
  std::shared_ptr<const RuleInfo> info;  ///< for rules; may be null
  std::optional<size_t> follows = {};    ///< index into CheckResult::causes
  std::optional<BeforeUpdate> before_update = {};
};

/// Why values went wrong. kUnknown: the place is known, the reason is not.
enum class CauseKind : uint8_t {
  kUnknown, kLogOfZero, kLogOfNegative, kRootOfNegative, kOutOfDomain, kDivisionByZero, kCastOverflow, kProductOverflow, kSumOverflow,
  kExpOverflow, kBadInput, kBadParameter, kRateZero, kRateTooLarge, kDeadUnits, kVanishing, kLossScale, kReplica,
};

/// What findings follow from, in the order of the graph and of time.
struct Cause {
  CauseKind kind = CauseKind::kUnknown;
  TensorId tensor;             ///< where it was seen first
  std::vector<int64_t> steps;  ///< in which it was seen, ascending
  std::string what;            ///< "division by 0"
  std::string evidence;        ///< "104 zeros in input:1"; "" where `what` says it all
  uint64_t findings = 0;       ///< that follow from it, its own included
  uint64_t total = 0;          ///< findings that were looked at
};

/// A finding that is no fault: the program asked for what it says, and nothing took harm.
struct Explained {
  Hit hit;
  TensorId from;       ///< where it was put in
  std::string what;    ///< "Inf that the program put in; what follows absorbed it"
  std::string evidence; ///< "input_args.2 = -Infinity"
};

struct NotChecked {
  int watch_id = 0;
  std::string rule, abbr;
  TensorId tensor;
  std::string reason;
  uint32_t error_code = 0;
};

/// Why a whole rule reached no verdict.
enum class RuleProblemKind : uint8_t {
  kBroken,      ///< `rule error: ...`
  kUnset,       ///< a parameter is missing
  kIdle,        ///< nothing in this network or dump matches its selector, or not what it is for
  kNoSuchData,  ///< a requested step or rank does not exist; reported for the rule `*`
  kUnfinished,  ///< a rank stopped in the step: unfinished_steps(); reported for the rule `*`
};
/// A rule, or `*` for all of them, that could not run.
struct RuleProblem {
  std::string rule, reason;
  RuleProblemKind kind = RuleProblemKind::kBroken;
};

struct Coverage {
  uint64_t tensors = 0;      ///< named by at least one active watchpoint
  uint64_t checked = 0;      ///< of those, every such watchpoint reached a verdict
  uint64_t not_checked = 0;
  uint64_t verdicts = 0;     ///< pairs of a tensor and a watchpoint that ended as a hit or clean
  uint64_t bytes = 0;        ///< element bytes read
  uint64_t from_cache = 0;   ///< tensors decided from cached statistics
};

struct CheckOptions {
  IntSet steps = IntSet::all();
  IntSet ranks = IntSet::all();
  Semantics semantics = Semantics::kCompat;
  NanVerdict nan = NanVerdict::kNotChecked;
  uint64_t mem_limit_bytes = uint64_t{16384} << 20;
  unsigned threads = 0;                ///< 0: one per processor
  bool report_missing = false;         ///< tensors that were not dumped become not_checked with code 32
  size_t max_hits = SIZE_MAX;          ///< more hits are counted, but not kept
  bool only_check = false;             ///< nothing is asked again: what the index answers need not be kept in memory, too
  /// Called on the owner's thread a few times per second.
  std::function<void(uint64_t done, uint64_t total, uint64_t bytes)> progress{};
};

struct CheckResult {
  std::vector<Hit> hits;               ///< by rank, step, graph, execution order, execution, slot, then rule id
  std::vector<NotChecked> not_checked; ///< the same order
  std::vector<RuleProblem> rule_problems;  ///< rules that failed; their findings are unknown
  std::vector<std::shared_ptr<const RuleInfo>> rules;  ///< rules that ran, with their descriptions
  Coverage coverage;
  uint64_t total_hits = 0;             ///< including those beyond max_hits
  std::optional<std::vector<Cause>> causes = {};  ///< the earliest first; nullopt: find_causes() did not look for them
  std::string no_causes = {};          ///< why find_causes() did not look, where that is worth telling
  std::vector<OverflowRecord> overflows = {};  ///< of the hardware's detector, set by find_causes(); by rank, step, execution order
  /// Findings that find_causes() took out of `hits` and `total_hits`, in the order of the hits.
  std::vector<Explained> explained = {};
  Semantics semantics = Semantics::kCompat;
  bool interrupted = false;            ///< the result is partial
  bool inputs_instead = false;         ///< Watchpoint::inputs_instead took effect
  std::vector<int64_t> steps;          ///< steps that were checked
  std::vector<int> ranks;              ///< ranks that were checked, ascending; empty: those of the session
  std::shared_ptr<const ReplicasResult> replicas = {};  ///< of a rule that compared the ranks
};

/// Runs the watchpoints: reads every tensor once for all of them on worker threads, and calls scripts on the calling thread.
/// Statistics are cached in the session: a second call with other thresholds reads nothing.
/// Error: a selector that matches nothing (unless optional), no such step.
Result<CheckResult> check(Session& session, std::span<const Watchpoint> watchpoints, const CheckOptions& options);

}  // namespace msdbg
