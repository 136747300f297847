// A dump for the tests of its index, and what a session does with it.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <set>
#include <string>
#include <vector>

#include "dump/dump_support.h"
#include "msdbg/check.h"
#include "msdbg/log.h"
#include "support/faulty_disk.h"

namespace msdbg::testing {

inline constexpr const char* kIndexFile = ".msdbg-index.sqlite";

/// Steps 0 to 2 of a weight and an activation.
class IndexedDump : public TempDir {
 public:
  explicit IndexedDump(int steps = 3) {
    for (int step = 0; step < steps; ++step) add_step(step);
  }

  void add_step(int step) const {
    const double x = step;
    npy(weight(step), {1, 2 + x, 3});
    npy(activation(step), {0.5, x, x * 2});
  }
  static std::string weight(int step) { return file(step, "Parameter.fc.weight.0.0.100"); }
  static std::string activation(int step) { return file(step, "ReLU.Default_relu_ReLU-op3.0.0.200"); }

  std::string index() const { return at(kIndexFile); }
  bool has_index() const { return std::filesystem::exists(index()); }

 private:
  static std::string file(int step, const std::string& name) {
    return "rank_0/net/0/" + std::to_string(step) + "/" + name + std::to_string(step) + ".output.0.DefaultFormat.npy";
  }
};

/// Trusts files that were written a moment ago, whose times may even be ahead of the clock by a tick.
inline DumpOptions with_index() {
  DumpOptions options;
  options.index = true;
  options.settled = std::chrono::milliseconds(-1000);
  return options;
}

struct Answer {
  std::vector<std::string> lines;  ///< hits and open questions
  std::string coverage;
  bool operator==(const Answer&) const = default;
};

inline Watchpoint watchpoint(int id, std::string_view condition) {
  Watchpoint made;
  made.id = id;
  made.on = Selector::parse("**/*").value();
  made.condition = parse_condition(condition).value();
  made.rule = made.condition->spec->id;
  return made;
}

/// Statistics, ranges and changes of all tensors.
inline Answer check_all(Session& session) {
  const std::vector<Watchpoint> watches = {
      watchpoint(1, "tensor_overflow"), watchpoint(2, "TL max_gt=3"), watchpoint(3, "WCL abs_mean_update_ratio_gt=0.1"),
      watchpoint(4, "tensor_range range_start_inclusive=0,range_end_inclusive=1,range_percentage_gt=50")};
  Answer answer;
  const Result<CheckResult> result = check(session, watches, {});
  EXPECT_TRUE(result.ok()) << result.status().message();
  if (!result) return answer;
  for (const Hit& hit : result->hits) {
    std::string line = std::to_string(hit.tensor.step) + " " + session.tensor_name(hit.tensor) + " " + hit.rule;
    for (const ParamResult& param : hit.params) line += " " + format_double(param.actual.value_or(-1));
    answer.lines.push_back(line + " " + shape_text(hit.shape) + " " + format_double(hit.stats.mean));
  }
  for (const NotChecked& open : result->not_checked) answer.lines.push_back(session.tensor_name(open.tensor) + ": " + open.reason);
  const Coverage& c = result->coverage;
  answer.coverage = std::to_string(c.checked) + " of " + std::to_string(c.tensors) + ", " + std::to_string(c.bytes) + " bytes, " +
                    std::to_string(c.from_cache) + " kept, " + std::to_string(c.verdicts) + " verdicts";
  return answer;
}

/// What a session that keeps no index answers.
inline Answer truth(const std::string& path) { return check_all(*open(path)); }
/// What one that keeps an index answers. What is written after this gets another time, on a clock that ticks every few milliseconds.
inline Answer answer(const std::string& path, const DumpOptions& options = with_index()) {
  Answer made = check_all(*open(path, options));
  ::usleep(10'000);
  return made;
}

/// The tensor files that are opened during its lifetime.
class OpenedFiles : public Disk {
 public:
  OpenedFiles() { Disk::install(this); }
  ~OpenedFiles() override { Disk::install(nullptr); }
  int open(const char* path, int flags, mode_t mode) override {
    if (std::string_view(path).ends_with(".npy")) {
      std::lock_guard lock(mutex_);
      files_.insert(std::filesystem::path(path).parent_path().filename().string());
      ++count_;
    }
    return Disk::open(path, flags, mode);
  }
  size_t count() const { return count_; }
  /// Their steps.
  const std::set<std::string>& steps() const { return files_; }

 private:
  std::mutex mutex_;
  std::set<std::string> files_;
  size_t count_ = 0;
};

/// The lines of the log during its lifetime that contain a text.
class LogLines {
 public:
  LogLines() {
    want_log(LogLevel::kDebug);
    set_log_sink([this](LogLevel level, std::string_view text) {
      std::lock_guard lock(mutex_);
      lines_.emplace_back(level, text);
    });
  }
  ~LogLines() {
    set_log_sink({});
    want_log(LogLevel::kWarning);
  }
  LogLines(const LogLines&) = delete;
  LogLines& operator=(const LogLines&) = delete;

  std::vector<std::string> with(std::string_view part, LogLevel level) {
    std::lock_guard lock(mutex_);
    std::vector<std::string> found;
    for (const auto& [at, line] : lines_) {
      if (at == level && line.find(part) != std::string::npos) found.push_back(line);
    }
    return found;
  }

 private:
  std::mutex mutex_;
  std::vector<std::pair<LogLevel, std::string>> lines_;
};

inline struct stat status_of(const std::string& path) {
  struct stat info {};
  EXPECT_EQ(::stat(path.c_str(), &info), 0) << path;
  return info;
}

/// Sets the modification time back to what it was.
inline void restore_time(const std::string& path, const struct stat& before) {
  const struct timespec times[2] = {before.st_atim, before.st_mtim};
  EXPECT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
}

}  // namespace msdbg::testing
