// Prints of bits: what makes them equal, and what does not.
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "msdbg/bits.h"

namespace msdbg {
namespace {

BitsPrint print_of(DType dtype, std::span<const std::byte> bytes, size_t block = SIZE_MAX) {
  BitsPrinter printer(dtype);
  for (size_t at = 0; at < bytes.size(); at += std::min(block, bytes.size() - at)) printer.add(bytes.subspan(at, std::min(block, bytes.size() - at)));
  return printer.print();
}

template <typename T>
BitsPrint print_of(DType dtype, const std::vector<T>& values, size_t block = SIZE_MAX) {
  return print_of(dtype, std::as_bytes(std::span(values)), block);
}

std::vector<std::byte> some_bytes(size_t count) {
  std::mt19937 random(7);
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

TEST(BitsPrint, EveryBitCounts) {
  for (const size_t size : {1, 7, 8, 9, 31, 32, 33, 63, 64, 100, 129}) {
    std::vector<std::byte> bytes = some_bytes(size);
    const BitsPrint whole = print_of(DType::kUInt8, bytes);
    for (size_t bit = 0; bit < 8 * size; ++bit) {
      bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
      const BitsPrint changed = print_of(DType::kUInt8, bytes);
      EXPECT_NE(changed.low, whole.low) << size << " bytes, bit " << bit;
      EXPECT_NE(changed.high, whole.high) << size << " bytes, bit " << bit;
      bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    }
    EXPECT_EQ(print_of(DType::kUInt8, bytes), whole);
  }
}

TEST(BitsPrint, BlocksDoNotCount) {
  const std::vector<std::byte> bytes = some_bytes(1000);
  const BitsPrint whole = print_of(DType::kInt32, bytes);
  for (const size_t block : {32, 64, 96, 512, 992}) EXPECT_EQ(print_of(DType::kInt32, bytes, block), whole) << block;
}

TEST(BitsPrint, ZerosOfAnotherLengthDiffer) {
  std::set<std::pair<uint64_t, uint64_t>> prints;
  for (size_t size = 0; size < 100; ++size) {
    const BitsPrint print = print_of(DType::kUInt8, std::vector<std::byte>(size));
    EXPECT_TRUE(prints.emplace(print.low, print.high).second) << size;
  }
}

TEST(BitsPrint, OrderCounts) {
  const std::vector<float> a = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18};
  for (size_t i = 0; i + 1 < a.size(); ++i) {
    std::vector<float> b = a;
    std::swap(b[i], b[i + 1]);
    EXPECT_NE(print_of(DType::kFloat32, b), print_of(DType::kFloat32, a)) << i;
    std::vector<float> c = a;
    std::swap(c[i], c[(i + 8) % a.size()]);
    EXPECT_NE(print_of(DType::kFloat32, c), print_of(DType::kFloat32, a)) << i;
  }
}

template <typename Word>
void any_nan_is_the_same(DType dtype, Word one, Word nan, Word other_nan, Word infinity) {
  for (size_t at = 0; at < 40; ++at) {
    std::vector<Word> a(40, one), b = a, c = a;
    a[at] = nan;
    b[at] = other_nan;
    c[at] = infinity;
    EXPECT_EQ(print_of(dtype, a), print_of(dtype, b)) << at;
    EXPECT_TRUE(print_of(dtype, a).nan);
    EXPECT_NE(print_of(dtype, a).low, print_of(dtype, c).low);
    EXPECT_FALSE(print_of(dtype, c).nan);
    // Of integers with these bits each counts.
    EXPECT_NE(print_of(DType::kUInt8, a), print_of(DType::kUInt8, b));
  }
}

TEST(BitsPrint, AnyNanEqualsAnyOther) {
  any_nan_is_the_same<uint32_t>(DType::kFloat32, 0x3f800000, 0x7fc00000, 0xffc00001, 0x7f800000);
  any_nan_is_the_same<uint64_t>(DType::kFloat64, 0x3ff0000000000000, 0x7ff8000000000000, 0xfff0000000000001, 0xfff0000000000000);
  any_nan_is_the_same<uint16_t>(DType::kFloat16, 0x3c00, 0x7e00, 0xfc01, 0xfc00);
  any_nan_is_the_same<uint16_t>(DType::kBFloat16, 0x3f80, 0x7fc0, 0xff81, 0x7f80);
}

TEST(BitsPrint, OfNaNAlone) {
  for (const size_t count : {size_t{1}, size_t{5}, size_t{100000}}) {
    std::vector<float> values(count, NAN);
    const auto print = [&] {
      BitsPrinter printer(DType::kFloat32);
      printer.add(std::as_bytes(std::span(values)));
      return printer.print();
    };
    EXPECT_EQ(print(), all_nan_print(DType::kFloat32, count));
    values.back() = 1;
    EXPECT_NE(print(), all_nan_print(DType::kFloat32, count));
  }
}

TEST(BitsPrint, TheSignOfZeroCounts) {
  EXPECT_NE(print_of(DType::kFloat32, std::vector<float>{0.0F}), print_of(DType::kFloat32, std::vector<float>{-0.0F}));
}

}  // namespace
}  // namespace msdbg
