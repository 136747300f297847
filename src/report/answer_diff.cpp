// Two sessions, and two series of numbers, compared.
#include <cmath>
#include <limits>

#include "msdbg/answers.h"

namespace msdbg {
namespace {

Answer real_or_null(double value) { return std::isnan(value) ? Answer() : Answer(value); }

Answer coordinates_or_null(std::optional<uint64_t> flat, const Shape& shape) {
  if (!flat || element_count(shape).value_or(0) <= *flat) return nullptr;
  return coordinates(*flat, shape);
}

Answer nodes_without_match(Session& session, const std::vector<UnmatchedNode>& nodes) {
  Answer out = Answer::array();
  for (const UnmatchedNode& unmatched : nodes) {
    const Graph* graph = session.graph(unmatched.rank, unmatched.graph);
    const Node& node = graph->node(unmatched.node);
    out.push_back(
        {{"rank", unmatched.rank}, {"graph", graph->name()}, {"graph_id", unmatched.graph}, {"node", node.name}, {"op", node.op}});
  }
  return out;
}

}  // namespace

Answer measures_answer(const Comparison& m, const Shape& shape) {
  Answer out;
  out["equal"] = m.bit_equal;
  out["max_abs_error"] = real_or_null(m.max_abs_error);
  out["max_abs_at"] = coordinates_or_null(m.max_abs_at, shape);
  out["max_rel_error"] = real_or_null(m.max_rel_error);
  out["max_rel_at"] = coordinates_or_null(m.max_rel_at, shape);
  out["mean_abs_error"] = real_or_null(m.mean_abs_error);
  out["norm_a"] = real_or_null(m.norm_a);
  out["norm_b"] = real_or_null(m.norm_b);
  out["norm_error"] = real_or_null(m.norm_error);
  out["relative_error"] = real_or_null(m.relative_error());
  out["cosine"] = real_or_null(m.cosine);
  out["max_ulp"] = m.max_ulp ? Answer(*m.max_ulp) : Answer();
  out["within_tolerance"] = real_or_null(m.within_share());
  out["rtol"] = m.tolerance.rtol;
  out["atol"] = m.tolerance.atol;
  out["nan_mismatch"] = m.nan_mismatch;
  out["inf_mismatch"] = m.inf_mismatch;
  out["first_difference"] = coordinates_or_null(m.first_difference, shape);
  return out;
}

Answer diff_entry_answer(Session& a, Session& b, const TensorDiff& entry) {
  Answer out = place_answer(b, entry.b);
  out["node_a"] = a.node(entry.a).name;
  out["node_b"] = b.node(entry.b).name;
  out["matched_by"] = match_method_name(entry.how);
  out["step_a"] = entry.a.step;
  out["rank_a"] = entry.a.rank;
  out["graph_id_a"] = entry.a.graph;
  out["dtype_a"] = dtype_name(entry.dtype_a);
  out["dtype_b"] = dtype_name(entry.dtype_b);
  out["shape_a"] = entry.shape_a;
  out["shape_b"] = entry.shape_b;
  out["state"] = diff_state_name(entry.state);
  out["reason"] = text_answer(entry.reason);
  Answer measures = measures_answer(entry.measures, entry.shape_b);
  const bool by_elements = entry.compared() && entry.evidence == DiffEvidence::kElements;
  if (!by_elements) {
    for (Answer& measure : measures) measure = nullptr;
  }
  if (entry.compared() && !by_elements) {
    // Equal checksums all but prove it; what statistics tell is `state`.
    if (entry.evidence == DiffEvidence::kChecksum) measures["equal"] = entry.state == DiffState::kEqual;
    measures["relative_error"] = real_or_null(entry.relative_error());
    measures["rtol"] = entry.tolerance.rtol;
    measures["atol"] = entry.tolerance.atol;
  }
  out.update(measures);
  out["compared_by"] = entry.compared() ? Answer(diff_evidence_name(entry.evidence)) : Answer();
  Answer statistics = Answer::array();
  for (const StatisticPair& pair : entry.statistics) {
    statistics.push_back({{"name", pair.name}, {"a", real_or_null(pair.a)}, {"b", real_or_null(pair.b)}, {"error", real_or_null(pair.error)}});
  }
  out["statistics"] = entry.statistics.empty() ? Answer() : std::move(statistics);
  out["argument"] = text_answer(entry.argument);
  out["role"] = entry.role == DiffRole::kNone ? Answer() : Answer(diff_role_name(entry.role));
  out["behind_random"] = entry.behind_random;
  out["error_in"] = entry.error_in ? real_or_null(*entry.error_in) : Answer();
  out["worst_input"] = text_answer(entry.worst_input);
  out["amplification"] = entry.amplification ? real_or_null(*entry.amplification) : Answer();
  return out;
}

Answer diff_answer(Session& a, Session& b, const DiffResult& result) {
  Answer culprits = Answer::array(), random = Answer::array(), notes = Answer::array(), tensors = Answer::array();
  for (const size_t i : result.random) random.push_back(diff_entry_answer(a, b, result.tensors[i]));
  for (const size_t i : result.culprits) culprits.push_back(diff_entry_answer(a, b, result.tensors[i]));
  for (const DiffNote& note : result.notes) notes.push_back(note.text);
  for (const TensorDiff& entry : result.tensors) tensors.push_back(diff_entry_answer(a, b, entry));
  Answer out;
  out["msdbg"] = kVersion;
  out["a"] = a.info().source;
  out["b"] = b.info().source;
  // Tensors that were not compared are not called equal; `complete` says whether all were.
  out["verdict"] = result.verdict();
  out["equal"] = result.is_equal();
  out["complete"] = result.is_complete();
  out["interrupted"] = result.interrupted;
  out["edges_known"] = result.unknown_edges.empty();
  out["first"] = result.first ? diff_entry_answer(a, b, result.tensors[*result.first]) : Answer();
  out["culprits"] = std::move(culprits);
  out["random"] = std::move(random);
  out["matched"] = result.matched_nodes;
  out["matched_by"] = {{"name", result.by_name}, {"structure", result.by_structure}, {"value", result.by_value}, {"map", result.by_map}};
  out["counts"] = {{"equal", result.equal},       {"close", result.close},           {"different", result.different},
                   {"reshaped", result.reshaped}, {"uncompared", result.uncompared}, {"dtype_changes", result.dtype_changes},
                   {"by_checksum", result.by_checksum}, {"by_statistics", result.by_statistics}};
  out["only_a"] = nodes_without_match(a, result.only_a);
  out["only_b"] = nodes_without_match(b, result.only_b);
  out["notes"] = std::move(notes);
  out["tensors"] = std::move(tensors);
  return out;
}

Answer series_answer(const Series& a, const Series& b, const SeriesComparison& result) {
  Answer steps = Answer::array();
  for (size_t i = 0, k = 0; i < a.points.size() && k < b.points.size();) {
    const SeriesPoint &left = a.points[i], &right = b.points[k];
    if (left.step != right.step) {
      ++(left.step < right.step ? i : k);
      continue;
    }
    const bool sized = std::isfinite(left.value) && std::isfinite(right.value);
    const double error = left.value == right.value ? 0 : std::fabs(left.value - right.value) / std::fabs(right.value);
    steps.push_back({{"step", left.step}, {"a", left.value}, {"b", right.value}, {"rel_error", sized ? Answer(error) : Answer()}});
    ++i, ++k;
  }
  Answer out;
  out["msdbg"] = kVersion;
  out["a"] = a.source;
  out["b"] = b.source;
  out["verdict"] = series_verdict_name(result.verdict);
  out["tolerance"] = result.tolerance;
  out["count"] = result.count;
  out["diverges_at"] = result.diverges_at ? Answer(*result.diverges_at) : Answer();
  out["a_value"] = result.diverges_at ? Answer(result.a_value) : Answer();
  out["b_value"] = result.diverges_at ? Answer(result.b_value) : Answer();
  out["mean_abs_error"] = real_or_null(result.mean_abs_error);
  out["max_abs_error"] = result.finite == 0 ? Answer() : Answer(result.max_abs_error);
  out["max_rel_error"] = result.finite == 0 ? Answer() : Answer(result.max_rel_error);
  out["worst_step"] = result.worst_step ? Answer(*result.worst_step) : Answer();
  out["nonfinite_mismatch"] = result.nonfinite_mismatch;
  out["nonfinite_a"] = result.nonfinite_a;
  out["nonfinite_b"] = result.nonfinite_b;
  out["next"] = result.next;
  out["only_a"] = result.only_a;
  out["only_b"] = result.only_b;
  out["steps"] = std::move(steps);
  return out;
}

}  // namespace msdbg
