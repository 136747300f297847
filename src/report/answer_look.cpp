// Nodes, tensors with their statistics, and what a dump holds.
#include <algorithm>

#include "msdbg/answers.h"
#include "msdbg/rank_report.h"
#include "msdbg/table.h"

namespace msdbg {

Answer node_answer(const NodeRef& ref) {
  const Graph& graph = *ref.graph;
  const Node& node = graph.node(ref.node);
  Answer inputs = Answer::array(), outputs = Answer::array();
  for (uint32_t slot = 0; slot < node.inputs.size(); ++slot) {
    const Edge edge = graph.effective_producer(node.id, slot);
    const bool known = edge.node != kNoNode;
    inputs.push_back({{"node", known ? graph.node(edge.node).name : edge.name.get()},
                      {"slot", known ? Answer(slot_name({Io::kOutput, edge.slot})) : Answer()}});
  }
  for (const OutputType& type : node.outputs)
    outputs.push_back({{"dtype", dtype_name(type.dtype)}, {"shape", type.shape ? Answer(*type.shape) : Answer()}});
  Answer out;
  out["name"] = node.name;
  out["op"] = node.op;
  out["kind"] = node_kind_name(node.kind);
  out["scope"] = node.scope;
  out["rank"] = graph.rank();
  out["graph"] = graph.name();
  out["graph_id"] = graph.id();
  out["inputs"] = std::move(inputs);
  out["outputs"] = std::move(outputs);
  out["source"] = source_answer(node);
  out["stack"] = stack_answer(node);
  return out;
}

Answer tensor_answer(const Session& session, const StatsRow& row) {
  Answer out = place_answer(session, row.info.id);
  out["gradient_of"] = text_answer(gradient_of_name(session, row.info.id));
  out["dtype"] = dtype_name(row.info.dtype);
  out["shape"] = row.info.shape;
  out["stats"] = row.stats ? stats_answer(*row.stats, row.info.shape) : Answer();
  out["problem"] = row.stats ? Answer() : Answer(row.info.problem.message());
  return out;
}

Answer session_answer(const Session& session) {
  const SessionInfo& info = session.info();
  Answer graphs = Answer::array();
  for (const GraphPtr& graph : session.graphs()) {
    const auto kernels = std::count_if(graph->nodes().begin(), graph->nodes().end(), [](const Node& node) {
      return node.kind == NodeKind::kOperator && !is_structural(node.op);
    });
    graphs.push_back({{"rank", graph->rank()},
                      {"graph", graph->name()},
                      {"graph_id", graph->id()},
                      {"kernels", kernels},
                      {"steps", session.steps(graph->rank(), graph->id())},
                      {"from_file", graph->from_file()}});
  }
  Answer out;
  out["dump"] = info.source;
  out["layout"] = text_answer(info.layout);
  out["epoch"] = text_answer(info.epoch);
  out["framework_version"] = text_answer(info.framework_version);
  out["device_target"] = text_answer(info.device_target);
  out["nets"] = info.nets;
  out["ranks"] = std::vector<int>(session.ranks().begin(), session.ranks().end());
  out["graphs"] = std::move(graphs);
  return out;
}

Answer doctor_answer(const Session& session, const SessionReport& report, const RankGrid& tensors) {
  Answer problems = Answer::array();
  for (const Problem& problem : report.problems)
    problems.push_back({{"severity", severity_name(problem.severity)}, {"path", problem.path}, {"message", problem.message}});
  Answer out = session_answer(session);
  out["files"] = {{"tensors", report.tensor_files},       {"parameters", report.parameter_files},
                  {"constants", report.constant_files},   {"statistics", report.statistic_rows},
                  {"device_format", report.device_files}, {"other", report.other_files}};
  out["by_rank"] = by_rank_answer(tensors);
  out["problems"] = std::move(problems);
  return out;
}

}  // namespace msdbg
