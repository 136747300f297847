#include "analysis/evidence.h"

#include <fmt/format.h>

#include <algorithm>

namespace msdbg {
namespace {

std::string_view builtin_condition(Predicate::Builtin which) {
  switch (which) {
    case Predicate::Builtin::kNanOrInf:
      return "tensor_overflow";
    case Predicate::Builtin::kNan:
      return "nan";
    case Predicate::Builtin::kInf:
      return "inf";
  }
  return "tensor_overflow";
}

}  // namespace

Watchpoint Evidence::watch_for(int id, std::string_view selector) const {
  Watchpoint watch;
  watch.id = id;
  watch.on = Selector::parse(selector).value();
  watch.inputs = watch.outputs = watch.optional = true;
  if (const Predicate::Builtin* which = builtin()) {
    watch.rule = builtin_condition(*which);
    watch.condition = make_condition(watch.rule, {}).value();
  } else if (const Condition* condition = std::get_if<Condition>(&options_.predicate.when)) {
    watch.rule = condition->spec->id;
    watch.condition = *condition;
  } else if (const Expression* expression = std::get_if<Expression>(&options_.predicate.when)) {
    watch.rule = expression->text();
    watch.expression = *expression;
  } else {
    watch.rule = options_.predicate.text;
    watch.script = [&function = std::get<Predicate::Function>(options_.predicate.when)](const CheckedTensor& tensor) {
      ScriptVerdict verdict;
      const std::optional<bool> bad = function(tensor);
      verdict.verdict = !bad ? Verdict::kNotChecked : *bad ? Verdict::kHit : Verdict::kClean;
      if (!bad) verdict.reason = "the predicate returned no answer";
      return verdict;
    };
  }
  if (watch.condition) watch.severity = watch.condition->spec->severity;
  return watch;
}

/// Constants do not belong to a step.
TensorId Evidence::key(TensorId id) const {
  if (session_.node(id).kind == NodeKind::kConstant) id.step = 0;
  return id;
}

Status Evidence::run(const IntSet& steps, std::string_view selector, bool inputs, OriginResult& result, bool counts) {
  std::vector<Watchpoint> watches = {watch_for(1, selector)};
  watches[0].inputs = inputs;
  // check() skips constants unless they are named.
  if (counts) watches.push_back(watch_for(2, "@constant"));
  CheckOptions options;
  options.steps = steps;
  options.ranks = options_.ranks;
  options.semantics = options_.semantics;
  options.mem_limit_bytes = options_.mem_limit_bytes;
  options.threads = options_.threads;
  if (options_.progress && counts) {
    options.progress = [&, before = result.coverage](uint64_t done, uint64_t total, uint64_t bytes) {
      options_.progress(before.tensors + done, std::max(expected_, before.tensors + total), before.bytes + bytes);
    };
  }
  ++changes_;
  Result<CheckResult> checked = check(session_, watches, options);
  if (!checked) return checked.status();

  TensorQuery query;
  query.ranks = options_.ranks;
  query.steps = steps;
  query.inputs = true;
  std::vector<TensorId> listed = session_.tensors(query);
  for (const TensorId& id : listed) {
    const Node& node = session_.node(id);
    const bool looked_at =
        counts || (id.slot.io == Io::kOutput && watches[0].on.matches(*session_.graph(id.rank, id.graph), node));
    if (looked_at) verdicts_[key(id)] = {InputState::kGood, ""};
  }
  if (counts) listed_ = std::move(listed);
  for (const Hit& hit : checked->hits) verdicts_[key(hit.tensor)] = {InputState::kBad, ""};
  for (NotChecked& entry : checked->not_checked) {
    verdicts_[key(entry.tensor)] = {InputState::kUnknown, entry.reason};
    if (counts) result.not_checked.push_back(std::move(entry));
  }
  result.interrupted = result.interrupted || checked->interrupted;
  result.coverage.bytes += checked->coverage.bytes;
  if (!counts) return {};
  result.coverage.tensors += checked->coverage.tensors;
  result.coverage.checked += checked->coverage.checked;
  result.coverage.not_checked += checked->coverage.not_checked;
  result.coverage.from_cache += checked->coverage.from_cache;
  return {};
}

void Evidence::expect_steps(const IntSet& steps) {
  if (!options_.progress) return;
  TensorQuery query;
  query.ranks = options_.ranks;
  query.steps = steps;
  query.inputs = true;
  expected_ = session_.tensors(query).size();
}

Status Evidence::judge_steps(const IntSet& steps, OriginResult& result) {
  return run(steps, "@all", true, result, true);
}

Status Evidence::judge_parameters(int64_t step, OriginResult& result) {
  return run(IntSet::of(step), "@parameter or @optimizer", false, result, false);
}

void Evidence::forget_step(int64_t step) {
  ++changes_;
  std::erase_if(verdicts_, [&](const auto& entry) {
    const TensorId& id = entry.first;
    if (id.step != step) return false;
    const Node& node = session_.node(id);
    return node.kind == NodeKind::kOperator && !in_category(node, Category::kOptimizer);
  });
}

const JudgedTensor* Evidence::find(const TensorId& id) const {
  const auto found = verdicts_.find(key(id));
  return found == verdicts_.end() ? nullptr : &found->second;
}

bool Evidence::is_bad(const TensorId& id) const {
  const JudgedTensor* verdict = find(id);
  return verdict && verdict->state == InputState::kBad;
}

void Evidence::absolve(const TensorId& id) {
  const auto judged = verdicts_.find(key(id));
  if (judged == verdicts_.end() || judged->second.state == InputState::kGood) return;
  judged->second.state = InputState::kGood;
  ++changes_;
}

std::optional<Stats> Evidence::stats(const TensorId& id) {
  Result<Stats> stats = session_.stats(id);
  if (!stats) return std::nullopt;
  return std::move(*stats);
}

}  // namespace msdbg
