#include "agent/messages.h"

#include <array>

#include "msdbg/sanitizers.h"
#include "msdbg/wire_fields.h"

namespace msdbg::agent {
namespace {

grpc::ByteBuffer join(BorrowedMemory& borrowed, const std::string& before, std::span<const std::byte> content, const std::string& behind) {
  std::array<grpc::Slice, 3> parts;
  size_t count = 0;
  parts[count++] = grpc::Slice(before);
  if (!content.empty()) parts[count++] = borrowed.slice(content);
  if (!behind.empty()) parts[count++] = grpc::Slice(behind);
  return {parts.data(), count};
}

}  // namespace

BorrowedMemory::BorrowedMemory() : count_(std::make_shared<Count>()) {}

void BorrowedMemory::release_slice(void* count) {
  taken_over(count);
  const std::unique_ptr<std::shared_ptr<Count>> held(static_cast<std::shared_ptr<Count>*>(count));
  (*held)->fetch_sub(1, std::memory_order_release);
}

grpc::Slice BorrowedMemory::slice(std::span<const std::byte> bytes) {
  count_->fetch_add(1, std::memory_order_relaxed);
  auto* count = new std::shared_ptr<Count>(count_);
  handed_over(count);
  // The transport only reads, but its interface has no const.
  return {const_cast<std::byte*>(bytes.data()), bytes.size(), &BorrowedMemory::release_slice, count};
}

// Field numbers from proto/debug_grpc.proto and proto/debug_graph.proto.

grpc::ByteBuffer chunk_message(BorrowedMemory& borrowed, std::span<const std::byte> buffer, bool finished) {
  std::string before, behind;
  if (!buffer.empty()) WireWriter(before).begin_bytes(1, buffer.size());
  if (finished) WireWriter(behind).field(2, 1);
  return join(borrowed, before, buffer, behind);
}

grpc::ByteBuffer tensor_message(BorrowedMemory& borrowed, const TensorHeader& header, std::span<const std::byte> content,
                                bool finished) {
  std::string before, behind;
  WireWriter head(before), tail(behind);
  head.field(1, header.node_name);
  head.field(2, header.slot);
  if (header.found) {
    head.begin_bytes(3, content.size());
    for (const int64_t dim : header.dims) tail.field(4, static_cast<uint64_t>(dim));
    tail.field(5, static_cast<uint64_t>(mindspore_number(header.dtype)));
  }
  tail.field(6, finished ? 1 : 0);
  tail.field(7, header.iter);
  tail.field(8, header.truncate ? 1 : 0);
  return join(borrowed, before, content, behind);
}

}  // namespace msdbg::agent
