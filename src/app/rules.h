// What `check` and `rules` share: where rule files come from.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace msdbg::app {

inline constexpr double kRuleBudget = 10;  ///< seconds

/// --rule, --trust and --rule-budget.
void declare_rule_files(CLI::App& app, std::vector<std::string>* files, bool* trust, double* budget_s);
/// True with --trust, or when the person at the terminal says yes. Without rules of a project nobody is asked.
bool trusts_project_rules(bool trust);

}  // namespace msdbg::app
