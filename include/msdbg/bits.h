// Prints of the bits of tensors: they tell which of many tensors are the same without all of them at hand.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "msdbg/session.h"
#include "msdbg/shared_list.h"

namespace msdbg {

/// Equal for two tensors of the same type and shape with the same bits, where any NaN equals any other; different otherwise, but for one
/// chance in 2^128. The index of a dump keeps prints.
struct BitsPrint {
  uint64_t low = 0, high = 0;
  bool nan = false;  ///< there is a NaN
  auto operator<=>(const BitsPrint&) const = default;
};

/// The bits of a float type without its sign, above which an element is NaN; 0 for other types.
uint64_t infinity_bits(DType dtype);

/// Makes the print of one tensor from its elements.
class BitsPrinter {
 public:
  /// `dtype`: of a float type every NaN counts as the same.
  explicit BitsPrinter(DType dtype) : dtype_(dtype) {}

  /// Blocks in order; the size of each but the last is a multiple of kStride.
  void add(std::span<const std::byte> block);
  BitsPrint print() const;

  static constexpr size_t kLanes = 4, kStride = kLanes * sizeof(uint64_t);

 private:
  void mix(std::span<const std::byte> block);

  const DType dtype_;
  std::array<uint64_t, kLanes> lanes_ = {0x243f6a8885a308d3, 0x13198a2e03707344, 0xa4093822299f31d0, 0x082efa98ec4e6c89};
  uint64_t bytes_ = 0;
  bool nan_ = false;
  std::vector<std::byte> joined_;  // a block with one kind of NaN
};

/// The print of a tensor of a float type in which every element is NaN.
BitsPrint all_nan_print(DType dtype, uint64_t elements);

struct TensorBits {
  DType dtype = DType::kUnknown;
  SharedList<int64_t> shape;
  BitsPrint print;
};

struct BitsRead {
  TensorId tensor;
  std::optional<TensorBits> bits = {};
  Status problem = {};  ///< why there are none, such as elements that were not dumped
};

/// Fills all of them, each tensor once: from earlier checks and the index, else from the elements, in one pass with the
/// statistics. Returns the bytes of the elements. The owner's thread; several processes share the reading. Error: kInterrupted.
Result<uint64_t> read_bits(Session& session, unsigned threads, std::span<BitsRead> reads);

}  // namespace msdbg
