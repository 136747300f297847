// msdbg run: a Lua script.
#include <fmt/format.h>

#include <cstdio>

#include "app/live.h"
#include "app/output.h"
#include "app/progress.h"
#include "app/run.h"
#include "app/scripting.h"
#include "msdbg/dump.h"

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
  if (!live_factories().is_recording(path)) return open_dump(path, options);
  auto recording = live_factories().open_recording(path);
  if (!recording) return recording.status();
  return std::unique_ptr<Session>(std::move(*recording));
}

Result<std::unique_ptr<Script>> make_script(const Options& options, EventPrinter* events) {
  ScriptOptions script_options;
  script_options.open = [key = options.checkpoint](const std::string& path, const DumpOptions& asked) {
    return open_any(path, asked, key);
  };
  script_options.listen = [](const ListenOptions& asked) { return live_factories().listen(asked); };
  if (events != nullptr) script_options.on_event = [events](const LiveEvent& event) { events->show(event); };
  if (!options.batch) {
    script_options.progress = [&options](std::string_view what, std::string_view unit) { return Progress::owned(options, what, unit); };
  }
  script_options.pager = options.pager;
  script_options.search_path = options.script_path;
  if (options.colour != Switch::kAuto) script_options.colour = options.colour == Switch::kAlways;
  else if (options.batch) script_options.colour = false;
  script_options.check_defaults.semantics = options.semantics;
  script_options.check_defaults.mem_limit_bytes = options.mem_limit_mb << 20;
  script_options.check_defaults.threads = options.threads;
  return Script::create(std::move(script_options));
}

int run_script(const Options& options) {
  EventPrinter events(stderr);
  auto script = make_script(options, &events);
  if (!script) return report_failure(script.status());
  const ScriptOutcome outcome = (*script)->run_file(options.script, options.arguments);
  std::fflush(stdout);
  if (!outcome.error.empty()) print(stderr, fmt::format("msdbg: {}\n", outcome.error));
  return settle_trainings(**script, LetGo::kTerminate, stderr, outcome.exit_status);
}

}  // namespace msdbg::app
