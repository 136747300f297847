// Memory for the elements of one tensor, which arrives in pieces.
//
// Up to the limit it is anonymous memory; above that, a mapped unlinked file in the temporary directory, so a tensor larger than
// --mem-limit can still be reduced and saved. Pages are touched once, when the bytes arrive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "msdbg/base.h"
#include "msdbg/file.h"

namespace msdbg::live {

class UploadBuffer {
 public:
  UploadBuffer() = default;
  ~UploadBuffer();
  UploadBuffer(UploadBuffer&& other) noexcept;
  UploadBuffer& operator=(UploadBuffer&& other) noexcept;
  UploadBuffer(const UploadBuffer&) = delete;
  UploadBuffer& operator=(const UploadBuffer&) = delete;

  /// Above this many bytes a file is used.
  void set_memory_limit(uint64_t bytes) { limit_ = bytes; }
  /// Reserves `bytes` in total; keeps existing data. Error: kOutOfMemory with the size and the place.
  Status reserve(uint64_t bytes);
  /// Returns space for the next `n` bytes, growing if necessary; commit() adds them to bytes(). Error: as for reserve().
  Result<std::span<std::byte>> grow(uint64_t n);
  void commit(uint64_t n) { used_ += n; }

  std::span<const std::byte> bytes() const { return {data_, used_}; }
  bool on_disk() const { return file_.has_value(); }

 private:
  Status move_to_file(uint64_t bytes);

  std::byte* data_ = nullptr;
  uint64_t used_ = 0, room_ = 0;
  uint64_t limit_ = UINT64_MAX;
  std::optional<File> file_;
};

}  // namespace msdbg::live
