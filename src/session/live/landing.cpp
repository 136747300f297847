#include "session/live/landing.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace msdbg::live {
namespace {

constexpr uint64_t kLarge = 8 << 20;
constexpr uint64_t kMost = uint64_t{1} << 47;

uint64_t whole_pages(uint64_t bytes) {
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

/// A directory that does not exist is an error that names it, not another directory.
std::string temporary_directory() {
  const char* named = std::getenv("TMPDIR");
  return named != nullptr && *named != '\0' ? named : "/tmp";
}

}  // namespace

Landing::~Landing() {
  if (data_ != nullptr) ::munmap(data_, room_);
  if (file_ >= 0) ::close(file_);
}

Landing::Landing(Landing&& other) noexcept { *this = std::move(other); }

Landing& Landing::operator=(Landing&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(used_, other.used_);
  std::swap(room_, other.room_);
  std::swap(limit_, other.limit_);
  std::swap(file_, other.file_);
  return *this;
}

Status Landing::reserve(uint64_t bytes) {
  if (bytes > kMost) {
    return Status(Code::kOutOfMemory, fmt::format("{} of elements are promised, which no machine holds", format_bytes(bytes)));
  }
  const uint64_t room = whole_pages(bytes);
  if (room <= room_) return {};
  if (room > limit_ || file_ >= 0) return move_to_file(room);
  void* data = data_ == nullptr ? ::mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                                : ::mremap(data_, room_, room, MREMAP_MAYMOVE);
  if (data == MAP_FAILED) return move_to_file(room);
  // A fault for every 4 KiB would take as long as the bytes themselves.
  if (room >= kLarge) ::madvise(data, room, MADV_HUGEPAGE);
  data_ = static_cast<std::byte*>(data);
  room_ = room;
  return {};
}

Status Landing::move_to_file(uint64_t room) {
  const std::string directory = temporary_directory();
  const bool there = file_ >= 0;
  int file = file_;
  auto failed = [&](const char* what) {
    Status status(Code::kOutOfMemory, fmt::format("no room for {} in {}: {}: {}; set TMPDIR to a larger place", format_bytes(room),
                                                  directory, what, std::strerror(errno)));
    if (!there && file >= 0) ::close(file);
    return status;
  };
  if (!there) {
    std::string path = directory + "/msdbg-tensor-XXXXXX";
    file = ::mkostemp(path.data(), O_CLOEXEC);
    if (file < 0) return failed("no file can be made");
    ::unlink(path.c_str());
  }
  // Reserved at once: a full disk must be an error here, not a signal at the first touch of a page.
  if (const int error = ::posix_fallocate(file, 0, static_cast<off_t>(room)); error != 0) {
    errno = error;
    return failed("the disk is too small");
  }
  void* data = there ? ::mremap(data_, room_, room, MREMAP_MAYMOVE) : ::mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (data == MAP_FAILED) return failed("it cannot be mapped");
  if (!there && data_ != nullptr) {
    std::memcpy(data, data_, used_);
    ::munmap(data_, room_);
  }
  file_ = file;
  data_ = static_cast<std::byte*>(data);
  room_ = room;
  return {};
}

Result<std::span<std::byte>> Landing::grow(uint64_t n) {
  if (n > room_ - used_) {
    if (n > kMost - used_) return Status(Code::kOutOfMemory, fmt::format("no room for {} more", format_bytes(n)));
    // Some more than is needed now, so that not every piece moves the ones before it; where that does not fit, just enough.
    const uint64_t ample = room_ + room_ / 2;
    if (ample < used_ + n || !reserve(ample).ok()) {
      if (Status status = reserve(used_ + n); !status.ok()) return status;
    }
  }
  return std::span<std::byte>(data_ + used_, n);
}

}  // namespace msdbg::live
