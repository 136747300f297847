#include "app/output.h"

#include <fmt/format.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "msdbg/atomic_file.h"
#include "msdbg/terminal.h"

namespace msdbg::app {
namespace {

Status write_all(int fd, std::string_view text, const std::string& where) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0) {
      if (errno == EINTR) continue;
      return Status(Code::kIoError, fmt::format("{}: cannot write: {}", where, std::strerror(errno)));
    }
    text.remove_prefix(static_cast<size_t>(n));
  }
  return Status();
}

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
  return write_all(STDOUT_FILENO, text, "standard output");
}

Status flush_output() {
  const bool flushed = std::fflush(stdout) == 0;
  const int error = errno;
  if (flushed && std::ferror(stdout) == 0) return Status();
  // Of an earlier write only the fact is known.
  return Status(Code::kIoError, fmt::format("standard output: cannot write{}", flushed ? "" : fmt::format(": {}", std::strerror(error))));
}

int report_failure(const Status& status) {
  std::fflush(stdout);
  fmt::print(stderr, "msdbg: {}\n", visible(status.message(), false));
  return exit_status_for(status);
}

void note(const Options& options, std::string_view text) {
  if (!options.quiet) fmt::print(stderr, "{}\n", text);
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
