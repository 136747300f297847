#include "session/verdict.h"

#include "session/stats_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "msdbg/condition_numbers.h"
#include "msdbg/device_format.h"

namespace msdbg {
namespace {

uint32_t code_of(const Status& status) {
  if (status.code() == Code::kOutOfMemory) return kErrorOutOfMemory;
  if (status.code() == Code::kNotFound) return kErrorNoValue;
  return 0;
}

/// MindSpore compares with the last dumped step, no matter how long ago; so do conditions that must give the same answer.
/// Rules judge the change for each step.
bool is_per_step(const Watchpoint& watch, Semantics semantics) {
  return semantics == Semantics::kFinite || (watch.info && !watch.info->file.empty());
}

/// True for conditions that padding does not change and that ask for no place.
bool asks_for_bad_elements(const Watchpoint& watch) {
  using namespace condition_number;
  if (!watch.condition) return false;
  const int asked = watch.condition->spec->enumerator;
  return asked == kNan || asked == kInf || asked == kTensorOverflow || asked == kOperatorOverflow;
}

/// The number of steps that a change spans, if more than one.
std::string steps_text(const Condition& condition, int64_t steps, bool per_step) {
  return fmt::format("{} {} steps", per_step && condition.spec->enumerator == condition_number::kChangeTooLarge ? "for each of" : "in",
                     steps);
}

std::string_view abbr_of(const Watchpoint& watch) {
  if (watch.condition && watch.rule == watch.condition->spec->id) return watch.condition->spec->abbr;
  if (watch.info) return watch.info->abbr;
  return watch.condition ? watch.condition->spec->abbr : std::string_view();
}

}  // namespace

/// The facts for a decision. `stats` is null if the tensor could not be measured; `problem` has the reason.
struct Verdicts::Evidence {
  const TensorInfo* info = nullptr;
  const Stats* stats = nullptr;
  Previous previous = Previous::kNotNeeded;
  std::string_view previous_reason;
  const KeptStats* kept = nullptr;  ///< null if the statistics came with the data
  const WatchSet* set = nullptr;
  std::span<const std::optional<ExpressionValue>> values;  ///< of the set's expressions, or empty
  const Status* problem = nullptr;
};

bool Verdicts::judge(const PlannedTensor& planned, const WatchSet& set, const Measured& measured, bool scripts,
                     CheckResult& result) {
  Evidence evidence;
  evidence.problem = &measured.problem;
  evidence.set = &set;
  evidence.values = measured.values;
  std::optional<Stats> given;
  if (measured.info) evidence.info = &*measured.info;
  if (measured.kept) {
    evidence.info = &measured.kept->info;
    evidence.stats = &measured.kept->stats;
    evidence.previous = measured.kept->previous;
    evidence.previous_reason = measured.kept->previous_reason;
    evidence.kept = measured.kept.get();
  } else if (evidence.info && evidence.info->availability == Availability::kStatisticsOnly) {
    given = session_.given_statistics(planned.id);
    if (given) evidence.stats = &*given;
  }

  bool decided = true;
  for (const Watchpoint* watch : set.watches) {
    if (watch->script && !scripts) {
      decided = false;
      continue;
    }
    Outcome outcome = judge_one(*watch, planned, evidence);
    if (watch->except && outcome.verdict != Verdict::kClean && evidence.stats) {
      if (!scripts) {
        decided = false;
        continue;
      }
      apply_exception(*watch, planned.id, evidence, outcome);
    }
    if (outcome.verdict != Verdict::kNotChecked) ++result.coverage.verdicts;
    if (outcome.verdict == Verdict::kHit) {
      add_hit(*watch, planned.id, evidence, std::move(outcome), result);
    } else if (outcome.verdict == Verdict::kNotChecked) {
      decided = false;
      result.not_checked.push_back({watch->id, watch->rule, std::string(abbr_of(*watch)), planned.id,
                                    std::move(outcome.reason), outcome.error_code});
    }
  }
  return decided;
}

void Verdicts::apply_exception(const Watchpoint& watch, const TensorId& id, const Evidence& evidence, Outcome& outcome) {
  ScriptVerdict answer = watch.except(CheckedTensor{id, evidence.info, evidence.stats});
  if (answer.verdict == Verdict::kHit) outcome = {};
  if (answer.verdict == Verdict::kNotChecked) outcome = {Verdict::kNotChecked, answer.error_code, std::move(answer.reason), {}, {}};
}

Verdicts::Outcome Verdicts::judge_one(const Watchpoint& watch, const PlannedTensor& planned, const Evidence& evidence) {
  Outcome outcome;
  auto not_checked = [&](std::string reason, uint32_t code) {
    outcome.verdict = Verdict::kNotChecked;
    outcome.reason = std::move(reason);
    outcome.error_code = code;
    return outcome;
  };
  if (planned.missing) return not_checked("no stored value", kErrorNoValue);
  if (!watch.script && evidence.stats && evidence.info && is_blocked_device_format(evidence.info->format) &&
      !asks_for_bad_elements(watch)) {
    return not_checked(fmt::format("the elements are in the order of the device, with its padding: format {}", evidence.info->format), 0);
  }
  if (watch.condition) {
    const int enumerator = watch.condition->spec->enumerator;
    if (enumerator == condition_number::kOperatorOverflow) return judge_flag(planned.id);
    if (enumerator == condition_number::kInitialization && !shows_initial_values(session_.info().kind)) {
      return not_checked(fmt::format("initial values are not in a {}", session_kind_name(session_.info().kind)), 0);
    }
    if (enumerator == condition_number::kInitialization && planned.id.step != 0) {
      return not_checked("initial weights can be judged before the first step only", 0);
    }
  }
  if (!evidence.stats) {
    // What compares ranks does with checksums.
    const bool enough = watch.compares_bits && !session_.late_checksums() && !session_.checksum(planned.id).empty();
    if (!enough) return not_checked(evidence.problem->message(), code_of(*evidence.problem));
    watch.script(CheckedTensor{planned.id, evidence.info, nullptr});
    return outcome;
  }
  if (options_.report_missing && evidence.stats->knows(kStatCount) && evidence.stats->count == 0) {
    return not_checked("no stored value (the tensor is empty)", kErrorNoValue);
  }
  if (watch.condition) return judge_condition(watch, planned.id, evidence);
  if (watch.expression) return judge_expression(*watch.expression, planned.id, evidence);

  ScriptVerdict answer = watch.script(CheckedTensor{planned.id, evidence.info, evidence.stats});
  outcome.verdict = answer.verdict;
  outcome.reason = std::move(answer.reason);
  outcome.error_code = answer.error_code;
  if (outcome.verdict == Verdict::kNotChecked && outcome.reason.empty()) outcome.reason = "the rule returned no verdict";
  if (answer.actual) outcome.details.emplace_back("actual", format_double(*answer.actual));
  for (auto& detail : answer.details) outcome.details.push_back(std::move(detail));
  return outcome;
}

int64_t Verdicts::steps_since_previous(const TensorId& id, const Evidence& evidence) {
  if (evidence.kept == nullptr || !evidence.kept->previous_id) return 1;
  const TensorId& from = *evidence.kept->previous_id;
  const auto [found, is_new] = steps_between_.try_emplace({from.step, id.step}, 1);
  if (is_new) found->second = session_.steps_between(from, id);
  return found->second;
}

Verdicts::Outcome Verdicts::judge_condition(const Watchpoint& watch, const TensorId& id, const Evidence& evidence) {
  const Condition& condition = *watch.condition;
  const Previous previous = condition.spec->needs_previous ? evidence.previous : Previous::kNotNeeded;
  const int64_t steps = condition.spec->needs_previous ? steps_since_previous(id, evidence) : 1;
  const bool per_step = is_per_step(watch, options_.semantics);
  static const StatsRequest kNothing;
  const StatsRequest& request = evidence.kept != nullptr ? evidence.kept->request : kNothing;
  Decision decision = decide(condition, *evidence.stats, request, previous, options_.semantics, per_step ? steps : 1);
  if (decision.error_code & kErrorNoPrevious && !evidence.previous_reason.empty()) {
    // If a previous value exists but cannot be used, name it.
    constexpr std::string_view kPlain = "no previous step";
    if (const size_t at = decision.reason.find(kPlain); at != std::string::npos) {
      decision.reason.replace(at, kPlain.size(), evidence.previous_reason);
    }
  }
  if (decision.verdict == Verdict::kNotChecked && evidence.stats->nan_count > 0 &&
      (decision.error_code & ~uint32_t{kErrorNan | kErrorInf}) == 0) {
    if (options_.nan == NanVerdict::kHit) decision.verdict = Verdict::kHit;
    // Inf is a separate reason.
    if (options_.nan == NanVerdict::kClean && (decision.error_code & kErrorInf) == 0) decision.verdict = Verdict::kClean;
  }
  Outcome outcome{decision.verdict, decision.error_code, std::move(decision.reason), std::move(decision.params), {}};
  if (steps > 1 && outcome.verdict == Verdict::kHit) outcome.details.emplace_back("message", steps_text(condition, steps, per_step));
  return outcome;
}

/// Why the result of an expression does not decide this tensor; "" if it does. A comparison with NaN is false, which proves nothing.
std::string Verdicts::blinded(const Expression& expression, const ExpressionValue& value, const Evidence& evidence) {
  const Stats& stats = *evidence.stats;
  const bool nan = stats.nan_count > 0;
  if (!value.is_decided && stats.count > 0) {
    return std::string(nan ? "NaN in the tensor" : stats.inf_count() > 0 ? "Inf in the tensor" : "the compared value is NaN");
  }
  if (!nan || expression.asks_about_nan()) return "";
  return !value.truth() || stats.nan_count == stats.count ? "NaN in the tensor" : "";
}

Verdicts::Outcome Verdicts::judge_expression(const Expression& expression, const TensorId& id,
                                             const Evidence& evidence) {
  Outcome outcome;
  std::optional<ExpressionValue> value;
  if (evidence.kept != nullptr) {
    if (evidence.values.empty()) {
      const auto found = evidence.kept->values.find(expression.text());
      if (found != evidence.kept->values.end()) value = found->second;
    } else {
      const auto found = std::ranges::find(evidence.set->expressions, expression.text(), &Expression::text);
      value = evidence.values[static_cast<size_t>(found - evidence.set->expressions.begin())];
    }
    // An empty tensor has nothing that could have changed.
    if (!value && evidence.stats->count == 0) return outcome;
  } else {
    const ExpressionSet alone({&expression, 1});
    if (!alone.decided_by_stats(0) || !evidence.stats->knows(alone.stats_fields(0))) {
      outcome.verdict = Verdict::kNotChecked;
      outcome.reason = "no tensor data (the statistics do not decide it)";
      return outcome;
    }
    if (!is_evaluable(evidence.stats->dtype)) {
      outcome.verdict = Verdict::kNotChecked;
      outcome.reason = "the statistics do not say of what type they are";
      return outcome;
    }
    ExpressionRun run(alone, {evidence.stats->dtype, DType::kUnknown, evidence.stats->count, static_cast<double>(id.step),
                              static_cast<double>(id.rank)});
    run.end_pass(*evidence.stats, alone.stats_request());
    value = run.value(0);
  }
  if (!value) {
    outcome.verdict = Verdict::kNotChecked;
    outcome.error_code = kErrorNoPrevious;
    if (evidence.previous == Previous::kNoHistory) outcome.error_code |= kErrorNoHistory;
    if (!evidence.previous_reason.empty()) outcome.reason = evidence.previous_reason;
    else outcome.reason = evidence.previous == Previous::kSizeDiffers ? "the previous value has another size" : "no previous step";
    return outcome;
  }
  bool truth = value->truth();
  if (std::string why = blinded(expression, *value, evidence); !why.empty()) {
    if (options_.nan == NanVerdict::kNotChecked || evidence.stats->nan_count == 0) {
      outcome.verdict = Verdict::kNotChecked;
      outcome.reason = std::move(why);
      if (evidence.stats->nan_count > 0) outcome.error_code = kErrorNan;
      return outcome;
    }
    truth = options_.nan == NanVerdict::kHit;
  }
  if (!truth) return outcome;
  outcome.verdict = Verdict::kHit;
  if (value->actual) outcome.details.emplace_back("actual", format_short(*value->actual, 6));
  const int64_t steps = expression.needs_previous() ? steps_since_previous(id, evidence) : 1;
  if (steps > 1) outcome.details.emplace_back("steps", std::to_string(steps));
  return outcome;
}

Verdicts::Outcome Verdicts::judge_flag(const TensorId& id) {
  Outcome outcome;
  Result<bool> flagged = session_.operator_overflow(id);
  if (!flagged) {
    outcome.verdict = Verdict::kNotChecked;
    outcome.reason = flagged.status().message();
  } else if (*flagged) {
    outcome.verdict = Verdict::kHit;
  }
  return outcome;
}

void Verdicts::add_hit(const Watchpoint& watch, const TensorId& id, const Evidence& evidence, Outcome outcome,
                       CheckResult& result) {
  if (++result.total_hits > options_.max_hits) return;
  Hit hit;
  hit.watch_id = watch.id;
  hit.watch_name = watch.name;
  hit.rule = watch.rule;
  hit.abbr = abbr_of(watch);
  hit.severity = watch.severity;
  hit.info = watch.info;
  hit.tensor = id;
  if (evidence.info) {
    hit.dtype = evidence.info->dtype;
    hit.shape = evidence.info->shape;
  }
  hit.params = std::move(outcome.params);
  hit.details = std::move(outcome.details);
  if (evidence.stats) {
    hit.stats = *evidence.stats;
  } else if (Result<Stats> stats = session_.stats(id)) {
    hit.stats = std::move(*stats);  // decided by a flag; the numbers are for display
  }
  result.hits.push_back(std::move(hit));
}

void Verdicts::add_finding(const Watchpoint& watch, ScriptFinding finding, CheckResult& result) {
  Evidence evidence;
  const Result<TensorInfo> info = session_.describe(finding.tensor);
  if (info) evidence.info = &*info;
  Outcome outcome;
  outcome.verdict = Verdict::kHit;
  if (finding.actual) outcome.details.emplace_back("actual", format_double(*finding.actual));
  for (auto& detail : finding.details) outcome.details.push_back(std::move(detail));
  const size_t before = result.hits.size();
  add_hit(watch, finding.tensor, evidence, std::move(outcome), result);
  if (result.hits.size() > before) result.hits.back().before_update = finding.before_update;
}

void sort_results(const Session& session, CheckResult& result) {
  const auto key = [&](const auto& entry) {
    const TensorId& id = entry.tensor;
    return std::tuple(id.rank, id.step, id.graph, place_in_step(session.node(id)), id.node, id.execution, id.slot,
                      std::string_view(entry.rule), entry.watch_id);
  };
  const auto earlier = [&](const auto& a, const auto& b) { return key(a) < key(b); };
  std::stable_sort(result.hits.begin(), result.hits.end(), earlier);
  std::stable_sort(result.not_checked.begin(), result.not_checked.end(), earlier);
}

}  // namespace msdbg
