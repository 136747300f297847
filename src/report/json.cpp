// Origins, statistics, nodes and what a dump holds, as JSON.
#include "report/json.h"

#include <set>

#include "report/json_parts.h"

namespace msdbg::json {
namespace {

Json input_object(Session& session, const Graph* graph, const OriginInput& input) {
  const Node* producer = graph && input.producer.node != kNoNode ? &graph->node(input.producer.node) : nullptr;
  Json out;
  out["slot"] = slot_name({Io::kInput, input.slot});
  out["node"] = producer ? Json(producer->name) : input.producer.name.empty() ? Json() : Json(input.producer.name);
  out["producer_slot"] = producer ? Json(slot_name({Io::kOutput, input.producer.slot})) : Json();
  Json stats;
  if (input.stats && input.value) {
    Shape shape;
    // The coordinates of the first bad element need the shape, which only the tensor itself tells.
    if (Result<TensorInfo> info = session.describe(*input.value)) shape = info->shape;
    stats = stats_object(*input.stats, shape);
  }
  out["stats"] = std::move(stats);
  return out;
}

Json origin_object(Session& session, const StepOrigins& step) {
  const Origin& origin = step.origins.front();
  const Graph* graph = session.graph(step.rank, step.graph);
  Json out;
  put_place(out, session, origin.tensor);
  out["step"] = step.step;
  put_node(out, session, origin.tensor);
  put_type(out, origin.info.dtype, origin.info.shape);
  out["stats"] = stats_object(origin.stats, origin.info.shape);
  Json first = Json::array();
  for (const std::vector<int64_t>& place : origin.first) first.push_back(list(place));
  out["first"] = std::move(first);
  Json inputs = Json::array();
  for (const OriginInput& input : origin.inputs) inputs.push_back(input_object(session, graph, input));
  out["inputs"] = std::move(inputs);
  Json chain = Json::array();
  if (!origin.chains.empty()) {
    for (const ChainLink& link : origin.chains.front()) {
      chain.push_back({{"node", session.node(link.tensor).name}, {"slot", slot_name(link.tensor.slot)}});
    }
  }
  out["chain"] = std::move(chain);
  out["reached"] = origin.reached;
  out["stack"] = stack_of(session.node(origin.tensor));
  return out;
}

Json row_object(const Session& session, const StatsRow& row) {
  const TensorInfo& info = row.info;
  Json out;
  put_place(out, session, info.id);
  out["step"] = info.id.step;
  out["execution"] = info.id.execution;
  put_node(out, session, info.id);
  put_type(out, info.dtype, info.shape);
  out["stats"] = row.stats ? stats_object(*row.stats, info.shape) : Json();
  return out;
}

Json node_object(const NodeRef& ref) {
  const Graph& graph = *ref.graph;
  const Node& node = graph.node(ref.node);
  Json out;
  out["name"] = node.name;
  out["op"] = node.op;
  out["kind"] = node_kind_name(node.kind);
  out["scope"] = node.scope;
  out["rank"] = graph.rank();
  out["graph"] = graph.name();
  out["graph_id"] = graph.id();
  Json inputs = Json::array();
  for (uint32_t slot = 0; slot < node.inputs.size(); ++slot) {
    const Edge edge = graph.effective_producer(node.id, slot);
    const bool known = edge.node != kNoNode;
    Json input;
    input["node"] = known ? Json(graph.node(edge.node).name) : Json(node.inputs[slot].name);
    input["slot"] = known ? Json(slot_name({Io::kOutput, edge.slot})) : Json();
    inputs.push_back(std::move(input));
  }
  out["inputs"] = std::move(inputs);
  Json outputs = Json::array();
  for (const OutputType& type : node.outputs) {
    outputs.push_back({{"dtype", dtype_name(type.dtype)}, {"shape", type.shape ? list(*type.shape) : Json()}});
  }
  out["outputs"] = std::move(outputs);
  out["stack"] = stack_of(node);
  return out;
}

}  // namespace

std::string origins(Session& session, const OriginResult& result, bool lines) {
  Json origins = Json::array();
  for (const StepOrigins& step : result.steps) {
    if (!step.origins.empty()) origins.push_back(origin_object(session, step));
  }
  if (lines) return dumped_lines(origins);
  Json out;
  out["dump"] = session.info().source;
  out["predicate"] = result.predicate;
  out["origins"] = std::move(origins);
  if (result.interrupted) out["partial"] = true;
  return dumped(out, true);
}

std::string stats(const Session& session, const std::vector<StatsRow>& rows, bool lines) {
  Json tensors = Json::array();
  for (const StatsRow& row : rows) tensors.push_back(row_object(session, row));
  if (lines) return dumped_lines(tensors);
  Json out;
  out["dump"] = session.info().source;
  out["tensors"] = std::move(tensors);
  return dumped(out, true);
}

std::string nodes(const Session& session, const std::vector<NodeRef>& nodes, bool lines) {
  Json list = Json::array();
  for (const NodeRef& ref : nodes) list.push_back(node_object(ref));
  if (lines) return dumped_lines(list);
  Json out;
  out["dump"] = session.info().source;
  out["nodes"] = std::move(list);
  return dumped(out, true);
}

std::string doctor(const Session& session, const SessionReport& report, bool lines) {
  const SessionInfo& info = session.info();
  Json out;
  out["dump"] = info.source;
  out["layout"] = info.layout;
  out["epoch"] = info.epoch;
  out["framework_version"] = info.framework_version.empty() ? Json() : Json(info.framework_version);
  out["nets"] = list(info.nets);
  out["ranks"] = list(std::vector<int>(session.ranks().begin(), session.ranks().end()));
  Json graphs = Json::array();
  std::set<std::pair<int, std::string>> seen;
  for (const GraphPtr& graph : session.graphs()) {
    if (seen.insert({graph->id(), graph->name()}).second) graphs.push_back(graph->name());
  }
  out["graphs"] = std::move(graphs);
  Json steps = Json::object();
  for (const auto& [graph, numbers] : report.steps_by_graph) steps[std::to_string(graph)] = list(numbers);
  out["steps"] = std::move(steps);
  out["files"] = {{"tensors", report.tensor_files},       {"parameters", report.parameter_files},
                  {"constants", report.constant_files},   {"statistics", report.statistic_rows},
                  {"device_format", report.device_files}, {"other", report.other_files}};
  Json problems = Json::array();
  for (const Problem& problem : report.problems) {
    problems.push_back(
        {{"severity", severity_name(problem.severity)}, {"path", problem.path}, {"message", problem.message}});
  }
  out["problems"] = std::move(problems);
  return dumped(out, !lines);
}

}  // namespace msdbg::json
