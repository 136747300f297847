#include "app/output.h"

#include <fmt/format.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "app/pager.h"
#include "app/progress.h"
#include "msdbg/atomic_file.h"
#include "msdbg/log.h"
#include "msdbg/terminal.h"

namespace msdbg::app {
namespace {

constexpr size_t kChunk = 1 << 16;

// Writes to a stream; Ctrl-C ends it. An earlier interrupt is the reason for this output and does not end it.
Status write_stream(int fd, std::string_view text, const std::string& where) {
  const bool before = interrupt_requested();
  while (!text.empty()) {
    if (!before && interrupt_requested()) return Status(Code::kInterrupted, "interrupted; the output is not complete");
    const ssize_t n = ::write(fd, text.data(), std::min(text.size(), kChunk));
    if (n < 0 && errno != EINTR) return Status(Code::kIoError, fmt::format("{}: cannot write: {}", where, std::strerror(errno)));
    if (n > 0) text.remove_prefix(static_cast<size_t>(n));
  }
  return Status();
}

bool g_output_failed = false;  // print() failed to write something

bool wants_colour(const Options& options) {
  if (options.colour == Switch::kAlways) return true;
  if (options.colour == Switch::kNever) return false;
  const char* no_colour = std::getenv("NO_COLOR");
  if (no_colour != nullptr && *no_colour != '\0') return false;
  const char* term = std::getenv("TERM");
  return options.output_file.empty() && ::isatty(STDOUT_FILENO) && term != nullptr && std::strcmp(term, "dumb") != 0;
}

}  // namespace

ReportStyle style_for(const Options& options) {
  ReportStyle style;
  style.format = options.format;
  style.colour = options.format == Format::kTable && wants_colour(options);
  style.wide = options.wide;
  style.group = options.group;
  style.all = options.all;
  if (options.output_file.empty()) style.width = layout_width().value_or(ReportStyle::kAnyWidth);
  return style;
}

Status write_result(const Options& options, std::string_view text) {
  if (!options.output_file.empty()) return write_file(options.output_file, text);
  std::fflush(stdout);
  // Files and pipes get every byte of a format; a terminal must not.
  wipe_progress();
  const bool json = options.format == Format::kJson || options.format == Format::kJsonl || options.format == Format::kSarif;
  if (::isatty(STDOUT_FILENO) == 0) return write_stream(STDOUT_FILENO, text, "standard output");
  const std::string shown = json ? visible_json(text) : visible(text, style_for(options).colour);
  if (options.pager && page(shown)) return Status();
  return write_stream(STDOUT_FILENO, shown, "standard output");
}

bool print(FILE* to, std::string_view text, bool colours) {
  wipe_progress();
  std::fflush(to);
  const Status written = write_stream(::fileno(to), visible(text, colours), "");
  if (written.code() == Code::kIoError && to == stdout) g_output_failed = true;
  return written.code() != Code::kInterrupted;
}

bool plain_terminal() {
  if (::isatty(STDOUT_FILENO) == 0) return false;
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    const std::string locale = to_lower(value);
    return locale.find("utf-8") == std::string::npos && locale.find("utf8") == std::string::npos;
  }
  return false;
}

bool print_paged(std::string_view text, bool colours) {
  std::fflush(stdout);
  return page(visible(text, colours)) || print(stdout, text, colours);
}

Status flush_output() {
  const bool flushed = std::fflush(stdout) == 0;
  const int error = errno;
  if (flushed && std::ferror(stdout) == 0 && !g_output_failed) return Status();
  // Of an earlier failed write, only the fact is known.
  return Status(Code::kIoError, fmt::format("standard output: cannot write{}", flushed ? "" : fmt::format(": {}", std::strerror(error))));
}

int report_failure(const Status& status) {
  std::fflush(stdout);
  print(stderr, fmt::format("msdbg: {}\n", status.message()));
  return exit_status_for(status);
}

void note(const Options& options, std::string_view text) {
  if (options.quiet) return;
  const std::optional<size_t> width = layout_width();
  print(stderr, fmt::format("{}\n", width ? wrapped(text, *width) : text));
}

Status start_logging(const Options& options) {
  const LogLevel shown = options.quiet         ? LogLevel::kError
                         : options.verbose > 1 ? LogLevel::kDebug
                         : options.verbose > 0 ? LogLevel::kInfo
                                               : LogLevel::kWarning;
  std::shared_ptr<spdlog::logger> file;
  if (!options.log_file.empty()) {
    try {
      file = std::make_shared<spdlog::logger>("msdbg", std::make_shared<spdlog::sinks::basic_file_sink_mt>(options.log_file));
      file->set_level(spdlog::level::debug);
      file->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %l %v");
      file->flush_on(spdlog::level::info);  // shows what a killed run was doing
    } catch (const spdlog::spdlog_ex& error) {
      return Status(Code::kIoError, fmt::format("--log {}: {}", options.log_file, error.what()));
    }
  }
  want_log(file ? LogLevel::kDebug : shown);
  set_log_sink([file, shown](LogLevel level, std::string_view text) {
    constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::debug, spdlog::level::info, spdlog::level::warn, spdlog::level::err};
    const std::string line = printable(text);
    if (file) file->log(kLevels[static_cast<size_t>(level)], "{}", line);
    if (level >= shown) print(stderr, fmt::format("msdbg: {}\n", line));
  });
  return Status();
}

}  // namespace msdbg::app
