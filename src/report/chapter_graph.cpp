// The graph of the suspicious tensors and their relations.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "msdbg/follow_report.h"
#include "report/chapters.h"
#include "report/check_formats.h"
#include "report/table.h"

namespace msdbg::page {
namespace {

constexpr size_t kMostBoxes = 48, kMostHitBoxes = 40, kMostInputs = 6;

/// The same graph as text: one line per operator, with its inputs from the other operators.
std::string graph_text(const PictureGraph& picture) {
  std::vector<std::string> from(picture.nodes.size());
  std::set<std::pair<size_t, size_t>> named;  // a node may use several outputs of another
  for (const PictureEdge& edge : picture.edges) {
    if (!named.insert({edge.to, edge.from}).second) continue;
    from[edge.to] += fmt::format("{}{}", from[edge.to].empty() ? "" : ", ", picture.nodes[edge.from].label);
    if (!edge.label.empty()) from[edge.to] += fmt::format(" by {}", edge.label);
  }
  std::string out;
  for (size_t i = 0; i < picture.nodes.size(); ++i) {
    const PictureNode& node = picture.nodes[i];
    out += fmt::format("{:<9} {}", picture_state_name(node.state), printable(node.label));
    if (!node.hits.empty()) out += fmt::format("  [{}]", fmt::join(node.hits, " "));
    if (!node.detail.empty()) out += "  " + printable(node.detail);
    if (!from[i].empty()) out += "  <- " + printable(from[i]);
    out += '\n';
  }
  return out;
}

Figure figure_of(PictureGraph picture, Line caption) {
  picture.title = printable(picture.title);
  for (PictureNode& node : picture.nodes) {
    for (std::string* text : {&node.id, &node.label, &node.detail, &node.title}) *text = printable(*text);
  }
  Figure figure;
  figure.wide = true;
  figure.caption = std::move(caption);
  figure.text = graph_text(picture);
  auto svg = graph_svg(picture);
  // HTML implies the namespace. Without addresses in the page, it is easy to verify that it loads nothing.
  constexpr std::string_view kNameSpace = " xmlns=\"http://www.w3.org/2000/svg\"";
  if (svg) {
    figure.svg = std::move(*svg);
    if (const size_t at = figure.svg.find(kNameSpace); at != std::string::npos) figure.svg.erase(at, kNameSpace.size());
  } else {
    figure.svg = fmt::format("<pre>{}</pre>\n", escaped(svg.status().message()));
  }
  return figure;
}

Line legend(const std::string& title, const std::set<std::string>& marks) {
  Line line;
  if (!title.empty()) line.push_back(plain(title + ". "));
  line.push_back(plain("Filled: it broke here; tinted: it passed the fault on; thick outline: it ended there."));
  std::string meaning;
  for (const std::string& mark : marks) {
    if (const auto spec = find_condition(mark)) meaning += fmt::format("{}{}: {}", meaning.empty() ? " " : "; ", mark, (*spec)->summary);
  }
  if (!meaning.empty()) line.push_back(plain(meaning + "."));
  return line;
}

std::set<std::string> marks_in(const PictureGraph& picture) {
  std::set<std::string> marks;
  for (const PictureNode& node : picture.nodes) marks.insert(node.hits.begin(), node.hits.end());
  return marks;
}

/// Adds the good inputs of the origin: they show where the fault did not come from.
void add_inputs(Context& context, const Origin& origin, PictureGraph* picture) {
  size_t added = 0;
  for (const OriginInput& input : origin.inputs) {
    if (input.state == InputState::kBad || !worth_showing(input) || ++added > kMostInputs) continue;
    PictureNode box;
    const std::string from = input_from(context, origin, input);
    box.id = box.label = from;
    if (input.producer.node != kNoNode) {
      TensorId producer = origin.tensor;
      producer.node = input.producer.node;
      box.id = context.node(producer).name;
      box.label = context.short_name(producer);
      box.parameter = context.node(producer).kind == NodeKind::kParameter;
    }
    // A parameter that the fault reached already has a box, for its value after the step.
    const bool there =
        std::any_of(picture->nodes.begin(), picture->nodes.end(), [&](const PictureNode& node) { return node.id == box.id; });
    if (there) box.label += " before the step";
    const bool unknown = input.state == InputState::kUnknown || !input.stats;
    box.state = unknown ? PictureState::kUnknown : PictureState::kClean;
    box.detail = unknown ? "unknown" : fmt::format("{} to {}", format_short(input.stats->min, 3), format_short(input.stats->max, 3));
    box.title = unknown ? box.id : fmt::format("{}  {}", box.id, stats_line(*input.stats));
    if (input.value && !context.anchor(*input.value).empty()) box.link = "#" + context.anchor(*input.value);
    picture->nodes.push_back(std::move(box));
    picture->edges.push_back({picture->nodes.size() - 1, 0, "", slot_name({Io::kInput, input.slot}), false});
  }
}

bool story_graph(Context& context, const StepOrigins& step, Section* section) {
  const Origin& origin = step.origins.front();
  PropagationOptions options;
  const auto predicate = parse_predicate(context.input.origin->predicate);
  // A predicate that was a Lua function no longer exists here; follow NaN and Inf instead.
  if (predicate) options.predicate = *predicate;
  options.semantics = context.semantics();
  // A parameter that was broken before was seen in the step before.
  TensorId asked = origin.tensor;
  if (context.node(asked).kind == NodeKind::kParameter) asked.step = step.step;
  const auto cone = propagation(context.session, asked, options);
  if (!cone) {
    if (cone.status().code() == Code::kInterrupted) context.failure = Status(Code::kInterrupted, "report: interrupted");
    return false;
  }
  if (cone->interrupted) {
    context.failure = Status(Code::kInterrupted, "report: interrupted");
    return false;
  }
  if (!cone->holds || cone->nodes.empty()) return false;
  const auto link = [&](const TensorId& tensor) { return context.anchor(tensor).empty() ? std::string() : "#" + context.anchor(tensor); };
  PictureGraph picture = propagation_picture(context.session, *cone, context.input.check, kMostBoxes, link);
  if (!cone->up && cone->nodes.front().role == PropagationRole::kOrigin) add_inputs(context, origin, &picture);
  std::string title = fmt::format("What {} did to {}", context.short_name(origin.tensor), context.when_text(origin.tensor, step));
  if (picture.total > kMostBoxes) title += fmt::format(": the nearest {} of {} operators", kMostBoxes, picture.total);
  OfStep part{step.step, {}};
  if (context.stories.size() > 1)
    part.blocks.push_back(
        Heading{{plain(fmt::format("From {} in {}", context.short_name(origin.tensor), context.when_text(origin.tensor, step)))}});
  Line caption = legend(title, marks_in(picture));
  part.blocks.push_back(figure_of(std::move(picture), std::move(caption)));
  section->blocks.push_back(std::move(part));
  return true;
}

/// Without an origin: the hits of the first step with a finding, and how their operators are connected.
bool hit_graph(Context& context, Section* section) {
  const CheckResult* check = context.input.check;
  if (check == nullptr || check->hits.empty()) return false;
  const TensorId first = earliest_hit(*check).tensor;
  const Graph* graph = context.session.graph(first.rank, first.graph);
  if (graph == nullptr) return false;
  PictureGraph picture;
  std::map<NodeId, size_t> boxes;
  uint64_t left_out = 0;
  const auto box_of = [&](NodeId id, PictureState state) -> size_t {
    const auto [at, fresh] = boxes.try_emplace(id, picture.nodes.size());
    if (!fresh) return at->second;
    const Node& node = graph->node(id);
    TensorId tensor = first;
    tensor.node = id;
    tensor.slot = Slot{};
    tensor.execution = 0;
    PictureNode box;
    box.id = box.title = node.name;
    box.label = context.short_name(tensor);
    box.detail = node.kind == NodeKind::kParameter ? "" : node.op;
    box.parameter = node.kind == NodeKind::kParameter;
    box.state = state;
    box.hits = context.marks(tensor);
    if (const std::string anchor = context.anchor(tensor); !anchor.empty()) box.link = "#" + anchor;
    picture.nodes.push_back(std::move(box));
    return at->second;
  };
  std::vector<NodeId> hit_nodes;
  for (const Hit& hit : check->hits) {
    if (hit.tensor.rank != first.rank || hit.tensor.graph != first.graph || hit.tensor.step != first.step ||
        boxes.contains(hit.tensor.node))
      continue;
    if (boxes.size() == kMostHitBoxes) {
      ++left_out;
      continue;
    }
    box_of(hit.tensor.node, PictureState::kBad);
    hit_nodes.push_back(hit.tensor.node);
  }
  for (NodeId id : hit_nodes) {
    size_t drawn = 0;
    for (uint32_t slot = 0; slot < graph->node(id).inputs.size(); ++slot) {
      const Edge edge = graph->effective_producer(id, slot);
      if (edge.node == kNoNode || edge.node == id || is_structural(graph->node(edge.node).op)) continue;
      const bool there = boxes.contains(edge.node);
      if (!there && (++drawn > kMostInputs || graph->node(edge.node).kind == NodeKind::kConstant)) continue;
      const size_t from = box_of(edge.node, PictureState::kClean);
      picture.edges.push_back({from, boxes[id], slot_name({Io::kOutput, edge.slot}), slot_name({Io::kInput, slot}), false});
    }
  }
  picture.title = fmt::format("Operators with findings in {}", context.when_text(first));
  std::string title = picture.title;
  if (left_out > 0) title += fmt::format(" ({} more findings are not drawn)", left_out);
  Line caption{plain(title + ". Tinted: it has findings.")};
  for (const std::string& mark : marks_in(picture)) {
    if (const auto spec = find_condition(mark)) caption.push_back(plain(fmt::format(" {}: {}.", mark, (*spec)->summary)));
  }
  OfStep part{first.step, {}};
  part.blocks.push_back(figure_of(std::move(picture), std::move(caption)));
  section->blocks.push_back(std::move(part));
  return true;
}

}  // namespace

std::optional<Section> graph_chapter(Context& context) {
  Section section{"graph", "In the graph", {}};
  bool any = false;
  for (const StepOrigins* step : context.stories) any |= context.failure.ok() && story_graph(context, *step, &section);
  if (!any && context.failure.ok()) any = hit_graph(context, &section);
  if (!any) return std::nullopt;
  return section;
}

}  // namespace msdbg::page
