#include "app/output.h"

#include <fmt/format.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "msdbg/atomic_file.h"
#include "msdbg/terminal.h"

namespace msdbg::app {
namespace {

constexpr size_t kChunk = 1 << 16;

// To a stream that somebody reads: Ctrl-C ends it. An interrupt that came before is the reason for what is written now, and does not.
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

bool g_output_failed = false;  // what print() could not write

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
  struct winsize size = {};
  if (options.output_file.empty() && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40) {
    style.width = size.ws_col;
  } else {
    style.width = 140;  // a file or a pipe: room for names, still readable in a mail
  }
  return style;
}

Status write_result(const Options& options, std::string_view text) {
  if (!options.output_file.empty()) return write_file(options.output_file, text);
  std::fflush(stdout);
  // Files and pipes get every byte of a format; a terminal must not.
  const bool json = options.format == Format::kJson || options.format == Format::kJsonl || options.format == Format::kSarif;
  if (::isatty(STDOUT_FILENO) == 0) return write_stream(STDOUT_FILENO, text, "standard output");
  return write_stream(STDOUT_FILENO, json ? visible_json(text) : visible(text, style_for(options).colour), "standard output");
}

bool print(FILE* to, std::string_view text, bool colours) {
  std::fflush(to);
  const Status written = write_stream(::fileno(to), visible(text, colours), "");
  if (written.code() == Code::kIoError && to == stdout) g_output_failed = true;
  return written.code() != Code::kInterrupted;
}

Status flush_output() {
  const bool flushed = std::fflush(stdout) == 0;
  const int error = errno;
  if (flushed && std::ferror(stdout) == 0 && !g_output_failed) return Status();
  // Of an earlier write only the fact is known.
  return Status(Code::kIoError, fmt::format("standard output: cannot write{}", flushed ? "" : fmt::format(": {}", std::strerror(error))));
}

int report_failure(const Status& status) {
  std::fflush(stdout);
  print(stderr, fmt::format("msdbg: {}\n", status.message()));
  return exit_status_for(status);
}

void note(const Options& options, std::string_view text) {
  if (!options.quiet) print(stderr, fmt::format("{}\n", text));
}

Status start_logging(const Options& options) {
  std::vector<spdlog::sink_ptr> sinks;
  auto terminal = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  terminal->set_level(options.quiet         ? spdlog::level::err
                      : options.verbose > 1 ? spdlog::level::debug
                      : options.verbose > 0 ? spdlog::level::info
                                            : spdlog::level::warn);
  terminal->set_pattern("msdbg: %v");
  sinks.push_back(terminal);
  if (!options.log_file.empty()) {
    try {
      auto file = std::make_shared<spdlog::sinks::basic_file_sink_mt>(options.log_file);
      file->set_level(spdlog::level::debug);
      file->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %l %v");
      sinks.push_back(file);
    } catch (const spdlog::spdlog_ex& error) {
      return Status(Code::kIoError, fmt::format("--log {}: {}", options.log_file, error.what()));
    }
  }
  auto logger = std::make_shared<spdlog::logger>("msdbg", sinks.begin(), sinks.end());
  logger->set_level(spdlog::level::debug);
  logger->flush_on(spdlog::level::warn);
  set_log_sink([logger](LogLevel level, std::string_view text) {
    constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::debug, spdlog::level::info, spdlog::level::warn, spdlog::level::err};
    logger->log(kLevels[static_cast<size_t>(level)], "{}", printable(text));
  });
  return Status();
}

Progress::Progress(const Options& options, std::string_view what)
    : what_(what), enabled_(!options.quiet && ::isatty(STDERR_FILENO)), start_(std::chrono::steady_clock::now()) {}

Progress::~Progress() {
  if (shown_) fmt::print(stderr, "\r\x1b[K");
}

std::function<void(uint64_t, uint64_t, uint64_t)> Progress::callback() {
  if (!enabled_) return {};
  return [this](uint64_t done, uint64_t total, uint64_t bytes) { show(done, total, bytes); };
}

void Progress::show(uint64_t done, uint64_t total, uint64_t bytes) {
  // Quick jobs need no bar.
  if (std::chrono::steady_clock::now() - start_ < std::chrono::milliseconds(400)) return;
  shown_ = true;
  fmt::print(stderr, "\r\x1b[K{} {} of {} tensors, {}", what_, done, total, format_bytes(bytes));
  std::fflush(stderr);
}

}  // namespace msdbg::app
