// Replicas: values that several ranks must hold bit for bit, and the ranks that do not.
//
// The session's owner thread only. What must be equal, and how the odd rank is found: docs/ranks.md.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "msdbg/follow.h"

namespace msdbg {

enum class ReplicaKind : uint8_t {
  kParameter,         ///< a weight
  kOptimizerState,    ///< momentum, moments, learning rate, step counter, loss scale
  kCollectiveOutput,  ///< of AllReduce, AllGather or Broadcast
  kUpdate,            ///< what an optimizer computes
  kComputed,          ///< what other operators compute from replicas alone
};
std::string_view replica_kind_name(ReplicaKind kind);  ///< "parameter", "optimizer_state", "collective_output", "update", "computed"

/// What a comparison rests on.
enum class ReplicaEvidence : uint8_t {
  kElements,
  kChecksum,    ///< recorded with the data: equal ones all but prove equal bits
  kStatistics,  ///< largest and smallest element, mean and norm: unequal ones prove a difference, equal ones prove nothing
};

/// Values of one kind that the same ranks share for the same reason.
struct ReplicaSet {
  std::vector<int> ranks;
  ReplicaKind what = ReplicaKind::kParameter;
  bool assumed = false;     ///< the graph does not say that they must be equal
  std::string reason;       ///< "their gradients pass AllReduce of hccl_world_group", "equal in step 0", ...
  uint64_t tensors = 0;     ///< nodes with such a value
  uint64_t different = 0;   ///< of those, not equal on all ranks in some step
};

/// Values that ranks have in common by name but need not share.
struct NotReplicated {
  std::string reason;
  uint64_t tensors = 0;
  std::vector<std::string> examples;  ///< up to 3 names
};

struct DifferentElement {
  std::vector<int64_t> at;
  double expected = 0, actual = 0;  ///< on the other ranks, and on the odd ones
};

/// How the odd ranks came to be odd.
enum class ReplicaCause : uint8_t {
  kValue,      ///< a parameter that differs although nothing that wrote it did
  kOperator,   ///< an operator gave another result for equal inputs
  kUnknown,    ///< an output differs whose inputs were not all dumped
  kCollective, ///< a collective delivered different results
  kSetting,    ///< a learning rate, loss scale or another single number that steers the optimizer; or that its recorded calls took
  kNoUpdate,   ///< the rank ran no optimizer in a step in which the others did, as recorded calls show
  kStep,       ///< a rank that is one step behind: in each step it holds what the others held in the step before
  kStepAhead,  ///< a rank that is one step ahead: in each step it holds what the others hold in the next one
  kUnreduced,  ///< a weight that each rank trains by itself: no collective reduces its gradient, as collectives reduce those of others
  kApart,      ///< the same for all weights, which were equal at first, as the ranks exchange nothing; or for a few, as all others stay equal
  kGroup,      ///< a weight whose gradient passes another group than those of most others: its ranks hold different shards from the start
  kCalls,      ///< the rank ran the same recorded calls in another mode or type, or the network fewer times
};
/// "value", "operator", "unknown", "collective", "setting", "no_update", "step", "step_ahead", "unreduced", "apart",
/// "group", "calls"
std::string_view replica_cause_name(ReplicaCause cause);

/// One fault: the value that differed first, with everything that followed from it on the same ranks.
struct ReplicaDifference {
  ReplicaCause cause = ReplicaCause::kValue;
  ReplicaKind what = ReplicaKind::kParameter;  ///< of the value
  TensorId tensor;     ///< the value, on the first odd rank, in the first step with the difference
  TensorId seen;       ///< the first dumped tensor, in execution order, that shows it: the value itself or an operator's input
  TensorId expected;   ///< the counterpart of `seen` on a rank that is not odd
  std::vector<int> odd, others;        ///< ranks
  bool decided = true;                 ///< false: no majority, and either side may be the odd one
  bool assumed = false;                ///< as of its ReplicaSet
  uint64_t elements = 0, of = 0;       ///< of `seen`, that differ
  std::vector<DifferentElement> first; ///< up to 8
  std::vector<int> bits;               ///< positions, from 0 for the lowest, that differ in any element; empty: other type or shape
  bool single_flip = false;            ///< one bit of one element of a float type, or of an integer tensor with more than one element
  bool updated = false;                ///< the value is a parameter that the graph updates
  /// How far the odd ranks moved the weight since the step before, as a multiple of the others: 0 without an update, 2 with twice the
  /// learning rate. nullopt if that is unknown, or says nothing.
  std::optional<double> moved;
  /// The earlier step, not the one before, whose value the odd ranks hold again: they have loaded an older checkpoint.
  std::optional<int64_t> held;
  bool alone = false;                  ///< the odd ranks moved it since the step before, and the others did not
  uint64_t staying = 0;                ///< kApart: other weights, which stay equal
  bool own_way = false;                ///< both sides moved it since the step before, each in another direction
  std::string problem;                 ///< why elements could not be compared, e.g. other shapes
  std::optional<TensorId> called;      ///< the call or operator that made the value, if the odd ranks passed other numbers
  bool in_front = false;               ///< `called` is no call of the optimizer: it scaled a gradient or the loss
  std::string arguments;               ///< "alpha = -0.11 instead of -0.1", "epsilon = 0.001 instead of 1e-08"; "" without `called`
  std::vector<int64_t> steps;          ///< in which the difference or its consequences were seen, ascending
  std::vector<TensorId> reached;       ///< other values that differ with it, on the first odd rank, in the first step that shows them
  /// Parameters or outputs of collectives that differ from the same step on, on the same ranks, and like this one in most elements.
  std::vector<TensorId> also;
  /// kUnknown: what the operator took and no file of this step shows as it was before; kOperator: constants whose value is not known.
  std::vector<std::string> not_seen;

  /// What it and `also` are.
  std::string_view noun() const {
    if (cause == ReplicaCause::kCollective) return "collective";
    return what == ReplicaKind::kUpdate ? "update" : "parameter";
  }
  /// Recorded calls show it, and no value.
  bool of_calls() const {
    const bool number = cause == ReplicaCause::kSetting && what == ReplicaKind::kUpdate;
    return number || cause == ReplicaCause::kNoUpdate || cause == ReplicaCause::kCalls;
  }
  bool drifts() const { return cause == ReplicaCause::kUnreduced || cause == ReplicaCause::kApart || cause == ReplicaCause::kGroup; }
  bool shifted() const { return cause == ReplicaCause::kStep || cause == ReplicaCause::kStepAhead; }
};

struct ReplicasResult {
  std::vector<int> ranks;
  std::vector<int64_t> steps;
  std::vector<ReplicaSet> sets;
  std::vector<NotReplicated> not_replicated;
  std::vector<ReplicaDifference> differences;  ///< by step, then execution order
  std::vector<NotChecked> not_checked;         ///< replicas that a rank lacks or that cannot be read
  Coverage coverage;                           ///< of tensors, each of one rank
  uint64_t by_checksum = 0, by_statistics = 0; ///< of the compared tensors; the rest by their elements
  std::string nothing;                         ///< why nothing could be compared; "" otherwise
  bool interrupted = false;
};

/// Compares the replicas of the chosen ranks in each chosen step. Each tensor is read once, in blocks; differing ones once more, and
/// of weights also the value of the step before.
Result<ReplicasResult> replicas(Session& session, const FollowOptions& options);

/// The odd ones and the others.
std::vector<int> all_ranks(const ReplicaDifference& difference);
/// "rank 1 differs from ranks 0, 2, 3 in 1 of 864 elements: [5,17] is 0.0875 instead of 0.02187, a single flipped bit (24)".
/// Without a majority: "ranks 0 and 1 differ ...; nobody can tell which is wrong".
std::string difference_sentence(const ReplicaDifference& difference);
/// "unlike rank 0, rank 1 did not move it since step 0: an update is missing", "rank 1 moved them 2 times as far since step 0 as rank 0:
/// another learning rate", "rank 1 moved them in another direction since step 0 than rank 0: it took other gradients", "rank 1 holds them as
/// they were in step 2: it loaded an older checkpoint", "rank 0 alone moved it since step 0"; "" if nothing is known of it.
std::string move_text(const ReplicaDifference& difference);
/// "0.0875 instead of 0.02187"; without a majority "0.02187 on rank 0 and 0.0875 on rank 1".
std::string values_text(const ReplicaDifference& difference, const DifferentElement& element);

}  // namespace msdbg
