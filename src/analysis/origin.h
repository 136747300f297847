// The origins of one step of one graph.
#pragma once

#include "analysis/parameter_writes.h"
#include "analysis/rank_models.h"
#include "analysis/spread.h"

namespace msdbg {

/// Without an origin and an arrival, the lists and the step are empty. `ranks` has the models of all ranks.
StepOrigins search_step(Evidence& evidence, const StepModel& model, const RankModels& ranks, ParameterWrites& writes);

/// The same for a graph with recorded calls: what they took and gave is known, which edges join them only in part.
StepOrigins search_calls(Evidence& evidence, const StepModel& model, const RankModels& ranks, ParameterWrites& writes);

/// A tensor as an origin, without what is around it.
Origin describe_origin(Evidence& evidence, OriginKind kind, const TensorId& tensor);
/// True for a collective that copies, which makes nothing, and for a sum with a NaN: a sum of finite numbers may be infinite at most.
bool cannot_have_made(const Evidence& evidence, const Node& node, const Origin& origin);
/// True if all inputs that are unknown come from outside of the graph, one of them from another graph of the network. No dump of
/// MindSpore 2.x has what a graph hands over to the next.
bool is_behind_another_graph(const Graph& graph, const Origin& origin);
/// No operator of the graph has made it.
bool is_outside(const Graph& graph, const OriginInput& input);
/// Whether a value of an earlier step was bad: judged, or by its statistics.
bool was_bad(Evidence& evidence, const TensorId& id);
/// The update that left the parameter bad: by an earlier step, or by another graph that ran before this one in the step.
std::optional<TensorId> update_of(Evidence& evidence, ParameterWrites& writes, const Graph& graph, NodeId parameter, int64_t step);
/// The same of the state, such as a momentum, that a recorded call of an optimizer takes.
std::optional<TensorId> state_update_of(Evidence& evidence, const Graph& graph, NodeId call, int64_t step);

}  // namespace msdbg
