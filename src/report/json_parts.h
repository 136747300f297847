// Pieces that the objects of several commands share. The keys are those of docs/json.md.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "msdbg/report.h"

namespace msdbg::json {

using Json = nlohmann::ordered_json;

/// NaN and infinities, which JSON does not have, as strings.
Json number(double value);
template <typename T>
Json list(const std::vector<T>& values) {
  Json out = Json::array();
  for (const T& value : values) out.push_back(value);
  return out;
}

Json stats_object(const Stats& stats, std::span<const int64_t> shape);
Json stack_of(const Node& node);
/// rank, graph, graph_id: the place of a finding.
void put_place(Json& out, const Session& session, const TensorId& id);
void put_type(Json& out, DType dtype, const Shape& shape);
void put_node(Json& out, const Session& session, const TensorId& id);

/// Names from files may be no UTF-8; the output always is.
std::string dumped(const Json& value, bool pretty);
std::string dumped_lines(const Json& values);

}  // namespace msdbg::json
