// msdbg listen: waits for a training process, then runs a script or the prompt.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "app/background.h"
#include "app/context.h"
#include "app/line_editor.h"
#include "app/live.h"
#include "app/output.h"
#include "app/raw_options.h"
#include "app/scripting.h"

namespace msdbg::app {
namespace {

constexpr auto kPauseTimeout = std::chrono::seconds(30);

// What happened during the wait; the next line reports who connected.
void show_warnings(LiveSession& session, EventPrinter& events) {
  for (const LiveEvent& event : session.take_events()) {
    if (event.severity != Severity::kInfo) events.show(event);
  }
}

// Shows what happens meanwhile, such as a rank that is late.
Status wait_for_training(LiveSession& session, std::optional<std::chrono::milliseconds> timeout, EventPrinter& events) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kSlice{500};
  const auto deadline = timeout ? Clock::now() + *timeout : Clock::time_point::max();
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    Status held = session.wait_until_held(std::clamp(left, std::chrono::milliseconds(0), kSlice));
    show_warnings(session, events);
    if (held.ok() || held.code() == Code::kInterrupted || Clock::now() >= deadline) return held;
  }
}

// After Ctrl-C in a script, a user at a terminal gets the prompt with the training held.
bool hold_for_the_prompt(LiveSession& session) {
  clear_interrupt();
  if (session.state() == LiveState::kRunning) {
    const auto paused = session.pause(kPauseTimeout);
    if (!paused) print(stdout, paused.status().message() + "\n");
  }
  const LiveState state = session.state();
  if (state != LiveState::kHeld && state != LiveState::kRunning) return false;
  print(stdout, fmt::format("^C  the training is {}; quit asks whether to detach or terminate\n", held_text(session)));
  return true;
}

Result<int> run_listen(Context& context) {
  const Options& options = context.options();
  if (options.answer_only) return run_answer_only(options);
  use_locale();
  // It may run for days with its output in a file or a pipe: flush every line.
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const bool interactive = ::isatty(STDIN_FILENO) && ::isatty(STDOUT_FILENO) && !options.batch;
  EventPrinter events(interactive ? stdout : stderr);
  auto script = make_script(options, &events);
  if (!script) return script.status();

  // Report this now: a training may take minutes to connect.
  if (!options.script.empty() && options.script != "-") {
    const ScriptOutcome outcome = (*script)->check_file(options.script);
    if (!outcome.error.empty()) {
      print(stderr, fmt::format("msdbg: {}\n", outcome.error));
      return outcome.exit_status;
    }
  }
  auto made = live_factories().listen(listen_options(options));
  if (!made) return made.status();
  LiveSession& session = **made;
  print(stdout, listening_text(session, options.bind) + "\n");
  std::fflush(stdout);
  std::optional<std::chrono::milliseconds> timeout;
  if (options.timeout_s) timeout = std::chrono::milliseconds(std::llround(*options.timeout_s * 1000));
  const Status held = wait_for_training(session, timeout, events);
  if (!held.ok()) return held;
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
  return end_trainings(**script, OnLeave::kTerminate, Leaving::kWhenItHasEnded, stderr, outcome.exit_status);
}

Action declare_listen(const Declaration& to) {
  CLI::App& app = to.app;
  Options& o = to.options;
  app.add_option("--port", to.raw.port, "port for the training to connect to; 0 is any free one")->capture_default_str()->type_name("PORT");
  app.add_option("--ranks", to.raw.rank_count, "number of processes of the training; all are held and stepped together")
      ->capture_default_str()
      ->type_name("N");
  app.add_option("--bind", o.bind, "address to listen on; see below before you choose another")->capture_default_str()->type_name("ADDR");
  app.add_option("--script", o.script, "Lua file to run once the training is held, as s; - for standard input")->type_name("FILE");
  app.add_option("--record", o.record, "write the whole conversation there; msdbg open FILE plays it")->type_name("FILE");
  app.add_option("--timeout", to.raw.timeout_s, "give up if no training connects within this time")->type_name("SECONDS");
  app.add_option("--answer-timeout", to.raw.answer_timeout_s, "how long to wait for a held training to send a tensor")
      ->capture_default_str()
      ->type_name("SECONDS");
  app.add_option("--history", to.raw.history, "steps whose statistics are kept; 0: keep no history")
      ->capture_default_str()
      ->type_name("N");
  app.add_option("--graph-from", o.graph_from, "recording with the graph of a training that reconnects without it")->type_name("FILE");
  app.add_flag("--answer-only", o.answer_only, "let the training run, and exit when it ends");
  app.add_option("--sockets", o.sockets, "")->delimiter(',')->group("");
  app.add_option("--ready", o.ready, "")->group("");
  declare_entries(to);
  return run_listen;
}

}  // namespace

CommandEntry listen_command() {
  return {.name = "listen",
          .group = kStartGroup,
          .summary = "wait for a training process, hold it, step it, watch it",
          .details = "msdbg prints the variables to set where the training starts. A script finds the held training as s; if it ends while "
                     "the\ntraining is held, the training is ended, unless the script said s:detach().\n\n"
                     "At the prompt, quit asks whether to detach or terminate. Detached, the training runs on; an msdbg in the background\n"
                     "(msdbg listen --answer-only) answers it until it has ended.\n\n"
                     "The protocol has neither encryption nor login. With another --bind than 127.0.0.1 anyone who can reach the port "
                     "can\npose as the training; a tunnel (ssh -R 50051:127.0.0.1:50051 TRAINING-HOST) needs no other --bind.",
          .examples = {{"", "the prompt, once a training has come"},
                       {"--script hunt.lua -- 100", "a script with its argument; its exit status is msdbg's"},
                       {"--record training.rec --timeout 60"},
                       {"--ranks 4", "a training of four processes, as one session"},
                       {"-e 'watch @gradient TO' -e continue --batch"}},
          .declare = declare_listen,
          .readers = Readers::kProgram,
          .first = FirstWord::kNone,
          .formats = "",
          .passes_words = true};
}

}  // namespace msdbg::app
