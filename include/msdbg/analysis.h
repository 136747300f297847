// Analyses of more than one tensor. The session's owner thread only.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "msdbg/check.h"

namespace msdbg {

/// The definition of bad. Exactly one alternative is set.
struct Predicate {
  enum class Builtin : uint8_t { kNanOrInf, kNan, kInf };
  /// The result of a script; nullopt if it could not decide.
  using Function = std::function<std::optional<bool>(const CheckedTensor&)>;

  std::variant<Builtin, Condition, Expression, Function> when = Builtin::kNanOrInf;
  std::string text = "NaN or Inf";  ///< for the output
};

/// "nan or inf" (default), "nan", "inf", or any text that parse_when() accepts.
Result<Predicate> parse_predicate(std::string_view text);

enum class InputState : uint8_t { kGood, kBad, kUnknown };

/// One input of the origin's execution, with its state.
struct OriginInput {
  uint32_t slot = 0;
  Edge producer;                 ///< looks through structural nodes
  InputState state = InputState::kUnknown;
  std::string reason;            ///< reason why it is unknown
  std::optional<TensorId> value; ///< the judged tensor: recorded input, producer's output, or parameter
  std::optional<Stats> stats;
  bool zeros_at_bad = false;     ///< its zeros are exactly where the origin's elements are bad (NaN/Inf predicates)
  std::optional<int> rank = {};  ///< a collective's input on another rank; `producer` is a node of that rank's graph
};

struct ChainLink {
  TensorId tensor;
  Stats stats;
  bool bad = true;               ///< false: this operator absorbed it
};

enum class OriginKind : uint8_t {
  kOperator,   ///< an output broke although its inputs were good
  kParameter,  ///< a parameter was bad when the step began
  kInput,      ///< a graph input or constant was bad
  kUnrecorded, ///< recorded calls: an input was bad that none of them made, in a module whose own inputs were good
};

/// Another rank that a fault reached.
struct RankReached {
  int rank = 0;
  TensorId through;         ///< output of the first collective that brought it
  std::string group;        ///< of that collective; "" if the graph does not name it
  bool assumed = false;     ///< who takes part in it is not known
  uint64_t collectives = 0; ///< that brought it
  bool recorded = true;     ///< false: no recorded call brought it; `through` is what had it first, and may be an input
  uint64_t tensors = 0;     ///< bad ones of the rank in this step that follow from it
  bool sound_loss = false;  ///< the rank's loss is good
};

/// Who takes part in a collective: `mccl_world_group`, `GROUP, ranks assumed`, `all ranks, assumed`; "" for Send and Receive without a
/// group.
std::string group_text(std::string_view group, bool assumed);

/// A parameter that something outside of the graph has made much larger since the step before.
struct Grown {
  TensorId parameter;   ///< in the step after which it was still small
  double largest = 0;   ///< the largest finite magnitude, when the step of the origin began or after `since`
  double before = 0;    ///< after the step of `parameter`
  std::optional<int64_t> since;  ///< it became large in this earlier step, or right before it; none: right before the step of the origin
  bool at_begin = false;         ///< both are values with which steps began, and what the update between them left is unknown
  bool one_rank = false;         ///< other ranks have a parameter of this name that did not grow
  std::optional<TensorId> value = {};    ///< where the large value can be seen: the weight, or an input; none: it is gone
  std::optional<TensorId> seen_by = {};  ///< the value is gone; this view of it, or this product with something known, shows that it was `largest` at least
};

struct Origin {
  OriginKind kind = OriginKind::kOperator;
  TensorId tensor;
  TensorInfo info;
  Stats stats;
  std::vector<std::vector<int64_t>> first;  ///< coordinates of up to 8 bad elements (NaN/Inf predicates)
  uint64_t bad_count = 0;                   ///< number of bad elements, for NaN/Inf predicates
  std::optional<std::pair<int64_t, std::pair<uint64_t, uint64_t>>> rows;  ///< affected first-axis rows and least/most bad per row
  bool certain = true;                      ///< false: "not later than this node"; an input is unknown
  std::vector<OriginInput> inputs;
  std::vector<std::vector<ChainLink>> chains;  ///< its paths, in execution order; each ends absorbed, at a parameter or at an output
  uint64_t reached = 0;                     ///< bad tensors downstream of this origin, including itself; counted as below
  std::optional<TensorId> update;           ///< kParameter: the optimizer output of the previous step that made it bad
  std::vector<RankReached> ranks_reached;   ///< other ranks that got it through collectives, by rank
  std::string put_in = {};                  ///< "input_args.2 = -Infinity": the call was told to write it, and nothing absorbed it
  std::optional<TensorId> sound_before = {};  ///< it is younger than this good value; kParameter: its file of the step before
  std::optional<TensorId> part_of = {};       ///< kInput: the input is this rank's part of that weight
  std::optional<TensorId> bad_part = {};      ///< kParameter: shows whose part of the gathered weight was bad
  std::vector<int> good_on = {};              ///< a collective's output: ranks that got a good one from the same call
  std::vector<Grown> grown = {};              ///< kOperator, the first of its step: what its value comes from
  std::optional<TensorId> shown = {};         ///< kParameter: the recorded input described here, if the parameter's file has a later value
};

/// For a collective whose known inputs are all good: why the inputs of other ranks are unknown. One of them brought the fault. "" for any
/// other origin.
std::string unseen_ranks(const Session& session, const Origin& origin);

/// Infinities that a recorded call wrote because it was told to, as a mask does, and that the calls behind it absorbed: no fault.
struct PutIn {
  TensorId tensor;       ///< the output, or the input that brought them
  std::string argument;  ///< "input_args.2 = -Infinity"
  std::vector<TensorId> held_by;  ///< of the step, this one included, ascending
};

/// One of the origins of a step: an index into StepOrigins::origins of that rank and graph.
struct OriginPlace {
  int rank = 0, graph = 0;
  uint32_t index = 0;
};

/// What came from another rank: a collective's output that is bad although the inputs of this rank are good. Or from another graph of the
/// network, which handed over a value that the dump does not have.
struct Arrival {
  TensorId tensor;                    ///< the output
  TensorId from;                      ///< the bad input of another rank; what broke first in the other graph
  std::optional<OriginPlace> origin;  ///< where it came from, over any number of ranks; nullopt: unknown
  bool recorded = true;               ///< false: no recorded call brought it; `tensor` may be an input, and `from` is the same one
};

/// All origins of one rank, graph and step; the first is the first in execution order.
struct StepOrigins {
  int rank = 0, graph = 0;
  uint64_t began = 0;            ///< when the first origin was written, where the dump tells: the order of graphs in a step
  std::vector<int> ranks;        ///< those with the same story, this one first
  std::vector<int> graphs_behind;  ///< other graphs of the rank that broke later, on what others had handed over
  std::optional<int> told_by;    ///< in OriginResult::others: the rank whose story is the same
  std::vector<Arrival> arrivals; ///< in execution order
  int64_t step = 0;
  std::vector<Origin> origins;
  uint64_t bad_tensors = 0;      ///< tensors of the step (outputs, parameters, recorded inputs) that satisfy the predicate
  std::vector<TensorId> losses;  ///< loss outputs that still look good
  std::vector<PutIn> put_in;     ///< also without an origin
  /// Bad tensors that some origin or arrival reaches, ascending, each with the index of the first such: arrivals come after the origins.
  std::vector<std::pair<TensorId, uint32_t>> follows;
};

struct OriginOptions {
  Predicate predicate;
  IntSet steps = IntSet::all();
  IntSet ranks = IntSet::all();
  Semantics semantics = Semantics::kCompat;
  uint64_t mem_limit_bytes = uint64_t{16384} << 20;
  unsigned threads = 0;
  std::function<void(uint64_t done, uint64_t total, uint64_t bytes)> progress;
};

struct OriginResult {
  std::string predicate;
  std::vector<StepOrigins> steps;          ///< stories: only steps with an origin; by step, rank, graph
  std::vector<StepOrigins> others;         ///< ranks that only got it from other ranks, or whose story another rank tells; the same order
  std::vector<PutIn> put_in;               ///< of all steps, by step, rank, graph
  std::vector<OverflowRecord> overflows = {};  ///< of the hardware's detector; by step, rank, execution order
  std::vector<Overwritten> overwritten = {};  ///< in the steps and ranks that were asked for, by step, rank
  std::vector<NotChecked> not_checked;     ///< tensors that could not be judged
  Coverage coverage;
  IntSet asked_ranks = {}, asked_steps = {};  ///< of the options
  bool interrupted = false;
};

/// True for an optimizer's operator whose outputs are uninitialised memory: it updates its parameters in place and never writes its
/// output buffers. Depends on release and device, see docs/dump-format.md.
bool has_unwritten_outputs(const SessionInfo& info, const Node& node);

/// True for a collective that gives away what a rank puts in, such as AllToAll: its output there may be without a NaN of the input.
bool gives_to_others(const Node& node);

/// Finds origins: in execution order within a step, the first output that satisfies the predicate although no input of that
/// execution does. Inputs are judged by their recorded values, else by their producer's output or the parameter's value at the
/// start of the step. See docs/origin.md.
Result<OriginResult> find_origins(Session& session, const OriginOptions& options);

/// "log_of_zero", ...: the word in Lua and JSON.
std::string_view cause_kind_name(CauseKind kind);
/// The most that find_causes() reads from a training, in bytes. The training waits while it sends them.
inline constexpr uint64_t kMostCauseBytes = uint64_t{256} << 20;

/// Finds what the hits of a check follow from: sets `causes` and `follows` of the hits. Of a training, only hits of the step at which it is
/// held are looked at, because other values are gone, and only if its values are no more than kMostCauseBytes or than the check has read. A
/// checkpoint has no operators: there nothing is searched. `limits`: ranks, semantics, memory, threads and progress of the search for
/// origins, which is made in the steps that need it unless `origins` has them.
/// Error: kInterrupted and those of find_origins(); then `causes` is nullopt.
Status find_causes(Session& session, const CheckOptions& limits, CheckResult* result, const OriginResult* origins = nullptr);

}  // namespace msdbg
