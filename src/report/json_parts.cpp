#include "report/json_parts.h"

#include <cmath>

namespace msdbg::json {

Json number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
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
  // The sum over no finite element is 0, which would read as a tensor of zeros.
  const bool finite = s.count == 0 || s.finite_count() > 0;
  out["l2_norm"] = finite ? real(s.l2_norm, kStatL2Norm) : Json();
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

std::string dumped(const Json& value, bool pretty) {
  return value.dump(pretty ? 2 : -1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string dumped_lines(const Json& values) {
  std::string out;
  for (const Json& value : values) out += dumped(value, false);
  return out;
}

}  // namespace msdbg::json

namespace msdbg {

std::string stats_json(const Stats& stats, std::span<const int64_t> shape) {
  return json::stats_object(stats, shape).dump(-1, ' ', false, json::Json::error_handler_t::replace);
}

}  // namespace msdbg
