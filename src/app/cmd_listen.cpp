// msdbg listen: waits for a training process; then a script or the prompt.
#include <fmt/format.h>
#include <unistd.h>

#include <clocale>
#include <cmath>
#include <cstdio>

#include "app/live.h"
#include "app/output.h"
#include "app/run.h"
#include "app/scripting.h"

namespace msdbg::app {
namespace {

constexpr auto kPauseTimeout = std::chrono::seconds(30);

// What happened while we waited; who came is said by the line that follows.
void show_warnings(LiveSession& session, EventPrinter& events) {
  for (const LiveEvent& event : session.take_events()) {
    if (event.severity != Severity::kInfo) events.show(event);
  }
}

// After Ctrl-C in a script a person at a terminal gets the prompt, with the training held.
bool hold_for_the_prompt(LiveSession& session) {
  clear_interrupt();
  if (session.state() == LiveState::kRunning) {
    const auto paused = session.pause(kPauseTimeout);
    if (!paused) print(stdout, paused.status().message() + "\n");
  }
  const LiveState state = session.state();
  if (state != LiveState::kHeld && state != LiveState::kRunning) return false;
  print(stdout, fmt::format("^C  the training is {}; quit asks whether to detach or terminate\n", whereabouts(session)));
  return true;
}

}  // namespace

int run_listen(const Options& options) {
  std::setlocale(LC_CTYPE, "");
  // It may run for days with its output in a file or a pipe: a reader there sees each line when it is written.
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const bool interactive = ::isatty(STDIN_FILENO) && ::isatty(STDOUT_FILENO) && !options.batch;
  EventPrinter events(interactive ? stdout : stderr);
  auto script = make_script(options, &events);
  if (!script) return report_failure(script.status());

  // Told now: a training may take minutes to come.
  if (!options.script.empty() && options.script != "-") {
    const ScriptOutcome outcome = (*script)->check_file(options.script);
    if (!outcome.error.empty()) {
      print(stderr, fmt::format("msdbg: {}\n", outcome.error));
      return outcome.exit_status;
    }
  }
  auto made = live_factories().listen(listen_options(options));
  if (!made) return report_failure(made.status());
  LiveSession& session = **made;
  print(stdout, listening_text(session, options.bind) + "\n");
  std::fflush(stdout);
  std::optional<std::chrono::milliseconds> timeout;
  if (options.timeout_s) timeout = std::chrono::milliseconds(std::llround(*options.timeout_s * 1000));
  const Status held = session.wait_until_held(timeout);
  show_warnings(session, events);
  if (!held.ok()) return report_failure(held);
  if (!options.quiet) print(stdout, connected_text(session) + "\n");
  std::fflush(stdout);
  (*script)->set_session(std::move(*made));

  if (options.script.empty()) return run_entries_and_prompt(options, **script, &events, "Type help, or Lua.");
  const ScriptOutcome outcome = (*script)->run_file(options.script, options.arguments);
  std::fflush(stdout);
  (*script)->report_events();
  if (outcome.exit_status == kExitInterrupted && interactive && options.script != "-" && hold_for_the_prompt(session))
    return run_entries_and_prompt(options, **script, &events, "");
  if (!outcome.error.empty()) print(stderr, fmt::format("msdbg: {}\n", outcome.error));
  return settle_trainings(**script, LetGo::kTerminate, stderr, outcome.exit_status);
}

}  // namespace msdbg::app
