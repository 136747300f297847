#include "app/rules.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>

#include "app/output.h"
#include "app/progress.h"
#include "app/raw_options.h"

namespace msdbg::app {
namespace {

constexpr double kRuleBudget = 10;  // seconds

bool names_rules(const Options& options) { return options.rules_given || !options.rule_files.empty() || !options.profile.empty(); }

std::string_view default_selector(Target target) {
  switch (target) {
    case Target::kTensor: return "@all";
    case Target::kWeight: return "@weight";
    case Target::kGradient: return "@gradient";
    case Target::kActivation: return "@activation";
  }
  return "@all";
}

RuleChoice choice_of(const Context& context) {
  const Options& options = context.options();
  RuleChoice choice;
  if (options.rules_given) choice.rules = options.rules;
  choice.files = options.rule_files;
  choice.params = options.params;
  choice.profile = options.profile;
  if (options.slots_given) choice.slots = options.slots;
  choice.trust = context.at_prompt() ? options.trust : trusts_project_rules(options.trust);
  choice.budget_s = options.rule_budget_s;
  return choice;
}

}  // namespace

bool trusts_project_rules(bool trust) {
  if (trust) return true;
  const std::string directory = project_rule_directory();
  if (directory.empty() || !::isatty(STDIN_FILENO) || !::isatty(STDERR_FILENO)) return false;
  print(stderr, fmt::format("{} holds rules. They are programs written by the authors of this project.\nRead them? [y/N] ", directory));
  std::fflush(stderr);
  std::string line;
  std::getline(std::cin, line);
  return line == "y" || line == "Y" || line == "yes";
}

void declare_rules_choice(CLI::App& app, Options& options) {
  app.add_option("--rules", options.rules, "which rules: names, tags, globs with and, or, not")
      ->capture_default_str()
      ->type_name("EXPR")
      ->each([&options](const std::string&) { options.rules_given = true; });
}

void declare_rule_files(CLI::App& app, Options& options) {
  options.rule_budget_s = kRuleBudget;
  repeated(app.add_option("--rule", options.rule_files,
                          "rule file, or directory of rule files; alone, only these run: add --rules for others")
               ->type_name("FILE"));
  app.add_flag("--trust", options.trust, "read the rules of the project, .msdbg/rules, without asking");
  app.add_option("--rule-budget", options.rule_budget_s, "longest time that one call of a rule's function may take")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.001, 86400.0))
      ->capture_default_str();
}

Result<std::vector<Watchpoint>> watches_from(const Options& options) {
  std::vector<Watchpoint> list;
  for (const auto& [on, when] : options.watches) {
    auto parsed = parse_when(when);
    if (!parsed) return parsed.status();
    const Condition* condition = std::get_if<Condition>(&*parsed);
    auto selector = Selector::parse(!on.empty()            ? std::string_view(on)
                                    : condition != nullptr ? default_selector(condition->spec->target)
                                                           : "@all");
    if (!selector) return selector.status();
    Watchpoint watch;
    watch.id = static_cast<int>(list.size()) + 1;
    watch.rule = condition != nullptr ? condition->spec->id : std::string_view(std::get<Expression>(*parsed).text());
    watch.on = *selector;
    watch.inputs = options.slots != "output";
    watch.outputs = options.slots != "input";
    watch.inputs_instead = on.empty() && !options.slots_given;
    watch.optional = on.empty();  // a selector that the user wrote must match something
    if (condition != nullptr) {
      watch.severity = condition->spec->severity;
      watch.condition = *condition;
    } else {
      watch.expression = std::move(std::get<Expression>(*parsed));
    }
    list.push_back(std::move(watch));
  }
  return list;
}

CheckOptions check_options_of(const Options& options) {
  CheckOptions out;
  out.steps = options.steps;
  out.ranks = options.ranks;
  out.semantics = options.semantics;
  out.nan = options.nan;
  out.mem_limit_bytes = options.mem_limit_mb << 20;
  out.threads = options.threads;
  return out;
}

Result<std::unique_ptr<RuleCheck>> RuleCheck::open(Context& context) {
  const Options& options = context.options();
  auto made = std::make_unique<RuleCheck>();
  made->context_ = &context;
  auto watches = watches_from(options);
  if (!watches) return watches.status();
  made->watchpoints_ = std::move(*watches);
  if (made->watchpoints_.empty() && !names_rules(options) && options.params.empty()) made->watchpoints_ = context.watchpoints();
  made->with_rules_ = made->watchpoints_.empty() || names_rules(options);
  if (!made->with_rules_ && !options.params.empty())
    return Status(Code::kInvalidArgument, "--param changes rules, and --when replaced them; write the parameters into --when");
  if (made->with_rules_) {
    const auto script = context.script();
    if (!script) return script.status();
    auto chosen = (*script)->choose_rules(choice_of(context));
    if (!chosen) return chosen.status();
    made->chosen_ = std::move(*chosen);
    for (const std::string& text : made->chosen_.notes) context.note(text);
    if (options.watches.empty()) made->asked_ = made->chosen_.asked;
  }
  const auto session = context.session();
  if (!session) return session.status();
  made->session_ = *session;
  return made;
}

Result<CheckResult> RuleCheck::run(const CheckOptions& check_options) {
  // Conditions alone need no virtual machine, but the prompt has one already.
  if (!with_rules_ && !context_->at_prompt()) return check(*session_, watchpoints_, check_options);
  const auto script = context_->script();
  if (!script) return script.status();
  return with_rules_ ? (*script)->check_rules(watchpoints_, check_options) : (*script)->check(watchpoints_, check_options);
}

Result<CheckResult> findings(Context& context, std::string_view doing) {
  const Options& options = context.options();
  const CheckResult* last = names_rules(options) ? nullptr : context.last_result();
  if (last != nullptr) return *last;
  const auto rules = RuleCheck::open(context);
  if (!rules) return rules.status();
  CheckOptions check_options = check_options_of(options);
  Progress progress(options, doing);
  check_options.progress = progress.callback();
  return (*rules)->run(check_options);
}

std::vector<std::string> RuleCheck::names() const {
  std::vector<std::string> names;
  for (const Watchpoint& watchpoint : watchpoints_) {
    if (watchpoint.enabled) names.push_back(watchpoint.rule);
  }
  names.insert(names.end(), chosen_.names.begin(), chosen_.names.end());
  return names;
}

}  // namespace msdbg::app
