// msdbg repl: the loop around Script::eval.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <sstream>

#include "app/line_editor.h"
#include "app/context.h"
#include "app/live.h"
#include "app/output.h"
#include "app/raw_options.h"
#include "app/rules.h"
#include "app/run.h"
#include "app/scripting.h"
#include "msdbg/file.h"
#include "msdbg/rank_report.h"

namespace msdbg::app {
namespace {

class Prompt {
 public:
  Prompt(const Options& options, Script& script, EventPrinter* events, bool interactive)
      : options_(options), script_(script), events_(events), interactive_(interactive), colour_(interactive && style_for(options).colour) {}

  enum class Next { kGoOn, kMore, kEnd };

  // Feeds one entry; kMore when Lua needs another line.
  Next enter(const std::string& text) {
    clear_interrupt();
    const Script::Eval result = script_.eval(text);
    if (result.state == Script::EvalState::kIncomplete) return Next::kMore;
    if (!result.output.empty()) {
      // Errors go to standard error, unless a user sees both in one window anyway.
      FILE* to = result.state == Script::EvalState::kError && !interactive_ ? stderr : stdout;
      const std::string output = with_colour(result) + "\n";
      const bool shown = interactive_ && result.pager ? print_paged(output, true) : print(to, output, true);
      if (!shown) print(to, "\ninterrupted; the output is not complete\n");
    }
    if (result.state == Script::EvalState::kExit) {
      status_ = result.exit_status;
      return Next::kEnd;
    }
    if (result.state == Script::EvalState::kError && !interactive_) {
      // A pipe continues as at a terminal, but its exit status reports the failure; --batch stops here.
      status_ = interrupt_requested() ? kExitInterrupted : kExitScript;
      if (options_.batch || interrupt_requested()) return Next::kEnd;
    }
    return Next::kGoOn;
  }

  // A complete entry, from -e or the end of a file.
  bool enter_whole(const std::string& text) {
    const Next next = enter(text);
    if (next != Next::kMore) return next == Next::kGoOn;
    status_ = report_failure(Status(Code::kInvalidArgument, fmt::format("'{}' is not finished: an open block, bracket or string", text)));
    status_ = kExitScript;
    return !options_.batch;
  }

  bool enter_file(const std::string& path) {
    const Result<std::string> text = read_input(path);
    if (!text) {
      status_ = report_failure(Status(text.status().code(), "-x " + text.status().message()));
      return false;
    }
    std::istringstream lines(*text);
    std::string line, entry;
    while (std::getline(lines, line)) {
      if (!add_line(line, &entry)) return false;
    }
    return entry.empty() || enter_whole(entry);
  }

  int loop() {
    std::string entry, line;
    const auto editor = make_line_editor(
        options_.batch, default_history_file(),
        [this](const std::string& text, size_t cursor) { return script_.complete(text, cursor); },
        [this, &entry](std::string* prompt) { return news(entry.empty() ? prompt : nullptr); });
    editor->set_colours(colour_);
    while (true) {
      clear_interrupt();
      script_.report_events();
      editor->watch(script_.event_descriptors());
      const auto outcome = editor->read(entry.empty() ? script_.prompt() : std::string("    > "), &line);
      if (outcome == LineEditor::Outcome::kEnd) {
        if (!entry.empty()) enter_whole(entry);
        if (!may_leave(*editor)) continue;
        break;
      }
      if (outcome == LineEditor::Outcome::kInterrupted) {
        entry.clear();
        continue;
      }
      const std::string before = entry.empty() ? line : entry + "\n" + line;
      const bool go_on = add_line(line, &entry);
      if (entry.empty()) editor->remember(before);
      if (!go_on && may_leave(*editor)) break;
    }
    return settled();
  }

  /// The exit status, after trainings were detached or terminated.
  int settled() {
    return end_trainings(script_, on_leave_, interactive_ ? Leaving::kToBackground : Leaving::kWhenItHasEnded,
                            interactive_ ? stdout : stderr, status_);
  }

 private:
  // Colour makes errors easy to find in a long session.
  std::string with_colour(const Script::Eval& result) const {
    constexpr std::string_view kError = "error:";
    if (!colour_ || !result.output.starts_with(kError) || result.state != Script::EvalState::kError) return result.output;
    return fmt::format("\x1b[1;31m{}\x1b[0m{}", kError, result.output.substr(kError.size()));
  }

  // Events that arrived while the user sat at the prompt.
  std::string news(std::string* prompt) {
    if (events_ != nullptr) events_->keep();
    script_.report_events();
    if (prompt != nullptr) *prompt = script_.prompt();
    return events_ != nullptr ? events_->take() : "";
  }

  // Leaving the prompt asks whether to detach or terminate.
  bool may_leave(LineEditor& editor) {
    if (!interactive_) return true;
    std::string where;
    for (const Script::Training& training : script_.trainings()) {
      if (!training.detached) where = held_text(*training.session);
    }
    if (where.empty()) return true;
    std::string answer;
    clear_interrupt();
    editor.watch({});
    const auto outcome = editor.read(
        fmt::format("The training is {}. Detach (d) or terminate (t)? > ", where), &answer);
    if (outcome == LineEditor::Outcome::kEnd) return true;
    const std::string word = to_lower(trim(answer));
    if (outcome == LineEditor::Outcome::kLine && (word == "d" || word == "detach")) on_leave_ = OnLeave::kDetach;
    else if (outcome != LineEditor::Outcome::kLine || (word != "t" && word != "terminate")) {
      print(stdout, "Neither d nor t: back at the prompt.\n");
      return false;
    }
    return true;
  }

  // Joins lines until they make an entry.
  bool add_line(const std::string& line, std::string* entry) {
    const std::string text = entry->empty() ? line : *entry + "\n" + line;
    if (trim(text).empty()) {
      entry->clear();
      return true;
    }
    const Next next = enter(text);
    if (next == Next::kMore) {
      *entry = text;
      return true;
    }
    entry->clear();
    return next == Next::kGoOn;
  }

  const Options& options_;
  Script& script_;
  EventPrinter* events_;
  bool interactive_, colour_;
  OnLeave on_leave_ = OnLeave::kTerminate;
  int status_ = kExitClean;
};

std::string count_text(size_t n, std::string_view noun) { return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s"); }

std::string greeting(Session& session) {
  const SessionInfo& info = session.info();
  if (auto* live = dynamic_cast<LiveSession*>(&session)) {
    return fmt::format("msdbg {}  {} {}, {}\nType help, or Lua.", kVersion, session_kind_name(info.kind), printable(info.short_name),
                       held_text(*live));
  }
  std::string out = fmt::format("msdbg {}  {}: ", kVersion, printable(info.short_name));
  const bool calls = !session.graphs().empty() && session.graphs().front()->recorded_calls();
  if (calls) out += "msprobe " + printable(info.epoch);
  else out += info.framework_version.empty() ? "MindSpore (version unknown)" : "MindSpore " + printable(info.framework_version);
  const auto ranks = session.ranks();
  out += ranks.size() == 1 ? fmt::format(", rank {}", ranks[0]) : ", " + count_text(ranks.size(), "rank");
  size_t kernels = 0;
  for (const GraphPtr& graph : session.graphs()) {
    for (const NodeId node : graph->execution_order()) kernels += !is_structural(graph->node(node).op);
  }
  out += ", " + count_text(session.graphs().size(), "graph") + ", " + count_text(kernels, calls ? "call" : "kernel");
  const auto steps = session.steps();
  if (steps.empty()) out += ", no steps";
  else if (steps.size() == 1) out += fmt::format(", step {}", steps[0]);
  else if (steps.back() - steps.front() + 1 == static_cast<int64_t>(steps.size()))
    out += fmt::format(", steps {}-{}", steps.front(), steps.back());
  else out += fmt::format(", {} steps from {} to {}", steps.size(), steps.front(), steps.back());
  for (const std::string& line : missing_steps(session)) out += "\n" + line;
  return out + "\nType help, or Lua.";
}

}  // namespace

int run_entries_and_prompt(const Options& options, Script& script, EventPrinter* events, const std::string& greeting) {
  const bool interactive = ::isatty(STDIN_FILENO) && ::isatty(STDOUT_FILENO) && !options.batch;
  if (interactive && !options.quiet && !greeting.empty()) print(stdout, greeting + "\n");
  if (interactive && trusts_project_rules(false)) {
    if (const auto trusted = script.call("msdbg.rule_library", "trust_project", {}); !trusted) report_failure(trusted.status());
  }
  Prompt prompt(options, script, events, interactive);
  // Only an interactive prompt reads the user's init file: output of pipes and --batch must not depend on it.
  if (const std::string init = interactive && !options.no_init ? init_file() : ""; !init.empty()) {
    if (!prompt.enter_whole("source " + init)) return prompt.settled();
  }
  for (const std::string& file : options.files) {
    if (!prompt.enter_file(file)) return prompt.settled();
  }
  for (const std::string& code : options.eval) {
    if (!prompt.enter_whole(code)) return prompt.settled();
  }
  // With -e or -x and --batch there is nothing to wait for, unless lines are piped in.
  if (options.batch && !(options.eval.empty() && options.files.empty()) && ::isatty(STDIN_FILENO)) return prompt.settled();
  return prompt.loop();
}

namespace {

Result<int> run_prompt(Context& context) {
  const Options& options = context.options();
  use_locale();
  EventPrinter events(::isatty(STDOUT_FILENO) && !options.batch ? stdout : stderr);
  auto script = make_script(options, &events);
  if (!script) return script.status();
  std::string first_line = fmt::format("msdbg {}  no session is open; open one with: open PATH\nType help, or Lua.", kVersion);
  if (!options.dump.empty()) {
    DumpOptions dump_options;
    dump_options.net = options.net;
    dump_options.index = options.index;
    dump_options.ranks = options.ranks;
    auto session = open_any(options.dump, dump_options, options.checkpoint);
    if (!session) return session.status();
    print_damage(context, **session);
    first_line = greeting(**session);
    (*script)->set_session(std::move(*session));
  }
  return run_entries_and_prompt(options, **script, &events, first_line);
}

Action declare_repl(const Declaration& to) {
  declare_entries(to);
  return run_prompt;
}

}  // namespace

void declare_entries(const Declaration& to) {
  CLI::App& app = to.app;
  Options& o = to.options;
  repeated(app.add_option("-e", o.eval, "run this entry first")->type_name("CODE"));
  repeated(app.add_option("-x", o.files, "run the entries of this file first")->type_name("FILE"));
  repeated(app.add_option("--script-path", o.script_path, "directory searched by require")->type_name("DIR"));
  app.add_flag("--batch", o.batch, "no line editing, stop at the first error, end after -e and -x or the end of input");
  app.add_flag("--no-init", o.no_init, "do not enter the user's init.lua first");
}

CommandEntry repl_command() {
  return {.name = "repl",
          .group = kStartGroup,
          .summary = "the prompt; msdbg DUMP is short for it",
          .details = "Type help at the prompt.",
          .examples = {{""}, {"-e 'check' --batch"}},
          .declare = declare_repl,
          .readers = Readers::kProgram,
          .first = FirstWord::kMaybeDump,
          .first_help = "dump directory or recording to open as s",
          .formats = ""};
}

CommandEntry open_command() {
  return {.name = "open",
          .group = kStartGroup,
          .summary = "the prompt on a dump or a recording",
          .examples = {{"", "a file that listen --record wrote is played step by step"}},
          .declare = declare_repl,
          .readers = Readers::kProgram,
          .first_help = "dump directory, or file written by listen --record",
          .formats = ""};
}

}  // namespace msdbg::app
