#include "msdbg/atomic_directory.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <utility>

namespace msdbg {
namespace {

namespace fs = std::filesystem;

mode_t mode_of_new_directories() {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return 0777 & ~mask;
}

}  // namespace

Result<AtomicDirectory> AtomicDirectory::create(const std::string& path) {
  if (path.empty()) return Status(Code::kInvalidArgument, "a directory to write is expected, not an empty name");
  fs::path target = fs::path(path).lexically_normal();
  if (!target.has_filename()) target = target.parent_path();  // a slash at the end
  std::error_code error;
  if (fs::exists(fs::symlink_status(target, error)) && !(fs::is_directory(target, error) && fs::is_empty(target, error))) {
    return Status(Code::kInvalidArgument, fmt::format("{}: exists and is not an empty directory; name another one", path));
  }
  AtomicDirectory made;
  made.target_ = target.string();
  std::string temporary = (target.parent_path() / fmt::format(".{}.XXXXXX", target.filename().string())).string();
  if (::mkdtemp(temporary.data()) == nullptr) {
    return Status(Code::kIoError, fmt::format("{}: cannot be made: {}", path, std::generic_category().message(errno)));
  }
  made.temporary_path_ = std::move(temporary);
  return made;
}

AtomicDirectory::AtomicDirectory(AtomicDirectory&& other) noexcept
    : target_(std::move(other.target_)), temporary_path_(std::exchange(other.temporary_path_, "")) {}

AtomicDirectory::~AtomicDirectory() {
  std::error_code ignored;
  if (!temporary_path_.empty()) fs::remove_all(temporary_path_, ignored);
}

Status AtomicDirectory::commit() {
  // rename() replaces an empty directory, and nothing else.
  if (::chmod(temporary_path_.c_str(), mode_of_new_directories()) != 0 || ::rename(temporary_path_.c_str(), target_.c_str()) != 0) {
    return Status(Code::kIoError, fmt::format("{}: cannot be made: {}", target_, std::generic_category().message(errno)));
  }
  temporary_path_.clear();
  return {};
}

}  // namespace msdbg
