#include <algorithm>
#include <bit>
#include <cstring>

#include "msdbg/bits.h"
#include "msdbg/hash.h"
#include "msdbg/simd.h"

namespace msdbg {
namespace {

template <typename Word>
constexpr Word kMagnitude = static_cast<Word>(~Word{0}) >> 1;

template <typename Word>
Word word_at(const std::byte* bytes) {
  Word word;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

/// Gives every NaN the same bits; true if there was any.
template <typename Word>
bool join_nan(std::span<std::byte> block, uint64_t infinity) {
  bool any = false;
  for (size_t at = 0; at + sizeof(Word) <= block.size(); at += sizeof(Word)) {
    if ((word_at<Word>(block.data() + at) & kMagnitude<Word>) <= infinity) continue;
    std::memcpy(block.data() + at, &kMagnitude<Word>, sizeof(Word));
    any = true;
  }
  return any;
}

bool join_nan(DType dtype, std::span<std::byte> block) {
  const uint64_t infinity = infinity_bits(dtype);
  switch (item_size(dtype)) {
    case 2:
      return join_nan<uint16_t>(block, infinity);
    case 4:
      return join_nan<uint32_t>(block, infinity);
    default:
      return join_nan<uint64_t>(block, infinity);
  }
}

// A bijection of the state: a single changed word always changes the result.
uint64_t mixed(uint64_t state, uint64_t word) { return std::rotl((state ^ word) * 0x9e3779b97f4a7c15, 29); }

}  // namespace

uint64_t infinity_bits(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return 0x7c00;
    case DType::kBFloat16:
      return 0x7f80;
    case DType::kFloat32:
      return 0x7f800000;
    case DType::kFloat64:
      return 0x7ff0000000000000;
    default:
      return 0;
  }
}

void BitsPrinter::add(std::span<const std::byte> block) {
  if (infinity_bits(dtype_) == 0 || all_finite({dtype_, {}, block.data(), block.size() / item_size(dtype_)})) return mix(block);
  joined_.assign(block.begin(), block.end());
  nan_ = join_nan(dtype_, joined_) || nan_;
  mix(joined_);
}

void BitsPrinter::mix(std::span<const std::byte> block) {
  bytes_ += block.size();
  size_t at = 0;
  const auto* const bytes = reinterpret_cast<const char*>(block.data());
  constexpr size_t kWord = sizeof(uint64_t);
  static_assert(kLanes == 4);
  auto [first, second, third, fourth] = lanes_;  // in registers: an array stays in memory, which takes three times as long
  for (; at + kStride <= block.size(); at += kStride) {
    first = mixed(first, hash_word(bytes + at));
    second = mixed(second, hash_word(bytes + at + kWord));
    third = mixed(third, hash_word(bytes + at + 2 * kWord));
    fourth = mixed(fourth, hash_word(bytes + at + 3 * kWord));
  }
  lanes_ = {first, second, third, fourth};
  for (size_t lane = 0; at < block.size(); ++lane, at += kWord) {
    lanes_[lane] = mixed(lanes_[lane], hash_word(bytes + at, std::min(kWord, block.size() - at)));
  }
}

BitsPrint BitsPrinter::print() const {
  // Two sums of all lanes, in opposite orders: a change in one of them always changes both.
  BitsPrint out{bytes_, ~bytes_, nan_};
  for (size_t lane = 0; lane < kLanes; ++lane) {
    out.low = hash_step(out.low, lanes_[lane]);
    out.high = mixed(out.high, lanes_[kLanes - 1 - lane]);
  }
  return {hash_end(out.low), hash_end(out.high), out.nan};
}

BitsPrint all_nan_print(DType dtype, uint64_t elements) {
  constexpr size_t kBlock = 1 << 16;
  const size_t size = item_size(dtype);
  const std::vector<std::byte> block(kBlock, std::byte{0xff});  // NaN in every float type
  BitsPrinter printer(dtype);
  for (uint64_t left = elements * size; left > 0;) {
    const auto part = static_cast<size_t>(std::min<uint64_t>(left, block.size()));
    printer.add({block.data(), part});
    left -= part;
  }
  return printer.print();
}

}  // namespace msdbg
