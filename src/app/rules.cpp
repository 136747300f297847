#include "app/rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/output.h"
#include "app/scripting.h"

namespace msdbg::app {
namespace {

// `TO`, `TZ 50`, `TL max_gt=3 min_gt=1`: a condition with nothing after it but its parameters.
bool is_condition(std::string_view part) {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  part = trim(part);
  const size_t end = std::find_if(part.begin(), part.end(), blank) - part.begin();
  if (!find_condition(part.substr(0, end))) return false;
  for (std::string_view word : split(part.substr(end), ' ')) {
    word = trim(word);
    if (!word.empty() && word.find('=') == std::string_view::npos && !parse_double(word)) return false;
  }
  return true;
}

}  // namespace

bool needs_rule_files(const Options& options) {
  if (!options.rule_files.empty() || !options.profile.empty()) return true;
  if (!options.watches.empty() && !options.rules_given) return false;  // --when alone
  // A parameter of a rule is judged where rules are known, so a rule that was not chosen is not taken for one that does not exist.
  const auto names_rule = [](const std::string& text) {
    const size_t equals = text.find('='), dot = text.find('.');
    return dot < equals && equals != std::string::npos && !find_condition(text.substr(0, dot));
  };
  if (std::any_of(options.params.begin(), options.params.end(), names_rule)) return true;
  const auto parts = split(options.rules, ',');
  return !std::all_of(parts.begin(), parts.end(), is_condition);
}

Result<RuleMachine> make_rule_machine(const Options& options) {
  auto script = make_script(options);
  if (!script) return script.status();
  RuleChoice choice;
  if (options.rules_given) choice.rules = options.rules;
  choice.files = options.rule_files;
  choice.params = options.params;
  choice.profile = options.profile;
  if (options.slots != "output") choice.slots = options.slots;
  choice.trust = trusts_project_rules(options.trust);
  choice.budget_s = options.rule_budget_s;
  auto chosen = (*script)->choose_rules(choice);
  if (!chosen) return chosen.status();
  for (const std::string& text : chosen->notes) note(options, text);
  return RuleMachine{std::move(*script), std::move(*chosen)};
}

}  // namespace msdbg::app
