// Looks at the files of a dump while it is being opened: its graph takes one processor, and the check that follows asks for the time of
// each file.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "session/dump/directory.h"
#include "session/dump/index_bytes.h"

namespace msdbg::dump {

/// What was seen of the files of one directory, by the hash of their names.
class SeenFiles {
 public:
  explicit SeenFiles(const Listing& listing);

  /// Looks at the files, one after the other, until all are seen or `stop` is set.
  void look(const std::string& path, const std::atomic<bool>& stop);
  /// nullptr if the file was not seen, or too long ago.
  const FileStamp* find(uint64_t name, int64_t now) const;
  /// When the first one was seen; the clock of `now`.
  int64_t when() const { return when_; }
  size_t size() const { return files_.size(); }

 private:
  struct Place {
    uint64_t name = 0;
    FileStamp stamp;  ///< inode 0: a free place
  };
  size_t place_of(uint64_t name) const;

  TextArena names_;
  std::vector<std::string_view> files_;
  std::vector<Place> places_;  // linear probing
  int64_t when_ = 0;
};

/// Any thread.
class LookAhead {
 public:
  LookAhead() = default;
  ~LookAhead() { stop(); }
  LookAhead(const LookAhead&) = delete;
  LookAhead& operator=(const LookAhead&) = delete;

  void add(const std::string& path, const Listing& listing);
  /// Ends the looking: from then on nothing changes.
  void stop();
  /// After stop(). nullptr for a directory that was not added.
  const SeenFiles* find(const std::string& path) const;

 private:
  void run();

  std::mutex mutex_;  // for the next four
  std::map<std::string, SeenFiles> directories_;
  std::deque<std::map<std::string, SeenFiles>::iterator> waiting_;
  size_t files_ = 0;
  bool running_ = false;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

/// The time of the last tick of the clock of files: what is read afterwards is not older.
int64_t file_clock();

}  // namespace msdbg::dump
