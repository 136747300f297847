// One statistic over the steps.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "analysis/follow.h"
#include "analysis/trend_ranks.h"

namespace msdbg {
namespace {

struct Statistic {
  std::string_view name;
  uint32_t field;
  std::optional<double> (*value)(const Stats&);
};

std::optional<double> real(double value) { return std::isnan(value) ? std::nullopt : std::optional(value); }
std::optional<double> whole(uint64_t value) { return static_cast<double>(value); }

/// The norm of an empty tensor is 0, which would look like a vanished tensor on a line over the steps.
std::optional<double> norm(const Stats& s) { return s.count > 0 && s.finite_count() == 0 ? std::nullopt : real(s.l2_norm); }

constexpr Statistic kStatistics[] = {
    {"count", kStatCount, [](const Stats& s) { return whole(s.count); }},
    {"min", kStatMin, [](const Stats& s) { return real(s.min); }},
    {"max", kStatMax, [](const Stats& s) { return real(s.max); }},
    {"mean", kStatMean, [](const Stats& s) { return real(s.mean); }},
    {"abs_mean", kStatAbsMean, [](const Stats& s) { return real(s.abs_mean); }},
    {"std", kStatStd, [](const Stats& s) { return real(s.std); }},
    {"l2_norm", kStatL2Norm, norm},
    {"nan_count", kStatNan, [](const Stats& s) { return whole(s.nan_count); }},
    {"pos_inf_count", kStatPosInf, [](const Stats& s) { return whole(s.pos_inf_count); }},
    {"neg_inf_count", kStatNegInf, [](const Stats& s) { return whole(s.neg_inf_count); }},
    {"zero_count", kStatZero, [](const Stats& s) { return whole(s.zero_count); }},
    {"pos_count", kStatPos, [](const Stats& s) { return whole(s.pos_count); }},
    {"neg_count", kStatNeg, [](const Stats& s) { return whole(s.neg_count); }},
    {"zero_percentage", kStatZero | kStatCount, [](const Stats& s) { return real(s.zero_percentage()); }},
    {"first_bad", kStatFirstBad, [](const Stats& s) { return s.first_bad ? whole(*s.first_bad) : std::nullopt; }},
    {"dtype_max_count", kStatDtypeMax, [](const Stats& s) { return whole(s.dtype_max_count); }},
};

Result<const Statistic*> find_statistic(std::string_view name) {
  for (const Statistic& statistic : kStatistics) {
    if (statistic.name == name) return &statistic;
  }
  const std::vector<std::string> names = statistic_names(), close = nearest(name, names, 1);
  std::string what = fmt::format("no statistic '{}'", name);
  if (!close.empty()) what += fmt::format("; did you mean '{}'?", close[0]);
  else if (name.find_first_of("@*/:.") != std::string_view::npos) what += "; the statistic comes first, then the selector: max " + std::string(name);
  else what += fmt::format("; there are {}", fmt::join(names, ", "));
  return Status(Code::kInvalidArgument, std::move(what));
}

std::string why_none(const Statistic& statistic, const Stats& stats) {
  if (!stats.knows(statistic.field)) return fmt::format("the dump has only some statistics of it, {} is not among them", statistic.name);
  if (statistic.name == "first_bad") return "no NaN or Inf";
  if (stats.knows(kStatCount) && stats.count == 0) return "no elements";
  return stats.knows(kStatNan) && stats.nan_count == stats.count ? "every element is NaN" : "no finite element";
}

/// Summarizes the steps.
void finish(TrendLine& line) {
  std::vector<std::pair<int64_t, double>> series;
  for (const TrendPoint& point : line.points) {
    if (!point.value) continue;
    if (!line.first) line.first = line.min = line.max = point.value;
    line.last = point.value;
    line.min = std::min(*line.min, *point.value);
    line.max = std::max(*line.max, *point.value);
    series.emplace_back(point.step, *point.value);
  }
  if (!series.empty()) {
    for (const TrendPoint& point : line.points) {
      if (point.step > series.back().first && !line.ends) line.ends = point.step;
    }
  }
  line.change = change_point(series);
}

}  // namespace

std::vector<std::string> statistic_names() {
  std::vector<std::string> names;
  for (const Statistic& statistic : kStatistics) names.emplace_back(statistic.name);
  return names;
}

Result<std::optional<double>> statistic_value(const Stats& stats, std::string_view name) {
  const Result<const Statistic*> statistic = find_statistic(name);
  if (!statistic) return statistic.status();
  if (!stats.knows((*statistic)->field)) return std::optional<double>();
  return (*statistic)->value(stats);
}

Result<TrendResult> trend(Session& session, const FollowTarget& target, std::string_view name, const FollowOptions& options) {
  const Result<const Statistic*> statistic = find_statistic(name);
  if (!statistic) return statistic.status();
  const std::vector<TensorId> tensors = target_tensors(session, target, options.steps, options.ranks);
  if (tensors.empty()) {
    return Status(Code::kNotFound, fmt::format("nothing of {} was dumped in steps {} (have steps {}); the command why gives the reason",
                                               target.text, options.steps.text(), numbers_text(session.steps())));
  }
  TrendResult result;
  result.statistic = (*statistic)->name;
  result.target = target.text;

  // Compute what is missing on all threads; below, everything is cached.
  Watchpoint warm;
  warm.id = 1;
  warm.on = target.on;
  warm.inputs = target.inputs;
  warm.outputs = target.outputs;
  warm.slot = target.slot;
  warm.optional = true;
  warm.condition = make_condition("tensor_overflow", {}).value();
  const Result<CheckResult> warmed = check(session, std::span(&warm, 1), check_options(options));
  if (!warmed) return warmed.status();
  result.coverage = warmed->coverage;
  result.interrupted = warmed->interrupted;

  std::map<TensorId, size_t> line_of;  // by tensor without its step
  std::set<int64_t> steps;
  for (const TensorId& id : tensors) {
    if (result.interrupted || interrupt_requested()) {
      result.interrupted = true;
      break;
    }
    TrendPoint point;
    point.step = id.step;
    const Result<Stats> stats = session.stats(id);
    if (!stats) {
      point.reason = stats.status().message();
    } else {
      point.count = stats->knows(kStatCount) ? stats->count : 0;
      point.not_finite = stats->nan_count + stats->inf_count();
      if (stats->knows((*statistic)->field)) point.value = (*statistic)->value(*stats);
      if (!point.value) point.reason = why_none(**statistic, *stats);
    }
    TensorId key = id;
    key.step = 0;
    const auto [at, added] = line_of.try_emplace(key, result.lines.size());
    if (added) result.lines.emplace_back().tensor = id;
    result.lines[at->second].points.push_back(std::move(point));
    steps.insert(id.step);
  }
  join_ranks_of_lines(session, result.lines);
  for (TrendLine& line : result.lines) finish(line);
  auto place = [&](const TrendLine& line) {
    const TensorId& id = line.tensor;
    return std::tuple(id.rank, id.graph, session.node(id).order, id.node, id.execution, id.slot);
  };
  std::stable_sort(result.lines.begin(), result.lines.end(), [&](const TrendLine& a, const TrendLine& b) { return place(a) < place(b); });
  result.steps.assign(steps.begin(), steps.end());
  return result;
}

}  // namespace msdbg
