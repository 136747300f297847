// What the questions that follow a value answer: bisect, trend, propagation, why, source.
#include "msdbg/answers.h"
#include "msdbg/follow_report.h"
#include "msdbg/table.h"
#include "report/follow_text.h"
#include "report/origin_words.h"

namespace msdbg {
namespace {

Answer rank_object(Session& session, const BisectRank& rank) {
  auto step = [](const std::optional<int64_t>& value) { return value ? Answer(*value) : Answer(); };
  Answer out = {{"rank", rank.rank},
              {"first", step(rank.first)},
              {"last_before", step(rank.last_before)},
              {"monotone", rank.monotone},
              {"counterexample", step(rank.counterexample)},
              {"steps", rank.steps},
              {"looked_at", rank.probes.size()},
              {"reads", rank.reads},
              {"skipped", rank.skipped},
              {"open", rank.open}};
  Answer probes = Answer::array();
  for (const BisectProbe& probe : rank.probes) {
    Answer entry = {{"step", probe.step},
                  {"holds", probe.state == InputState::kUnknown ? Answer() : Answer(probe.state == InputState::kBad)},
                  {"tensors", probe.tensors},
                  {"undecided", probe.undecided},
                  {"reason", text_answer(probe.reason)}};
    Answer holds = Answer::array();
    for (const TensorId& id : probe.holds) holds.push_back(place_answer(session, id));
    entry["hits"] = std::move(holds);
    entry["stats"] = stats_answer(session, probe.stats, probe.holds.empty() ? std::nullopt : std::optional(probe.holds.front()));
    probes.push_back(std::move(entry));
  }
  out["probes"] = std::move(probes);
  return out;
}

}  // namespace

Answer trend_entry_answer(const Session& session, const TrendResult& result, const TrendLine& line) {
  Answer out = place_answer(session, line.tensor);
  out.erase("step");
  out["ranks"] = line.ranks;
  out["gradient_of"] = text_answer(gradient_of_name(session, line.tensor));
  out["statistic"] = result.statistic;
  out["first"] = number_answer(line.first);
  out["last"] = number_answer(line.last);
  out["min"] = number_answer(line.min);
  out["max"] = number_answer(line.max);
  out["ends"] = line.ends ? Answer(*line.ends) : Answer();
  Answer change;
  if (line.change) {
    change = {{"step", line.change->step},
              {"before", number_answer(line.change->before)},
              {"after", number_answer(line.change->after)},
              {"p", line.change->p},
              {"log_scale", line.change->log_scale}};
  }
  out["change"] = std::move(change);
  out["departs"] = line.departs ? Answer{{"step", *line.departs}, {"from", line.departs_from}} : Answer();
  Answer points = Answer::array();
  for (const TrendPoint& point : line.points) {
    points.push_back(
        {{"step", point.step},
         {"value", number_answer(point.value)},
         {"reason", text_answer(point.reason)},
         {"not_finite", point.not_finite}});
  }
  out["points"] = std::move(points);
  return out;
}

namespace {

Answer propagation_node(Session& session, const PropagationNode& at, size_t index) {
  const Node& node = session.graph(at.rank, at.graph)->node(at.node);
  Answer out = {{"index", index},
              {"rank", at.rank},
              {"graph_id", at.graph},
              {"node", node.name},
              {"op", node.op},
              {"kind", node_kind_name(node.kind)},
              {"execution", at.execution},
              {"role", propagation_role_name(at.role)},
              {"distance", at.distance},
              {"slot", at.tensor ? Answer(slot_name(at.tensor->slot)) : Answer()},
              {"step", at.tensor ? Answer(at.tensor->step) : Answer()},
              {"reason", text_answer(at.reason)}};
  out["stats"] = stats_answer(session, at.stats, at.tensor);
  out["stack"] = stack_answer(node);
  return out;
}

Answer row_object(Session& session, const SourceFile& file, const SourceRow& row) {
  Answer out = {{"file", file.path}, {"line", row.line}, {"code", row.code}, {"recorded", row.recorded}, {"differs", row.differs}};
  out["recorded_code"] = row.differs ? Answer(row.recorded_code) : Answer();
  Answer nodes = Answer::array();
  for (const NodeRef& ref : row.nodes) {
    const Node& node = ref.graph->node(ref.node);
    nodes.push_back({{"name", node.name}, {"op", node.op}, {"rank", ref.graph->rank()}, {"graph_id", ref.graph->id()}});
  }
  out["nodes"] = std::move(nodes);
  Answer hits = Answer::array();
  for (const SourceHit& hit : row.hits) {
    hits.push_back({{"rule", hit.rule},
                    {"abbr", hit.abbr},
                    {"count", hit.count},
                    {"first_step", hit.first_step},
                    {"node", session.node(hit.tensor).name}});
  }
  out["hits"] = std::move(hits);
  out["worst"] = row.worst_tensor ? place_answer(session, *row.worst_tensor) : Answer();
  if (row.worst_tensor) out["worst"]["message"] = row.worst ? Answer(follow::values_text(*row.worst)) : Answer();
  if (row.worst_tensor) out["worst"]["stats"] = stats_answer(session, row.worst, row.worst_tensor);
  return out;
}

Answer trail_object(Session& session, const Trail& trail) {
  Answer links = Answer::array();
  for (const TrailLink& link : trail.links) {
    Answer entry = place_answer(session, link.tensor);
    entry["seen"] = place_answer(session, link.seen);
    entry["stats"] = stats_answer(session, link.stats, link.seen);
    entry["not_finite"] = link.stats ? text_answer(nonfinite_text(*link.stats)) : Answer();
    links.push_back(std::move(entry));
  }
  return {{"links", std::move(links)}, {"ends_at", trail_end_name(trail.end)}, {"reason", text_answer(trail.reason)}};
}

}  // namespace

Answer bisect_answer(Session& session, const BisectResult& result) {
  Answer ranks = Answer::array();
  for (const BisectRank& rank : result.ranks) ranks.push_back(rank_object(session, rank));
  return {{"dump", session.info().source},
          {"target", result.target},
          {"predicate", result.predicate},
          {"interrupted", result.interrupted},
          {"first_ranks", result.first_ranks},
          {"ranks", std::move(ranks)}};
}

Answer trend_answer(Session& session, const TrendResult& result) {
  Answer tensors = Answer::array();
  for (const TrendLine& line : result.lines) tensors.push_back(trend_entry_answer(session, result, line));
  return {{"dump", session.info().source}, {"statistic", result.statistic},     {"target", result.target},
          {"steps", result.steps},         {"interrupted", result.interrupted}, {"tensors", std::move(tensors)}};
}

Answer propagation_answer(Session& session, const Propagation& result) {
  Answer nodes = Answer::array();
  for (size_t i = 0; i < result.nodes.size(); ++i) nodes.push_back(propagation_node(session, result.nodes[i], i));
  const auto op_of = [&](size_t index) {
    const PropagationNode& at = result.nodes[index];
    return Answer(session.graph(at.rank, at.graph)->node(at.node).op);
  };
  Answer edges = Answer::array();
  for (const PropagationEdge& edge : result.edges) {
    edges.push_back({{"from", edge.from},
                     {"to", edge.to},
                     {"output", edge.update || edge.collective ? Answer() : Answer(slot_name({Io::kOutput, edge.output}))},
                     {"input", edge.collective ? Answer() : Answer(slot_name({Io::kInput, edge.input}))},
                     {"update", edge.update},
                     {"bad", edge.bad},
                     {"collective", edge.collective ? op_of(edge.from) : Answer()},
                     {"group", edge.collective ? text_answer(edge.group) : Answer()},
                     {"assumed", edge.assumed}});
  }
  Answer out = {{"dump", session.info().source},
              {"predicate", result.predicate},
              {"direction", result.up ? "up" : "down"},
              {"holds", result.holds},
              {"edges_known", result.edges_known}};
  out["tensor"] = place_answer(session, result.tensor);
  out["stats"] = stats_answer(session, result.stats, result.tensor);
  out["moment"] = text_answer(parameter_moment_name(result.moment));
  // Empty lists would say that it has no consumers.
  out["nodes"] = result.edges_known ? std::move(nodes) : Answer();
  out["edges"] = result.edges_known ? std::move(edges) : Answer();
  out["trail"] = result.trail ? trail_object(session, *result.trail) : Answer();
  out["ranks_reached"] = reached_answer(session, result.ranks_reached);
  out["bad_in_step"] = result.bad_in_step;
  out["bad_elsewhere"] = result.edges_known ? Answer(result.bad_elsewhere) : Answer();
  out["clean_outputs"] = result.clean_outputs;
  out["coverage"] = coverage_answer(result.coverage);
  out["interrupted"] = result.interrupted;
  return out;
}


Answer why_answer(Session& session, const WhyAnswer& answer) {
  Answer evidence = Answer::array();
  for (const WhyEvidence& each : answer.evidence)
    evidence.push_back({{"text", each.text}, {"path", text_answer(each.path)}});
  return {{"dump", session.info().source},
          {"asked", answer.asked},
          {"kind", why_kind_name(answer.kind)},
          {"answer", answer.answer},
          {"tensor", answer.tensor ? place_answer(session, *answer.tensor) : Answer()},
          {"evidence", std::move(evidence)},
          {"instead", answer.instead},
          {"next", text_answer(answer.next)}};
}

Answer lines_answer(Session& session, std::span<const SourceFile> files, const CheckResult& result) {
  Answer list = Answer::array();
  for (const SourceFile& file : files) {
    Answer lines = Answer::array();
    for (const SourceRow& row : file.rows) {
      if (!row.nodes.empty()) lines.push_back(row_object(session, file, row));
    }
    list.push_back({{"path", file.path},
                    {"read_from", file.read_from.empty() ? Answer() : Answer(file.read_from)},
                    {"note", file.note},
                    {"findings", file.findings},
                    {"lines", std::move(lines)}});
  }
  return {{"dump", session.info().source}, {"steps", result.steps}, {"interrupted", result.interrupted}, {"files", std::move(list)}};
}

}  // namespace msdbg
