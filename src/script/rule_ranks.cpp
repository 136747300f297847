#include "script/rule_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <set>

#include "msdbg/replicas.h"

namespace msdbg::script {
namespace {

struct ComparedRanks {
  std::set<int64_t> steps, ranks;
  FollowOptions limits;

  /// Error: that of replicas().
  ScriptPhase findings(Session& session) {
    ScriptPhase out;
    if (ranks.size() < 2) {
      if (!ranks.empty()) out.problem = fmt::format("only rank {} was checked; it compares ranks", *ranks.begin());
      return out;
    }
    limits.steps = set_of(steps);
    limits.ranks = set_of(ranks);
    Result<ReplicasResult> compared = replicas(session, limits);
    if (!compared) {
      out.problem = compared.status().message();
      return out;
    }
    const auto found = std::make_shared<const ReplicasResult>(std::move(*compared));
    out.replicas = found;
    const bool weights = std::ranges::any_of(found->sets, [](const ReplicaSet& set) { return set.what == ReplicaKind::kParameter; });
    if (!weights && !found->interrupted) out.gap = "no weight was compared between the ranks; replicas says why";
    for (const ReplicaDifference& difference : found->differences) {
      const bool dumped = session.exists(difference.tensor);
      ScriptFinding& made = out.findings.emplace_back();
      made.tensor = dumped ? difference.tensor : difference.seen;
      made.actual = static_cast<double>(difference.elements);
      made.details = {{"message", difference_sentence(difference)}};
      if (difference.single_flip) made.details.emplace_back("flipped_bit", std::to_string(difference.bits.front()));
      made.before_update = before_update(difference);
    }
    return out;
  }

  static std::optional<BeforeUpdate> before_update(const ReplicaDifference& difference) {
    // Its own file shows a parameter after its update, an operator's input before.
    if (!difference.updated || difference.seen.slot.io != Io::kInput || difference.first.empty()) return std::nullopt;
    BeforeUpdate out;
    for (const DifferentElement& element : difference.first) {
      const double times = std::abs(element.actual) / std::max(std::abs(element.expected), std::numeric_limits<double>::min());
      if (!std::isfinite(element.actual)) return BeforeUpdate();
      out.times = std::max(out.times, times);
    }
    return out;
  }

  static IntSet set_of(const std::set<int64_t>& numbers) {
    std::string text;
    for (auto first = numbers.begin(); first != numbers.end();) {
      auto last = first;
      for (auto next = std::next(last); next != numbers.end() && *next == *last + 1; ++next) last = next;
      text += fmt::format("{}{}:{}", text.empty() ? "" : ",", *first, *last);
      first = std::next(last);
    }
    return value_or_throw(IntSet::parse(text));
  }
};

}  // namespace

void compare_ranks(SessionBox& box, Watchpoint& point) {
  auto seen = std::make_shared<ComparedRanks>();
  seen->limits.threads = box.defaults.threads;
  seen->limits.mem_limit_bytes = box.defaults.mem_limit_bytes;
  point.needs_elements = false;
  point.compares_bits = true;
  point.script = [seen](const CheckedTensor& tensor) {
    seen->steps.insert(tensor.id.step);
    seen->ranks.insert(tensor.id.rank);
    return ScriptVerdict{};
  };
  point.finish = [&box, seen] { return seen->findings(*box.session); };
}

}  // namespace msdbg::script
