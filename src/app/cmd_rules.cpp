// msdbg rules: what rules there are, what they mean, whether they keep their promises, and a new one.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>

#include "app/command.h"
#include "app/output.h"
#include "app/rules.h"
#include "app/scripting.h"

namespace msdbg::app {
namespace {

struct RulesWords {
  std::string verb;
  std::vector<std::string> names, files;
  std::string rules;
  bool trust = false;
  double budget_s = kRuleBudget;
};

std::string_view format_word(Format format) { return format == Format::kJson ? "json" : format == Format::kJsonl ? "jsonl" : "table"; }

int run_rules(const Options& options, const RulesWords& words) {
  auto script = make_script(options);
  if (!script) return report_failure(script.status());
  std::vector<std::string> arguments{"verb=" + words.verb, fmt::format("format={}", format_word(options.format)),
                                     fmt::format("budget={}", words.budget_s)};
  for (const std::string& name : words.names) arguments.push_back("name=" + name);
  for (const std::string& file : words.files) arguments.push_back("file=" + file);
  if (!words.rules.empty()) arguments.push_back("rules=" + words.rules);
  if (!options.output_file.empty()) arguments.push_back("output=" + options.output_file);
  if (trusts_project_rules(words.trust)) arguments.push_back("trust=1");
  if (options.quiet) arguments.push_back("quiet=1");
  const ScriptOutcome outcome = (*script)->run_text("os.exit(require 'msdbg.rule_commands'.main(...))", "=prompt", arguments);
  std::fflush(stdout);
  if (outcome.error.empty()) return outcome.exit_status;
  print(stderr, fmt::format("msdbg: {}\n", outcome.error));
  return outcome.usage ? kExitUsage : outcome.exit_status;
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

void declare_rule_files(CLI::App& app, std::vector<std::string>* files, bool* trust, double* budget_s) {
  app.add_option("--rule", *files, "rule file, or directory of rule files; alone, only these run: add --rules for others")
      ->type_name("FILE")
      ->expected(1)
      ->take_all();
  app.add_flag("--trust", *trust, "read the rules of the project, .msdbg/rules, without asking");
  app.add_option("--rule-budget", *budget_s, "longest time that one call of a rule's function may take")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.001, 86400.0))
      ->capture_default_str();
}

Action declare_rules(CLI::App& app) {
  auto words = std::make_shared<RulesWords>();
  app.require_subcommand(1);
  app.fallthrough();
  declare_rule_files(app, &words->files, &words->trust, &words->budget_s);
  const auto verb = [&app, words](const char* name, const char* summary) {
    CLI::App* sub = app.add_subcommand(name, summary);
    sub->fallthrough();
    sub->callback([words, name] { words->verb = name; });
    return sub;
  };
  verb("list", "names, tags, summaries, and where the rules come from")
      ->add_option("--rules", words->rules, "only those, e.g. 'default and not slow'")
      ->type_name("EXPR");
  verb("info", "all about one rule")->add_option("NAME", words->names, "rule")->required()->expected(1);
  verb("test", "run the cases of rules; status 1 when one fails")
      ->add_option("NAMES", words->names, "rules, rule files or directories; default: all");
  verb("new", "write a commented rule to start from")->add_option("NAME", words->names, "what it will be called")->required()->expected(1);
  return [words](const Options& options) { return run_rules(options, *words); };
}

}  // namespace msdbg::app
