// Where causes are looked for: origins in the steps with NaN or Inf, then the attribution of every finding.
#include <fmt/format.h>

#include <set>

#include "analysis/causes.h"

namespace msdbg {
namespace {

/// Steps in which a finding is about NaN or Inf: in its tensor, or in what a rectifier swallowed.
std::set<int64_t> broken_steps(Session& session, const CheckResult& result) {
  std::set<int64_t> steps;
  const auto broken = [](const Stats& stats) { return stats.nan_count + stats.inf_count() > 0; };
  for (const Hit& hit : result.hits) {
    if (steps.contains(hit.tensor.step)) continue;
    if (broken(hit.stats)) {
      steps.insert(hit.tensor.step);
    } else if (hit.rule == "dead-relu" || hit.rule == "nan-swallowed") {
      TensorId taken = hit.tensor;
      taken.slot = {Io::kInput, 0};
      const auto stats = session.stats(taken);
      if (stats && broken(*stats)) steps.insert(hit.tensor.step);
    }
  }
  return steps;
}

}  // namespace

Status find_causes(Session& session, const CheckOptions& limits, CheckResult* result, const OriginResult* origins) {
  result->causes.reset();
  for (Hit& hit : result->hits) hit.follows.reset();
  if (session.info().kind != SessionKind::kDump || result->interrupted) return {};
  result->overflows.clear();
  for (const int rank : session.ranks()) {
    if (!limits.ranks.contains(rank)) continue;
    for (const int64_t step : result->steps) {
      if (Result<std::vector<OverflowRecord>> overflows = session.overflow_records(rank, step))
        result->overflows.insert(result->overflows.end(), overflows->begin(), overflows->end());
    }
  }
  OriginResult found;
  const std::set<int64_t> steps = origins == nullptr ? broken_steps(session, *result) : std::set<int64_t>{};
  if (!steps.empty()) {
    std::string list;
    for (const int64_t step : steps) list += fmt::format("{}{}", list.empty() ? "" : ",", step);
    OriginOptions options;
    auto chosen = IntSet::parse(list);
    if (!chosen) return chosen.status();
    options.steps = std::move(*chosen);
    options.ranks = limits.ranks;
    options.semantics = limits.semantics;
    options.mem_limit_bytes = limits.mem_limit_bytes;
    options.threads = limits.threads;
    options.progress = limits.progress;
    auto searched = find_origins(session, options);
    if (!searched) return searched.status();
    found = std::move(*searched);
  }
  if (origins == nullptr) origins = &found;
  if (origins->interrupted || interrupt_requested()) return Status(Code::kInterrupted, "interrupted while looking for causes");
  attribute(session, *origins, *result);
  return {};
}

}  // namespace msdbg
