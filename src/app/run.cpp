#include "app/run.h"

#include <fmt/format.h>

#include <cstdio>
#include <exception>

#include "app/command.h"
#include "app/context.h"
#include "app/job.h"
#include "app/output.h"
#include "app/signals.h"
#include "msdbg/log.h"

namespace msdbg::app {
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
  log(LogLevel::kDebug, fmt::format("msdbg {}: {}", kVersion, parsed.entry->name));
  const int status = run_in_shell(parsed);
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

int run_program(const std::vector<std::string>& words) {
  return run_guarded([&] { return run_in_job([&] { return run_words(words); }); });
}

}  // namespace msdbg::app
