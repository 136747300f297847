#include "session/pass.h"

#include <algorithm>

namespace msdbg {
namespace {

std::span<std::byte> room(std::vector<std::byte>& buffer, size_t bytes) {
  if (buffer.size() < bytes) buffer.resize(bytes);
  return std::span(buffer).first(bytes);
}

}  // namespace

std::span<std::byte> PassBuffers::current(size_t bytes) { return room(current_, bytes); }
std::span<std::byte> PassBuffers::previous(size_t bytes) { return room(previous_, bytes); }

namespace {

/// Calls take(block, previous block or null, elements) for each block.
template <typename Take>
Status walk(ElementReader& reader, ElementReader* previous, PassBuffers& buffers, uint64_t* bytes_read, Take take) {
  const size_t size = item_size(reader.dtype());
  const size_t previous_size = previous ? item_size(previous->dtype()) : 0;
  for (uint64_t first = 0; first < reader.count(); first += kElementsPerBlock) {
    if (interrupt_requested()) return Status(Code::kInterrupted, "interrupted while reading a tensor");
    const size_t n = static_cast<size_t>(std::min(kElementsPerBlock, reader.count() - first));
    std::span<std::byte> block = buffers.current(n * size);
    if (Status status = reader.read(first, block); !status.ok()) return status;
    if (bytes_read) *bytes_read += block.size();
    const std::byte* other_block = nullptr;
    if (previous) {
      std::span<std::byte> other = buffers.previous(n * previous_size);
      if (Status status = previous->read(first, other); !status.ok()) return status;
      if (bytes_read) *bytes_read += other.size();
      other_block = other.data();
    }
    take(block.data(), other_block, n);
  }
  return {};
}

}  // namespace

Result<Stats> run_pass(ElementReader& reader, ElementReader* previous, const StatsRequest& request, PassBuffers& buffers,
                       uint64_t* bytes_read, ExpressionRun* expressions, BitsPrinter* bits) {
  MSDBG_CHECK(!previous || previous->count() == reader.count());
  StatsPass pass(reader.dtype(), request, previous ? previous->dtype() : DType::kUnknown);
  const bool feed = expressions != nullptr && expressions->wants_blocks();
  Status status = walk(reader, previous, buffers, bytes_read, [&](const std::byte* block, const std::byte* other, size_t n) {
    if (other != nullptr) pass.update(block, other, n);
    else pass.update(block, n);
    if (feed) expressions->update(block, other, n);
    if (bits != nullptr) bits->add({block, n * item_size(reader.dtype())});
  });
  if (!status.ok()) return status;
  Stats stats = pass.finish();
  while (expressions != nullptr && expressions->end_pass(stats, request)) {
    status = walk(reader, previous, buffers, bytes_read, [&](const std::byte* block, const std::byte* other, size_t n) {
      expressions->update(block, other, n);
    });
    if (!status.ok()) return status;
  }
  return stats;
}

}  // namespace msdbg
