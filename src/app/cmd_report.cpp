// msdbg report: what a dump shows, as a report to share.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/follow_command.h"
#include "app/gate_files.h"
#include "app/rules.h"
#include "msdbg/atomic_file.h"
#include "msdbg/html_report.h"

namespace msdbg::app {
namespace {

struct ReportWords {
  size_t max_hits = 300, tensors = 12, layers = 24;
};

/// Quoted for a POSIX shell.
std::string shell_quoted(const std::string& word) {
  std::string out = "'";
  for (char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-,./:@") == std::string::npos ? word
                                                                                                                              : out + "'";
}

int status_of(const Options& options, const PageFindings& findings, const Gate& gate, Session& session) {
  if (findings.check.total_hits > 0) return kExitFindings;
  // An origin is the cause of findings; when all of those are known or suppressed, so is the origin.
  const bool judged = gate.known + gate.suppressed > 0;
  if (!judged && !findings.origin.steps.empty()) return kExitFindings;
  if (is_damaged(session)) return kExitInput;
  const bool gaps = is_incomplete(findings.check) || !findings.origin.not_checked.empty() || !gate.unused.empty();
  return options.strict && gaps ? kExitIncomplete : kExitClean;
}

/// Removes known and suppressed findings from the page and counts them.
Gate keep_new(const GateFiles& files, const Options& options, Session& session, CheckResult* checked) {
  Gate gate = judge(session, checked, files.baseline_or_null(), files.suppressions_or_null(), SIZE_MAX,
                    !options.steps.is_all() || !options.ranks.is_all());
  std::vector<Hit> fresh;
  for (size_t i = 0; i < checked->hits.size(); ++i) {
    if (gate.statuses[i] == GateStatus::kNew) fresh.push_back(std::move(checked->hits[i]));
  }
  checked->hits = std::move(fresh);
  checked->total_hits = gate.fresh;
  return gate;
}

/// The command line, ready to run again, without the key.
std::string command_of(const Context& context) {
  constexpr std::string_view kKey = "--key";
  std::string out(context.at_prompt() ? "" : "msdbg");
  bool key = false;
  for (const std::string& word : context.options().words) {
    const bool open = word.starts_with("env:") || word.starts_with("@");
    if (key && !open) out += " ...";
    else if (word.starts_with("--key=") && !word.starts_with("--key=@") && !word.starts_with("--key=env:")) out += " --key=...";
    else out += (out.empty() ? "" : " ") + shell_quoted(word);
    key = word == kKey;
  }
  return out;
}

Status interrupted(const Options& options) {
  return Status(Code::kInterrupted, fmt::format("interrupted: {} was not written", options.output_file));
}

std::string file_words(const Options& options) {
  std::vector<std::string> words;
  for (const std::string& file : options.rule_files) words.push_back("--rule " + shell_quoted(file));
  if (options.trust) words.emplace_back("--trust");
  return fmt::format("{}", fmt::join(words, " "));
}

/// The options that give the same findings again.
std::string rule_words(const Options& options) {
  std::vector<std::string> words;
  // With files and no other choice, only their rules run.
  const bool said = options.rules != "default" || !options.rule_files.empty();
  if (options.rules_given && said) words.push_back("--rules " + shell_quoted(options.rules));
  if (const std::string files = file_words(options); !files.empty()) words.push_back(files);
  if (!options.baseline.empty()) words.push_back("--baseline " + shell_quoted(options.baseline));
  if (!options.suppress.empty()) words.push_back("--suppress " + shell_quoted(options.suppress));
  return fmt::format("{}", fmt::join(words, " "));
}

Result<int> run_report(const ReportWords& words, Context& context) {
  const Options& options = context.options();
  const auto form = page_form(options.output_file);
  if (!form) return Status(form.status().code(), "-o " + form.status().message());
  const auto files = read_gate_files(options);
  if (!files) return files.status();
  PageOptions page;
  page.dump = options.dump;
  page.command = command_of(context);
  const bool preset = options.rules == "default" || options.rules == "recommended";
  page.rules = preset ? fmt::format("the {} rules", options.rules) : "the rules " + options.rules;
  if (!options.rules_given && context.last_result() != nullptr) page.rules = "the last check";
  else if (!options.rules_given && !context.watchpoints().empty()) page.rules = "the watchpoints of the prompt";
  page.file_words = file_words(options);
  page.rule_words = rule_words(options);
  page.max_hits = words.max_hits;
  page.max_tensors = words.tensors;
  page.max_layers = words.layers;
  auto checked = findings(context, "checking");
  if (!checked) return checked.status();
  Session& session = **context.session();
  Gate gate;
  if (files->any()) {
    gate = keep_new(*files, options, session, &*checked);
    page.rules += fmt::format("; {} known and {} suppressed findings are left out", gate.known, gate.suppressed);
  }
  Result<PageFindings> found = Status(Code::kInternal, "");
  Result<std::string> text = Status(Code::kInternal, "");
  {
    Progress progress(options, "checking");
    CheckOptions check_options = check_options_of(options);
    check_options.progress = progress.callback();
    found = add_origins(session, std::move(*checked), check_options);
    if (!found) return found.status();
    if (found->check.interrupted || found->origin.interrupted) return interrupted(options);
    text = page_text(session, {&found->check, &found->origin}, page, *form);
  }
  if (!text) return text.status().code() == Code::kInterrupted ? interrupted(options) : text.status();
  if (const Status written = write_file(options.output_file, *text); !written.ok()) return written;
  context.note(fmt::format("{}: {}", options.output_file, format_bytes(text->size())));
  print_gate_gaps(options, found->check, gate);
  return status_of(options, *found, gate, session);
}

Action declare_report(const Declaration& to) {
  auto words = std::make_shared<ReportWords>();
  CLI::App& app = to.app;
  Options& o = to.options;
  app.add_option("-o,--output", o.output_file, "the file: .html or .md")->type_name("FILE")->required();
  declare_rules_choice(app, o);
  declare_rule_files(app, o);
  app.add_option("--baseline", o.baseline, "findings listed there are known and left out")->type_name("FILE");
  app.add_option("--suppress", o.suppress, "findings to leave out, one a line: RULE NODE-GLOB[:slot] [step=0:3] # reason")
      ->type_name("FILE");
  app.add_option("--max-hits", words->max_hits, "list at most N findings; all are counted")
      ->capture_default_str()
      ->type_name("N")
      ->check(CLI::Range(1, 5000));
  app.add_option("--tensors", words->tensors, "draw at most N tensors")
      ->capture_default_str()
      ->type_name("N")
      ->check(CLI::Range(0, 100));
  app.add_option("--layers", words->layers, "at most N trend lines each for losses, weights, gradients and activations")
      ->capture_default_str()
      ->type_name("N")
      ->check(CLI::Range(0, 500));
  app.add_flag("--strict", o.strict, "status 4 if nothing was found, but something was not checked");
  return [words](Context& context) { return run_report(*words, context); };
}

}  // namespace

CommandEntry report_command() {
  return {.name = "report",
          .group = kResultGroup,
          .summary = "a report to share, with pictures; HTML or Markdown",
          .details = "At the prompt it is about the findings of the last check, unless rules are named here.",
          .examples = {{"-o report.html", "opens from disk, prints, loads nothing"},
                       {"-o report.md", "the same for a merge request or a mail"},
                       {"-o report.html --rules recommended --steps 0:10"}},
          .declare = declare_report,
          .steps = StepsWord::kAllHeld,
          .formats = ""};
}

}  // namespace msdbg::app
