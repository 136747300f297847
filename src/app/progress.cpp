#include "app/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>

namespace msdbg::app {
namespace {

constexpr double kQuick = 0.5;     // seconds; quick jobs need no line
constexpr double kPatience = 1.0;  // seconds; before that a rate is meaningless
constexpr size_t kUsualColumns = 80;

std::atomic<bool> g_drawn{false};

size_t error_columns() {
  struct winsize size = {};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsualColumns;
}

}  // namespace

std::string progress_text(std::string_view what, std::string_view unit, uint64_t done, uint64_t total, uint64_t bytes, double seconds,
                          size_t columns) {
  std::string out = total > 0 ? fmt::format("{} {} of {} {}{}", what, done, total, unit, total == 1 ? "" : "s")
                              : fmt::format("{} {} {}{}", what, done, unit, done == 1 ? "" : "s");
  if (total > 0) out += fmt::format(" ({} %)", std::min<uint64_t>(100, done * 100 / total));
  if (bytes > 0) out += ", " + format_bytes(bytes);
  if (seconds >= kPatience && done > 0) {
    if (bytes > 0) out += fmt::format(", {}/s", format_bytes(static_cast<uint64_t>(static_cast<double>(bytes) / seconds)));
    else out += fmt::format(", {}/s", format_short(static_cast<double>(done) / seconds, 3));
    if (total > done) {
      out += fmt::format(", {} left", format_duration(seconds * static_cast<double>(total - done) / static_cast<double>(done)));
    }
  }
  if (columns > 0 && out.size() >= columns) out.resize(columns - 1);  // writing the last column would start a new row
  return out;
}

Progress::Progress(const Options& options, std::string_view what, std::string_view unit)
    : what_(what), unit_(unit), enabled_(!options.quiet && ::isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() { wipe_progress(); }

ProgressCallback Progress::callback() {
  if (!enabled_) return {};
  return [this](uint64_t done, uint64_t total, uint64_t bytes) { show(done, total, bytes); };
}

ProgressCallback Progress::owned(const Options& options, std::string_view what, std::string_view unit) {
  auto made = std::make_shared<Progress>(options, what, unit);
  if (!made->enabled_) return {};
  return [made](uint64_t done, uint64_t total, uint64_t bytes) { made->show(done, total, bytes); };
}

void Progress::show(uint64_t done, uint64_t total, uint64_t bytes) {
  if (watch_.seconds() < kQuick) return;
  g_drawn.store(true);
  fmt::print(stderr, "\r\x1b[K{}", progress_text(what_, unit_, done, total, bytes, watch_.seconds(), error_columns()));
  std::fflush(stderr);
}

void show_status(const std::string& text) {
  if (text.empty()) return wipe_progress();
  if (::isatty(STDERR_FILENO) == 0) return;
  g_drawn.store(true);
  fmt::print(stderr, "\r\x1b[K{}", text.substr(0, error_columns() - 1));  // writing the last column would start a new row
  std::fflush(stderr);
}

void wipe_progress() {
  if (!g_drawn.exchange(false)) return;
  fmt::print(stderr, "\r\x1b[K");
  std::fflush(stderr);
}

}  // namespace msdbg::app
