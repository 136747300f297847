// The origin, its inputs, and the paths that the fault took.
#include <fmt/format.h>

#include <algorithm>

#include "report/chapters.h"
#include "report/origin_words.h"
#include "report/table.h"

namespace msdbg::page {
namespace {

constexpr size_t kMostWays = 6, kMostStops = 16, kSharedStops = 3, kFurtherShown = 4, kMostFurther = 40;

/// What broke, in red, and where, in plain text.
Line what_line(const Answer& origin) {
  const std::string message = text_at(origin, "message");
  const size_t end = std::min(message.find(';'), message.size());
  Line line{bad(message.substr(0, end))};
  if (end < message.size()) line.push_back(plain(message.substr(end)));
  return line;
}

std::string kind_text(const Answer& origin) {
  const std::string kind = text_at(origin, "kind");
  if (kind == "parameter") return "the parameter was so already when the step began";
  if (kind == "input") return "it came into the step like this";
  return origin["certain"] == true ? "the operator's own arithmetic: no input was broken"
                                   : "here or earlier: no input is known to be broken, but not all of them are known";
}

std::string uncertain_text(const Answer& origin) {
  std::string why;
  for (const Answer& input : origin["inputs"]) {
    if (input["state"] != "unknown") continue;
    why += fmt::format("{}{} is unknown ({})", why.empty() ? "" : "; ", text_at(input, "slot"), text_at(input, "reason"));
  }
  return fmt::format("Not later than this node: {}", why.empty() ? "its inputs do not explain it" : why);
}

Facts origin_facts(Context& context, const Origin& origin, const Answer& said, const StepOrigins& step) {
  Facts facts;
  const Node& node = context.node(origin.tensor);
  facts.rows.push_back({"First broken",
                        {code(node.kind == NodeKind::kParameter ? node.name : context.session.tensor_name(origin.tensor)),
                         muted(fmt::format("  {}{}", text_at(said, "dtype"), shape_text(origin.info.shape)))}});
  facts.rows.push_back({"What", what_line(said)});
  const std::string& predicate = context.input.origin->predicate;
  if (predicate != "NaN or Inf") facts.rows.push_back({"Satisfies", {code(predicate)}});
  facts.rows.push_back({"How", {plain(kind_text(said))}});
  if (origin.update) {
    const char* const title = went_in(context.session, *origin.update) ? "Updated with" : "Written by";
    facts.rows.push_back({title, {context.tensor_run(*origin.update), plain(update_place(origin))}});
  }
  if (said["certain"] == false) facts.rows.push_back({"Certain?", {plain(uncertain_text(said))}});
  if (Line source = context.source_line(node); !source.empty()) facts.rows.push_back({"Source", std::move(source)});
  if (origin.kind == OriginKind::kInput && origin.tensor.slot.io == Io::kOutput) {
    const Graph* const graph = context.session.graph(origin.tensor.rank, origin.tensor.graph);
    if (const Node* const reader = graph == nullptr ? nullptr : first_reader(*graph, origin.tensor.node)) {
      TensorId id = origin.tensor;
      id.node = reader->id;
      Line line{context.node_run(id), plain("   ")};
      std::ranges::move(context.source_line(*reader), std::back_inserter(line));
      facts.rows.push_back({"Read by", std::move(line)});
    }
  }
  std::string spread = fmt::format("{} broken in this step", counted(step.bad_tensors, "tensor"));
  if (origin.reached < step.bad_tensors) spread += fmt::format(", {} of them from here", origin.reached);
  if (!step.graphs_behind.empty()) spread += fmt::format("; graphs that broke later: {}", fmt::join(step.graphs_behind, ", "));
  facts.rows.push_back({"Spread", {plain(spread)}});
  return facts;
}

Run state_run(const Answer& input) {
  const std::string message = text_at(input, "message");
  if (input["state"] == "unknown") return muted(fmt::format("{}: {}", message, text_at(input, "reason")));
  if (input["state"] == "bad") return bad(message);
  return input["zeros_at_bad"] == true ? strong(message) : plain(message);
}

std::optional<Sheet> input_sheet(Context& context, const Origin& origin, const Answer& said) {
  Sheet sheet;
  sheet.caption = "Inputs of " + context.short_name(origin.tensor);
  sheet.columns = {{"input"}, {"from"}, {"what it was"}};
  for (size_t i = 0; i < origin.inputs.size(); ++i) {
    const OriginInput& input = origin.inputs[i];
    if (input.state == InputState::kGood && !worth_showing(input)) continue;
    Run from = code(input_from(context, origin, input));
    if (input.value) from.target = context.anchor(*input.value);
    sheet.rows.push_back({{code(text_at(said["inputs"][i], "slot"))}, {std::move(from)}, {state_run(said["inputs"][i])}});
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
Way way_of(Context& context, const std::vector<ChainLink>& chain, const Answer& said, size_t shared) {
  Way way;
  size_t begin = 0;
  if (shared > kSharedStops) {
    begin = shared;
    way.stops.push_back({{muted("as above up to "), context.node_run(chain[shared - 1].tensor)}, true});
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
      const std::string what = text_at(said[i], "not_finite");
      line.push_back(muted("  " + (what.empty() ? "bad" : what)));
    } else {
      const std::string_view what = gives_to_others(node) ? "given to other ranks: the output here " : "absorbed here: the output ";
      line.push_back(strong(fmt::format("  {}{}", what, absorbed_text(link.stats))));
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
  Line line{plain(parameter ? "Path to parameter " : "Path to ")};
  line.push_back(code(context.short_name(end.tensor), context.node(end.tensor).name));
  line.push_back(plain(end.bad ? ":" : ", where it ended:"));
  return line;
}

Line further_line(Context& context, const Origin& origin) {
  const Answer said = origin_entry_answer(context.session, origin, {origin.tensor.rank}, 1);
  const std::string kind = text_at(said, "kind"), what = text_at(said, "not_finite");
  Line line{context.tensor_run(origin.tensor)};
  const bool brought = !unseen_ranks(context.session, origin).empty();
  line.push_back(plain(brought ? " came from another rank, too"
                       : kind == "operator"    ? " broke on its own"
                       : kind == "parameter" ? " was broken when the step began"
                                             : " came in broken"));
  if (!what.empty()) line.push_back(plain(fmt::format(" ({})", what)));
  if (origin.update)
    line.push_back(plain(fmt::format(", {} {}{}", went_in(context.session, *origin.update) ? "updated with" : "written by",
                                     context.short_name(*origin.update), update_place(origin))));
  if (said["certain"] == false && !brought) line.push_back(plain(", as far as its inputs are known"));
  return line;
}

Facts further_facts(Context& context, const StepOrigins& step, size_t begin, size_t end, const char* title) {
  Facts facts;
  for (size_t i = begin; i < end; ++i) facts.rows.push_back({i == begin ? title : "", further_line(context, step.origins[i])});
  return facts;
}

OfStep story_of(Context& context, const StepOrigins& step, bool title) {
  const Origin& first = step.origins.front();
  const Answer said = origin_entry_answer(context.session, first, step.ranks, 1);
  OfStep story{step.step, {}};
  OfStep* const section = &story;
  if (title) {
    std::string when = context.when_text(first.tensor, step);
    when.front() = 'S';
    section->blocks.push_back(Heading{{plain(when + ": "), context.node_run(first.tensor)}});
  }
  section->blocks.push_back(origin_facts(context, first, said, step));
  if (auto inputs = input_sheet(context, first, said)) section->blocks.push_back(std::move(*inputs));
  const size_t shown = std::min(kMostWays, first.chains.size());
  if (shown > 0) {
    for (size_t i = 0; i < shown; ++i) {
      section->blocks.push_back(Paragraph{way_title(context, first.chains[i])});
      size_t shared = 0;
      for (size_t k = 0; k < i; ++k) shared = std::max(shared, shared_stops(first.chains[k], first.chains[i]));
      section->blocks.push_back(way_of(context, first.chains[i], said["chains"][i], shared));
    }
    if (shown < first.chains.size())
      section->blocks.push_back(Paragraph{{muted(fmt::format("and {} more", counted(first.chains.size() - shown, "path")))}});
  }
  const size_t all = step.origins.size(), open = all <= kFurtherShown + 2 ? all : kFurtherShown + 1;
  if (all > 1) section->blocks.push_back(further_facts(context, step, 1, open, "Also"));
  if (all > open) {
    const size_t end = std::min(all, open + kMostFurther);
    Fold fold{fmt::format("{} more{}", all - open, end < all ? fmt::format(", the first {}", kMostFurther) : ""), {}};
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

namespace {

/// What the hardware's overflow detector recorded, the earliest first.
std::optional<Sheet> overflow_sheet(Context& context) {
  const OriginResult* origin = context.input.origin;
  if (origin == nullptr || origin->overflows.empty()) return std::nullopt;
  constexpr size_t kMostRecords = 300;
  Sheet sheet;
  sheet.caption = fmt::format("Kernels that the hardware flagged, in execution order: {}", origin->overflows.size());
  if (context.several_ranks()) sheet.columns.push_back({"rank", true});
  sheet.columns.push_back({.title = "step", .number = true, .step = true});
  for (Column column : {Column{"operator"}, Column{"unit"}, Column{"task", true}, Column{"stream", true}, Column{"source"}})
    sheet.columns.push_back(column);
  for (const OverflowRecord& record : origin->overflows) {
    if (sheet.rows.size() == kMostRecords) break;
    std::vector<Line> row;
    if (context.several_ranks()) row.push_back({plain(std::to_string(record.rank))});
    row.push_back({plain(std::to_string(record.step))});
    row.push_back({record.tensor ? context.tensor_run(*record.tensor) : muted("no dumped value has its numbers")});
    row.push_back({plain(record.unit)});
    row.push_back({plain(std::to_string(record.task))});
    row.push_back({plain(std::to_string(record.stream))});
    const std::string place = record.tensor ? source_place(context.node(*record.tensor), false) : "";
    row.push_back(place.empty() ? Line{} : Line{code(place)});
    sheet.rows.push_back(std::move(row));
  }
  sheet.open = 12;
  return sheet;
}

std::optional<Sheet> overwritten_sheet(Context& context) {
  const OriginResult* origin = context.input.origin;
  if (origin == nullptr || origin->overwritten.empty()) return std::nullopt;
  constexpr size_t kMostValues = 300;
  Sheet sheet;
  sheet.caption = fmt::format("Values that were overwritten between two calls: {}", origin->overwritten.size());
  if (context.several_ranks()) sheet.columns.push_back({"rank", true});
  sheet.columns.push_back({.title = "step", .number = true, .step = true});
  for (const char* title : {"value", "should equal", "what it is", "why"}) sheet.columns.push_back({title});
  for (const Overwritten& each : origin->overwritten) {
    if (sheet.rows.size() == kMostValues) break;
    std::vector<Line> row;
    if (context.several_ranks()) row.push_back({plain(std::to_string(each.after.rank))});
    row.push_back({plain(std::to_string(each.after.step))});
    row.push_back({context.tensor_run(each.after)});
    row.push_back({context.tensor_run(each.before)});
    row.push_back({bad(overwritten_values(context.session, each))});
    row.push_back({plain(each.reason)});
    sheet.rows.push_back(std::move(row));
  }
  sheet.open = 12;
  return sheet;
}

}  // namespace

std::optional<Section> origin_chapter(Context& context) {
  std::optional<Sheet> overflows = overflow_sheet(context);
  std::optional<Sheet> overwritten = overwritten_sheet(context);
  if (context.stories.empty() && !overflows && !overwritten) return std::nullopt;
  Section section{"origin", context.stories.empty() && !overwritten ? "Overflow records" : "Where it began", {}};
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
  if (overwritten) {
    section.blocks.push_back(Heading{{plain("Overwritten between two calls")}});
    section.blocks.push_back(std::move(*overwritten));
  }
  if (overflows) {
    section.blocks.push_back(Heading{{plain("Overflow records of the hardware")}});
    section.blocks.push_back(std::move(*overflows));
  }
  return section;
}

}  // namespace msdbg::page
