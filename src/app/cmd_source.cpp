// msdbg source: the user's program with findings and statistics beside its lines.
#include <CLI/CLI.hpp>

#include "app/follow_command.h"
#include "app/progress.h"
#include "app/rules.h"

namespace msdbg::app {
namespace {

struct Words {
  std::string dump, rules = "default";
  std::vector<std::string> rule_files;
  bool rules_given = false, trust = false;
  double rule_budget_s = kRuleBudget;
  SourceOptions source;
  size_t context = 2;
  bool all = false, wide = false;
};

int run(const Words& words, Options options) {
  options.dump = words.dump;
  options.rules = words.rules;
  options.wide = words.wide;
  options.rules_given = words.rules_given;
  options.rule_files = words.rule_files;
  options.trust = words.trust;
  options.rule_budget_s = words.rule_budget_s;
  int status = kExitClean;
  const auto rules = RuleCheck::open(options, &status);
  if (rules == nullptr) return status;
  Session* const session = &rules->session();
  CheckOptions check_options = check_options_of(options);
  Result<CheckResult> result = Status(Code::kInternal, "");
  {
    Progress progress(options, "checking");
    check_options.progress = progress.callback();
    result = rules->run(check_options);
  }
  if (!result) return report_failure(result.status());
  const auto files = annotate_source(*session, *result, words.source);
  if (!files) return report_failure(files.status());
  const std::string text = source_report(*session, *files, *result, style_for(options), words.all ? SIZE_MAX : words.context);
  if (const Status written = write_result(options, text); !written.ok()) return report_failure(written);
  if (result->interrupted) return kExitInterrupted;
  for (const SourceFile& file : *files) {
    if (file.findings > 0) return kExitFindings;
  }
  return is_damaged(*session) ? kExitInput : kExitClean;
}

}  // namespace

Action declare_source(CLI::App& app) {
  auto words = std::make_shared<Words>();
  app.add_option("DUMP", words->dump, "dump directory")->required();
  app.add_option("FILE", words->source.file, "end of the path of a file, e.g. train.py; default: every file of the program");
  app.add_option("--root", words->source.root, "directory that holds the files now")->type_name("DIR");
  app.add_option("--rules", words->rules, "which rules, as check takes them")
      ->capture_default_str()
      ->type_name("RULES")
      ->each([words](const std::string&) { words->rules_given = true; });
  declare_rule_files(app, &words->rule_files, &words->trust, &words->rule_budget_s);
  app.add_option("--context", words->context, "lines around those with operators")->capture_default_str()->type_name("N");
  app.add_flag("--all", words->all, "every line of the file");
  app.add_flag("--framework", words->source.framework, "files inside the framework, too");
  app.add_flag("--wide", words->wide, "long lines in full");
  return [words](const Options& options) { return run(*words, options); };
}

}  // namespace msdbg::app
