// The origin, its inputs, and the paths that the fault took.
#include <fmt/format.h>

#include <algorithm>

#include "report/chapters.h"
#include "report/table.h"

namespace msdbg::page {
namespace {

constexpr size_t kMostWays = 6, kMostStops = 16, kSharedStops = 3, kFirstShown = 3, kFurtherShown = 4, kMostFurther = 40;

Line what_line(const Origin& origin) {
  Line line{bad(bad_text(origin.stats))};
  std::string rest;
  if (!origin.first.empty() && origin.stats.count > 1) {
    rest += "; first at";
    for (size_t i = 0; i < std::min(kFirstShown, origin.first.size()); ++i) rest += " " + shape_text(origin.first[i]);
  }
  if (origin.rows && origin.info.shape.size() > 0) rest += "; " + rows_text(origin);
  if (!rest.empty()) line.push_back(plain(rest));
  return line;
}

std::string kind_text(const Origin& origin) {
  switch (origin.kind) {
    case OriginKind::kOperator:
      return origin.certain ? "the operator's own arithmetic: no input was broken"
                            : "here or earlier: no input is known to be broken, but not all of them are known";
    case OriginKind::kParameter:
      return "the parameter was so already when the step began";
    case OriginKind::kInput:
      return "it came into the step like this";
  }
  return "";
}

Facts origin_facts(Context& context, const Origin& origin, const StepOrigins& step) {
  Facts facts;
  const Node& node = context.node(origin.tensor);
  facts.rows.push_back({"First broken",
                        {code(node.kind == NodeKind::kParameter ? node.name : context.session.tensor_name(origin.tensor)),
                         muted(fmt::format("  {}{}", dtype_name(origin.info.dtype), shape_text(origin.info.shape)))}});
  facts.rows.push_back({"What", what_line(origin)});
  const std::string& predicate = context.input.origin->predicate;
  if (predicate != "NaN or Inf") facts.rows.push_back({"Satisfies", {code(predicate)}});
  facts.rows.push_back({"How", {plain(kind_text(origin))}});
  if (origin.update) {
    facts.rows.push_back({"Written by", {context.tensor_run(*origin.update), plain(fmt::format(" in step {}", origin.update->step))}});
  }
  if (!origin.certain) {
    std::string why;
    for (const OriginInput& input : origin.inputs) {
      if (input.state == InputState::kUnknown)
        why += fmt::format("{}input:{} is unknown ({})", why.empty() ? "" : "; ", input.slot, input.reason);
    }
    facts.rows.push_back(
        {"Certain?", {plain(fmt::format("Not later than this node: {}", why.empty() ? "its inputs do not explain it" : why))}});
  }
  if (Line source = context.source_line(node); !source.empty()) facts.rows.push_back({"Source", std::move(source)});
  std::string spread = fmt::format("{} broken in this step", counted(step.bad_tensors, "tensor"));
  if (origin.reached < step.bad_tensors) spread += fmt::format(", {} of them from here", origin.reached);
  facts.rows.push_back({"Spread", {plain(spread)}});
  return facts;
}

Line state_line(const OriginInput& input) {
  if (input.state == InputState::kUnknown) return {muted(fmt::format("unknown: {}", input.reason))};
  if (!input.stats) return {plain(input.state == InputState::kGood ? "sound" : "broken")};
  const Stats& stats = *input.stats;
  const std::string broken = nonfinite_text(stats);
  Line line{broken.empty() ? plain("finite") : bad(broken)};
  if (input.zeros_at_bad)
    line.insert(line.end(), {plain(", "), strong(fmt::format("{} at the same places", counted(stats.zero_count, "zero")))});
  else if (stats.zero_count > 0)
    line.push_back(plain(fmt::format(", {}", counted(stats.zero_count, "zero"))));
  return line;
}

std::optional<Sheet> input_sheet(Context& context, const Origin& origin) {
  Sheet sheet;
  sheet.caption = "Inputs of " + context.short_name(origin.tensor);
  sheet.columns = {{"input"}, {"from"}, {"what it was"}, {"min", true}, {"max", true}};
  for (const OriginInput& input : origin.inputs) {
    if (input.state == InputState::kGood && !worth_showing(input)) continue;
    const bool known = input.stats && input.stats->min == input.stats->min;
    Run from = code(input_from(context, origin, input));
    if (input.value) from.target = context.anchor(*input.value);
    sheet.rows.push_back({{code(fmt::format("input:{}", input.slot))},
                          {std::move(from)},
                          state_line(input),
                          {plain(known ? format_short(input.stats->min) : "")},
                          {plain(known ? format_short(input.stats->max) : "")}});
  }
  if (sheet.rows.empty()) return std::nullopt;
  return sheet;
}

size_t shared_stops(const std::vector<ChainLink>& a, const std::vector<ChainLink>& b) {
  size_t n = 0;
  // The last stop is always shown.
  while (n + 1 < std::min(a.size(), b.size()) && a[n].tensor == b[n].tensor) ++n;
  return n;
}

/// `shared`: how many stops at the beginning an earlier path has shown.
Way way_of(Context& context, const std::vector<ChainLink>& chain, size_t shared) {
  Way way;
  size_t begin = 0;
  if (shared > kSharedStops) {
    begin = shared;
    way.stops.push_back({{muted("as above as far as "), context.node_run(chain[shared - 1].tensor)}, true});
  }
  const size_t length = chain.size() - begin;
  for (size_t i = begin; i < chain.size(); ++i) {
    if (length > kMostStops && i == begin + kMostStops / 2) {
      const size_t left_out = length - kMostStops;
      way.stops.push_back({{muted(fmt::format("... {} more ...", left_out))}, true});
      i += left_out;
    }
    const ChainLink& link = chain[i];
    const Node& node = context.node(link.tensor);
    Line line;
    if (node.kind == NodeKind::kParameter) line.push_back(plain("parameter "));
    line.push_back(context.node_run(link.tensor));
    if (link.bad) {
      const std::string what = nonfinite_text(link.stats);
      line.push_back(what.empty() ? muted("  bad") : muted("  " + what));
    } else {
      line.push_back(strong("  absorbed here: the output " + absorbed_text(link.stats)));
    }
    if (const std::string place = source_place(node, false); !place.empty()) line.push_back(muted("  " + place));
    way.stops.push_back({std::move(line), link.bad});
  }
  return way;
}

Line way_title(Context& context, const std::vector<ChainLink>& chain) {
  if (chain.size() < 2) return {plain("It went no further:")};
  const ChainLink& end = chain.back();
  const bool parameter = context.node(end.tensor).kind == NodeKind::kParameter;
  Line line{plain(parameter ? "A way to the parameter " : "A way to ")};
  line.push_back(code(context.short_name(end.tensor), context.node(end.tensor).name));
  line.push_back(plain(end.bad ? ":" : ", where it ended:"));
  return line;
}

Line further_line(Context& context, const Origin& origin) {
  Line line{context.tensor_run(origin.tensor)};
  const std::string what = nonfinite_text(origin.stats);
  switch (origin.kind) {
    case OriginKind::kOperator:
      line.push_back(plain(" broke on its own"));
      break;
    case OriginKind::kParameter:
      line.push_back(plain(" was broken when the step began"));
      break;
    case OriginKind::kInput:
      line.push_back(plain(" came in broken"));
      break;
  }
  if (!what.empty()) line.push_back(plain(fmt::format(" ({})", what)));
  if (origin.update)
    line.push_back(plain(fmt::format(", written by {} in step {}", context.short_name(*origin.update), origin.update->step)));
  if (!origin.certain) line.push_back(plain(", as far as its inputs are known"));
  return line;
}

Facts further_facts(Context& context, const StepOrigins& step, size_t begin, size_t end, const char* title) {
  Facts facts;
  for (size_t i = begin; i < end; ++i) facts.rows.push_back({i == begin ? title : "", further_line(context, step.origins[i])});
  return facts;
}

OfStep story_of(Context& context, const StepOrigins& step, bool title) {
  const Origin& first = step.origins.front();
  OfStep story{step.step, {}};
  OfStep* const section = &story;
  if (title) {
    std::string when = context.when_text(first.tensor, step);
    when.front() = 'S';
    section->blocks.push_back(Heading{{plain(when + ": "), context.node_run(first.tensor)}});
  }
  section->blocks.push_back(origin_facts(context, first, step));
  if (auto inputs = input_sheet(context, first)) section->blocks.push_back(std::move(*inputs));
  const size_t shown = std::min(kMostWays, first.chains.size());
  if (shown > 0) {
    for (size_t i = 0; i < shown; ++i) {
      section->blocks.push_back(Paragraph{way_title(context, first.chains[i])});
      size_t shared = 0;
      for (size_t k = 0; k < i; ++k) shared = std::max(shared, shared_stops(first.chains[k], first.chains[i]));
      section->blocks.push_back(way_of(context, first.chains[i], shared));
    }
    if (shown < first.chains.size())
      section->blocks.push_back(Paragraph{{muted(fmt::format("and {} more", counted(first.chains.size() - shown, "way")))}});
  }
  const size_t all = step.origins.size(), open = all <= kFurtherShown + 2 ? all : kFurtherShown + 1;
  if (all > 1) section->blocks.push_back(further_facts(context, step, 1, open, "Also"));
  if (all > open) {
    const size_t end = std::min(all, open + kMostFurther);
    Fold fold{fmt::format("{} more broke on their own{}", all - open, end < all ? fmt::format(", the first {}", kMostFurther) : ""), {}};
    fold.blocks.push_back(further_facts(context, step, open, end, ""));
    section->blocks.push_back(std::move(fold));
  }
  return story;
}

}  // namespace

std::string input_from(Context& context, const Origin& origin, const OriginInput& input) {
  if (input.producer.node == kNoNode) return input.producer.name;
  TensorId producer = origin.tensor;
  producer.node = input.producer.node;
  producer.slot = {Io::kOutput, input.producer.slot};
  if (context.node(producer).kind == NodeKind::kParameter) return "parameter " + context.short_name(producer);
  return context.tensor_text(producer);
}

std::optional<Section> origin_chapter(Context& context) {
  if (context.stories.empty()) return std::nullopt;
  Section section{"origin", "Where it began", {}};
  for (const StepOrigins* step : context.stories) section.blocks.push_back(story_of(context, *step, context.stories.size() > 1));
  Sheet sheet;
  sheet.caption = "First broken tensor of every broken step";
  if (context.several_ranks()) sheet.columns.push_back({"rank", true});
  if (context.several_graphs()) sheet.columns.push_back({"graph", true});
  sheet.columns.push_back({.title = "step", .number = true, .step = true});
  for (Column column : {Column{"first broken"}, Column{"what"}, Column{"broken tensors", true}}) sheet.columns.push_back(column);
  sheet.sorts = true;
  for (const StepOrigins* step : context.origins) {
    const Origin& first = step->origins.front();
    std::vector<Line> row;
    if (context.several_ranks()) row.push_back({plain(std::to_string(step->rank))});
    if (context.several_graphs()) row.push_back({plain(std::to_string(step->graph))});
    row.push_back({plain(std::to_string(step->step))});
    row.push_back({context.tensor_run(first.tensor)});
    row.push_back({plain(nonfinite_text(first.stats))});
    row.push_back({plain(std::to_string(step->bad_tensors))});
    sheet.rows.push_back(std::move(row));
    if (sheet.rows.size() == 300) break;
  }
  if (context.origins.size() > 1) {
    section.blocks.push_back(Heading{{plain("Every broken step")}});
    sheet.open = 12;
    section.blocks.push_back(std::move(sheet));
    if (context.origins.size() > 300)
      section.blocks.push_back(Paragraph{{muted(fmt::format("and {} more", counted(context.origins.size() - 300, "step")))}});
  }
  return section;
}

}  // namespace msdbg::page
