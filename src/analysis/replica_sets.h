// What a comparison of replicas makes of all its steps: sets of values that the same ranks share, and differences that are one.
#pragma once

#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "analysis/replica_model.h"
#include "msdbg/replicas.h"

namespace msdbg {

/// Values and their parts that were seen to differ.
using DifferentParts = std::set<std::pair<size_t, std::vector<int>>>;

/// The ranks and steps to compare, or why there is nothing to compare.
ReplicasResult chosen_replicas(Session& session, const FollowOptions& options);

/// Fills `sets` and `not_replicated`.
void list_sets(const ReplicaModel& model, const DifferentParts& different, ReplicasResult* result);

/// Fills `nothing` where no value was compared.
void explain_nothing(ReplicasResult* result);

/// In more than half of the elements, or nobody knows in how many: they are gone.
bool differs_mostly(const ReplicaDifference& difference);

/// The difference is one of these ranks, too.
void add_ranks(const std::vector<int>& ranks, ReplicaDifference* difference);

/// An earlier difference of which this one is a part: ranks that began with other weights, or loaded others, differ in all of them;
/// ranks that are in another step got other results of all collectives; another learning rate changes all weights.
std::optional<size_t> same_weights(const std::vector<ReplicaDifference>& differences, const ReplicaDifference& made);

}  // namespace msdbg
