#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "msdbg/answers.h"
#include "msdbg/follow_report.h"
#include "report/follow_text.h"
#include "report/table.h"

namespace msdbg {
namespace {


std::string_view state_word(InputState state) { return state == InputState::kBad ? "yes" : state == InputState::kGood ? "no" : "unknown"; }

const BisectProbe* probe_of(const BisectRank& rank, int64_t step) {
  for (const BisectProbe& probe : rank.probes) {
    if (probe.step == step) return &probe;
  }
  return nullptr;
}

bool any_judged(const BisectRank& rank) {
  return std::any_of(rank.probes.begin(), rank.probes.end(), [](const BisectProbe& probe) { return probe.state != InputState::kUnknown; });
}

std::string verdict_text(const BisectResult& result, const BisectRank& rank, const ReportStyle& style) {
  const std::string what = fmt::format("'{}' on {}", printable(result.predicate), printable(result.target));
  if (!rank.first) {
    if (!any_judged(rank)) return fmt::format("{}: nothing can be said, no step could be judged", what);
    if (rank.skipped.empty()) return fmt::format("{}: in none of the steps examined", what);
    return fmt::format("{}: in none of the steps that could be judged, but not all could", what);
  }
  const std::string first = painted(fmt::format("first in step {}", *rank.first), Paint::kError, style.colour);
  if (rank.last_before) return fmt::format("{}: {}, not yet in step {}", what, first, *rank.last_before);
  return fmt::format("{}: {}{}", what, first, rank.open.empty() ? ", the first there is" : "");
}

std::string why_skipped(const BisectRank& rank) {
  for (const BisectProbe& probe : rank.probes) {
    if (probe.state == InputState::kUnknown && !probe.reason.empty()) return "not dumped, or undecided: " + probe.reason;
  }
  return "not dumped, or not to be judged";
}

std::string trust_text(const BisectRank& rank) {
  std::string out;
  if (!rank.open.empty() && rank.first) {
    out += fmt::format("  between them   {}: not dumped or not judged; the change may be there\n", numbers_text(rank.open));
  }
  if (!rank.monotone) {
    out += fmt::format(
        "  not monotone   it holds in step {} and no longer in step {}; an earlier spell may have been missed: trend shows them all\n",
        *rank.first, *rank.counterexample);
  } else if (rank.first) {
    const auto later = std::count_if(rank.probes.begin(), rank.probes.end(),
                                     [&](const BisectProbe& probe) { return probe.state == InputState::kBad && probe.step > *rank.first; });
    if (later > 0) {
      out += fmt::format("  monotone       in the {} that {} looked at\n", later == 1 ? "later step" : fmt::format("{} later steps", later),
                         later == 1 ? "was" : "were");
    }
  } else if (any_judged(rank)) {
    out += "  note           a spell between the examined steps would not be seen; check covers every step\n";
  }
  if (!rank.skipped.empty()) {
    out += fmt::format("  passed over    {}: {}\n", numbers_text(rank.skipped), printable(why_skipped(rank)));
  }
  return out;
}

/// The verdict on a rank and the steps examined, without the rank.
std::string rank_text(Session& session, const BisectResult& result, const BisectRank& rank, const ReportStyle& style) {
  std::string out = verdict_text(result, rank, style) + "\n";
  out +=
      fmt::format("  looked at      {} of {}, {} read\n", rank.probes.size(), counted(rank.steps, "step"), counted(rank.reads, "tensor"));
  out += trust_text(rank);
  Table table({{"  asked", Align::kRight},
               {"step", Align::kRight},
               {"holds"},
               {.title = "tensor", .fit = Fit::kName},
               {.title = "values", .fit = Fit::kText}});
  for (size_t i = 0; i < rank.probes.size(); ++i) {
    const BisectProbe& probe = rank.probes[i];
    Table::Cell tensor("");
    if (!probe.holds.empty()) {
      const TensorId& id = probe.holds.front();
      std::string behind = follow::name_suffix(session, id, slot_suffix(id.slot), {});
      if (probe.holds.size() > 1) behind += fmt::format(" and {} more", probe.holds.size() - 1);
      tensor = name_cell(session, id, behind);
    }
    // When none of several tensors has it, no single one deserves a line.
    const bool shows = probe.stats && (probe.tensors == 1 || !probe.holds.empty());
    const std::string values = probe.state == InputState::kUnknown && !probe.reason.empty() ? printable(probe.reason)
                               : shows ? stats_line(*probe.stats) : printable(probe.reason);
    table.add({std::to_string(i + 1), std::to_string(probe.step),
               Table::Cell(std::string(state_word(probe.state)), probe.state == InputState::kBad ? Paint::kError : Paint::kNone), tensor,
               values});
  }
  return out + table.text(style);
}

/// Which rank was first; "" if the predicate holds on none.
std::string ranks_line(const BisectResult& result) {
  if (result.first_ranks.empty()) return "";
  const auto of = [&](int rank) { return std::ranges::find(result.ranks, rank, &BisectRank::rank); };
  const int64_t step = *of(result.first_ranks.front())->first;
  std::map<int64_t, std::vector<int>> later;
  std::vector<int> same, never;
  for (const BisectRank& rank : result.ranks) {
    if (std::ranges::count(result.first_ranks, rank.rank) > 0) continue;
    if (!rank.first) never.push_back(rank.rank);
    else if (*rank.first == step) same.push_back(rank.rank);
    else later[*rank.first].push_back(rank.rank);
  }
  std::string out = fmt::format("first on {}, in step {}", ranks_text(result.first_ranks), step);
  if (!same.empty()) out += fmt::format("; on {} later in that step", ranks_text(same));
  for (const auto& [at, ranks] : later) out += fmt::format("; on {} in step {}", ranks_text(ranks), at);
  if (!never.empty()) out += fmt::format("; not on {}", ranks_text(never));
  return out + "\n";
}

}  // namespace

std::string bisect_report(Session& session, const BisectResult& result, const ReportStyle& style) {
  if (style.format == Format::kJson) return json_text(bisect_answer(session, result));
  if (style.format == Format::kJsonl) return json_lines(bisect_answer(session, result), "ranks");
  std::string out = ranks_line(result);
  std::vector<std::pair<std::string, std::vector<int>>> blocks;  // ranks with the same answer share one
  for (const BisectRank& rank : result.ranks) {
    std::string text = rank_text(session, result, rank, style);
    const auto known = std::ranges::find(blocks, text, &std::pair<std::string, std::vector<int>>::first);
    if (known != blocks.end()) known->second.push_back(rank.rank);
    else blocks.push_back({std::move(text), {rank.rank}});
  }
  for (const auto& [text, ranks] : blocks) out += result.ranks.size() > 1 ? fmt::format("{}  {}", ranks_text(ranks), text) : text;
  if (result.interrupted) out += "interrupted: the search was not finished\n";
  if (session.can_step()) return fitted(std::move(out), style);
  for (const BisectRank& rank : result.ranks) {
    if (!result.first_ranks.empty() && rank.rank != result.first_ranks.front()) continue;
    const BisectProbe* probe = rank.first ? probe_of(rank, *rank.first) : nullptr;
    if (probe == nullptr || probe->holds.empty() || result.predicate == "a function") continue;
    const TensorId& id = probe->holds.front();
    Hint hint{"propagation", {fmt::format("{}:{}", brief_name(session, session.node(id).name), slot_name(id.slot))}};
    follow::add_place(session, id, &hint.words);
    for (const std::string& word : {std::string("--up"), std::string("--when"), result.predicate}) hint.words.push_back(word);
    out += fmt::format("next: {}\n", hint_text(session, hint, style.place));
    break;
  }
  return fitted(std::move(out), style);
}

}  // namespace msdbg
