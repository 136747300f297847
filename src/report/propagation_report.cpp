// The cone of a bad tensor: a table of operators, a picture, JSON.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "msdbg/answers.h"
#include "msdbg/follow_report.h"
#include "report/follow_text.h"
#include "report/origin_words.h"
#include "report/table.h"

namespace msdbg {
namespace {


constexpr size_t kNamesPerLine = 4;

struct View {
  Session& session;
  const Propagation& result;
  std::vector<int> ranks;  ///< of its nodes, ascending

  View(Session& of, const Propagation& cone) : session(of), result(cone) {
    std::set<int> found{cone.tensor.rank};
    for (const PropagationNode& node : cone.nodes) found.insert(node.rank);
    ranks.assign(found.begin(), found.end());
  }

  bool several() const { return ranks.size() > 1; }
  const Node& node(const PropagationNode& at) const { return session.graph(at.rank, at.graph)->node(at.node); }
  TensorId id(const PropagationNode& at) const {
    if (at.tensor && at.tensor->node == at.node) return *at.tensor;
    TensorId id = result.tensor;
    id.rank = at.rank;
    id.graph = at.graph;
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
  /// Nodes of other ranks come with their rank.
  std::string names(const std::vector<const PropagationNode*>& nodes) const {
    std::string out;
    for (size_t i = 0; i < nodes.size() && i < kNamesPerLine; ++i) {
      out += i > 0 ? ", " : "";
      if (nodes[i]->rank != result.tensor.rank) out += fmt::format("rank {}: ", nodes[i]->rank);
      out += name(*nodes[i], false);
    }
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

/// What ranks say of a node in the same words: one line of the table, one box of the picture.
struct Row {
  const PropagationNode* first = nullptr;
  std::vector<int> ranks;
  std::set<int> from;  ///< ranks whose call of the collective brought it
  std::string group;   ///< of that collective
};
struct Rows {
  std::vector<Row> rows;
  std::vector<size_t> of;  ///< by node
};

Rows joined_rows(const View& view) {
  Rows out;
  std::map<std::tuple<uint32_t, std::string, uint32_t, PropagationRole, std::string, std::set<int>>, size_t> known;
  std::vector<std::set<int>> from(view.result.nodes.size());
  std::vector<std::string> groups(view.result.nodes.size());
  for (const PropagationEdge& edge : view.result.edges) {
    if (!edge.collective) continue;
    from[edge.to].insert(view.result.nodes[edge.from].rank);
    groups[edge.to] = in_group(edge.group, edge.assumed);
  }
  for (size_t i = 0; i < view.result.nodes.size(); ++i) {
    const PropagationNode& at = view.result.nodes[i];
    const auto [found, fresh] =
        known.try_emplace({at.distance, view.node(at).name, at.execution, at.role, values_text(at), from[i]}, out.rows.size());
    if (fresh) out.rows.push_back({&at, {}, from[i], groups[i]});
    out.rows[found->second].ranks.push_back(at.rank);
    out.of.push_back(found->second);
  }
  return out;
}

/// `AllReduce of rank 2 (mccl_world_group)`: how the value came to another rank.
std::string op_text(const View& view, const Row& row) {
  std::string out = printable(view.node(*row.first).op);
  if (row.from.empty()) return out;
  return fmt::format("{} of {}{}", out, ranks_text(std::vector<int>(row.from.begin(), row.from.end())), row.group);
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
  if (result.broke_at_end && !result.up)
    add("broke here", "the update in this step broke it: --up says how, and the next step shows what it did");
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
    const auto here = [&](const PropagationNode* node) { return node->rank == result.tensor.rank; };
    const auto parameters = std::ranges::count_if(passed, [&](const PropagationNode* node) { return node->parameter && here(node); });
    const auto operators = std::ranges::count_if(passed, [&](const PropagationNode* node) { return !node->parameter && here(node); });
    add("passed on by", fmt::format("{}, {} reached", counted(static_cast<uint64_t>(operators), "operator"),
                                    counted(static_cast<uint64_t>(parameters), "parameter")));
    const auto name = [&](const TensorId& id) { return brief_name(view.session, view.session.node(id).name); };
    for (const std::string& line : reached_lines(result.ranks_reached, name)) add("other ranks", line);
    add("absorbed by", absorbed.empty() ? std::string("nobody") : fmt::format("{}: {}", absorbed.size(), view.names(absorbed)));
    if (!cannot.empty()) add("cannot hold it", fmt::format("{}: {}", cannot.size(), view.names(cannot)));
    if (!clean.empty()) add("clean after", fmt::format("{}: {}", clean.size(), view.names(clean)));
    std::vector<const PropagationNode*> losses;
    for (const PropagationNode& node : result.nodes) {
      if (node.rank == result.tensor.rank && in_category(view.node(node), Category::kLoss)) losses.push_back(&node);
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
  if (!values.empty() && result.moment != ParameterMoment::kAny)
    values += result.moment == ParameterMoment::kStart ? " as the step began" : " as the step left it";
  return fmt::format("{}, step {}{}{}", what, result.tensor.step, values.empty() ? "" : ": ", values);
}

Paint paint_of(PropagationRole role) {
  if (role == PropagationRole::kOrigin || role == PropagationRole::kPassed) return Paint::kError;
  return role == PropagationRole::kUnknown ? Paint::kWarning : Paint::kNone;
}

PictureState picture_state(PropagationRole role) {
  switch (role) {
    case PropagationRole::kOrigin:
      return PictureState::kOrigin;
    case PropagationRole::kPassed:
      return PictureState::kBad;
    case PropagationRole::kAbsorbed:
      return PictureState::kAbsorbed;
    case PropagationRole::kCannot:
    case PropagationRole::kClean:
      return PictureState::kClean;
    case PropagationRole::kUnknown:
      return PictureState::kUnknown;
  }
  return PictureState::kUnknown;
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
  const std::vector<Row> rows = joined_rows(view).rows;
  if (markdown) {
    std::vector<std::string> titles{"hops", "ranks", "what", "node", "op", "values"};
    if (!view.several()) titles.erase(titles.begin() + 1);
    out += "\n" + follow::markdown_head(titles);
    for (const Row& row : rows) {
      const PropagationNode& node = *row.first;
      std::vector<std::string> cells{std::to_string(node.distance), ranks_numbers(row.ranks), std::string(propagation_role_name(node.role)),
                                     view.name(node, true), op_text(view, row), values_text(node)};
      if (!view.several()) cells.erase(cells.begin() + 1);
      out += follow::markdown_line(cells);
    }
    return out;
  }
  std::vector<Table::Column> columns{{"hops", Align::kRight},
                                     {"ranks"},
                                     {"what"},
                                     {.title = "node", .fit = Fit::kName},
                                     {.title = "op", .fit = Fit::kText, .drop = 1, .least = 12},
                                     {.title = "values", .fit = Fit::kText}};
  if (!view.several()) columns.erase(columns.begin() + 1);
  Table table(std::move(columns));
  for (const Row& row : rows) {
    const PropagationNode& node = *row.first;
    std::vector<Table::Cell> cells{
        std::to_string(node.distance),
        ranks_cell(row.ranks),
        Table::Cell(std::string(propagation_role_name(node.role)), paint_of(node.role)),
        name_cell(view.session, view.id(node), node.execution > 0 ? fmt::format(" execution {}", node.execution) : ""),
        op_text(view, row),
        values_text(node)};
    if (!view.several()) cells.erase(cells.begin() + 1);
    table.add(std::move(cells));
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

PictureGraph propagation_picture(Session& session, const Propagation& result, const CheckResult* hits, size_t limit,
                                 const std::function<std::string(const TensorId&)>& link) {
  const View view{session, result};
  const Rows joined = joined_rows(view);
  PictureGraph picture;
  const size_t shown = std::min(limit, joined.rows.size());  // sorted by distance
  picture.title = head_text(view, true);
  picture.total = joined.rows.size();
  if (!result.edges_known) picture.title += " (edges unknown: there is no readable graph file)";
  if (shown < joined.rows.size()) picture.title += fmt::format(" (the nearest {} of {} operators)", shown, joined.rows.size());
  std::map<std::tuple<int, int, NodeId, uint32_t>, std::set<std::string>> marks;
  if (hits != nullptr) {
    for (const Hit& hit : hits->hits) {
      const TensorId& id = hit.tensor;
      if (id.step != result.tensor.step || id.slot.io != Io::kOutput) continue;
      marks[{id.rank, id.graph, id.node, id.execution}].insert(hit.abbr.empty() ? hit.rule : hit.abbr);
    }
  }
  for (size_t i = 0; i < shown; ++i) {
    const Row& row = joined.rows[i];
    const PropagationNode& at = *row.first;
    PictureNode box;
    box.id = view.node(at).name;
    box.label = view.name(at, false);
    if (view.several()) box.label = fmt::format("{}: {}", ranks_text(row.ranks), box.label);
    box.detail = values_text(at);
    if (!at.parameter) box.detail = view.node(at).op + (box.detail.empty() ? "" : "  " + box.detail);
    box.parameter = at.parameter;
    box.title = fmt::format("{}  {}{}", view.node(at).name, propagation_role_name(at.role), at.stats ? "  " + stats_line(*at.stats) : "");
    box.state = picture_state(at.role);
    if (at.tensor && link) box.link = link(*at.tensor);
    if (const auto found = marks.find({at.rank, at.graph, at.node, at.execution}); found != marks.end())
      box.hits.assign(found->second.begin(), found->second.end());
    picture.nodes.push_back(std::move(box));
  }
  std::set<std::tuple<size_t, size_t, uint32_t, uint32_t>> drawn;
  for (const PropagationEdge& edge : result.edges) {
    const size_t from = joined.of[edge.from], to = joined.of[edge.to];
    if (from >= shown || to >= shown || !drawn.insert({from, to, edge.output, edge.input}).second) continue;
    PictureEdge line{from, to, "", "", edge.bad};
    if (edge.collective) {
      line.label = view.node(result.nodes[edge.from]).op + in_group(edge.group, edge.assumed);
    } else {
      line.from_slot = edge.update ? "update" : slot_name({Io::kOutput, edge.output});
      line.to_slot = slot_name({Io::kInput, edge.input});
    }
    picture.edges.push_back(std::move(line));
  }
  return picture;
}

}  // namespace msdbg
