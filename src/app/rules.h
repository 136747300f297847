// The findings that check, report and list are about: rules, conditions and watchpoints, and how they are chosen.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/context.h"

namespace CLI {
class App;
}

namespace msdbg::app {

/// --rules.
void declare_rules_choice(CLI::App& app, Options& options);
/// --rule, --trust and --rule-budget.
void declare_rule_files(CLI::App& app, Options& options);
/// True with --trust, or when the person at the terminal says yes. Without rules of a project nobody is asked.
bool trusts_project_rules(bool trust);

/// A session and what is asked about its tensors: the conditions of --on and --when, the rules of --rules, --rule and --profile, both,
/// or, where the words name neither, the watchpoints of the prompt, else the default rules.
class RuleCheck {
 public:
  /// Reads the rules first: a typo in one should not cost the time to open a dump.
  static Result<std::unique_ptr<RuleCheck>> open(Context& context);

  Session& session() { return *session_; }
  /// The first call of rules, at the prompt also of functions, is on the thread that called this.
  Result<CheckResult> run(const CheckOptions& check_options);

  /// What was asked, for people: "the default rules"; "" where watchpoints were.
  const std::string& asked() const { return asked_; }
  /// The names of all rules and conditions that run.
  std::vector<std::string> names() const;
  /// Whether rules were all that was asked, and none of them came to a verdict.
  bool nothing_ran(const CheckResult& result) const { return watchpoints_.empty() && none_judged(result, chosen_.names); }

 private:
  Context* context_ = nullptr;
  bool with_rules_ = false;
  ChosenRules chosen_;
  std::string asked_;
  std::vector<Watchpoint> watchpoints_;
  Session* session_ = nullptr;
};
/// Steps, ranks, semantics and limits of the command line.
CheckOptions check_options_of(const Options& options);
/// What list and report are about: the last result of the prompt, unless the words name rules; else what RuleCheck finds.
/// `doing`: the word of the progress line.
Result<CheckResult> findings(Context& context, std::string_view doing);
/// The watchpoints of --on and --when.
Result<std::vector<Watchpoint>> watches_from(const Options& options);

}  // namespace msdbg::app
