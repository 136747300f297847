// The cone of a bad tensor: a table of operators, a picture, JSON.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "msdbg/answers.h"
#include "msdbg/follow_report.h"
#include "report/follow_text.h"
#include "report/table.h"

namespace msdbg {
namespace {


constexpr size_t kNamesPerLine = 4;

struct View {
  Session& session;
  const Propagation& result;

  const Graph& graph() const { return *session.graph(result.tensor.rank, result.tensor.graph); }
  const Node& node(const PropagationNode& at) const { return graph().node(at.node); }
  TensorId id(const PropagationNode& at) const {
    if (at.tensor && at.tensor->node == at.node) return *at.tensor;
    TensorId id = result.tensor;
    id.node = at.node;
    id.execution = at.execution;
    id.slot = {};
    return id;
  }
  std::string name(const PropagationNode& at, bool full) const {
    std::string out = full ? printable(node(at).name) : brief_name(session, node(at).name);
    if (at.execution > 0) out += fmt::format(" execution {}", at.execution);
    return out;
  }
  std::vector<const PropagationNode*> with(PropagationRole role) const {
    std::vector<const PropagationNode*> found;
    for (const PropagationNode& node : result.nodes) {
      if (node.role == role) found.push_back(&node);
    }
    return found;
  }
  std::string names(const std::vector<const PropagationNode*>& nodes) const {
    std::string out;
    for (size_t i = 0; i < nodes.size() && i < kNamesPerLine; ++i) out += (i > 0 ? ", " : "") + name(*nodes[i], false);
    if (nodes.size() > kNamesPerLine) out += fmt::format(" and {} more", nodes.size() - kNamesPerLine);
    return out;
  }
};

/// An operator's output values, for people.
std::string values_text(const PropagationNode& node) {
  if (!node.stats) return printable(node.reason);
  const std::string bad = nonfinite_text(*node.stats);
  if (!bad.empty()) return bad;
  if (node.stats->knows(kStatZero | kStatCount) && node.stats->count > 0 && node.stats->zero_count == node.stats->count)
    return fmt::format("all {} zero", node.stats->count);
  return fmt::format("min {}  max {}", format_short(node.stats->min), format_short(node.stats->max));
}

/// "fc2.weight <- step 0: ApplyMomentum-op3 <- ... <- Log-op0", where the way back leaves the step.
std::string trail_text(const View& view, const Trail& trail) {
  constexpr size_t kMostNames = 8;
  std::string out;
  int64_t step = view.result.tensor.step;
  int graph = view.result.tensor.graph, rank = view.result.tensor.rank;
  for (size_t i = 0; i < trail.links.size(); ++i) {
    const TensorId& at = trail.links[i].tensor;
    if (trail.links.size() > kMostNames && i == kMostNames - 2) {
      out += fmt::format(" <- ... {} more", trail.links.size() - kMostNames + 1);
      i = trail.links.size() - 2;
      continue;
    }
    out += i > 0 ? " <- " : "";
    if (at.rank != rank) out += fmt::format("rank {}: ", at.rank);
    if (at.step != step) out += fmt::format("step {}: ", at.step);
    else if (at.graph != graph) out += fmt::format("graph {}: ", at.graph);
    step = at.step;
    graph = at.graph;
    rank = at.rank;
    out += brief_name(view.session, view.session.node(at).name);
  }
  return out;
}

std::vector<std::string> summary(const View& view) {
  const Propagation& result = view.result;
  std::vector<std::string> lines;
  auto add = [&](std::string_view title, const std::string& text) { lines.push_back(fmt::format("{:<14} {}", title, text)); };
  const auto passed = view.with(PropagationRole::kPassed), origins = view.with(PropagationRole::kOrigin),
             absorbed = view.with(PropagationRole::kAbsorbed), cannot = view.with(PropagationRole::kCannot),
             clean = view.with(PropagationRole::kClean), unknown = view.with(PropagationRole::kUnknown);
  if (!result.edges_known) {
    add("edges unknown", fmt::format("graph {} has no readable file, so it is unknown {}", result.tensor.graph,
                                     result.up ? "where it came from" : "who took it, passed it on or absorbed it"));
  } else if (result.up) {
    add("came from",
        origins.empty() ? std::string("no origin is known: every way back ends at a value that was not recorded") : view.names(origins));
    add("passed on by", fmt::format("{} {}", passed.size(), passed.size() == 1 ? "operator or parameter" : "operators and parameters"));
    const auto elsewhere = [&](const TrailLink& link) {
      return link.tensor.rank != result.tensor.rank || link.tensor.step != result.tensor.step || link.tensor.graph != result.tensor.graph;
    };
    if (result.trail && std::any_of(result.trail->links.begin(), result.trail->links.end(), elsewhere)) {
      add("before that", trail_text(view, *result.trail));
    }
    if (!clean.empty()) add("sound inputs", fmt::format("{}: {}", clean.size(), view.names(clean)));
  } else {
    const auto parameters =
        static_cast<size_t>(std::count_if(passed.begin(), passed.end(), [](const PropagationNode* node) { return node->parameter; }));
    add("passed on by", fmt::format("{}, {} reached", counted(passed.size() - parameters, "operator"), counted(parameters, "parameter")));
    add("absorbed by", absorbed.empty() ? std::string("nobody") : fmt::format("{}: {}", absorbed.size(), view.names(absorbed)));
    if (!cannot.empty()) add("cannot hold it", fmt::format("{}: {}", cannot.size(), view.names(cannot)));
    if (!clean.empty()) add("clean after", fmt::format("{}: {}", clean.size(), view.names(clean)));
    std::vector<const PropagationNode*> losses;
    for (const PropagationNode& node : result.nodes) {
      if (in_category(view.node(node), Category::kLoss)) losses.push_back(&node);
    }
    if (losses.empty() && !absorbed.empty()) add("the loss", "not reached: it does not show the fault");
    for (const PropagationNode* loss : losses) {
      const std::string_view role = loss->role == PropagationRole::kPassed ? "bad" : propagation_role_name(loss->role);
      add("the loss", fmt::format("{} ({})", role, values_text(*loss)));
    }
  }
  if (!unknown.empty() && result.edges_known) add("unknown", fmt::format("{}: {}", unknown.size(), view.names(unknown)));
  const std::string elsewhere = result.edges_known ? fmt::format("{} of them not connected with this tensor", result.bad_elsewhere)
                                                   : "connected with this tensor or not";
  add("in this step",
      fmt::format("{} {} bad, {}; {} clean", result.bad_in_step, result.bad_in_step == 1 ? "output or parameter" : "outputs and parameters",
                  elsewhere, counted(result.clean_outputs, "output")));
  if (result.coverage.not_checked > 0)
    add("not judged", fmt::format("{} of {} tensors of the step", result.coverage.not_checked, result.coverage.tensors));
  return lines;
}

std::string head_text(const View& view, bool full) {
  const Propagation& result = view.result;
  const std::string what = fmt::format("'{}' {} {}", printable(result.predicate), result.up ? "on the way to" : "from",
                                       follow::tensor_text(view.session, result.tensor, full));
  std::string values;
  if (result.stats) values = nonfinite_text(*result.stats);
  return fmt::format("{}, step {}{}{}", what, result.tensor.step, values.empty() ? "" : ": ", values);
}

Paint paint_of(PropagationRole role) {
  if (role == PropagationRole::kOrigin || role == PropagationRole::kPassed) return Paint::kError;
  return role == PropagationRole::kUnknown ? Paint::kWarning : Paint::kNone;
}

std::string text_of(const View& view, const ReportStyle& style) {
  const Propagation& result = view.result;
  const bool markdown = style.format == Format::kMarkdown;
  const std::string head = head_text(view, markdown || style.full_names());
  std::string out = markdown ? fmt::format("## {}\n\n", head) : head + "\n";
  if (result.interrupted) return out + "interrupted: the step was not examined to its end\n";
  if (!result.holds) return out + fmt::format("'{}' does not hold here, so nothing spreads from it\n", printable(result.predicate));
  const std::vector<std::string> lines = summary(view);
  for (const std::string& line : lines) out += (markdown ? "- " : "  ") + line + "\n";
  if (!result.edges_known) return out;
  if (markdown) {
    out += "\n" + follow::markdown_head({"hops", "what", "node", "op", "values"});
    for (const PropagationNode& node : result.nodes) {
      out += follow::markdown_line({std::to_string(node.distance), std::string(propagation_role_name(node.role)), view.name(node, true),
                                    view.node(node).op, values_text(node)});
    }
    return out;
  }
  Table table({{"hops", Align::kRight},
               {"what"},
               {.title = "node", .fit = Fit::kName},
               {.title = "op", .fit = Fit::kText, .drop = 1, .least = 12},
               {.title = "values", .fit = Fit::kText}});
  for (const PropagationNode& node : result.nodes) {
    table.add({std::to_string(node.distance), Table::Cell(std::string(propagation_role_name(node.role)), paint_of(node.role)),
               name_cell(view.session, view.id(node), node.execution > 0 ? fmt::format(" execution {}", node.execution) : ""),
               printable(view.node(node).op), values_text(node)});
  }
  return out + table.text(style);
}

}  // namespace

std::string propagation_report(Session& session, const Propagation& result, const ReportStyle& style) {
  if (style.format == Format::kJson) return json_text(propagation_answer(session, result));
  if (style.format == Format::kJsonl) return json_lines(propagation_answer(session, result), "nodes");
  const View view{session, result};
  return style.format == Format::kMarkdown ? text_of(view, style) : fitted(text_of(view, style), style);
}

PictureGraph propagation_picture(Session& session, const Propagation& result, const CheckResult* hits, size_t limit) {
  const View view{session, result};
  PictureGraph picture;
  const size_t shown = std::min(limit, result.nodes.size());  // sorted by distance
  picture.title = head_text(view, true);
  if (!result.edges_known) picture.title += " (edges unknown: there is no readable graph file)";
  if (shown < result.nodes.size()) picture.title += fmt::format(" (the nearest {} of {} operators)", shown, result.nodes.size());
  std::map<std::pair<NodeId, uint32_t>, std::set<std::string>> marks;
  if (hits != nullptr) {
    for (const Hit& hit : hits->hits) {
      const TensorId& id = hit.tensor;
      if (id.rank != result.tensor.rank || id.graph != result.tensor.graph || id.step != result.tensor.step || id.slot.io != Io::kOutput)
        continue;
      marks[{id.node, id.execution}].insert(hit.abbr.empty() ? hit.rule : hit.abbr);
    }
  }
  for (size_t i = 0; i < shown; ++i) {
    const PropagationNode& at = result.nodes[i];
    PictureNode box;
    box.id = view.node(at).name;
    box.label = view.name(at, false);
    box.detail = values_text(at);
    if (!at.parameter) box.detail = view.node(at).op + (box.detail.empty() ? "" : "  " + box.detail);
    box.parameter = at.parameter;
    box.title = fmt::format("{}  {}{}", view.node(at).name, propagation_role_name(at.role), at.stats ? "  " + stats_line(*at.stats) : "");
    switch (at.role) {
      case PropagationRole::kOrigin:
        box.state = PictureState::kOrigin;
        break;
      case PropagationRole::kPassed:
        box.state = PictureState::kBad;
        break;
      case PropagationRole::kAbsorbed:
        box.state = PictureState::kAbsorbed;
        break;
      case PropagationRole::kCannot:
      case PropagationRole::kClean:
        box.state = PictureState::kClean;
        break;
      case PropagationRole::kUnknown:
        box.state = PictureState::kUnknown;
        break;
    }
    if (const auto found = marks.find({at.node, at.execution}); found != marks.end())
      box.hits.assign(found->second.begin(), found->second.end());
    picture.nodes.push_back(std::move(box));
  }
  for (const PropagationEdge& edge : result.edges) {
    if (edge.from >= shown || edge.to >= shown) continue;
    picture.edges.push_back({edge.from, edge.to, edge.update ? "update" : slot_name({Io::kOutput, edge.output}),
                             slot_name({Io::kInput, edge.input}), edge.bad});
  }
  return picture;
}

}  // namespace msdbg
