// msdbg run: runs a Lua script.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>

#include "app/follow_command.h"
#include "app/live.h"
#include "app/prompt_commands.h"
#include "app/scripting.h"
#include "msdbg/dump.h"
#include "msdbg/msprobe.h"

namespace msdbg::app {

Result<std::unique_ptr<Session>> open_any(const std::string& path, const DumpOptions& options, const CheckpointOptions& checkpoint) {
  if (is_checkpoint(path)) {
    auto opened = open_checkpoint(path, checkpoint);
    if (!opened) return opened.status();
    for (const Problem& problem : (*opened)->facts().problems) {
      if (problem.severity != Severity::kInfo) log(LogLevel::kWarning, fmt::format("{}: {}", problem.path, problem.message));
    }
    return std::unique_ptr<Session>(std::move(*opened));
  }
  if (!live_factories().is_recording(path)) return is_msprobe_dump(path) ? open_msprobe(path, options) : open_dump(path, options);
  auto recording = live_factories().open_recording(path);
  if (!recording) return recording.status();
  return std::unique_ptr<Session>(std::move(*recording));
}

Result<std::unique_ptr<Script>> make_script(const Options& options, EventPrinter* events) {
  ScriptOptions script_options;
  script_options.open = [key = options.checkpoint, index = options.index](const std::string& path, DumpOptions asked) {
    asked.index = asked.index && index;
    return open_any(path, asked, key);
  };
  script_options.listen = [](const ListenOptions& asked) { return live_factories().listen(asked); };
  if (events != nullptr) script_options.on_event = [events](const LiveEvent& event) { events->show(event); };
  if (!options.batch) {
    script_options.progress = [kept = std::make_shared<const Options>(options)](std::string_view what, std::string_view unit) {
      return Progress::owned(*kept, what, unit);
    };
  }
  script_options.pager = options.pager;
  script_options.commands = prompt_commands(options);
  if (!options.quiet && !options.batch) script_options.on_run_status = show_status;
  script_options.search_path = options.script_path;
  if (options.colour != Switch::kAuto) script_options.colour = options.colour == Switch::kAlways;
  else if (options.batch) script_options.colour = false;
  script_options.check_defaults.semantics = options.semantics;
  script_options.check_defaults.mem_limit_bytes = options.mem_limit_mb << 20;
  script_options.check_defaults.threads = options.threads;
  return Script::create(std::move(script_options));
}

namespace {

Result<int> run_script(Context& context) {
  const Options& options = context.options();
  EventPrinter events(stderr);
  auto script = make_script(options, &events);
  if (!script) return script.status();
  const ScriptOutcome outcome = options.eval.empty()
                                    ? (*script)->run_file(options.script, options.arguments)
                                    : (*script)->run_text(fmt::format("{}", fmt::join(options.eval, "\n")), "=-e", options.arguments);
  std::fflush(stdout);
  if (!outcome.error.empty()) print(stderr, fmt::format("msdbg: {}\n", outcome.error));
  return end_trainings(**script, OnLeave::kTerminate, Leaving::kWhenItHasEnded, stderr, outcome.exit_status);
}

Action declare_script(const Declaration& to) {
  to.app.add_option("SCRIPT", to.options.script, "file, or - for standard input");
  repeated(to.app.add_option("-e", to.options.eval, "run this Lua instead of a file; all words are its arguments")->type_name("CODE"));
  repeated(to.app.add_option("--script-path", to.options.script_path, "directory searched by require")->type_name("DIR"));
  to.app.prefix_command();
  return run_script;
}

}  // namespace

CommandEntry run_command() {
  return {.name = "run",
          .group = kStartGroup,
          .summary = "run a Lua script",
          .details = "The words after the script are its arguments, `...` and `arg`; after --, every word is. os.exit(n) sets the\n"
                     "exit status. Scripts are trusted code: they can do what you can do.",
          .examples = {{"gradient_health.lua dumps/lenet"},
                       {"count.lua -- --steps 3", "everything after -- goes to the script"},
                       {"-e 'print(#msdbg.open(arg[1]):nodes \"@weight\")' dumps/lenet"}},
          .declare = declare_script,
          .readers = Readers::kProgram,
          .first = FirstWord::kNone,
          .formats = "",
          .passes_words = true};
}

}  // namespace msdbg::app
