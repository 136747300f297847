#include "session/live/landing.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

namespace msdbg::live {
namespace {

constexpr uint64_t kLarge = 8 << 20;

uint64_t whole_pages(uint64_t bytes) {
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

std::string temporary_directory() {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::temp_directory_path(error);
  return error ? "." : path.string();
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
  const uint64_t room = whole_pages(bytes);
  if (room <= room_) return {};
  if (room > (uint64_t{1} << 47)) {
    return Status(Code::kOutOfMemory, fmt::format("{} of elements are promised, which no machine holds", format_bytes(bytes)));
  }
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
  auto failed = [&](const char* what) {
    return Status(Code::kOutOfMemory, fmt::format("no room for {} in {}: {}: {}; set TMPDIR to a larger place",
                                                  format_bytes(room), directory, what, std::strerror(errno)));
  };
  if (file_ < 0) {
    std::string path = directory + "/msdbg-tensor-XXXXXX";
    file_ = ::mkostemp(path.data(), O_CLOEXEC);
    if (file_ < 0) return failed("no file can be made");
    ::unlink(path.c_str());
  }
  // Reserved at once: a full disk shall be an error here, not a signal at the first touch of a page.
  if (const int error = ::posix_fallocate(file_, 0, static_cast<off_t>(room)); error != 0) {
    errno = error;
    return failed("the disk is too small");
  }
  void* data = ::mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  if (data == MAP_FAILED) return failed("it cannot be mapped");
  if (data_ != nullptr) {
    std::memcpy(data, data_, used_);
    ::munmap(data_, room_);
  }
  data_ = static_cast<std::byte*>(data);
  room_ = room;
  return {};
}

std::byte* Landing::grow(uint64_t n) {
  if (n > room_ - used_ && !reserve(std::max(used_ + n, room_ + room_ / 2)).ok()) return nullptr;
  return data_ + used_;
}

}  // namespace msdbg::live
