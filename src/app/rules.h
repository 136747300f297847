// What `check` and `rules` share: where rule files come from.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/options.h"
#include "msdbg/script.h"

namespace CLI {
class App;
}

namespace msdbg::app {

inline constexpr double kRuleBudget = 10;  ///< seconds

/// --rule, --trust and --rule-budget.
void declare_rule_files(CLI::App& app, std::vector<std::string>* files, bool* trust, double* budget_s);
/// True with --trust, or when the person at the terminal says yes. Without project rules there is no question.
bool trusts_project_rules(bool trust);

/// True when --rules, --rule or --profile ask for more than conditions of the catalogue, which need no Lua.
bool needs_rule_files(const Options& options);
/// A machine with the chosen rules, checked and ready for Script::check_rules().
struct RuleMachine {
  std::unique_ptr<Script> script;
  ChosenRules chosen;
};
Result<RuleMachine> make_rule_machine(const Options& options);
/// The watchpoints of --on and --when alone.
Result<std::vector<Watchpoint>> watches_from(const Options& options);

/// A session and the rules or conditions that `options` chose for it.
class RuleCheck {
 public:
  /// Reads the rules first: a typo in one should not cost the time to open a dump. `exit_status` says why it is null.
  static std::unique_ptr<RuleCheck> open(const Options& options, int* exit_status);

  Session& session() { return *session_; }
  bool by_files() const { return by_files_; }
  const ChosenRules& chosen() const { return machine_.chosen; }
  const std::vector<Watchpoint>& watchpoints() const { return watchpoints_; }
  Result<CheckResult> run(const CheckOptions& check_options);

 private:
  bool by_files_ = false;
  RuleMachine machine_;
  std::vector<Watchpoint> watchpoints_;
  std::unique_ptr<Session> own_;  ///< unless the machine has it
  Session* session_ = nullptr;
};
/// Steps, ranks, semantics and limits of the command line.
CheckOptions check_options_of(const Options& options);

}  // namespace msdbg::app
