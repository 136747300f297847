#include "session/dump/element_order.h"

#include <gtest/gtest.h>

#include <cstring>

namespace msdbg::dump {
namespace {

std::vector<int> turned(std::vector<int> columns, Shape shape) {
  const auto bytes = std::as_bytes(std::span(columns));
  const std::vector<std::byte> rows = to_row_major(bytes, shape, sizeof(int));
  std::vector<int> out(columns.size());
  if (!out.empty()) std::memcpy(out.data(), rows.data(), rows.size());
  return out;
}

TEST(ElementOrder, ColumnsBecomeRows) {
  EXPECT_EQ(turned({0, 3, 1, 4, 2, 5}, {2, 3}), (std::vector<int>{0, 1, 2, 3, 4, 5}));
}

TEST(ElementOrder, EveryElementOfThreeAxesIsAtItsPlace) {
  const Shape shape = {2, 3, 4};
  std::vector<int> columns(24);
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 3; ++j) {
      for (int k = 0; k < 4; ++k) columns[static_cast<size_t>(i + 2 * (j + 3 * k))] = (i * 3 + j) * 4 + k;
    }
  }
  const std::vector<int> rows = turned(columns, shape);
  for (int n = 0; n < 24; ++n) EXPECT_EQ(rows[static_cast<size_t>(n)], n);
}

TEST(ElementOrder, OneAxisStaysAndNothingIsNothing) {
  EXPECT_EQ(turned({1, 2, 3}, {3}), (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(turned({}, {0, 3}), (std::vector<int>{}));
}

TEST(ElementOrder, BytesAreReversedWithinEachElement) {
  unsigned char bytes[] = {1, 2, 3, 4, 5, 6, 7, 8};
  swap_bytes(std::as_writable_bytes(std::span(bytes)), 4);
  const unsigned char wanted[] = {4, 3, 2, 1, 8, 7, 6, 5};
  EXPECT_EQ(std::memcmp(bytes, wanted, sizeof bytes), 0);
}

}  // namespace
}  // namespace msdbg::dump
