// Where causes are looked for: origins in the steps with NaN or Inf, then the attribution of every finding.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "analysis/causes.h"

namespace msdbg {
namespace {

bool has_bad_values(const Stats& stats) { return stats.nan_count + stats.inf_count() > 0; }

/// A training judges its watchpoints itself and sends no statistics with its hits.
bool says_broken(const Hit& hit) {
  return hit.rule == "tensor_overflow" || hit.rule == "recommended-tensor-overflow" ||
         std::ranges::any_of(hit.params, [](const ParamResult& param) { return param.hit && param.actual && !std::isfinite(*param.actual); });
}

/// Steps in which a finding is about NaN or Inf: in its tensor, or in what a rectifier swallowed.
std::set<int64_t> broken_steps(Session& session, const CheckResult& result, std::optional<int64_t> held) {
  std::set<int64_t> steps;
  for (const Hit& hit : result.hits) {
    if (steps.contains(hit.tensor.step) || (held && hit.tensor.step != *held)) continue;
    if (has_bad_values(hit.stats) || (held && hit.stats.known == 0 && says_broken(hit))) {
      steps.insert(hit.tensor.step);
    } else if (hit.rule == "dead-relu" || hit.rule == "nan-swallowed") {
      TensorId taken = hit.tensor;
      taken.slot = {Io::kInput, 0};
      const auto stats = session.stats(taken);
      if (stats && has_bad_values(*stats)) steps.insert(hit.tensor.step);
    }
  }
  return steps;
}

/// What the training holds in this step.
uint64_t bytes_of_step(Session& session, const IntSet& ranks, int64_t step) {
  TensorQuery query;
  query.ranks = ranks;
  query.steps = IntSet::of(step);
  uint64_t bytes = 0;
  for (const TensorId& id : session.tensors(query)) {
    if (const auto info = session.describe(id)) bytes += info->bytes;
  }
  return bytes;
}

/// The search for origins has read what these hits are about.
void add_statistics(Session& session, int64_t step, CheckResult* result) {
  for (Hit& hit : result->hits) {
    if (hit.stats.known != 0 || hit.tensor.step != step) continue;
    if (auto stats = session.stats(hit.tensor)) hit.stats = std::move(*stats);
  }
}

}  // namespace

Status find_causes(Session& session, const CheckOptions& limits, CheckResult* result, const OriginResult* origins) {
  result->causes.reset();
  result->no_causes.clear();
  for (Hit& hit : result->hits) hit.follows.reset();
  if (session.info().kind == SessionKind::kCheckpoint || result->interrupted) return {};
  const std::optional<int64_t> held = session.can_step() ? session.held_step() : std::nullopt;
  if (session.can_step()) {
    const auto is_held = [&](const Hit& hit) { return hit.tensor.step == held; };
    if (!held || std::ranges::none_of(result->hits, is_held)) return {};
  }
  result->overflows.clear();
  for (const int rank : session.ranks()) {
    if (!limits.ranks.contains(rank)) continue;
    for (const int64_t step : result->steps) {
      if (Result<std::vector<OverflowRecord>> overflows = session.overflow_records(rank, step))
        result->overflows.insert(result->overflows.end(), overflows->begin(), overflows->end());
    }
  }
  OriginResult found;
  const std::set<int64_t> steps = origins == nullptr ? broken_steps(session, *result, held) : std::set<int64_t>{};
  if (!steps.empty()) {
    if (held) {
      const uint64_t bytes = bytes_of_step(session, limits.ranks, *held);
      if (bytes > std::max(kMostCauseBytes, result->coverage.bytes)) {
        result->no_causes = fmt::format("not looked for: the step has {} of values; origin reads them", format_bytes(bytes));
        return {};
      }
    }
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
    if (held) add_statistics(session, *held, result);
  }
  if (origins == nullptr) origins = &found;
  if (origins->interrupted || interrupt_requested()) return Status(Code::kInterrupted, "interrupted while looking for causes");
  attribute(session, *origins, *result);
  return {};
}

}  // namespace msdbg
