// Reading directories. Nothing here follows a symbolic link unless it says so; any thread.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "msdbg/base.h"

namespace msdbg::dump {

struct DirectoryEntry {
  std::string name;
  bool directory = false;
  bool link = false;  ///< a symbolic link; `directory` then tells of its target
};

/// Entries in order of name, `.` and `..` left out. One readdir; links and file systems without entry types cost a
/// stat each. Error: kNotFound or kIoError with the system's words.
Result<std::vector<DirectoryEntry>> list_directory(const std::string& path);

bool is_directory(const std::string& path);  ///< follows links
bool exists(const std::string& path);

/// Directories that were visited already, by device and inode: a link back up ends here instead of in a loop.
class Visited {
 public:
  /// False when the directory was entered before or cannot be looked at.
  bool enter(const std::string& path);

 private:
  std::set<std::pair<uint64_t, uint64_t>> seen_;
};

std::string join_path(const std::string& directory, const std::string& name);
std::string base_name(const std::string& path);
std::string parent_path(const std::string& path);

}  // namespace msdbg::dump
