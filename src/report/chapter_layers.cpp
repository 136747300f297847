// The trained parameters, one row each.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "msdbg/layers_report.h"
#include "report/chapters.h"
#include "report/table.h"

namespace msdbg::page {
namespace {

constexpr size_t kOpen = 24, kRolledUp = 60;

}  // namespace

std::optional<Section> layers_chapter(Context& context) {
  LayersOptions options;
  options.semantics = context.semantics();
  options.progress = context.options.progress;
  if (const std::vector<int64_t> steps = context.steps_looked_at(); !steps.empty()) {
    if (const auto parsed = IntSet::parse(fmt::format("{}", fmt::join(steps, ",")))) options.steps = *parsed;
  }
  Result<LayersResult> result = layers(context.session, options);
  if (result && result->layers.size() > kRolledUp) {
    options.by_layer = true;
    result = layers(context.session, options);
  }
  if (!result || result->interrupted) {
    if ((result && result->interrupted) || (!result && result.status().code() == Code::kInterrupted))
      context.failure = Status(Code::kInterrupted, "report: interrupted");
    return std::nullopt;
  }
  const bool ranks = context.several_ranks();
  Sheet sheet;
  sheet.caption = "Trained parameters";
  if (ranks) sheet.columns.push_back({.title = "rank", .number = true});
  for (const char* title : {"mean |w|", "mean |g|", "update", "g zero, %"}) sheet.columns.push_back({.title = title, .number = true});
  sheet.columns.insert(sheet.columns.begin() + (ranks ? 1 : 0), {.title = options.by_layer ? "layer" : "parameter"});
  sheet.columns.push_back({.title = "NaN from step", .number = true});
  sheet.columns.push_back({.title = "used in", .named = true});
  sheet.open = kOpen;
  sheet.sorts = true;
  const Answer answer = layers_answer(context.session, *result);
  std::vector<RankRow> texts;
  std::vector<std::vector<Line>> rows;
  for (const Answer& layer : answer["layers"]) {
    std::vector<Line> row;
    const bool broken = !layer["first_bad"].is_null();
    const std::string name = layer["name"].get<std::string>();
    row.push_back({broken ? bad(name) : code(name)});
    for (const char* key : {"weight", "gradient", "update", "gradient_zero_percentage"}) row.push_back({plain(number_at(layer, key))});
    row.push_back({broken ? bad(layer["first_bad"].dump()) : plain("")});
    const Answer& source = layer["source"];
    std::string place;
    if (source.is_object() && source["line"].is_number()) {
      const std::string file = source["file"].get<std::string>();
      place = fmt::format("{}:{}", file.substr(file.rfind('/') + 1), source["line"].get<int>());
    }
    row.push_back({code(place, source.is_object() ? source["file"].get<std::string>() : "")});
    RankRow text{fmt::format("{} {}", layer["graph_id"].get<int>(), name), layer["rank"].get<int>(), {}};
    for (const Line& line : row) text.cells.emplace_back(line.front().text);
    texts.push_back(std::move(text));
    rows.push_back(std::move(row));
  }
  for (const JoinedRow& joined : join_ranks(texts)) {
    std::vector<Line> row = std::move(rows[joined.first]);
    if (ranks) row.insert(row.begin(), Line{plain(ranks_numbers(joined.ranks))});
    sheet.rows.push_back(std::move(row));
  }
  Section section{"layers", "Layers", {}};
  section.blocks.push_back(Paragraph{{muted(fmt::format(
      "Last finite mean magnitude of weight and gradient in steps {}; update is the mean change per update, divided by the mean magnitude "
      "before.",
      numbers_text(result->steps)))}});
  section.blocks.push_back(std::move(sheet));
  return section;
}

}  // namespace msdbg::page
