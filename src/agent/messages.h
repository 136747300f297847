// Messages with a large payload: split and framed by hand, without copying the payload.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "msdbg/tensor.h"

namespace msdbg::agent {

inline constexpr size_t kSliceBytes = 3'145'728;  ///< content of one message, split as in MindSpore

/// Counts the slices of borrowed memory that the transport still uses: after an aborted call it may release them later than the
/// call ends, and the memory must not change before that.
class BorrowedMemory {
 public:
  BorrowedMemory();
  /// A slice that refers to `bytes`.
  grpc::Slice slice(std::span<const std::byte> bytes);
  bool released() const { return count_->load(std::memory_order_acquire) == 0; }

 private:
  using Count = std::atomic<size_t>;
  static void release_slice(void* count);
  std::shared_ptr<Count> count_;
};

/// Chunk { buffer, finished }.
grpc::ByteBuffer chunk_message(BorrowedMemory& borrowed, std::span<const std::byte> buffer, bool finished);

/// The fields that all slices of one tensor share.
struct TensorHeader {
  std::string_view node_name, slot, iter;
  bool truncate = false;
  bool found = true;
  std::span<const int64_t> dims;
  DType dtype = DType::kUnknown;
};
grpc::ByteBuffer tensor_message(BorrowedMemory& borrowed, const TensorHeader& header, std::span<const std::byte> content,
                                bool finished);

}  // namespace msdbg::agent
