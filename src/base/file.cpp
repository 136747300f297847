#include "msdbg/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/disk.h"

namespace msdbg {
namespace {

/// Bytes between two checks of the interrupt flag.
constexpr size_t kChunkBytes = 16 << 20;

int open_to_read(const std::string& path, int more_flags) {
  int descriptor;
  do {
    descriptor = Disk::current().open(path.c_str(), O_RDONLY | O_CLOEXEC | more_flags, 0);
  } while (descriptor < 0 && errno == EINTR && !interrupt_requested());
  return descriptor;
}

Status cannot(const std::string& path, std::string_view what, int error) {
  return Status(system_code(error), fmt::format("{}: cannot be {}: {}", path, what, system_text(error)));
}

Status interrupted(const std::string& path) { return Status(Code::kInterrupted, fmt::format("{}: interrupted while it was read", path)); }

Status too_long(const std::string& path, uint64_t limit) {
  return Status(Code::kCorrupt, fmt::format("{}: is longer than {}, which makes no sense for this file", path, format_bytes(limit)));
}

/// Pipes and devices have neither offsets nor a size.
Result<std::string> read_stream(const std::string& path, int descriptor, uint64_t limit) {
  std::string text;
  std::vector<char> block(size_t{64} << 10);
  while (!interrupt_requested()) {
    const ssize_t count = ::read(descriptor, block.data(), block.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return cannot(path, "read", errno);
    if (count == 0) return text;
    if (static_cast<uint64_t>(count) > limit - text.size()) return too_long(path, limit);
    text.append(block.data(), static_cast<size_t>(count));
  }
  return interrupted(path);
}

}  // namespace

FileStamp FileStamp::of(const struct stat& info) {
  const auto nanoseconds = [](const struct timespec& time) { return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; };
  return {static_cast<uint64_t>(info.st_size), static_cast<uint64_t>(info.st_ino), nanoseconds(info.st_mtim), nanoseconds(info.st_ctim)};
}

Result<File> File::open(const std::string& path) {
  // Non-blocking, because the name may be a pipe; regular files ignore the flag.
  File file(path, "", open_to_read(path, O_NONBLOCK));
  struct stat info {};
  if (file.descriptor_ < 0 || Disk::current().stat(file.descriptor_, &info) != 0) return cannot(path, "opened", errno);
  if (!S_ISREG(info.st_mode)) {
    return Status(Code::kIoError, fmt::format("{}: cannot be read: it is {}", path,
                                              S_ISDIR(info.st_mode) ? "a directory, not a file" : "not a regular file"));
  }
  file.stamp_ = FileStamp::of(info);
  return file;
}

Result<File> File::temporary(const std::string& name) {
  const char* chosen = std::getenv("TMPDIR");
  const std::string directory = chosen != nullptr && *chosen != '\0' ? chosen : "/tmp";
  std::string path;
  File file(name, directory, open_new_file(directory, 0600, &path));
  if (file.descriptor_ < 0) return file.failure("cannot be made", errno);
  ::unlink(path.c_str());
  return file;
}

File::~File() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

File::File(File&& other) noexcept
    : path_(std::move(other.path_)),
      directory_(std::move(other.directory_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      stamp_(std::exchange(other.stamp_, {})) {}

File& File::operator=(File&& other) noexcept {
  path_.swap(other.path_);
  directory_.swap(other.directory_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(stamp_, other.stamp_);
  return *this;
}

Status File::failure(std::string_view what, int error) const {
  return Status(Code::kIoError, fmt::format("{}: the temporary file in {} {}: {}; set TMPDIR to another directory", path_, directory_, what,
                                            system_text(error)));
}

Status File::read(uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t count = Disk::current().read(descriptor_, out.data(), std::min(out.size(), kChunkBytes), offset);
    if (count < 0 && errno != EINTR) return cannot(path_, fmt::format("read at byte {}", offset), errno);
    if (count == 0) {
      return Status(Code::kIoError, fmt::format("{}: shrank while it was read: it had {} bytes and ends at byte {} now; is it still "
                                                "being written? Open it again",
                                                path_, stamp_.size, offset));
    }
    if (count > 0) {
      out = out.subspan(static_cast<size_t>(count));
      offset += static_cast<uint64_t>(count);
    }
    if (!out.empty() && interrupt_requested()) return interrupted(path_);
  }
  return {};
}

Result<std::string> File::text(uint64_t limit) const {
  if (stamp_.size > limit) return too_long(path_, limit);
  std::string text(stamp_.size, '\0');
  if (Status status = read(0, std::as_writable_bytes(std::span(text.data(), text.size()))); !status.ok()) return status;
  return text;
}

void File::expect_sequential() const { ::posix_fadvise(descriptor_, 0, 0, POSIX_FADV_SEQUENTIAL); }

Status File::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = Disk::current().write(descriptor_, bytes.data(), bytes.size(), stamp_.size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return failure(fmt::format("cannot grow beyond {}", format_bytes(stamp_.size)), errno);
    bytes = bytes.subspan(static_cast<size_t>(count));
    stamp_.size += static_cast<uint64_t>(count);
  }
  return {};
}

Status File::truncate(uint64_t size) {
  if (::ftruncate(descriptor_, static_cast<off_t>(size)) != 0) return failure("cannot be shortened", errno);
  stamp_.size = size;
  return {};
}

Status File::reserve(uint64_t size) {
  if (size <= stamp_.size) return {};
  int error;
  do {
    error = ::posix_fallocate(descriptor_, 0, static_cast<off_t>(size));
  } while (error == EINTR && !interrupt_requested());
  if (error != 0) return failure(fmt::format("cannot grow to {}", format_bytes(size)), error);
  stamp_.size = size;
  return {};
}

Result<std::string> read_text(const std::string& path, uint64_t limit) {
  const Result<File> file = File::open(path);
  if (!file) return file.status();
  return file->text(limit);
}

Result<std::string> read_input(const std::string& path, uint64_t limit) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 || (!S_ISFIFO(info.st_mode) && !S_ISCHR(info.st_mode))) return read_text(path, limit);
  const int descriptor = open_to_read(path, 0);
  if (descriptor < 0) return cannot(path, "opened", errno);
  Result<std::string> text = read_stream(path, descriptor, limit);
  ::close(descriptor);
  return text;
}

Result<std::vector<std::string>> read_lines(const std::string& path, uint64_t limit) {
  const Result<std::string> text = read_text(path, limit);
  if (!text) return text.status();
  std::vector<std::string> lines;
  for (std::string_view line : split(*text, '\n')) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.emplace_back(line);
  }
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

Status without_path(const Status& status, const std::string& path) {
  const std::string& message = status.message();
  const bool named = message.starts_with(path) && message.compare(path.size(), 2, ": ") == 0;
  return named ? Status(status.code(), message.substr(path.size() + 2)) : status;
}

Status FileWindow::read(uint64_t offset, std::span<std::byte> out) {
  MSDBG_CHECK(offset <= size() && out.size() <= size() - offset);
  if (offset < begin_ || offset > end_ || out.size() > end_ - offset) {
    if (out.size() > window_.size() / 2) return file_.read(offset, out);
    // When reading continues at the end of the window, earlier bytes are not needed.
    const uint64_t behind = offset >= begin_ && offset <= end_ ? 0 : std::min<uint64_t>(offset, window_.size() / 4);
    begin_ = end_ = offset - behind;
    const size_t count = std::min<uint64_t>(window_.size(), size() - begin_);
    if (Status status = file_.read(begin_, std::span(window_.data(), count)); !status.ok()) return status;
    end_ = begin_ + count;
  }
  std::memcpy(out.data(), window_.data() + (offset - begin_), out.size());
  return {};
}

}  // namespace msdbg
