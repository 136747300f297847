// msdbg check: rules and conditions over a dump.
#include <fmt/format.h>

#include <algorithm>

#include "app/gate_files.h"
#include "app/output.h"
#include "app/progress.h"
#include "app/rules.h"
#include "app/run.h"
#include "msdbg/atomic_file.h"

namespace msdbg::app {
namespace {

// RULE.NAME=VALUE; RULE is an id or an abbreviation.
struct RuleParam {
  const ConditionSpec* spec;
  std::string name;
  double value;
  bool used = false;
};

Result<RuleParam> parse_param(const std::string& text) {
  const size_t equals = text.find('='), dot = text.find('.');
  if (equals == std::string::npos || dot == std::string::npos || dot > equals) {
    return Status(Code::kInvalidArgument, fmt::format("--param '{}' is not of the form RULE.NAME=VALUE, e.g. TL.max_gt=100", text));
  }
  const auto spec = find_condition(text.substr(0, dot));
  if (!spec) return Status(Code::kInvalidArgument, fmt::format("--param '{}': {}", text, spec.status().message()));
  const auto value = parse_double(text.substr(equals + 1));
  if (!value) return Status(Code::kInvalidArgument, fmt::format("--param '{}': '{}' is not a number", text, text.substr(equals + 1)));
  return RuleParam{*spec, text.substr(dot + 1, equals - dot - 1), *value};
}

std::string_view default_selector(Target target) {
  switch (target) {
    case Target::kTensor: return "@all";
    case Target::kWeight: return "@weight";
    case Target::kGradient: return "@gradient";
    case Target::kActivation: return "@activation";
  }
  return "@all";
}

class WatchpointList {
 public:
  explicit WatchpointList(const Options& options) : options_(options) {}

  // `named` tells whether the user chose the nodes: then a selector that matches nothing is a mistake.
  Status add(std::string_view rule, std::string_view on, When when, bool named) {
    auto selector = Selector::parse(on);
    if (!selector) return selector.status();
    Watchpoint watch;
    watch.id = static_cast<int>(list_.size()) + 1;
    watch.rule = rule;
    watch.on = *selector;
    watch.inputs = options_.slots != "output";
    watch.outputs = options_.slots != "input";
    watch.optional = !named;
    if (Condition* condition = std::get_if<Condition>(&when)) {
      watch.severity = condition->spec->severity;
      watch.condition = std::move(*condition);
    } else {
      watch.expression = std::move(std::get<Expression>(when));
    }
    list_.push_back(std::move(watch));
    return Status();
  }

  std::vector<Watchpoint> take() { return std::move(list_); }

 private:
  const Options& options_;
  std::vector<Watchpoint> list_;
};

Status add_rules(const Options& options, WatchpointList& list) {
  std::vector<RuleParam> params;
  for (const std::string& text : options.params) {
    auto param = parse_param(text);
    if (!param) return param.status();
    params.push_back(std::move(*param));
  }
  const auto add = [&](std::string_view rule, std::string_view on, std::string_view when) -> Status {
    // Further parameters arrive with --param, so a name alone need not be complete yet.
    const bool bare = when.find_first_of(" =,") == std::string_view::npos;
    Result<Condition> condition = Status(Code::kInvalidArgument, "");
    const ConditionSpec* spec = nullptr;
    if (bare) {
      const auto found = find_condition(when);
      // A word of the command line that is wrong, not a thing that is missing.
      if (!found) return Status(Code::kInvalidArgument, fmt::format("--rules {}: {}", options.rules, found.status().message()));
      spec = *found;
    } else {
      condition = parse_condition(when);
      if (!condition) return condition.status();
      spec = condition->spec;
    }
    std::map<std::string, double, std::less<>> values;
    if (!bare) values = condition->params;
    for (RuleParam& param : params) {
      if (param.spec != spec) continue;
      values[param.name] = param.value;
      param.used = true;
    }
    condition = make_condition(spec->id, values);
    if (!condition) return condition.status();
    return list.add(rule.empty() ? spec->id : rule, on.empty() ? default_selector(spec->target) : on, std::move(*condition), false);
  };

  for (std::string_view word : split(options.rules, ',')) {
    word = trim(word);
    Status status;
    if (word == "default") {
      for (const PresetRule& rule : default_rules()) {
        if (status.ok()) status = add(rule.name, rule.on, rule.when);
      }
    } else if (word == "recommended") {
      for (const PresetRule& rule : recommended_rules()) {
        if (status.ok()) status = add(rule.name, rule.on, rule.when);
      }
    } else if (word.empty()) {
      status = Status(Code::kInvalidArgument, fmt::format("--rules '{}' names an empty rule; write e.g. --rules TO,TZ", options.rules));
    } else {
      status = add("", "", word);
    }
    if (!status.ok()) return status;
  }
  for (const RuleParam& param : params) {
    if (!param.used) {
      return Status(Code::kInvalidArgument, fmt::format("--param {}.{}: rule {} is not among --rules {}", param.spec->id, param.name,
                                                        param.spec->id, options.rules));
    }
  }
  return Status();
}

Status add_watches(const Options& options, WatchpointList& list) {
  for (const auto& [on, when] : options.watches) {
    auto parsed = parse_when(when);
    if (!parsed) return parsed.status();
    const Condition* condition = std::get_if<Condition>(&*parsed);
    const std::string rule(condition != nullptr ? condition->spec->id : std::string_view(std::get<Expression>(*parsed).text()));
    const std::string selector(!on.empty()            ? std::string_view(on)
                               : condition != nullptr ? default_selector(condition->spec->target)
                                                      : "@all");
    const Status status = list.add(rule, selector, std::move(*parsed), !on.empty());
    if (!status.ok()) return status;
  }
  return Status();
}

}  // namespace

Result<std::vector<Watchpoint>> watches_from(const Options& options) {
  WatchpointList list(options);
  if (const Status status = add_watches(options, list); !status.ok()) return status;
  return list.take();
}

Result<std::vector<Watchpoint>> watchpoints_from(const Options& options) {
  WatchpointList list(options);
  if (const Status status = add_watches(options, list); !status.ok()) return status;
  // --when alone; rules join only when they were asked for.
  if (options.watches.empty() || options.rules != "default") {
    if (const Status status = add_rules(options, list); !status.ok()) return status;
  } else if (!options.params.empty()) {
    return Status(Code::kInvalidArgument, "--param changes rules, and --when replaced them; write the parameters into --when");
  }
  return list.take();
}

namespace {

int status_of(const Options& options, const CheckResult& result, const Gate& gate, bool nothing_ran, bool damaged) {
  if (result.interrupted) return kExitInterrupted;
  if (gate.fresh > 0) return kExitFindings;
  if (nothing_ran) return kExitScript;
  const bool absent = std::any_of(result.rule_problems.begin(), result.rule_problems.end(),
                                  [](const RuleProblem& problem) { return problem.kind == RuleProblemKind::kNoSuchData; });
  if (damaged || absent) return kExitInput;
  return options.strict && (is_incomplete(result) || !gate.unused.empty()) ? kExitIncomplete : kExitClean;
}

}  // namespace

std::unique_ptr<RuleCheck> RuleCheck::open(const Options& options, int* exit_status) {
  auto made = std::make_unique<RuleCheck>();
  const auto fail = [&](const Status& status) {
    *exit_status = report_failure(status);
    return nullptr;
  };
  made->by_files_ = needs_rule_files(options);
  auto watchpoints = made->by_files_ ? watches_from(options) : watchpoints_from(options);
  if (!watchpoints) return fail(watchpoints.status());
  made->watchpoints_ = std::move(*watchpoints);
  if (made->by_files_) {
    auto machine = make_rule_machine(options);
    if (!machine) return fail(machine.status());
    made->machine_ = std::move(*machine);
  }
  made->own_ = open_session(options, exit_status);
  if (made->own_ == nullptr) return nullptr;
  made->session_ = made->own_.get();
  if (made->by_files_) made->machine_.script->set_session(std::move(made->own_));  // rules see it as what scripts see
  return made;
}

Result<CheckResult> RuleCheck::run(const CheckOptions& check_options) {
  return by_files_ ? machine_.script->check_rules(watchpoints_, check_options) : check(*session_, watchpoints_, check_options);
}

CheckOptions check_options_of(const Options& options) {
  CheckOptions out;
  out.steps = options.steps;
  out.ranks = options.ranks;
  out.semantics = options.semantics;
  out.mem_limit_bytes = options.mem_limit_mb << 20;
  out.threads = options.threads;
  return out;
}

int run_check(const Options& options) {
  const auto files = read_gate_files(options);
  if (!files) return report_failure(files.status());
  int status = kExitClean;
  const auto rules = RuleCheck::open(options, &status);
  if (rules == nullptr) return status;
  Session* const session = &rules->session();

  // What a damaged file no longer holds cannot be found wanting: whoever reads "clean" has to know of it.
  const bool damaged = is_damaged(*session);

  const bool needs_all = files->any() || !options.bless.empty();
  CheckOptions check_options = check_options_of(options);
  check_options.report_missing = options.report_missing;
  check_options.max_hits = needs_all ? SIZE_MAX : options.max_hits;
  Result<CheckResult> result = Status(Code::kInternal, "");
  {
    Progress progress(options, "checking");
    check_options.progress = progress.callback();
    result = rules->run(check_options);
  }
  if (!result && result.status().code() == Code::kInterrupted) {
    // Before the first tensor: a reader of the report shall not take an empty one for a run that found nothing.
    CheckResult nothing;
    nothing.semantics = options.semantics;
    nothing.interrupted = true;
    result = std::move(nothing);
  }
  if (!result) return report_failure(result.status());
  ReportStyle style = style_for(options);
  const std::string& asked = rules->by_files() ? rules->chosen().expression : options.rules;
  if (options.watches.empty()) style.rules = asked == "default" || asked == "recommended" ? "the " + asked + " rules" : asked;
  if (options.slots != "output") style.tensors = options.slots == "input" ? "input" : "input, output and parameter";
  for (const Watchpoint& watchpoint : rules->watchpoints()) {
    style.rules_run.push_back(watchpoint.rule);
  }
  for (const std::string& rule : rules->chosen().names) style.rules_run.push_back(rule);
  // What is suppressed stays out, so that it comes back the day its suppression goes.
  std::vector<Hit> to_bless;
  for (const Hit& hit : result->hits) {
    const auto applies = [&](const Suppression& s) { return s.matches(*session, hit); };
    const bool suppressed = files->suppressions && std::any_of(files->suppressions->begin(), files->suppressions->end(), applies);
    if (!options.bless.empty() && !suppressed) to_bless.push_back(hit);
  }
  const Baseline blessed = Baseline::of(*session, to_bless, options.baseline_steps);
  Gate gate;
  gate.fresh = result->total_hits;
  if (needs_all) {
    gate = judge(*session, &*result, files->baseline_or_null(), files->suppressions_or_null(), options.max_hits,
                 !options.steps.is_all() || !options.ranks.is_all());
  }
  if (files->any()) style.gate = &gate;
  const bool nothing_ran = rules->by_files() && rules->watchpoints().empty() && none_judged(*result, rules->chosen().names);
  style.exit_status = status_of(options, *result, gate, nothing_ran, damaged);
  if (const Status written = write_result(options, check_report(*session, *result, style)); !written.ok()) return report_failure(written);
  // A table on the screen has said so already; a report in a file is read later, or never.
  if (options.format != Format::kTable || !options.output_file.empty()) tell_gate_gaps(options, *result, gate);
  if (options.bless.empty()) return style.exit_status;
  if (result->interrupted) {
    print(stderr, fmt::format("msdbg: --bless {}: not written, the run was interrupted\n", options.bless));
  } else if (const Status written = write_file(options.bless, blessed.text()); !written.ok()) {
    return report_failure(Status(written.code(), "--bless " + written.message()));
  } else {
    note(options, fmt::format("{}: {} known from now on", options.bless,
                              blessed.size() == 1 ? "1 finding is" : fmt::format("{} findings are", blessed.size())));
  }
  return style.exit_status;
}

}  // namespace msdbg::app
