// A line of progress on standard error.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "app/options.h"
#include "msdbg/log.h"
#include "msdbg/script.h"

namespace msdbg::app {

/// Shown when the work takes longer than half a second and standard error is a terminal; not with --quiet. Erased on destruction,
/// and before print() writes.
class Progress {
 public:
  /// `what` is done with each `unit`: "checking", "tensor".
  Progress(const Options& options, std::string_view what, std::string_view unit = "tensor");
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Empty when nothing would be shown. Use it on the thread that made the object, during its lifetime.
  ProgressCallback callback();
  /// For a caller that keeps no Progress: the line lives as long as the callback.
  static ProgressCallback owned(const Options& options, std::string_view what, std::string_view unit = "tensor");

 private:
  void show(uint64_t done, uint64_t total, uint64_t bytes);

  std::string what_, unit_;
  bool enabled_;
  Stopwatch watch_;
};

/// "checking 12 of 40 tensors (30 %), 1.2 GiB, 650.0 MiB/s, 12.0 s left", cut to `columns`.
std::string progress_text(std::string_view what, std::string_view unit, uint64_t done, uint64_t total, uint64_t bytes, double seconds,
                          size_t columns);

/// Shows a line of other text in that place; "" removes it. Does nothing unless standard error is a terminal.
void show_status(const std::string& text);

/// Erases the line before other text is written; the next update shows it again.
void wipe_progress();

}  // namespace msdbg::app
