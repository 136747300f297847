#include "ckpt/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <system_error>

namespace msdbg::ckpt {
namespace {

/// Between two looks at the interrupt flag.
constexpr size_t kChunkBytes = 16 << 20;

Status failure(const std::string& path, std::string_view what, int number) {
  const Code code = number == ENOENT ? Code::kNotFound : Code::kIoError;
  return Status(code, fmt::format("{}: {}: {}", path, what, std::generic_category().message(number)));
}

}  // namespace

Result<std::shared_ptr<File>> File::open(const std::string& path) {
  int descriptor;
  do {
    // Non-blocking, so that a pipe under the name of a checkpoint cannot hold us.
    descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  } while (descriptor < 0 && errno == EINTR);
  if (descriptor < 0) return failure(path, "cannot be opened", errno);
  std::shared_ptr<File> file(new File(path, descriptor, 0));
  struct stat status;
  if (fstat(descriptor, &status) != 0) return failure(path, "cannot be examined", errno);
  if (!S_ISREG(status.st_mode)) {
    return Status(Code::kIoError,
                  fmt::format("{}: is {}; a checkpoint is one file", path, S_ISDIR(status.st_mode) ? "a directory" : "no regular file"));
  }
  file->size_ = static_cast<uint64_t>(status.st_size);
  return file;
}

Result<std::shared_ptr<File>> File::temporary(const std::string& path) {
  const char* chosen = std::getenv("TMPDIR");
  const std::string directory = chosen != nullptr && *chosen != '\0' ? chosen : "/tmp";
  std::string name = directory + "/msdbg-ckpt-XXXXXX";
  const int descriptor = mkostemp(name.data(), O_CLOEXEC);
  if (descriptor < 0)
    return failure(path, fmt::format("no temporary file for the decrypted data in {} (TMPDIR chooses another place)", directory), errno);
  ::unlink(name.c_str());
  return std::shared_ptr<File>(new File(path, descriptor, 0));
}

File::~File() { ::close(descriptor_); }

Status File::read(uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t n = pread(descriptor_, out.data(), std::min(out.size(), kChunkBytes), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failure(path_, fmt::format("cannot be read at offset {}", offset), errno);
    if (n == 0) {
      return Status(Code::kIoError,
                    fmt::format("{}: shrank while it was read (offset {}); is it still being written? Open it again", path_, offset));
    }
    out = out.subspan(static_cast<size_t>(n));
    offset += static_cast<uint64_t>(n);
    if (!out.empty() && interrupt_requested()) return Status(Code::kInterrupted, fmt::format("{}: interrupted while it was read", path_));
  }
  return {};
}

Status File::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(size_));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failure(path_, "the decrypted data cannot be kept in a temporary file (TMPDIR chooses another place)", errno);
    bytes = bytes.subspan(static_cast<size_t>(n));
    size_ += static_cast<uint64_t>(n);
  }
  return {};
}

Status File::truncate(uint64_t size) {
  if (ftruncate(descriptor_, static_cast<off_t>(size)) != 0) return failure(path_, "the temporary file cannot be shortened", errno);
  size_ = size;
  return {};
}

}  // namespace msdbg::ckpt
