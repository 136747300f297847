// Reads directories. Nothing here follows a symbolic link unless documented; any thread.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "msdbg/base.h"
#include "msdbg/text_arena.h"

namespace msdbg::dump {

struct DirectoryEntry {
  std::string_view name;  ///< a zero byte is behind it
  bool directory = false;
  bool link = false;  ///< a symbolic link; `directory` then describes its target
};

/// The entries of a directory, by name. May be a million: the names are in one place.
struct Listing {
  std::vector<DirectoryEntry> entries;
  TextArena names;

  void add(std::string_view name, bool directory, bool link) { entries.push_back({names.add(name), directory, link}); }
  bool empty() const { return entries.empty(); }
  auto begin() const { return entries.begin(); }
  auto end() const { return entries.end(); }
};

/// Entries without `.` and `..`. One readdir; links and file systems without entry types cost a stat each. Error:
/// kNotFound or kIoError with the system's message.
Result<Listing> list_directory(const std::string& path);

/// list_directory(), unless something knows better. Any thread.
class DirectoryLister {
 public:
  virtual ~DirectoryLister() = default;
  virtual Result<Listing> list(const std::string& path) { return list_directory(path); }
};

bool is_directory(const std::string& path);  ///< follows links
bool exists(const std::string& path);

/// Visited directories, by device and inode: a link to a parent ends here instead of causing a loop.
class Visited {
 public:
  /// False if the directory was entered before or stat() fails.
  bool enter(const std::string& path);

 private:
  std::set<std::pair<uint64_t, uint64_t>> seen_;
};

std::string join_path(std::string_view directory, std::string_view name);
std::string base_name(const std::string& path);
std::string parent_path(const std::string& path);

}  // namespace msdbg::dump
