#include "agent/messages.h"

#include <array>

#include "agent/thread_order.h"

namespace msdbg::agent {
namespace {

/// Writes protobuf fields. Source of the numbers: proto/debug_grpc.proto, proto/debug_graph.proto.
class Fields {
 public:
  void number(uint32_t field, uint64_t value) {
    varint(field << 3);
    varint(value);
  }
  void length(uint32_t field, uint64_t size) {
    varint(field << 3 | 2);
    varint(size);
  }
  void text(uint32_t field, std::string_view value) {
    length(field, value.size());
    bytes_ += value;
  }
  grpc::Slice slice() const { return grpc::Slice(bytes_); }
  bool empty() const { return bytes_.empty(); }

 private:
  void varint(uint64_t value) {
    while (value >= 0x80) {
      bytes_ += static_cast<char>(value | 0x80);
      value >>= 7;
    }
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

grpc::ByteBuffer join(Loan& loan, const Fields& before, std::span<const std::byte> content, const Fields& behind) {
  std::array<grpc::Slice, 3> parts;
  size_t count = 0;
  parts[count++] = before.slice();
  if (!content.empty()) parts[count++] = loan.lend(content);
  if (!behind.empty()) parts[count++] = behind.slice();
  return {parts.data(), count};
}

}  // namespace

int mindspore_number(DType dtype) {
  constexpr int kBFloat16 = 46, kHighestPlain = 12;
  static const auto kNumbers = [] {
    std::array<int, 32> numbers{};
    for (int number = 1; number <= kHighestPlain; ++number) {
      numbers[static_cast<size_t>(dtype_from_mindspore(number))] = number;
    }
    numbers[static_cast<size_t>(DType::kBFloat16)] = kBFloat16;
    numbers[static_cast<size_t>(DType::kUnknown)] = 0;
    return numbers;
  }();
  const auto index = static_cast<size_t>(dtype);
  return index < kNumbers.size() ? kNumbers[index] : 0;
}

Loan::Loan() : count_(std::make_shared<Count>()) {}

void Loan::give_back(void* count) {
  taken_over(count);
  const std::unique_ptr<std::shared_ptr<Count>> held(static_cast<std::shared_ptr<Count>*>(count));
  (*held)->fetch_sub(1, std::memory_order_release);
}

grpc::Slice Loan::lend(std::span<const std::byte> bytes) {
  count_->fetch_add(1, std::memory_order_relaxed);
  auto* count = new std::shared_ptr<Count>(count_);
  handed_over(count);
  // The transport only reads; its interface has no const.
  return {const_cast<std::byte*>(bytes.data()), bytes.size(), &Loan::give_back, count};
}

grpc::ByteBuffer chunk_message(Loan& loan, std::span<const std::byte> buffer, bool finished) {
  Fields before, behind;
  if (!buffer.empty()) before.length(1, buffer.size());
  if (finished) behind.number(2, 1);
  return join(loan, before, buffer, behind);
}

grpc::ByteBuffer tensor_message(Loan& loan, const TensorHeader& header, std::span<const std::byte> content,
                                bool finished) {
  Fields before, behind;
  before.text(1, header.node_name);
  before.text(2, header.slot);
  if (header.found) {
    before.length(3, content.size());
    for (const int64_t dim : header.dims) behind.number(4, static_cast<uint64_t>(dim));
    behind.number(5, static_cast<uint64_t>(mindspore_number(header.dtype)));
  }
  behind.number(6, finished ? 1 : 0);
  behind.text(7, header.iter);
  behind.number(8, header.truncate ? 1 : 0);
  return join(loan, before, content, behind);
}

}  // namespace msdbg::agent
