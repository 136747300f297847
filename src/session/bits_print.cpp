#include <algorithm>
#include <bit>
#include <cstring>

#include "msdbg/bits.h"
#include "msdbg/hash.h"

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

template <typename Word>
bool holds_nan(std::span<const std::byte> block, Word infinity) {
  Word any = 0;
  for (size_t at = 0; at + sizeof(Word) <= block.size(); at += sizeof(Word)) {
    any |= static_cast<Word>((word_at<Word>(block.data() + at) & kMagnitude<Word>) > infinity ? 1 : 0);
  }
  return any != 0;
}

/// Gives every NaN the same bits.
template <typename Word>
void join_nan(std::span<std::byte> block, Word infinity) {
  for (size_t at = 0; at + sizeof(Word) <= block.size(); at += sizeof(Word)) {
    if ((word_at<Word>(block.data() + at) & kMagnitude<Word>) > infinity) std::memcpy(block.data() + at, &kMagnitude<Word>, sizeof(Word));
  }
}

/// True if there was any NaN; then `joined` has the block with one kind of NaN.
template <typename Word>
bool join_nan(std::span<const std::byte> block, uint64_t infinity, std::vector<std::byte>& joined) {
  if (!holds_nan(block, static_cast<Word>(infinity))) return false;
  joined.assign(block.begin(), block.end());
  join_nan(std::span(joined), static_cast<Word>(infinity));
  return true;
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
  bool nan = false;
  if (const uint64_t infinity = infinity_bits(dtype_); infinity != 0) {
    switch (item_size(dtype_)) {
      case 2:
        nan = join_nan<uint16_t>(block, infinity, joined_);
        break;
      case 4:
        nan = join_nan<uint32_t>(block, infinity, joined_);
        break;
      default:
        nan = join_nan<uint64_t>(block, infinity, joined_);
    }
  }
  nan_ = nan_ || nan;
  mix(nan ? std::span<const std::byte>(joined_) : block);
}

void BitsPrinter::mix(std::span<const std::byte> block) {
  bytes_ += block.size();
  size_t at = 0;
  const auto* const bytes = reinterpret_cast<const char*>(block.data());
  constexpr size_t kWord = sizeof(uint64_t);
  for (; at + kStride <= block.size(); at += kStride) {
    for (size_t lane = 0; lane < kLanes; ++lane) lanes_[lane] = mixed(lanes_[lane], hash_word(bytes + at + lane * kWord));
  }
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

}  // namespace msdbg
