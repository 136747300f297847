#include "report/check_formats.h"
#include "report/json.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

namespace msdbg::json {
namespace {

using Json = nlohmann::ordered_json;

Json number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

template <typename T>
Json list(const std::vector<T>& values) {
  Json out = Json::array();
  for (const T& value : values) out.push_back(value);
  return out;
}

Json stats_object(const Stats& s, std::span<const int64_t> shape) {
  // Without a finite element a minimum does not exist; that is null, not NaN.
  auto real = [&](double value, uint32_t field) -> Json {
    return !s.knows(field) || std::isnan(value) ? Json() : number(value);
  };
  auto count = [&](uint64_t value, uint32_t field) -> Json { return s.knows(field) ? Json(value) : Json(); };
  Json out;
  out["count"] = count(s.count, kStatCount);
  out["min"] = real(s.min, kStatMin);
  out["max"] = real(s.max, kStatMax);
  out["mean"] = real(s.mean, kStatMean);
  out["abs_mean"] = real(s.abs_mean, kStatAbsMean);
  out["std"] = real(s.std, kStatStd);
  out["l2_norm"] = real(s.l2_norm, kStatL2Norm);
  out["nan_count"] = count(s.nan_count, kStatNan);
  out["pos_inf_count"] = count(s.pos_inf_count, kStatPosInf);
  out["neg_inf_count"] = count(s.neg_inf_count, kStatNegInf);
  out["zero_count"] = count(s.zero_count, kStatZero);
  out["pos_count"] = count(s.pos_count, kStatPos);
  out["neg_count"] = count(s.neg_count, kStatNeg);
  out["zero_percentage"] = real(s.knows(kStatZero) ? s.zero_percentage() : std::nan(""), kStatCount);
  const bool places = s.knows(kStatFirstBad) && s.first_bad && element_count(shape).value_or(0) > *s.first_bad;
  out["first_bad"] = places ? list(coordinates(*s.first_bad, shape)) : Json();
  out["dtype_max_count"] = count(s.dtype_max_count, kStatDtypeMax);
  return out;
}

Json stack_of(const Node& node) {
  Json out = Json::array();
  for (const StackFrame& frame : node.stack) {
    out.push_back({{"file", frame.file}, {"line", frame.line > 0 ? Json(frame.line) : Json()}, {"code", frame.code}});
  }
  return out;
}

/// rank, graph, graph_id, step: the place of a finding.
void put_place(Json& out, const Session& session, const TensorId& id) {
  const Graph* graph = session.graph(id.rank, id.graph);
  out["rank"] = id.rank;
  out["graph"] = graph ? graph->name() : "";
  out["graph_id"] = id.graph;
}

void put_type(Json& out, DType dtype, const Shape& shape) {
  out["dtype"] = dtype_name(dtype);
  out["shape"] = list(shape);
}

void put_node(Json& out, const Session& session, const TensorId& id) {
  const Node& node = session.node(id);
  out["node"] = node.name;
  out["op"] = node.op;
  out["slot"] = slot_name(id.slot);
}

Json hit_object(const Session& session, const Hit& hit) {
  Json out;
  out["rule"] = hit.rule;
  out["abbr"] = hit.abbr;
  out["severity"] = severity_name(hit.severity);
  put_place(out, session, hit.tensor);
  out["step"] = hit.tensor.step;
  put_node(out, session, hit.tensor);
  put_type(out, hit.dtype, hit.shape);
  Json params = Json::array();
  for (const ParamResult& param : hit.params) {
    params.push_back({{"name", param.name},
                      {"threshold", number(param.threshold)},
                      {"actual", param.actual ? number(*param.actual) : Json()},
                      {"hit", param.hit}});
  }
  // What a script answered beyond yes: fields without a threshold.
  for (const auto& [name, value] : hit.details) {
    const std::optional<double> actual = parse_double(value);
    params.push_back(
        {{"name", name}, {"threshold", nullptr}, {"actual", actual ? number(*actual) : Json(value)}, {"hit", true}});
  }
  out["params"] = std::move(params);
  out["error_code"] = 0;
  out["errors"] = Json::array();
  out["stats"] = stats_object(hit.stats, hit.shape);
  out["stack"] = stack_of(session.node(hit.tensor));
  return out;
}

Json not_checked_object(const Session& session, const NotChecked& entry) {
  Json out;
  out["rule"] = entry.rule;
  out["rank"] = entry.tensor.rank;
  out["step"] = entry.tensor.step;
  out["node"] = session.node(entry.tensor).name;
  out["slot"] = slot_name(entry.tensor.slot);
  out["reason"] = entry.reason;
  out["error_code"] = entry.error_code;
  return out;
}

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

/// Names from files may be no UTF-8; the output always is.
std::string dumped(const Json& value, bool pretty) {
  return value.dump(pretty ? 2 : -1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string dumped_lines(const Json& values) {
  std::string out;
  for (const Json& value : values) out += dumped(value, false);
  return out;
}

}  // namespace

std::string check(const Session& session, const CheckResult& result, const ReportStyle& style) {
  const Gate* gate = style.gate;
  Json hits = Json::array();
  for (size_t i = 0; i < result.hits.size(); ++i) {
    Json hit = hit_object(session, result.hits[i]);
    if (gate) {
      hit["status"] = standing_name(gate->standing[i]);
      if (gate->standing[i] == Standing::kSuppressed) hit["reason"] = gate->reasons[i];
    }
    hits.push_back(std::move(hit));
  }
  Json head;
  head["msdbg"] = kVersion;
  head["dump"] = session.info().source;
  head["semantics"] = semantics_name(result.semantics);
  head["coverage"] = {{"tensors", result.coverage.tensors},
                      {"checked", result.coverage.checked},
                      {"not_checked", result.coverage.not_checked},
                      {"bytes", result.coverage.bytes}};
  // Rules with findings, and what to do about them.
  Json rules = Json::array();
  for (const std::string& name : rules_of(result, style)) {
    const bool found = std::any_of(result.hits.begin(), result.hits.end(), [&](const Hit& hit) { return hit.rule == name; });
    if (const RuleInfo* info = rule_info(result, name); info && found) {
      rules.push_back({{"name", info->name}, {"severity", severity_name(info->severity)}, {"summary", info->summary}, {"cause", info->cause},
                       {"next", info->next}, {"file", info->file.empty() ? Json() : Json(info->file)}});
    }
  }
  Json broken = Json::array();
  for (const RuleProblem& problem : result.rule_problems) {
    broken.push_back({{"rule", problem.rule}, {"rank", nullptr}, {"step", nullptr}, {"node", nullptr}, {"slot", nullptr},
                      {"reason", problem.reason}, {"error_code", 0}});
  }
  Json counts;
  if (gate) {
    counts = {{"new", gate->fresh}, {"known", gate->known}, {"suppressed", gate->suppressed}};
    Json unused = Json::array();
    for (const Suppression& s : gate->unused) unused.push_back({{"line", s.line}, {"pattern", s.text}, {"reason", s.reason}});
    counts["unused_suppressions"] = std::move(unused);
  }
  if (style.format == Format::kJsonl) {
    head["total_hits"] = result.total_hits;
    if (gate) head["gate"] = std::move(counts);
    if (result.interrupted) head["partial"] = true;
    if (!rules.empty()) head["rules"] = std::move(rules);
    if (!broken.empty()) head["broken_rules"] = std::move(broken);
    return dumped_lines(hits) + dumped(Json{{"summary", std::move(head)}}, false);
  }
  Json& out = head;
  out["hits"] = std::move(hits);
  Json not_checked = Json::array();
  for (const NotChecked& entry : result.not_checked) not_checked.push_back(not_checked_object(session, entry));
  for (Json& entry : broken) not_checked.push_back(std::move(entry));
  out["not_checked"] = std::move(not_checked);
  if (!rules.empty()) out["rules"] = std::move(rules);
  if (gate) out["gate"] = std::move(counts);
  // Only where the lists above are not the whole answer.
  if (result.total_hits > result.hits.size()) out["total_hits"] = result.total_hits;
  if (result.interrupted) out["partial"] = true;
  return dumped(out, true);
}

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

namespace msdbg {

std::string stats_json(const Stats& stats, std::span<const int64_t> shape) {
  return json::stats_object(stats, shape).dump(-1, ' ', false, json::Json::error_handler_t::replace);
}

}  // namespace msdbg
