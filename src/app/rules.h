// The findings that check, report and list show: how their rules, conditions and watchpoints are chosen.
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
/// True with --trust, or when the user agrees at the terminal. Asks nothing when the project has no rules.
bool trusts_project_rules(bool trust);

/// A session and the checks to run on its tensors: the conditions of --on and --when, the rules of --rules, --rule and --profile,
/// or both. By default: the watchpoints of the prompt, else the default rules.
class RuleCheck {
 public:
  /// Reads the rules first: a typo in one should not cost the time to open a dump.
  static Result<std::unique_ptr<RuleCheck>> open(Context& context);

  Session& session() { return *session_; }
  /// Rules (and, at the prompt, functions) are first called on the calling thread.
  Result<CheckResult> run(const CheckOptions& check_options);

  /// A description of the checks for people: "the default rules"; "" for watchpoints.
  const std::string& asked() const { return asked_; }
  /// The names of all rules and conditions that run.
  std::vector<std::string> names() const;
  /// Whether only rules were requested and none of them reached a verdict.
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
/// The findings for list and report: the prompt's last result, unless the words name rules; else what RuleCheck finds. `doing`: the
/// verb of the progress line.
Result<CheckResult> findings(Context& context, std::string_view doing);
/// The watchpoints of --on and --when.
Result<std::vector<Watchpoint>> watches_from(const Options& options);

}  // namespace msdbg::app
