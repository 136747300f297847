#include "session/dump/directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <system_error>

#include "msdbg/log.h"

namespace msdbg::dump {
namespace {

Status system_error(const std::string& path, int error) {
  const Code code = error == ENOENT || error == ENOTDIR ? Code::kNotFound : Code::kIoError;
  return Status(code, fmt::format("{}: {}", path, std::generic_category().message(error)));
}

struct CloseDirectory {
  void operator()(DIR* directory) const { closedir(directory); }
};

}  // namespace

Result<Listing> list_directory(const std::string& path) {
  std::unique_ptr<DIR, CloseDirectory> directory(opendir(path.c_str()));
  if (!directory) return system_error(path, errno);
  const Stopwatch watch;
  Listing listing;
  std::vector<DirectoryEntry>& entries = listing.entries;
  for (;;) {
    errno = 0;
    const dirent* found = readdir(directory.get());
    if (!found) {
      if (errno != 0) return system_error(path, errno);
      break;
    }
    const std::string_view name = found->d_name;
    if (name == "." || name == "..") continue;
    bool is_directory = found->d_type == DT_DIR, link = found->d_type == DT_LNK;
    if (found->d_type == DT_LNK || found->d_type == DT_UNKNOWN) {
      struct stat status;
      if (fstatat(dirfd(directory.get()), found->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0) {
        link = S_ISLNK(status.st_mode);
      }
      is_directory = fstatat(dirfd(directory.get()), found->d_name, &status, 0) == 0 && S_ISDIR(status.st_mode);
    }
    listing.add(name, is_directory, link);
  }
  if (log_wanted(LogLevel::kDebug)) {
    log(LogLevel::kDebug, fmt::format("listed {} in {}: {} {}", path, format_duration(watch.seconds()), entries.size(),
                                      entries.size() == 1 ? "entry" : "entries"));
  }
  std::sort(entries.begin(), entries.end(),
            [](const DirectoryEntry& a, const DirectoryEntry& b) { return a.name < b.name; });
  return listing;
}

bool is_directory(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

bool exists(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0;
}

bool Visited::enter(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) return false;
  return seen_.insert({static_cast<uint64_t>(status.st_dev), static_cast<uint64_t>(status.st_ino)}).second;
}

std::string join_path(std::string_view directory, std::string_view name) {
  std::string path;
  path.reserve(directory.size() + 1 + name.size());
  path.append(directory);
  if (!directory.ends_with('/')) path += '/';
  path.append(name);
  return path;
}

std::string base_name(const std::string& path) {
  size_t end = path.find_last_not_of('/');
  if (end == std::string::npos) return path;
  const size_t slash = path.rfind('/', end);
  return path.substr(slash == std::string::npos ? 0 : slash + 1,
                     end - (slash == std::string::npos ? 0 : slash + 1) + 1);
}

std::string parent_path(const std::string& path) {
  const size_t end = path.find_last_not_of('/');
  const size_t slash = end == std::string::npos ? std::string::npos : path.rfind('/', end);
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace msdbg::dump
