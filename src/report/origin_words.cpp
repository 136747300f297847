#include "report/origin_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "report/table.h"

namespace msdbg {
namespace {

constexpr size_t kFirstShown = 3;

/// `all 4 rows are affected (24 to 29 each)`. Precondition: origin.rows.
std::string rows_text(const Origin& origin) {
  const auto& [affected, range] = *origin.rows;
  const int64_t rows = origin.info.shape.empty() ? 0 : origin.info.shape[0];
  if (rows == 1 && affected == 1) return fmt::format("in its only row ({})", range.first);
  const std::string each =
      range.first == range.second ? fmt::format("{} each", range.first) : fmt::format("{} to {} each", range.first, range.second);
  return affected == rows ? fmt::format("all {} rows are affected ({})", rows, each)
                          : fmt::format("{} of {} rows are affected ({})", affected, rows, each);
}

}  // namespace

std::string bad_text(const Stats& stats) {
  const std::string kinds = nonfinite_text(stats);
  if (kinds.empty()) return stats_line(stats);
  if (stats.count == 1)
    return fmt::format("its only element is {}", stats.nan_count ? "NaN" : stats.pos_inf_count ? "+Inf" : "-Inf");
  const size_t last_word = kinds.find(' ', kinds.find("of ") + 3);
  std::string out = kinds;
  if (kinds.find("of ") != std::string::npos && last_word != std::string::npos) {
    out = fmt::format("{} elements are{}", kinds.substr(0, last_word), kinds.substr(last_word));
  }
  if (stats.nan_count == 0 && stats.inf_count() > 0 && stats.knows(kStatNan)) out += ", none NaN";
  return out;
}

std::string broken_text(const Origin& origin) {
  std::string out = bad_text(origin.stats);
  if (!origin.first.empty() && origin.stats.count > 1) {
    out += "; first at";
    for (size_t i = 0; i < std::min(kFirstShown, origin.first.size()); ++i) out += " " + shape_text(origin.first[i]);
  }
  if (origin.rows && !origin.info.shape.empty()) out += "; " + rows_text(origin);
  return out;
}

std::string input_text(const OriginInput& input) {
  if (input.state == InputState::kUnknown) return "unknown";
  if (!input.stats) return input.state == InputState::kGood ? "sound" : "bad";
  const Stats& stats = *input.stats;
  if (stats.knows(kStatCount) && stats.count == 0) return "empty";
  const std::string bad = nonfinite_text(stats);
  std::string out = bad.empty() ? "finite" : bad;
  if (stats.min == stats.min) out += fmt::format(", min {}, max {}", format_short(stats.min, 3), format_short(stats.max, 3));
  if (input.zeros_at_bad)
    out += fmt::format(", {} at the same places", counted(stats.zero_count, "zero"));
  else if (stats.zero_count > 0)
    out += fmt::format(", {}", counted(stats.zero_count, "zero"));
  return out;
}

std::string absorbed_text(const Stats& stats) {
  if (stats.count > 0 && stats.zero_count == stats.count) return "has no NaN, it is all zero";
  return stats.min == stats.min ? fmt::format("is finite, min {}, max {}", format_short(stats.min), format_short(stats.max)) : "is sound";
}

bool went_in(const Session& session, const TensorId& update) {
  const Graph* const graph = session.graph(update.rank, update.graph);
  const bool recorded = graph != nullptr && graph->recorded_calls();
  return update.slot.io == Io::kInput || (recorded && session.node(update).role != CallRole::kOptimizer);
}

std::string update_place(const Origin& origin) {
  const TensorId& update = *origin.update;
  return fmt::format("{} in step {}", update.rank == origin.tensor.rank ? "" : fmt::format(" on rank {}", update.rank), update.step);
}

std::string in_group(std::string_view group, bool assumed) {
  const std::string text = group_text(group, assumed);
  return text.empty() ? "" : fmt::format(" ({})", printable(text));
}

std::vector<std::string> reached_lines(std::span<const RankReached> ranks, const std::function<std::string(const TensorId&)>& name) {
  std::map<std::tuple<NodeId, int, uint64_t, uint64_t, bool>, std::vector<const RankReached*>> joined;
  std::map<std::string, NodeId> known;  // a node has another number in the graph of each rank
  for (const RankReached& rank : ranks) {
    const NodeId node = known.try_emplace(name(rank.through), rank.through.node).first->second;
    joined[{node, rank.through.graph, rank.collectives, rank.tensors, rank.sound_loss}].push_back(&rank);
  }
  std::vector<std::string> lines;
  for (const auto& [key, same] : joined) {
    const RankReached& first = *same.front();
    std::vector<int> numbers;
    for (const RankReached* rank : same) numbers.push_back(rank->rank);
    std::string line = fmt::format("{} got it through {}{}", ranks_text(numbers),
                                   first.recorded ? "" : "an exchange that was not recorded, in front of ", name(first.through));
    if (first.collectives > 1) line += fmt::format(" and {} more", first.collectives - 1);
    line += in_group(first.group, first.assumed);
    line += fmt::format(": {}{}", counted(first.tensors, "tensor"), same.size() > 1 ? " each" : "");
    if (first.sound_loss) line += same.size() > 1 ? "; their losses are finite" : "; its loss is finite";
    lines.push_back(std::move(line));
  }
  return lines;
}

Answer reached_answer(const Session& session, std::span<const RankReached> ranks) {
  Answer out = Answer::array();
  for (const RankReached& rank : ranks) {
    out.push_back({{"rank", rank.rank},
                   {"through", place_answer(session, rank.through)},
                   {"group", text_answer(rank.group)},
                   {"assumed", rank.assumed},
                   {"recorded", rank.recorded},
                   {"collectives", rank.collectives},
                   {"tensors", rank.tensors},
                   {"sound_loss", rank.sound_loss}});
  }
  return out;
}

bool worth_showing(const OriginInput& input) { return input.stats && (is_float(input.stats->dtype) || input.stats->count > 1); }

const Node* first_reader(const Graph& graph, NodeId parameter) {
  const Node* first = nullptr;
  for (const Use& use : graph.effective_users(parameter)) {
    const Node& reader = graph.node(use.node);
    if (!source_place(reader, false).empty() && (first == nullptr || reader.order < first->order)) first = &reader;
  }
  return first;
}

}  // namespace msdbg
