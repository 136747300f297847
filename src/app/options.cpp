#include "app/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>

#include "app/command.h"
#include "app/help.h"
#include "app/raw_options.h"
#include "app/rules.h"
#include "app/suggestion.h"

namespace msdbg::app {
namespace {

struct CommandName {
  std::string_view name;
  Command command;
};
constexpr CommandName kCommands[] = {{"repl", Command::kRepl},   {"run", Command::kRun},     {"check", Command::kCheck},
                                     {"origin", Command::kOrigin}, {"stats", Command::kStats}, {"show", Command::kShow},
                                     {"nodes", Command::kNodes}, {"doctor", Command::kDoctor}, {"demo", Command::kDemo},
                                     {"open", Command::kRepl},     {"listen", Command::kListen}};

std::optional<Command> command_of(std::string_view word) {
  for (const CommandName& c : kCommands) {
    if (c.name == word) return c.command;
  }
  for (const CommandEntry& entry : command_table()) {
    if (entry.name == word) return Command::kOther;
  }
  return std::nullopt;
}

Parsed usage_error(const std::string& message) {
  Parsed parsed;
  parsed.done = true;
  parsed.exit_status = kExitUsage;
  parsed.err = "msdbg: " + message + "\n";
  return parsed;
}

// `msdbg DUMP` is the prompt; any other unknown word is a typo.
std::vector<std::string> insert_default_command(const std::vector<std::string>& words, std::string* error) {
  if (words.empty() || words[0].starts_with('-') || command_of(words[0])) return words;
  std::error_code ignored;
  const bool exists = std::filesystem::exists(words[0], ignored);
  // `msdbg help`, `msdbg help check`: the word that other programs know.
  if (words[0] == "help" && !exists && (words.size() == 1 || (words.size() == 2 && command_of(words[1])))) {
    std::vector<std::string> with(words.begin() + 1, words.end());
    with.push_back("--help");
    return with;
  }
  if (exists) {
    std::vector<std::string> with{"repl"};
    with.insert(with.end(), words.begin(), words.end());
    return with;
  }
  std::vector<std::string> known;
  for (const CommandName& c : kCommands) known.emplace_back(c.name);
  for (const CommandEntry& entry : command_table()) known.emplace_back(entry.name);
  const auto near = nearest(words[0], known, 1);
  *error = near.empty() ? fmt::format("'{}' is neither a command nor a dump directory; see msdbg --help", words[0])
                        : fmt::format("'{}' is neither a command nor a dump directory; did you mean '{}'?", words[0], near[0]);
  return words;
}

}  // namespace

int exit_status_for(const Status& status) {
  switch (status.code()) {
    case Code::kOk: return kExitClean;
    case Code::kInvalidArgument: return kExitUsage;
    case Code::kInterrupted: return kExitInterrupted;
    case Code::kPeerLost: return kExitPeerLost;
    case Code::kInternal: return kExitInternal;
    default: return kExitInput;
  }
}

Parsed parse_command_line(const std::vector<std::string>& raw_words) {
  std::string error;
  std::vector<std::string> words = insert_default_command(raw_words, &error);
  if (!error.empty()) return usage_error(error);
  // What stands behind `--` is for the script.
  std::vector<std::string> script_words;
  if (!words.empty() && words[0] == "listen") {
    const auto divider = std::find(words.begin(), words.end(), "--");
    if (divider != words.end()) {
      script_words.assign(divider + 1, words.end());
      words.erase(divider, words.end());
    }
  }

  Parsed parsed;
  Options& o = parsed.options;
  RawOptions raw;
  CLI::App app("msdbg: the scriptable debugger for MindSpore training", "msdbg");
  app.set_version_flag("--version", "msdbg " + std::string(kVersion));
  app.require_subcommand(0, 1);
  app.set_help_flag("-h,--help", "this text");

  auto* check = app.add_subcommand("check", "run conditions over a dump");
  add_dump(check, o);
  check->add_option("--rules", o.rules, "which rules: names, tags, globs with and, or, not; see below")
      ->capture_default_str()
      ->type_name("EXPR")
      ->each([&o](const std::string&) { o.rules_given = true; });
  declare_rule_files(*check, &o.rule_files, &o.trust, &o.rule_budget_s);
  check->add_option("--profile", o.profile, "Lua file with rules, their parameters and collections")->type_name("FILE");
  check->add_option("--on", raw.on, "nodes for the next --when; default: those the condition is made for")
      ->type_name("SEL")
      ->expected(1)
      ->take_all();
  check->add_option("--when", raw.when, "a condition with its parameters; replaces the default rules")
      ->type_name("COND")
      ->expected(1)
      ->take_all();
  check->add_option("--param", o.params, "parameter of a rule, e.g. TL.max_gt=100")->type_name("RULE.NAME=V")->expected(1)->take_all();
  check->add_option("--slots", o.slots, "output, input or all")->capture_default_str()->type_name("WHICH");
  add_steps(check, raw);
  check->add_option("--max-hits", o.max_hits, "list at most so many hits; all are counted")
      ->type_name("N")
      ->check(CLI::Range(0, 1000000000));
  check->add_option("--baseline", o.baseline, "findings listed there are known: only others count for the exit status")->type_name("FILE");
  check->add_option("--bless", o.bless, "write the findings of this run there, as a baseline for later ones")->type_name("FILE");
  check->add_flag("--baseline-steps", o.baseline_steps, "--bless distinguishes steps");
  check->add_option("--suppress", o.suppress, "findings not to count, one a line: RULE NODE-GLOB[:slot] [step=0:3] # reason")
      ->type_name("FILE");
  check->add_flag("--strict", o.strict, "status 4 when anything was not checked or a suppression matched nothing");
  check->add_flag("--missing", o.report_missing, "count watched tensors that were not dumped as not checked");
  check->add_flag("--wide", o.wide, "full names");
  check->add_flag("--group", o.group, "hits grouped by scope");

  auto* origin = app.add_subcommand("origin", "the first tensor that broke, the way it spread, its source line");
  add_dump(origin, o);
  origin->add_option("--when", o.when, "what counts as bad: 'nan or inf', nan, inf, or a condition")
      ->capture_default_str()
      ->type_name("COND");
  add_steps(origin, raw);
  origin->add_flag("--strict", o.strict, "status 4 when anything was not checked");
  origin->add_flag("--wide", o.wide, "full names");

  auto* stats = app.add_subcommand("stats", "statistics of tensors");
  add_dump(stats, o);
  stats->add_option("SEL", o.subject, "selector; default: every node");
  stats->add_option("--slots", o.slots, "output, input or all")->capture_default_str()->type_name("WHICH");
  add_steps(stats, raw);
  stats->add_flag("--wide", o.wide, "full names, all columns");

  auto* show = app.add_subcommand("show", "one tensor: statistics, elements, histogram");
  add_dump(show, o);
  show->add_option("TENSOR", o.subject, "NODE, NODE:0, NODE:input:1; NODE may be the end of the name")->required();
  add_steps(show, raw);
  show->add_option("--graph", raw.graph, "graph id where several have the node")->type_name("N");
  show->add_option("--execution", o.execution, "which run within the step (loop bodies)")->type_name("N")->check(CLI::NonNegativeNumber);
  show->add_option("--slice", o.slice, "a slice, e.g. 0:2,:,3")->type_name("SLICE");
  show->add_option("--bins", o.bins, "histogram with so many bins")->type_name("N")->check(CLI::NonNegativeNumber);
  show->add_option("--rows", o.rows, "lines of elements at most")->capture_default_str()->type_name("N")->check(CLI::NonNegativeNumber);

  auto* nodes = app.add_subcommand("nodes", "list nodes");
  add_dump(nodes, o);
  nodes->add_option("SEL", o.subject, "selector; default: every node");
  nodes->add_option("--ranks,--rank", raw.ranks, "ranks: all, 0, 0:3")->capture_default_str()->type_name("RANKS");
  nodes->add_flag("--wide", o.wide, "inputs and shapes too");

  auto* doctor = app.add_subcommand("doctor", "what is in a dump, what is damaged or missing");
  add_dump(doctor, o);
  doctor->add_flag("--wide", o.wide, "every problem, not only the first of each kind");

  auto* run = app.add_subcommand("run", "run a Lua script");
  run->add_option("SCRIPT", o.script, "file, or - for standard input")->required();
  run->add_option("--script-path", o.script_path, "directory searched by require")->type_name("DIR")->expected(1)->take_all();
  run->prefix_command();

  auto* repl = app.add_subcommand("repl", "the prompt");
  repl->add_option("DUMP", o.dump, "dump directory or recording to open as s");

  auto* open = app.add_subcommand("open", "the prompt on a dump or a recording");
  open->add_option("PATH", o.dump, "dump directory, or file written by listen --record")->required();

  auto* listen = app.add_subcommand("listen", "wait for a training process, hold it, step it, watch it");
  listen->add_option("--port", raw.port, "port for the training to connect to; 0 is any free one")
      ->capture_default_str()
      ->type_name("PORT");
  listen->add_option("--bind", o.bind, "address to listen on; see below before you choose another")
      ->capture_default_str()
      ->type_name("ADDR");
  listen->add_option("--script", o.script, "Lua file to run once the training is held, as s; - for standard input")->type_name("FILE");
  listen->add_option("--record", o.record, "write the whole conversation there; msdbg open FILE plays it")->type_name("FILE");
  listen->add_option("--timeout", raw.timeout_s, "give up if no training connects within this many seconds")->type_name("SECONDS");
  listen->add_option("--answer-timeout", raw.answer_timeout_s, "how long a held training may be silent after a request for a tensor")
      ->capture_default_str()
      ->type_name("SECONDS");
  listen->add_option("--history", raw.history, "steps whose statistics are kept")->capture_default_str()->type_name("N");
  for (CLI::App* sub : {repl, open, listen}) {
    sub->add_option("-e", o.eval, "run this entry first")->type_name("CODE")->expected(1)->take_all();
    sub->add_option("-x", o.files, "run the entries of this file first")->type_name("FILE")->expected(1)->take_all();
    sub->add_option("--script-path", o.script_path, "directory searched by require")->type_name("DIR")->expected(1)->take_all();
    sub->add_flag("--batch", o.batch, "no line editing, stop at the first error, end after -e and -x or the end of input");
  }

  for (CLI::App* sub : {repl, open, listen}) sub->add_flag("--no-init", o.no_init, "do not enter the user's init.lua first");

  auto* demo = app.add_subcommand("demo", "find a planted log(0) in a dump that ships with msdbg");

  for (CLI::App* sub : {check, origin, stats, show, nodes, doctor, demo})
    add_common(sub, o, raw, sub == check ? kCheckFormats : kLookFormats);
  for (CLI::App* sub : {run, repl, open, listen}) add_common(sub, o, raw, "");

  std::vector<std::pair<CLI::App*, Action>> actions;
  for (const CommandEntry& entry : command_table()) {
    CLI::App* sub = app.add_subcommand(std::string(entry.name), std::string(entry.summary));
    actions.emplace_back(sub, entry.declare(*sub));
    if (entry.takes_steps) add_steps(sub, raw);
    add_common(sub, o, raw, entry.takes_formats ? entry.formats : "");
  }
  app.footer(help_footer(""));
  for (CLI::App* sub : app.get_subcommands({})) {
    sub->footer(help_footer(sub->get_name()));
    sub->set_help_flag("-h,--help", "this text");
  }

  std::vector<std::string> reversed(words.rbegin(), words.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::Success& success) {  // --help, --version
    parsed.done = true;
    std::ostringstream out;
    app.exit(success, out, out);
    parsed.out = out.str();
    return parsed;
  } catch (const CLI::ParseError& failure) {
    std::string at;
    for (const CLI::App* sub : app.get_subcommands()) at = " " + sub->get_name();
    return usage_error(fmt::format("{}\nmsdbg{} --help shows what is possible", with_suggestion(app, failure), at));
  }
  if (app.get_subcommands().empty()) {
    // Nothing but `msdbg`: the prompt without a dump.
    o.command = Command::kRepl;
  } else {
    const CLI::App* chosen = app.get_subcommands().front();
    o.command = *command_of(chosen->get_name());
    if (o.command == Command::kCheck) {
      raw.last_format = Format::kSarif;
      raw.formats = kCheckFormats;
    }
    for (size_t i = 0; i < actions.size(); ++i) {
      if (actions[i].first != chosen) continue;
      o.action = std::move(actions[i].second);
      raw.last_format = command_table()[i].last_format;
      raw.formats = command_table()[i].formats;
    }
    if (o.command == Command::kRun) o.arguments = app.get_subcommands().front()->remaining();
    if (o.command == Command::kListen) o.arguments = script_words;
  }
  if (const Status status = finish(raw, o); !status.ok()) return usage_error(status.message());
  if (!o.arguments.empty() && o.script.empty())
    return usage_error(fmt::format("'{}' after -- is for a script; name one with --script FILE", o.arguments.front()));
  return parsed;
}

}  // namespace msdbg::app
