// msdbg check: runs rules and conditions over a dump.
#include <fmt/format.h>

#include <algorithm>

#include "app/follow_command.h"
#include "app/gate_files.h"
#include "app/rules.h"
#include "msdbg/atomic_file.h"

namespace msdbg::app {
namespace {

int status_of(const Options& options, const CheckResult& result, const Gate& gate, bool nothing_ran, bool damaged) {
  if (result.interrupted) return kExitInterrupted;
  if (gate.fresh > 0) return kExitFindings;
  if (nothing_ran) return kExitScript;
  const bool absent = std::any_of(result.rule_problems.begin(), result.rule_problems.end(),
                                  [](const RuleProblem& problem) { return problem.kind == RuleProblemKind::kNoSuchData; });
  if (damaged || absent) return kExitInput;
  if (nothing_checked(result)) return kExitIncomplete;
  return options.strict && (is_incomplete(result) || !gate.unused.empty()) ? kExitIncomplete : kExitClean;
}

/// Findings are complete without their causes; only Ctrl-C makes the result partial.
void look_for_causes(Session& session, const CheckOptions& limits, CheckResult* result) {
  const Status status = find_causes(session, limits, result);
  if (status.code() == Code::kInterrupted) result->interrupted = true;
  else if (!status.ok()) log(LogLevel::kWarning, fmt::format("causes are not known: {}", status.message()));
}

Result<int> run_check(Context& context) {
  const Options& options = context.options();
  const auto files = read_gate_files(options);
  if (!files) return files.status();
  const auto opened = RuleCheck::open(context);
  if (!opened) return opened.status();
  RuleCheck& rules = **opened;
  Session* const session = &rules.session();

  // A damaged file hides findings: a "clean" result must mention it.
  const bool damaged = is_damaged(*session);

  CheckOptions check_options = check_options_of(options);
  check_options.only_check = !context.at_prompt();
  check_options.report_missing = options.report_missing;
  Result<CheckResult> result = Status(Code::kInternal, "");
  {
    Progress progress(options, "checking");
    check_options.progress = progress.callback();
    result = rules.run(check_options);
    if (result) look_for_causes(*session, check_options, &*result);
  }
  if (!result && result.status().code() == Code::kInterrupted) {
    // Interrupted before the first tensor: an empty report must not read like a run that found nothing.
    CheckResult nothing;
    nothing.semantics = options.semantics;
    nothing.interrupted = true;
    result = std::move(nothing);
  }
  if (!result) return result.status();
  // Suppressed findings stay out of the baseline; they come back when the suppression is removed.
  std::vector<Hit> to_bless;
  for (const Hit& hit : result->hits) {
    const auto applies = [&](const Suppression& s) { return s.matches(*session, hit); };
    const bool suppressed = files->suppressions && std::any_of(files->suppressions->begin(), files->suppressions->end(), applies);
    if (!options.bless.empty() && !suppressed) to_bless.push_back(hit);
  }
  const Baseline blessed = Baseline::of(*session, to_bless, options.baseline_steps);
  const Gate gate = judge(*session, &*result, files->baseline_or_null(), files->suppressions_or_null(), options.max_hits,
                          !options.steps.is_all() || !options.ranks.is_all());
  context.keep(*result, rules.asked(), rules.names());
  context.list_rows("list_hits", {});
  if (result->interrupted && context.at_prompt()) {
    return Status(Code::kInterrupted, fmt::format("interrupted after {} of {} tensors; s.last_result has what was found",
                                                  result->coverage.checked, result->coverage.tensors));
  }
  ReportStyle style = context.style();
  style.group = options.group;
  style.rules = rules.asked();
  style.rules_run = rules.names();
  if (result->inputs_instead) {
    style.tensors = "input and parameter";
    context.note("no output of an operator was dumped: the inputs were checked instead");
  }
  if (options.slots != "output") style.tensors = options.slots == "input" ? "input" : "input, output and parameter";
  if (files->any()) style.gate = &gate;
  style.exit_status = status_of(options, *result, gate, rules.nothing_ran(*result), damaged);
  if (const Status written = context.write(check_report(*session, *result, style)); !written.ok()) return written;
  // A table on the screen has printed this already; a report in a file is read later or never.
  if (options.format != Format::kTable || !options.output_file.empty()) print_gate_gaps(options, *result, gate);
  if (options.bless.empty()) return style.exit_status;
  if (result->interrupted) {
    log(LogLevel::kWarning, fmt::format("--bless {}: not written, the run was interrupted", options.bless));
  } else if (const Status written = write_file(options.bless, blessed.text()); !written.ok()) {
    return Status(written.code(), "--bless " + written.message());
  } else {
    context.note(fmt::format("{}: {} known from now on", options.bless,
                             blessed.size() == 1 ? "1 finding is" : fmt::format("{} findings are", blessed.size())));
  }
  return style.exit_status;
}

Action declare_check(const Declaration& to) {
  to.options.asks_at_once = true;
  CLI::App& app = to.app;
  Options& o = to.options;
  declare_rules_choice(app, o);
  declare_rule_files(app, o);
  app.add_option("--profile", o.profile, "Lua file with rules, their parameters and collections")->type_name("FILE");
  repeated(app.add_option("--on", to.raw.on, "nodes for the next --when; default: the condition's usual nodes")
               ->type_name("SEL"));
  repeated(app.add_option("--when", to.raw.when, "a condition with its parameters; replaces the default rules")->type_name("COND"));
  repeated(app.add_option("--param", o.params, "parameter of a rule, e.g. TL.max_gt=100")->type_name("RULE.NAME=V"));
  app.add_option("--slots", o.slots, "output, input or all; default: output, or input where no outputs were dumped")
      ->type_name("WHICH")
      ->each([&o](const std::string&) { o.slots_given = true; });
  app.add_option("--nan", to.raw.nan, "hit or clean: the verdict on a tensor that a condition cannot judge because of NaN")
      ->default_str("not checked")
      ->type_name("VERDICT");
  app.add_option("--max-hits", o.max_hits, "list at most N hits; all are counted")
      ->type_name("N")
      ->check(CLI::Range(0, 1000000000));
  app.add_option("--baseline", o.baseline, "findings listed there are known: only others count for the exit status")->type_name("FILE");
  app.add_option("--bless", o.bless, "write the findings of this run there, as a baseline for later ones")->type_name("FILE");
  app.add_flag("--baseline-steps", o.baseline_steps, "--bless distinguishes steps");
  app.add_option("--suppress", o.suppress, "findings not to count, one a line: RULE NODE-GLOB[:slot] [step=0:3] # reason")
      ->type_name("FILE");
  app.add_flag("--strict", o.strict, "status 4 if anything was not checked or a suppression matched nothing");
  app.add_flag("--missing", o.report_missing, "count watched tensors that were not dumped as not checked");
  app.add_flag("--wide", o.wide, "full names");
  app.add_flag("--group", o.group, "hits grouped by scope");
  app.add_flag("--all", o.all, "list every hit, also those that follow from others");
  return run_check;
}

}  // namespace

CommandEntry check_command() {
  return {.name = "check",
          .group = kWrongGroup,
          .summary = "is anything wrong: rules and conditions over all steps",
          .details =
              "Without --rules, --rule, --on and --when: the watchpoints of the prompt, else the default rules.\n"
              "Rules (--rules): names, tags and globs with and, or, not, ( ); default, recommended (what MindInsight proposes), or\n"
              "conditions by id or abbreviation, joined by commas: TO WO GE TL WL GL TS WS GV TZ WCL WCS WNC TR AR WI OO.",
          .examples = {{""},
                       {"--rules TO,TZ --steps 0:10"},
                       {"--on @gradient --when 'TL abs_mean_gt=1'"},
                       {"--on @weight --when WNC --format json -o findings.json"},
                       {"--bless known.jsonl", "this run's findings are known from now on"},
                       {"--baseline known.jsonl --suppress suppress.txt --format junit -o msdbg.xml"}},
          .declare = declare_check,
          .steps = StepsWord::kAllHeld,
          .formats = "table, json, jsonl, csv, markdown, junit or sarif",
          .last_format = Format::kSarif,
          .selectors = true};
}

}  // namespace msdbg::app
