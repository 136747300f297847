// Sentences shared by all formats of a comparison.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/diff_formats.h"
#include "report/table.h"

namespace msdbg {
namespace {

std::string place_text(uint64_t flat, const Shape& shape) {
  const auto at = coordinates(flat, shape);
  return at.empty() ? "" : " at " + shape_text(at);
}

/// "; 1 node only in A (Transpose-op1)": operators and parameters, since constants belong to them.
std::string unmatched_text(Session& session, const std::vector<UnmatchedNode>& nodes, std::string_view side) {
  size_t count = 0;
  std::string first;
  for (const UnmatchedNode& unmatched : nodes) {
    const Node& node = session.graph(unmatched.rank, unmatched.graph)->node(unmatched.node);
    if (node.kind == NodeKind::kConstant) continue;
    if (count++ == 0) first = brief_name(session, node.name);
  }
  if (count == 0) return "";
  return fmt::format("; {} only in {} ({}{})", counted(count, "node"), side, first, count > 1 ? ", ..." : "");
}

/// "; 156 by statistics only".
std::string evidence_text(const DiffResult& result) {
  std::string out;
  if (result.by_checksum > 0) out += fmt::format("; {} by checksum", result.by_checksum);
  if (result.by_statistics > 0) out += fmt::format("; {} by statistics only", result.by_statistics);
  return out;
}

std::string random_names(Session& b, const DiffResult& result) {
  const TensorId& first = result.tensors[result.random.front()].b;
  const size_t more = result.random.size() - 1;
  return fmt::format("{} in step {}{}", short_name(b, first), first.step, more > 0 ? fmt::format(" and {} more", more) : "");
}

}  // namespace

std::string diff_facts(const TensorDiff& entry) {
  std::string out = entry.evidence == DiffEvidence::kChecksum ? "other checksum" : "";
  const double largest = entry.relative_error();
  for (const StatisticPair& pair : entry.statistics) {
    if (pair.error == 0 || (std::isfinite(largest) && pair.error < largest / 1e3)) continue;
    const bool presence = pair.name == "nan" || pair.name == "inf";
    const std::string name = pair.name == "nan" ? "NaN" : pair.name == "inf" ? "Inf" : pair.name == "l2_norm" ? "norm" : std::string(pair.name);
    out += out.empty() ? "" : ", ";
    out += presence ? fmt::format("{} only in {}", name, pair.a != 0 ? "A" : "B")
                    : fmt::format("{} {} against {}", name, format_short(pair.a, 4), format_short(pair.b, 4));
  }
  return out.empty() ? "the same statistics" : out;
}

std::string diff_percent(double share) {
  if (share == 1) return "100 %";
  // 99.9996 % must not read as 100 %.
  return fmt::format("{} %", format_short(std::min(std::floor(share * 1e4) / 100, 99.99), 4));
}

std::string diff_verdict(Session& a, Session& b, const DiffResult& result) {
  const std::string unmatched = unmatched_text(a, result.only_a, "A") + unmatched_text(b, result.only_b, "B");
  const size_t compared = result.equal + result.close + result.different + result.reshaped;
  if (!result.first) {
    std::string all = result.close == 0 ? "bit for bit the same"
                      : result.equal == 0 ? "within tolerance"
                                          : fmt::format("{} bit for bit the same, {} within tolerance", result.equal, result.close);
    all += evidence_text(result);
    if (compared == 0) return "nothing was compared; the reasons are listed below";
    if (result.interrupted)
      return fmt::format("interrupted: no difference among the {} that were compared before the interruption", counted(compared, "tensor"));
    if (result.uncompared > 0) {
      return fmt::format("equal as far as could be compared: {}: {}; {} not compared{}", counted(compared, "tensor"), all,
                         result.uncompared, unmatched);
    }
    const bool complete = result.is_complete();
    const std::string_view equal = result.by_statistics > 0 ? "equal as far as statistics tell" : "equal";
    return fmt::format("{}: {}: {}{}{}", equal, counted(compared, "tensor"), all, unmatched,
                       complete || !unmatched.empty() ? "" : "; what was not compared is listed below");
  }
  const uint64_t different = result.different + result.reshaped;
  if (result.is_only_random()) {
    return fmt::format("different: {} of {}, all because of random operators: {}{}", different, counted(compared, "tensor"),
                       random_names(b, result), unmatched);
  }
  const TensorDiff& first = result.tensors[*result.first];
  const Node& node = b.node(first.b);
  std::string role;
  if (first.role == DiffRole::kCulprit) role = node.kind == NodeKind::kOperator ? ", whose inputs agree" : ", which came in different";
  if (first.role == DiffRole::kCulprit && first.b.slot.io == Io::kInput) role = ", which no recorded call made";
  if (!first.edges_known) role = "; its cause is unknown";
  if (first.role == DiffRole::kVictim) role = ", whose inputs differ already";
  if (first.role == DiffRole::kVictim && first.worst_input.ends_with(')')) {
    // "input:0 [..., in A ]scope/NAME (only in A)"
    const size_t end = first.worst_input.rfind(" ("), begin = first.worst_input.find_last_of("/ ", end - 1) + 1;
    role = fmt::format(", fed by {}", first.worst_input.substr(begin));
  }
  const std::string rank = b.ranks().size() > 1 ? fmt::format(" of rank {}", first.b.rank) : "";
  const std::string random = result.random.empty() ? "" : fmt::format("; random operators differ, too: {}", random_names(b, result));
  return fmt::format("different: {} of {}, first in step {}{} at {}{}{}{}", different, counted(compared, "tensor"), first.b.step, rank,
                     short_name(b, first.b) + (first.b.slot.io == Io::kInput ? ":" + slot_name(first.b.slot) : ""), role, random, unmatched);
}

std::string diff_what(const TensorDiff& entry) {
  if (!entry.compared())
    return fmt::format("{}: {}{} against {}{}", entry.reason, dtype_name(entry.dtype_a), shape_text(entry.shape_a),
                       dtype_name(entry.dtype_b), shape_text(entry.shape_b));
  if (entry.evidence == DiffEvidence::kChecksum) return diff_facts(entry);
  if (entry.evidence == DiffEvidence::kStatistics)
    return fmt::format("{} (statistics; rtol {})", diff_facts(entry), format_short(entry.tolerance.rtol, 2));
  const Comparison& m = entry.measures;
  std::string out;
  if (m.pairs > 0) {
    out = fmt::format("max error {}{}, mean {}, {} within tolerance (rtol {}, atol {})", format_short(m.max_abs_error, 3),
                      m.max_abs_at ? place_text(*m.max_abs_at, entry.shape_b) : "", format_short(m.mean_abs_error, 3),
                      diff_percent(m.within_share()), format_short(entry.tolerance.rtol, 2), format_short(entry.tolerance.atol, 2));
  } else {
    out = "no element is finite on both sides";
  }
  if (m.nan_mismatch) out += fmt::format("; {} NaN on one side only", m.nan_mismatch);
  if (m.inf_mismatch) out += fmt::format("; {} Inf where the other is not", m.inf_mismatch);
  return out;
}

std::string diff_why(const TensorDiff& entry, NodeKind kind) {
  switch (entry.role) {
    case DiffRole::kNone: return "";
    case DiffRole::kCulprit:
      if (!entry.argument.empty()) return "every input agrees, an argument does not: " + entry.argument;
      if (entry.b.slot.io == Io::kInput) return "no recorded call made it: data, or the work of a call that was not recorded";
      return kind == NodeKind::kOperator ? "every input agrees: the difference begins here" : "it came into the step like this";
    case DiffRole::kUnknown:
      if (!entry.argument.empty()) return "an argument differs: " + entry.argument;
      if (!entry.edges_known) return "the first in the order of the run; without the graph it is unknown whether it is the cause";
      return "the difference begins here or earlier: nothing is known of " + entry.unknown_input;
    case DiffRole::kRandom: return "it draws random numbers, and its inputs agree: give both runs the same seed";
    case DiffRole::kVictim: break;
  }
  std::string out = "it is handed on: ";
  out += entry.worst_input.empty() ? "an input differs already" : entry.worst_input + " differs already";
  if (entry.amplification && std::isfinite(*entry.amplification))
    out += fmt::format(", and its error leaves {} times as large", format_short(*entry.amplification, 3));
  return out;
}

std::vector<std::pair<std::string, std::vector<const TensorDiff*>>> diff_uncompared(const DiffResult& result) {
  std::vector<std::pair<std::string, std::vector<const TensorDiff*>>> out;
  for (const TensorDiff& entry : result.tensors) {
    if (entry.state != DiffState::kUncompared) continue;
    auto found = std::find_if(out.begin(), out.end(), [&](const auto& each) { return each.first == entry.reason; });
    if (found == out.end()) found = out.insert(out.end(), {entry.reason, {}});
    found->second.push_back(&entry);
  }
  return out;
}

}  // namespace msdbg
