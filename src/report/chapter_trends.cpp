// How the layers changed over the steps.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "msdbg/follow.h"
#include "report/chapters.h"
#include "report/html_pictures.h"
#include "report/table.h"

namespace msdbg::page {
namespace {

struct TrendGroup {
  std::string_view selector, statistic, title, axis, text;
};
constexpr TrendGroup kTrendGroups[] = {
    {"@loss", "mean", "Loss", "loss", "its value"},
    {"@weight", "abs_mean", "Weights", "mean |x|", "mean of |x| over the finite elements, after the step"},
    {"@gradient", "abs_mean", "Gradients", "mean |x|", "mean of |x| over the finite elements"},
    {"@activation", "abs_mean", "Activations", "mean |x|", "mean of |x| over the finite elements"},
};

/// Ranks the lines: broken ones first, then those that changed by the largest factor.
double interest(const TrendLine& line) {
  double score = 0;
  for (const TrendPoint& point : line.points) {
    if (!point.value) score += 1e6;
  }
  if (line.min && line.max && *line.max > 0) score += std::log10(*line.max / std::max(*line.min, 1e-300));
  return line.change ? score + 100 : score;
}

std::vector<size_t> most_interesting(const std::vector<TrendLine>& lines, size_t limit) {
  std::vector<size_t> order(lines.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (lines.size() <= limit) return order;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return interest(lines[a]) > interest(lines[b]); });
  order.resize(limit);
  std::sort(order.begin(), order.end());
  return order;
}

/// The position of a tensor in the run; for a parameter, of its first use, since files list parameters in any order.
uint32_t place_of(const Context& context, const TensorId& id) {
  const Node& node = context.node(id);
  const Graph* graph = context.session.graph(id.rank, id.graph);
  if (node.kind != NodeKind::kParameter || graph == nullptr) return node.order;
  uint32_t first = UINT32_MAX;
  for (const Use& use : graph->effective_users(id.node)) first = std::min(first, graph->node(use.node).order);
  return first;
}

Card card_of(Context& context, const TrendLine& line, const Answer& said, std::string_view axis) {
  std::vector<SeriesPoint> points;
  for (const Answer& point : said["points"]) {
    const Answer& value = point["value"];
    points.push_back({point["step"], value.is_number() ? std::optional<double>(value) : std::nullopt, point["not_finite"] > 0});
  }
  Card card;
  Run name = context.tensor_run(line.tensor);
  if (line.tensor.slot == Slot{}) name.text = context.short_name(line.tensor);
  card.title = {std::move(name)};
  std::string where;
  if (context.several_ranks()) where += ranks_text(line.ranks);
  if (context.several_graphs()) where += fmt::format("{}graph {}", where.empty() ? "" : ", ", line.tensor.graph);
  if (line.tensor.execution > 0) where += fmt::format("{}execution {}", where.empty() ? "" : ", ", line.tensor.execution);
  card.role = where;
  Figure figure = series_figure(points, context.tensor_text(line.tensor), axis);
  if (const Answer& change = said["change"]; change.is_object())
    figure.caption.push_back(plain(fmt::format("; turns at step {}", change["step"].get<int64_t>())));
  card.figures.push_back(std::move(figure));
  return card;
}

/// Reports growth by orders of magnitude: it begins before anything is NaN.
void add_growth(Context& context, const std::vector<TrendLine>& lines) {
  constexpr double kWorthTelling = 1000;
  const TrendLine* most = nullptr;
  double factor = kWorthTelling;
  for (const TrendLine& line : lines) {
    if (!line.first || !line.last || *line.first <= 0 || *line.last / *line.first <= factor) continue;
    factor = *line.last / *line.first;
    most = &line;
  }
  if (most == nullptr) return;
  int64_t from = 0, to = 0;
  bool any = false;
  for (const TrendPoint& point : most->points) {
    if (!point.value) continue;
    if (!any) from = point.step;
    to = point.step;
    any = true;
  }
  context.remarks.push_back(
      {plain("The weights grew: mean |x| of "), context.tensor_run(most->tensor),
       plain(fmt::format(" from {} in step {} to {} in step {}.", format_short(*most->first), from, format_short(*most->last), to))});
}

bool add_group(Context& context, const TrendGroup& group, Section* section) {
  const auto target = follow_target(context.session, group.selector);
  if (!target) return false;
  FollowOptions options;
  options.semantics = context.semantics();
  options.progress = context.options.progress;
  const std::vector<int64_t> steps = context.steps_looked_at();
  if (!steps.empty()) {
    std::string text;
    for (int64_t step : steps) text += fmt::format("{}{}", text.empty() ? "" : ",", step);
    if (const auto parsed = IntSet::parse(text)) options.steps = *parsed;
  }
  const auto result = trend(context.session, *target, group.statistic, options);
  if (!result) {
    if (result.status().code() == Code::kInterrupted) context.failure = Status(Code::kInterrupted, "report: interrupted");
    return false;
  }
  if (result->interrupted) {
    context.failure = Status(Code::kInterrupted, "report: interrupted");
    return false;
  }
  std::vector<TrendLine> lines;
  for (const TrendLine& line : result->lines) {
    // The trend of a mask or a label does not deserve a picture.
    if (line.points.size() > 1 && (line.first || line.ends)) lines.push_back(line);
  }
  if (lines.empty()) return false;
  std::stable_sort(lines.begin(), lines.end(), [&](const TrendLine& a, const TrendLine& b) {
    return std::tuple(a.tensor.rank, a.tensor.graph, place_of(context, a.tensor)) <
           std::tuple(b.tensor.rank, b.tensor.graph, place_of(context, b.tensor));
  });
  if (group.selector == "@weight") add_growth(context, lines);
  section->blocks.push_back(Heading{{plain(std::string(group.title))}});
  const std::vector<size_t> shown = most_interesting(lines, context.options.max_layers);
  std::string text = fmt::format("{}, {} {}.", group.text, result->steps.size() == 1 ? "step" : "steps", numbers_text(result->steps));
  text.front() = static_cast<char>(std::toupper(text.front()));
  if (shown.size() < lines.size())
    text += fmt::format(" {} of {} are shown, those that moved most.", shown.size(), counted(lines.size(), "line"));
  section->blocks.push_back(Paragraph{{muted(text)}});
  Cards cards;
  cards.small = true;
  for (size_t i : shown) {
    const Answer said = trend_entry_answer(context.session, *result, lines[i]);
    cards.cards.push_back(card_of(context, lines[i], said, group.axis));
  }
  section->blocks.push_back(std::move(cards));
  return true;
}

}  // namespace

std::optional<Section> trend_chapter(Context& context) {
  // A held training has no other steps to show.
  if (context.session.can_step() || context.steps_looked_at().size() < 2) return std::nullopt;
  Section section{"trends", "Over the steps", {}};
  bool any = false;
  for (const TrendGroup& group : kTrendGroups) any |= context.failure.ok() && add_group(context, group, &section);
  if (!any) return std::nullopt;
  return section;
}

}  // namespace msdbg::page
