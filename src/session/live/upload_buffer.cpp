#include "session/live/upload_buffer.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
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

}  // namespace

UploadBuffer::~UploadBuffer() {
  if (data_ != nullptr) ::munmap(data_, room_);
}

UploadBuffer::UploadBuffer(UploadBuffer&& other) noexcept { *this = std::move(other); }

UploadBuffer& UploadBuffer::operator=(UploadBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(used_, other.used_);
  std::swap(room_, other.room_);
  std::swap(limit_, other.limit_);
  std::swap(file_, other.file_);
  return *this;
}

Status UploadBuffer::reserve(uint64_t bytes) {
  if (bytes > kMost) {
    return Status(Code::kOutOfMemory, fmt::format("{} of elements are promised, which no machine holds", format_bytes(bytes)));
  }
  const uint64_t room = whole_pages(bytes);
  if (room <= room_) return {};
  if (room > limit_ || file_) return move_to_file(room);
  void* data = data_ == nullptr ? ::mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                                : ::mremap(data_, room_, room, MREMAP_MAYMOVE);
  if (data == MAP_FAILED) return move_to_file(room);
  // A page fault for every 4 KiB would take as long as copying the bytes.
  if (room >= kLarge) ::madvise(data, room, MADV_HUGEPAGE);
  data_ = static_cast<std::byte*>(data);
  room_ = room;
  return {};
}

Status UploadBuffer::move_to_file(uint64_t room) {
  const auto no_room = [](const Status& status) { return Status(Code::kOutOfMemory, status.message()); };
  std::optional<File> made;
  if (!file_) {
    Result<File> temporary = File::temporary(format_bytes(room) + " of elements");
    if (!temporary) return no_room(temporary.status());
    made = std::move(*temporary);
  }
  File& file = file_ ? *file_ : *made;
  if (Status status = file.reserve(room); !status.ok()) return no_room(status);
  void* data = file_ ? ::mremap(data_, room_, room, MREMAP_MAYMOVE)
                     : ::mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_SHARED, file.descriptor(), 0);
  if (data == MAP_FAILED) {
    return Status(Code::kOutOfMemory, fmt::format("{} of elements cannot be mapped: {}", format_bytes(room), std::strerror(errno)));
  }
  if (!file_) {
    if (data_ != nullptr) {
      std::memcpy(data, data_, used_);
      ::munmap(data_, room_);
    }
    file_ = std::move(made);
  }
  data_ = static_cast<std::byte*>(data);
  room_ = room;
  return {};
}

Result<std::span<std::byte>> UploadBuffer::grow(uint64_t n) {
  if (n > room_ - used_) {
    if (n > kMost - used_) return Status(Code::kOutOfMemory, fmt::format("no room for {} more", format_bytes(n)));
    // Grow by more than needed to avoid moving the data for every piece; if that fails, by just enough.
    const uint64_t ample = room_ + room_ / 2;
    if (ample < used_ + n || !reserve(ample).ok()) {
      if (Status status = reserve(used_ + n); !status.ok()) return status;
    }
  }
  return std::span<std::byte>(data_ + used_, n);
}

}  // namespace msdbg::live
