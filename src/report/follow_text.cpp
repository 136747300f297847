#include "report/follow_text.h"

#include <fmt/format.h>

#include <cmath>

#include "msdbg/report.h"
#include "report/markup.h"

namespace msdbg::follow {

Json number(const std::optional<double>& value) {
  if (!value) return Json();
  if (std::isnan(*value)) return "NaN";
  if (std::isinf(*value)) return *value > 0 ? "Infinity" : "-Infinity";
  // Counts are whole numbers, and look like it.
  if (*value == std::floor(*value) && std::abs(*value) < 9e15) return static_cast<int64_t>(*value);
  return *value;
}

Json place(const Session& session, const TensorId& id) {
  const Graph* graph = session.graph(id.rank, id.graph);
  const Node& node = session.node(id);
  return {{"rank", id.rank},           {"graph", graph ? graph->name() : ""}, {"graph_id", id.graph}, {"step", id.step},
          {"execution", id.execution}, {"node", node.name},                   {"op", node.op},        {"slot", slot_name(id.slot)}};
}

Json stats(Session& session, const std::optional<Stats>& stats, const std::optional<TensorId>& id) {
  if (!stats) return Json();
  Shape shape;
  if (id) {
    if (const Result<TensorInfo> info = session.describe(*id)) shape = info->shape;
  }
  return Json::parse(stats_json(*stats, shape), nullptr, false);
}

Json frames(const Node& node) {
  Json out = Json::array();
  for (const StackFrame& frame : node.stack) {
    out.push_back({{"file", frame.file}, {"line", frame.line > 0 ? Json(frame.line) : Json()}, {"code", frame.code}});
  }
  return out;
}

std::string text(const Json& json, bool pretty) {
  return json.dump(pretty ? 2 : -1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string markdown_line(const std::vector<std::string>& cells) {
  std::string out = "|";
  for (const std::string& cell : cells) out += ' ' + markdown_cell(cell) + " |";
  return out + "\n";
}

std::string markdown_head(const std::vector<std::string>& titles) {
  std::string out = markdown_line(titles) + "|";
  for (size_t i = 0; i < titles.size(); ++i) out += "---|";
  return out + "\n";
}

std::string tensor_text(const Session& session, const TensorId& id, bool full) {
  std::string out = printable(full ? session.node(id).name : short_name(session, id));
  out += ":" + slot_name(id.slot);
  if (id.execution > 0) out += fmt::format(" execution {}", id.execution);
  if (session.graphs().size() > session.ranks().size()) out += fmt::format(" graph {}", id.graph);
  if (session.ranks().size() > 1) out += fmt::format(" rank {}", id.rank);
  return out;
}

std::string place_words(const Session& session, const TensorId& id) {
  std::string out;
  if (session.ranks().size() > 1) out += fmt::format(" --rank {}", id.rank);
  if (session.graphs().size() > session.ranks().size()) out += fmt::format(" --graph {}", id.graph);
  if (id.execution > 0) out += fmt::format(" --execution {}", id.execution);
  return out;
}

}  // namespace msdbg::follow
