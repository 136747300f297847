// Trained parameters, a line each.
#include "msdbg/layers_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include "report/markup.h"
#include "report/table.h"

namespace msdbg {
namespace {

constexpr size_t kLayerSparkWidth = 16;
constexpr CsvColumn kLayersColumns[] = {{"rank", "rank"}, {"graph", "graph"}, {"graph_id", "graph_id"}, {"step", "step"}, {"name", "name"},
                                  {"elements", "elements"}, {"weight", "weight"}, {"gradient", "gradient"}, {"update", "update"},
                                  {"updates", "updates"}, {"zero_percentage", "zero_percentage"},
                                  {"gradient_zero_percentage", "gradient_zero_percentage"}, {"first_bad", "first_bad"},
                                  {"gradient_node", "gradient_node"}, {"gradient_slot", "gradient_slot"}, {"source", "source.file"},
                                  {"line", "source.line"}, {"problem", "problem"}};
constexpr CsvColumn kLayersMarkdownColumns[] = {{"name", "name"}, {"elements", "elements"}, {"mean abs weight", "weight"},
                                          {"mean abs gradient", "gradient"}, {"update", "update"},
                                          {"gradient zeros, %", "gradient_zero_percentage"}, {"NaN from step", "first_bad"},
                                          {"source", "source.file"}, {"line", "source.line"}};

std::string number_text(const std::optional<double>& value) { return value ? format_short(*value) : "-"; }

/// Gradients say more about a training than weights, which hardly move.
std::string trend_text(const Layer& layer, bool ascii) {
  std::vector<std::optional<double>> gradients, weights;
  for (const LayerPoint& point : layer.points) {
    gradients.push_back(point.gradient);
    weights.push_back(point.weight);
  }
  const auto known = [](const std::optional<double>& value) { return value.has_value(); };
  const std::vector<std::optional<double>>& shown = std::ranges::count_if(gradients, known) >= 2 ? gradients : weights;
  if (std::ranges::count_if(shown, known) < 2) return "";
  const bool log = shows_logarithms(shown);
  return sparkline(shown, kLayerSparkWidth, ascii, log) + (log ? " log" : "");
}

std::string remarks(const LayersResult& result) {
  std::string out;
  const auto without = std::ranges::count_if(result.layers, [](const Layer& layer) { return !layer.gradient; });
  if (without > 0 && !result.by_layer) {
    const auto first = std::ranges::find_if(result.layers, [](const Layer& layer) { return !layer.gradient && !layer.problem.empty(); });
    out += fmt::format("without a gradient: {} of {}{}\n", without, counted(result.layers.size(), "parameter"),
                       first == result.layers.end() ? "" : ", the first because: " + printable(first->problem));
  }
  if (!result.frozen.empty()) {
    constexpr size_t kNamed = 3;
    const auto named = std::span(result.frozen).first(std::min(kNamed, result.frozen.size()));
    out += fmt::format("not trained: {}{}\n", printable(fmt::format("{}", fmt::join(named, ", "))),
                       result.frozen.size() > kNamed ? fmt::format(" and {} more", result.frozen.size() - kNamed) : "");
  }
  if (result.interrupted) out += "interrupted: not every parameter was read\n";
  return out;
}

}  // namespace

Answer layers_answer(Session& session, const LayersResult& result) {
  Answer list = Answer::array();
  for (const Layer& layer : result.layers) {
    const TensorId& id = layer.parameters.front();
    const Graph* graph = session.graph(id.rank, id.graph);
    Answer names = Answer::array(), points = Answer::array();
    for (const TensorId& parameter : layer.parameters) names.push_back(session.node(parameter).name);
    for (const LayerPoint& point : layer.points) {
      points.push_back({{"step", point.step}, {"weight", number_answer(point.weight)}, {"gradient", number_answer(point.gradient)},
                        {"bad_count", point.counted || point.bad == 0 ? Answer(point.bad) : Answer()}});
    }
    list.push_back({{"rank", id.rank},
                    {"graph", graph != nullptr ? Answer(graph->name()) : Answer()},
                    {"graph_id", id.graph},
                    {"step", id.step},
                    {"name", layer.name},
                    {"parameters", std::move(names)},
                    {"elements", layer.elements},
                    {"measure", layer.by_norm ? "root_mean_square" : "mean_magnitude"},
                    {"weight", number_answer(layer.weight)},
                    {"gradient", number_answer(layer.gradient_mean)},
                    {"update", number_answer(layer.update)},
                    {"updates", layer.update ? Answer(layer.updates) : Answer()},
                    {"zero_percentage", number_answer(layer.zeros)},
                    {"gradient_zero_percentage", number_answer(layer.gradient_zeros)},
                    {"first_bad", layer.first_bad ? Answer(*layer.first_bad) : Answer()},
                    {"gradient_node", layer.gradient ? Answer(session.node(*layer.gradient).name) : Answer()},
                    {"gradient_slot", layer.gradient ? Answer(slot_name(layer.gradient->slot)) : Answer()},
                    {"points", std::move(points)},
                    {"source", layer.used_by != nullptr ? source_answer(*layer.used_by) : Answer()},
                    {"problem", text_answer(layer.problem)}});
  }
  return {{"dump", session.info().source}, {"steps", result.steps},           {"by_layer", result.by_layer},
          {"interrupted", result.interrupted}, {"frozen", result.frozen}, {"layers", std::move(list)}};
}

std::string layers_report(Session& session, const LayersResult& result, const ReportStyle& style, bool ascii) {
  if (style.format == Format::kJson) return json_text(layers_answer(session, result));
  if (style.format == Format::kJsonl) return json_lines(layers_answer(session, result), "layers");
  if (style.format == Format::kCsv) return csv_text(kLayersColumns, layers_answer(session, result)["layers"]);
  const std::string head = fmt::format("{} {}, step{} {}", result.layers.size(),
                                       result.by_layer ? "layers" : result.layers.size() == 1 ? "trained parameter" : "trained parameters",
                                       result.steps.size() == 1 ? "" : "s", numbers_text(result.steps));
  if (style.format == Format::kMarkdown) {
    const std::string tail = remarks(result);
    return fmt::format("## {}\n\n{}{}", head, markdown_table(kLayersMarkdownColumns, layers_answer(session, result)["layers"]),
                       tail.empty() ? "" : "\n" + tail);
  }
  const bool ranks = session.ranks().size() > 1;
  std::vector<Table::Column> columns;
  if (ranks) columns.push_back({"rank", Align::kRight});
  columns.insert(columns.end(), {{.title = result.by_layer ? "layer" : "parameter"},
                                 {.title = "elements", .align = Align::kRight, .drop = 4},
                                 {"|w|", Align::kRight},
                                 {"|g|", Align::kRight},
                                 {"update", Align::kRight},
                                 {.title = "g zero", .align = Align::kRight, .drop = 3},
                                 {.title = "NaN", .drop = Table::kIfEmpty},
                                 {.title = "trend", .drop = 2},
                                 {.title = "source", .drop = 1}});
  Table table(std::move(columns));
  std::vector<RankRow> rows;
  for (const Layer& layer : result.layers) {
    const Paint paint = layer.first_bad ? Paint::kError : Paint::kNone;
    std::vector<Table::Cell> row;
    row.emplace_back(printable(layer.name), paint);
    row.emplace_back(std::to_string(layer.elements));
    row.emplace_back(number_text(layer.weight));
    row.emplace_back(number_text(layer.gradient_mean));
    row.emplace_back(number_text(layer.update));
    row.emplace_back(layer.gradient_zeros ? format_short(*layer.gradient_zeros, 3) + " %" : "-");
    row.emplace_back(layer.first_bad ? fmt::format("step {}", *layer.first_bad) : "", paint);
    row.emplace_back(trend_text(layer, ascii));
    row.emplace_back(layer.used_by != nullptr ? source_place(*layer.used_by, style.wide) : "");
    const TensorId& id = layer.parameters.front();
    rows.push_back({fmt::format("{} {}", id.graph, layer.name), id.rank, std::move(row)});
  }
  for (const JoinedRow& joined : join_ranks(rows)) {
    std::vector<Table::Cell> row = std::move(rows[joined.first].cells);
    if (ranks) row.insert(row.begin(), ranks_cell(joined.ranks));
    table.add(std::move(row));
  }
  const bool by_norm = std::ranges::any_of(result.layers, &Layer::by_norm);
  constexpr std::string_view kLegend = "|w|, |g|: last finite {} of weight and gradient; update: mean change / mean magnitude, per update\n";
  const std::string legend = fmt::format(kLegend, by_norm ? "root mean square (only statistics were dumped)" : "mean magnitude");
  return fitted(fmt::format("{}\n{}{}{}", head, table.text(style), legend, remarks(result)), style);
}

}  // namespace msdbg
