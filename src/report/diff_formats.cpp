#include "report/diff_formats.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "msdbg/picture.h"
#include "report/follow_text.h"
#include "report/markup.h"
#include "report/table.h"

namespace msdbg {
namespace {

using Json = nlohmann::ordered_json;

Json measure(double value) {
  if (std::isnan(value)) return nullptr;
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}
Json measure(const std::optional<double>& value) { return value ? measure(*value) : Json(); }

Json place(std::optional<uint64_t> flat, const Shape& shape) {
  if (!flat || element_count(shape).value_or(0) <= *flat) return nullptr;
  return coordinates(*flat, shape);
}

Json entry_object(Session& a, Session& b, const TensorDiff& entry) {
  const Graph* graph = b.graph(entry.b.rank, entry.b.graph);
  Json out;
  out["node_a"] = a.node(entry.a).name;
  out["node_b"] = b.node(entry.b).name;
  out["op"] = b.node(entry.b).op;
  out["matched_by"] = match_how_name(entry.how);
  out["rank"] = entry.b.rank;
  out["graph"] = graph ? graph->name() : "";
  out["graph_id"] = entry.b.graph;
  out["slot"] = slot_name(entry.b.slot);
  out["step"] = entry.b.step;
  out["step_a"] = entry.a.step;
  out["rank_a"] = entry.a.rank;
  out["graph_id_a"] = entry.a.graph;
  out["execution"] = entry.b.execution;
  out["dtype_a"] = dtype_name(entry.dtype_a);
  out["dtype_b"] = dtype_name(entry.dtype_b);
  out["shape_a"] = entry.shape_a;
  out["shape_b"] = entry.shape_b;
  out["state"] = diff_state_name(entry.state);
  out["reason"] = entry.reason.empty() ? Json() : Json(entry.reason);
  const Comparison& m = entry.measures;
  const bool measured = entry.compared();
  const auto real = [&](double value) { return measured ? measure(value) : Json(); };
  const auto count = [&](uint64_t value) { return measured ? Json(value) : Json(); };
  out["equal"] = measured ? Json(m.bit_equal) : Json();
  out["max_abs_error"] = real(m.max_abs_error);
  out["max_abs_at"] = measured ? place(m.max_abs_at, entry.shape_b) : Json();
  out["max_rel_error"] = real(m.max_rel_error);
  out["max_rel_at"] = measured ? place(m.max_rel_at, entry.shape_b) : Json();
  out["mean_abs_error"] = real(m.mean_abs_error);
  out["norm_a"] = real(m.norm_a);
  out["norm_b"] = real(m.norm_b);
  out["norm_error"] = real(m.norm_error);
  out["relative_error"] = real(m.relative_error());
  out["cosine"] = real(m.cosine);
  out["max_ulp"] = measured && m.max_ulp ? Json(*m.max_ulp) : Json();
  out["within_tolerance"] = real(m.within_share());
  out["rtol"] = real(entry.tolerance.rtol);
  out["atol"] = real(entry.tolerance.atol);
  out["nan_mismatch"] = count(m.nan_mismatch);
  out["inf_mismatch"] = count(m.inf_mismatch);
  out["first_difference"] = measured ? place(m.first_difference, entry.shape_b) : Json();
  out["role"] = entry.role == DiffRole::kNone ? Json() : Json(diff_role_name(entry.role));
  out["error_in"] = measure(entry.error_in);
  out["worst_input"] = entry.worst_input.empty() ? Json() : Json(entry.worst_input);
  out["amplification"] = measure(entry.amplification);
  return out;
}

Json node_list(Session& session, const std::vector<UnmatchedNode>& nodes) {
  Json out = Json::array();
  for (const UnmatchedNode& unmatched : nodes) {
    const Node& node = session.graph(unmatched.rank, unmatched.graph)->node(unmatched.node);
    out.push_back({{"rank", unmatched.rank}, {"graph_id", unmatched.graph}, {"node", node.name}, {"op", node.op}});
  }
  return out;
}

std::string dump(const Json& json, int indent) { return json.dump(indent, ' ', false, Json::error_handler_t::replace); }

std::string entry_name(Session& b, const TensorDiff& entry) {
  return fmt::format("{}:{} step {} rank {}{}", b.node(entry.b).name, slot_name(entry.b.slot), entry.b.step, entry.b.rank,
                     entry.b.execution > 0 ? fmt::format(" execution {}", entry.b.execution) : "");
}

}  // namespace

std::string diff_json(Session& a, Session& b, const DiffResult& result, bool lines) {
  if (lines) {
    std::string out;
    for (const TensorDiff& entry : result.tensors) out += dump(entry_object(a, b, entry), -1) + "\n";
    return out;
  }
  Json out;
  out["msdbg"] = kVersion;
  out["a"] = a.info().source;
  out["b"] = b.info().source;
  // What was not looked at is not called equal; `complete` says whether all was.
  out["verdict"] = result.verdict();
  out["complete"] = result.is_complete();
  out["edges_known"] = result.unknown_edges.empty();
  out["first_divergence"] = result.first ? entry_object(a, b, result.tensors[*result.first]) : Json();
  Json culprits = Json::array();
  for (size_t i : result.culprits)
    culprits.push_back(
        {{"node_b", b.node(result.tensors[i].b).name}, {"slot", slot_name(result.tensors[i].b.slot)}, {"step", result.tensors[i].b.step}});
  out["culprits"] = std::move(culprits);
  out["matched"] = result.matched_nodes;
  out["matched_by"] = {{"name", result.by_name}, {"structure", result.by_structure}, {"value", result.by_value}, {"map", result.by_map}};
  out["counts"] = {{"equal", result.equal},       {"close", result.close},           {"different", result.different},
                   {"reshaped", result.reshaped}, {"uncompared", result.uncompared}, {"dtype_changes", result.dtype_changes}};
  out["only_a"] = node_list(a, result.only_a);
  out["only_b"] = node_list(b, result.only_b);
  Json notes = Json::array();
  for (const DiffNote& note : result.notes) notes.push_back(note.text);
  out["notes"] = std::move(notes);
  out["interrupted"] = result.interrupted;
  Json tensors = Json::array();
  for (const TensorDiff& entry : result.tensors) tensors.push_back(entry_object(a, b, entry));
  out["tensors"] = std::move(tensors);
  return dump(out, 2) + "\n";
}

std::string diff_csv(Session& a, Session& b, const DiffResult& result) {
  // The columns are the keys of JSON, so that one page describes both.
  std::string out;
  const auto line = [&](const TensorDiff& entry, bool titles) {
    std::string made;
    const Json object = entry_object(a, b, entry);
    for (const auto& [key, value] : object.items()) {
      std::string text;
      if (titles) {
        text = key;
      } else if (value.is_string()) {
        text = value.get<std::string>();
      } else if (!value.is_null()) {
        text = dump(value, -1);
      }
      made += (made.empty() && key == "node_a" ? "" : ",") + csv_field(text);
    }
    out += made + "\r\n";
  };
  line(result.tensors.empty() ? TensorDiff() : result.tensors.front(), true);
  for (const TensorDiff& entry : result.tensors) line(entry, false);
  return out;
}

std::string diff_markdown(Session& a, Session& b, const DiffResult& result) {
  std::string out = fmt::format("**{}**\n\nA: {}  \nB: {}\n\n", markdown_cell(diff_verdict(b, result)), markdown_cell(a.info().source),
                                markdown_cell(b.info().source));
  std::string rows;
  for (const TensorDiff& entry : result.tensors) {
    if (entry.state != DiffState::kDifferent && entry.state != DiffState::kReshaped) continue;
    const std::string share = entry.compared() ? fmt::format("{:.2f} %", 100 * entry.measures.within_share()) : "";
    rows += fmt::format("| {} | {} | {} | {} | {} | {} |\n", entry.b.step,
                        markdown_cell(follow::tensor_text(b, entry.b, true)), markdown_cell(diff_what(entry)),
                        share, entry.amplification ? format_short(*entry.amplification, 3) : "", diff_role_name(entry.role));
  }
  if (!rows.empty())
    out += "| step | tensor | what differs | within tolerance | amplification | role |\n|---|---|---|---|---|---|\n" + rows + "\n";
  const auto list = [&](Session& session, const std::vector<UnmatchedNode>& nodes, const char* side) {
    for (const UnmatchedNode& unmatched : nodes) {
      out +=
          fmt::format("- only in {}: {}\n", side, markdown_cell(session.graph(unmatched.rank, unmatched.graph)->node(unmatched.node).name));
    }
  };
  list(a, result.only_a, "A");
  list(b, result.only_b, "B");
  for (const std::string& text : result.unknown_edges) out += fmt::format("- edges unknown: {}\n", markdown_cell(text));
  for (const DiffNote& note : result.notes) out += fmt::format("- {}\n", markdown_cell(note.text));
  for (const auto& [reason, entries] : diff_uncompared(result)) {
    out += fmt::format("- {} not compared: {}\n", counted(entries.size(), "tensor"), markdown_cell(reason));
  }
  return out;
}

std::string diff_junit(Session&, Session& b, const DiffResult& result) {
  // A case per tensor: what agrees passes, so that a server shows how much was looked at.
  std::string cases;
  std::map<std::string, int> seen;
  for (const TensorDiff& entry : result.tensors) {
    std::string name = entry_name(b, entry);
    if (const int turn = ++seen[name]; turn > 1) name += fmt::format(" ({})", turn);
    cases += fmt::format("    <testcase classname=\"msdbg.diff\" name=\"{}\"", xml_text(name));
    switch (entry.state) {
      case DiffState::kEqual:
      case DiffState::kClose: cases += "/>\n"; break;
      case DiffState::kUncompared: cases += fmt::format("><skipped message=\"{}\"/></testcase>\n", xml_text(entry.reason)); break;
      case DiffState::kDifferent:
      case DiffState::kReshaped:
        cases += fmt::format("><failure message=\"{}\">{}</failure></testcase>\n", xml_text(diff_what(entry)),
                             xml_text(diff_why(entry, b.node(entry.b).kind)));
    }
  }
  const uint64_t failures = result.different + result.reshaped;
  const std::string counts = fmt::format("tests=\"{}\" failures=\"{}\" skipped=\"{}\"", result.tensors.size(), failures, result.uncompared);
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"msdbg diff\" {0}>\n  <testsuite name=\"diff\" {0}>\n{1}  "
      "</testsuite>\n</testsuites>\n",
      counts, cases);
}

}  // namespace msdbg
