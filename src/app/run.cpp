#include "app/run.h"

#include <fmt/format.h>

#include <cstdio>
#include <exception>

#include "msdbg/dump.h"
#include "app/live.h"
#include "app/output.h"
#include "app/scripting.h"
#include "app/signals.h"
#include "msdbg/log.h"

namespace msdbg::app {
namespace {

int dispatch(const Options& options) {
  switch (options.command) {
    case Command::kCheck: return run_check(options);
    case Command::kOrigin: return run_origin(options);
    case Command::kStats: return run_stats(options);
    case Command::kShow: return run_show(options);
    case Command::kNodes: return run_nodes(options);
    case Command::kDoctor: return run_doctor(options);
    case Command::kRun: return run_script(options);
    case Command::kListen: return run_listen(options);
    case Command::kDemo: return run_demo(options);
    case Command::kOther: return options.action(options);
    case Command::kRepl:
    case Command::kNone: return run_prompt(options);
  }
  return kExitUsage;
}

}  // namespace

std::unique_ptr<Session> open_session(const Options& options, int* exit_status) {
  // Of a recording only the first suspension is there until it is played on.
  const bool steps_through = options.command == Command::kRepl || options.command == Command::kNone;
  if (!steps_through && live_factories().is_recording(options.dump)) {
    *exit_status = report_failure(Status(
        Code::kUnsupported, options.dump + " is a recording of a live session, which is played step by step: msdbg open " + options.dump));
    return nullptr;
  }
  DumpOptions dump_options;
  dump_options.net = options.net;
  dump_options.ranks = options.ranks;
  auto session = open_any(options.dump, dump_options, options.checkpoint);
  if (!session) {
    *exit_status = report_failure(session.status());
    return nullptr;
  }
  if (options.command != Command::kDoctor) tell_damage(options, **session);  // doctor lists it itself
  return std::move(*session);
}

namespace {

int run_words(const std::vector<std::string>& words) {
  Parsed parsed = parse_command_line(words);
  parsed.options.words = words;
  parsed.options.pager ? print_paged(parsed.out) : print(stdout, parsed.out);
  print(stderr, parsed.err);
  if (parsed.done) return parsed.exit_status;
  if (const Status status = start_logging(parsed.options); !status.ok()) return report_failure(status);
  install_interrupt_handler();
  const Stopwatch watch;
  log(LogLevel::kDebug, fmt::format("msdbg {}: {}", kVersion, words.empty() ? "" : words[0]));
  const int status = dispatch(parsed.options);
  log(LogLevel::kInfo, fmt::format("ended with status {} after {}", status, format_duration(watch.seconds())));
  return status;
}

}  // namespace

int run_guarded(const std::function<int()>& command) {
  try {
    const int status = command();
    const Status written = flush_output();
    return written.ok() ? status : report_failure(written);
  } catch (const std::bad_alloc&) {
    return report_failure(Status(Code::kOutOfMemory, "out of memory; a smaller --mem-limit or fewer --threads may help"));
  } catch (const InternalError& error) {
    return report_failure(Status(Code::kInternal, error.what()));
  } catch (const std::exception& error) {
    return report_failure(Status(Code::kInternal, fmt::format("internal error: {}: please report it", printable(error.what()))));
  } catch (...) {
    return report_failure(Status(Code::kInternal, "internal error: an exception of unknown type: please report it"));
  }
}

int run(const std::vector<std::string>& words) {
  return run_guarded([&] { return run_words(words); });
}

}  // namespace msdbg::app
