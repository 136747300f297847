#include "msdbg/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <utility>

#include "base/disk.h"

namespace msdbg {
namespace {

constexpr mode_t kNewMode = 0666;  // the umask applies when the file is created

std::string follow_links(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr), &std::free);
  return real ? real.get() : path;
}

/// A device, a pipe, or a socket: neither a file nor a directory. It is written to, never replaced.
bool is_special(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

}  // namespace

Result<AtomicFile> AtomicFile::create(const std::string& path) {
  AtomicFile file;
  file.path_ = path;
  file.target_ = follow_links(path);
  if (is_special(path)) {
    file.special_ = true;
    file.descriptor_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (file.descriptor_ < 0) return file.failure("it cannot be opened", errno);
    return file;
  }
  std::error_code ignored;
  if (std::filesystem::is_directory(file.target_, ignored)) {
    return Status(Code::kIoError, fmt::format("{}: cannot be written: it is a directory; name a file in it", path));
  }
  std::string directory = std::filesystem::path(file.target_).parent_path().string();
  if (directory.empty()) directory = ".";
  file.descriptor_ = open_new_file(directory, kNewMode, &file.temporary_path_);
  if (file.descriptor_ >= 0) return file;
  file.temporary_path_.clear();
  return file.failure(fmt::format("no file can be made in {}", directory), errno);
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      target_(std::move(other.target_)),
      temporary_path_(std::exchange(other.temporary_path_, "")),
      descriptor_(std::exchange(other.descriptor_, -1)),
      special_(other.special_),
      size_(other.size_) {}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_path_.empty()) ::unlink(temporary_path_.c_str());
}

Status AtomicFile::failure(std::string_view what, int error) const {
  return Status(Code::kIoError, fmt::format("{}: cannot be written: {}: {}", path_, what, system_text(error)));
}

Status AtomicFile::append(std::span<const std::byte> bytes) {
  MSDBG_CHECK(descriptor_ >= 0);
  while (!bytes.empty()) {
    // Pipes have no offsets.
    const ssize_t count = special_ ? ::write(descriptor_, bytes.data(), bytes.size())
                                   : Disk::current().write(descriptor_, bytes.data(), bytes.size(), size_);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return failure(fmt::format("stopped after {}", format_bytes(size_)), errno);
    bytes = bytes.subspan(static_cast<size_t>(count));
    size_ += static_cast<uint64_t>(count);
  }
  return {};
}

Status AtomicFile::commit() {
  MSDBG_CHECK(descriptor_ >= 0);
  if (special_) {
    if (::close(std::exchange(descriptor_, -1)) != 0) return failure("it did not take the last bytes", errno);
    return {};
  }
  struct stat old {};
  if (::stat(target_.c_str(), &old) == 0 && ::fchmod(descriptor_, old.st_mode & 0777) != 0) {
    return failure("the permissions of the file there cannot be kept", errno);
  }
  // A full disk may be reported only now. A file that does not support sync (EINVAL) accepted the data already.
  if (Disk::current().sync(descriptor_) != 0 && errno != EINVAL) return failure("the disk did not take it", errno);
  if (::close(std::exchange(descriptor_, -1)) != 0) return failure("the disk did not take it", errno);
  if (Disk::current().rename(temporary_path_.c_str(), target_.c_str()) != 0) return failure("the file there cannot be replaced", errno);
  temporary_path_.clear();
  return {};
}

Status write_file(const std::string& path, std::string_view text) {
  Result<AtomicFile> file = AtomicFile::create(path);
  if (!file) return file.status();
  if (Status status = file->append(text); !status.ok()) return status;
  return file->commit();
}

Status append_to_file(const std::string& path, std::string_view text) {
  const int file = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, kNewMode);
  if (file < 0) return Status(Code::kIoError, fmt::format("{}: cannot be appended to: {}", path, system_text(errno)));
  int problem = 0;
  while (!text.empty() && problem == 0) {
    const ssize_t count = ::write(file, text.data(), text.size());
    if (count < 0 && errno != EINTR) problem = errno;
    if (count > 0) text.remove_prefix(static_cast<size_t>(count));
  }
  if (::close(file) != 0 && problem == 0) problem = errno;
  if (problem == 0) return {};
  return Status(Code::kIoError, fmt::format("{}: not everything was appended: {}", path, system_text(problem)));
}

}  // namespace msdbg
