// The file of a dump's index: rows of bytes in an SQLite database. The only user of SQLite.
//
// Of the rows of a directory, 0 is its listing, 1 and more are the parts of its statistics. A row that cannot be read 
// is as good as none: the index only saves time.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "msdbg/base.h"
#include "msdbg/supported.h"

namespace msdbg::dump {

/// Reads rows. Any thread; threads that read at the same time have a connection each.
class IndexFile {
 public:
  /// Of the database. Readers and writers of different versions do not mix.
  static constexpr int kVersion = kIndexVersion;

  /// `path` need not exist. It is opened when it is first read.
  explicit IndexFile(std::string path);
  ~IndexFile();
  IndexFile(const IndexFile&) = delete;
  IndexFile& operator=(const IndexFile&) = delete;

  const std::string& path() const { return path_; }
  std::optional<std::string> row(const std::string& directory, int64_t number);
  /// How many parts the statistics have.
  size_t parts(const std::string& directory);
  /// The caller found bytes that make no sense: nothing is read any more, and the next write() starts from an empty file.
  void give_up();
  bool damaged() const { return damaged_; }

 private:
  struct Connection;
  std::unique_ptr<Connection> open();
  /// Null if nothing can be read.
  std::unique_ptr<Connection> take();
  /// `code`: how reading ended.
  void put_back(std::unique_ptr<Connection> connection, int code);

  const std::string path_;
  std::atomic<bool> damaged_{false};
  std::mutex mutex_;
  bool readable_ = true;                           // under mutex_
  bool opened_ = false;                            // once; under mutex_
  std::vector<std::unique_ptr<Connection>> idle_;  // under mutex_
};

/// Writes rows in one transaction, whole or not at all. One thread.
class IndexWriter {
 public:
  /// Creates the file if necessary, replaces it if `replace`, and sets it aside if it is that of a newer version. Waits up to a second
  /// for other processes. `bytes`: about how many will be written.
  static Result<IndexWriter> begin(const std::string& path, bool replace, size_t bytes = 0);
  /// Without commit() nothing changes.
  ~IndexWriter();
  IndexWriter(IndexWriter&&) noexcept;
  IndexWriter& operator=(IndexWriter&&) = delete;

  /// As the transaction sees them.
  std::optional<std::string> row(const std::string& directory, int64_t number);
  size_t parts(const std::string& directory);
  /// Adds or replaces a row.
  Status put(const std::string& directory, int64_t number, std::string_view bytes);
  /// Removes the rows of a directory with greater numbers.
  Status remove_after(const std::string& directory, int64_t number);
  /// Removes the rows of all other directories.
  Status keep_only(const std::set<std::string>& directories);
  Status commit();

 private:
  struct State;
  explicit IndexWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace msdbg::dump
