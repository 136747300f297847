// msdbg report: what a dump shows, as a report to share.
#include <fmt/format.h>

#include "app/follow_command.h"
#include "app/progress.h"
#include "app/gate_files.h"
#include "app/rules.h"
#include "msdbg/atomic_file.h"
#include "msdbg/html_report.h"

namespace msdbg::app {
namespace {

struct Words {
  std::string dump, output, rules = "default", baseline, suppress;
  std::vector<std::string> rule_files;
  bool trust = false, rules_given = false;
  double rule_budget_s = kRuleBudget;
  size_t max_hits = 300, tensors = 12, layers = 24;
  bool strict = false;
};

/// As a POSIX shell takes it.
std::string shell_quoted(const std::string& word) {
  std::string out = "'";
  for (char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-,./:@") == std::string::npos ? word
                                                                                                                              : out + "'";
}

int status_of(const Words& words, const PageFindings& findings, const Gate& gate, Session& session) {
  if (findings.check.total_hits > 0) return kExitFindings;
  // An origin is the cause of findings; where all of these are known or suppressed, so is it.
  const bool judged = gate.known + gate.suppressed > 0;
  if (!judged && !findings.origin.steps.empty()) return kExitFindings;
  if (is_damaged(session)) return kExitInput;
  const bool gaps = is_incomplete(findings.check) || !findings.origin.not_checked.empty() || !gate.unused.empty();
  return words.strict && gaps ? kExitIncomplete : kExitClean;
}

/// Leaves what is known or suppressed out of the page; it is counted.
Gate keep_new(const GateFiles& files, const Options& options, Session& session, CheckResult* checked) {
  Gate gate = judge(session, checked, files.baseline_or_null(), files.suppressions_or_null(), SIZE_MAX,
                    !options.steps.is_all() || !options.ranks.is_all());
  std::vector<Hit> fresh;
  for (size_t i = 0; i < checked->hits.size(); ++i) {
    if (gate.standing[i] == Standing::kNew) fresh.push_back(std::move(checked->hits[i]));
  }
  checked->hits = std::move(fresh);
  checked->total_hits = gate.fresh;
  return gate;
}

/// What was typed, to be typed again; a key is left out.
std::string command_of(const std::vector<std::string>& words) {
  constexpr std::string_view kKey = "--key";
  std::string out = "msdbg";
  bool key = false;
  for (const std::string& word : words) {
    const bool open = word.starts_with("env:") || word.starts_with("@");
    if (key && !open) out += " ...";
    else if (word.starts_with("--key=") && !word.starts_with("--key=@") && !word.starts_with("--key=env:")) out += " --key=...";
    else out += " " + shell_quoted(word);
    key = word == kKey;
  }
  return out;
}

int interrupted(const Options& options) {
  return report_failure(Status(Code::kInterrupted, fmt::format("interrupted: {} was not written", options.output_file)));
}

int run(const Words& words, Options options) {
  options.dump = words.dump;
  options.rules = words.rules;
  options.rules_given = words.rules_given;
  options.output_file = words.output;
  options.rule_files = words.rule_files;
  options.trust = words.trust;
  options.rule_budget_s = words.rule_budget_s;
  const auto form = page_form(options.output_file);
  if (!form) return report_failure(Status(form.status().code(), "-o " + form.status().message()));
  options.baseline = words.baseline;
  options.suppress = words.suppress;
  const auto files = read_gate_files(options);
  if (!files) return report_failure(files.status());
  int status = kExitClean;
  const auto rules = RuleCheck::open(options, &status);
  if (rules == nullptr) return status;
  Session* const session = &rules->session();
  CheckOptions check_options = check_options_of(options);
  PageOptions page;
  page.dump = words.dump;
  page.command = command_of(options.words);
  const bool preset = words.rules == "default" || words.rules == "recommended";
  page.rules = preset ? fmt::format("the {} rules", words.rules) : "the rules " + words.rules;
  if (words.rules != "default") page.rule_words = "--rules " + shell_quoted(words.rules);
  for (const std::string& file : words.rule_files)
    page.rule_words += (page.rule_words.empty() ? "--rule " : " --rule ") + shell_quoted(file);
  for (const auto& [option, file] : {std::pair("--baseline ", &words.baseline), std::pair("--suppress ", &words.suppress)}) {
    if (!file->empty()) page.rule_words += (page.rule_words.empty() ? "" : " ") + (option + shell_quoted(*file));
  }
  page.max_hits = words.max_hits;
  page.max_tensors = words.tensors;
  page.max_layers = words.layers;
  Gate gate;
  Result<PageFindings> findings = Status(Code::kInternal, "");
  Result<std::string> text = Status(Code::kInternal, "");
  {
    Progress progress(options, "checking");
    check_options.progress = progress.callback();
    auto checked = rules->run(check_options);
    if (!checked) return report_failure(checked.status());
    if (files->any()) {
      gate = keep_new(*files, options, *session, &*checked);
      page.rules += fmt::format("; {} known and {} suppressed findings are left out", gate.known, gate.suppressed);
    }
    findings = add_origins(*session, std::move(*checked), check_options);
    if (!findings) return report_failure(findings.status());
    if (findings->check.interrupted || findings->origin.interrupted) return interrupted(options);
    text = page_text(*session, {&findings->check, &findings->origin}, page, *form);
  }
  if (!text) return text.status().code() == Code::kInterrupted ? interrupted(options) : report_failure(text.status());
  if (const Status written = write_file(options.output_file, *text); !written.ok()) return report_failure(written);
  note(options, fmt::format("{}: {}", options.output_file, format_bytes(text->size())));
  tell_gate_gaps(options, findings->check, gate);
  return status_of(words, *findings, gate, *session);
}

}  // namespace

Action declare_report(CLI::App& app) {
  auto words = std::make_shared<Words>();
  app.add_option("DUMP", words->dump, "dump directory")->required();
  app.add_option("-o,--output", words->output, "the file: .html or .md")->type_name("FILE")->required();
  app.add_option("--rules", words->rules, "which rules, as check takes them")
      ->capture_default_str()
      ->type_name("RULES")
      ->each([words](const std::string&) { words->rules_given = true; });
  declare_rule_files(app, &words->rule_files, &words->trust, &words->rule_budget_s);
  app.add_option("--baseline", words->baseline, "findings listed there are known and left out")->type_name("FILE");
  app.add_option("--suppress", words->suppress, "findings to leave out, one a line: RULE NODE-GLOB[:slot] [step=0:3] # reason")
      ->type_name("FILE");
  app.add_option("--max-hits", words->max_hits, "list at most so many findings; all are counted")
      ->capture_default_str()
      ->type_name("N")
      ->check(CLI::Range(1, 5000));
  app.add_option("--tensors", words->tensors, "draw at most so many tensors")
      ->capture_default_str()
      ->type_name("N")
      ->check(CLI::Range(0, 100));
  app.add_option("--layers", words->layers, "trend lines at most, of losses, weights, gradients and activations each")
      ->capture_default_str()
      ->type_name("N")
      ->check(CLI::Range(0, 500));
  app.add_flag("--strict", words->strict, "status 4 when nothing was found, but something was not checked");
  return [words](const Options& options) { return run(*words, options); };
}

}  // namespace msdbg::app
