#include "session/element_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace msdbg {
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

/// The elements of a view of `storage` in row-major order, read in parts of every size.
void expect_view(const std::vector<int>& storage, Shape shape, Shape strides, const std::vector<int>& expected) {
  const StridedOrder order(shape, strides);
  for (size_t part = 1; part <= expected.size(); ++part) {
    std::vector<int> out(expected.size());
    for (size_t first = 0; first < out.size(); first += part) {
      const size_t count = std::min(part, out.size() - first);
      gather(std::as_bytes(std::span(storage)), order, sizeof(int), first, std::as_writable_bytes(std::span(out).subspan(first, count)));
    }
    EXPECT_EQ(out, expected) << shape_text(shape) << " " << shape_text(strides) << " in parts of " << part;
  }
}

TEST(ElementOrder, ViewsAreGathered) {
  const std::vector<int> storage = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  expect_view(storage, {3, 4}, {1, 3}, {0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11});
  expect_view(storage, {2, 2}, {4, 2}, {0, 2, 4, 6});
  expect_view(storage, {2, 3}, {0, 1}, {0, 1, 2, 0, 1, 2});
  expect_view(storage, {2, 1, 3}, {6, 100, 1}, {0, 1, 2, 6, 7, 8});
  expect_view(storage, {3, 2, 2}, {1, 6, 3}, {0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11});
  expect_view(storage, {}, {}, {0});
  expect_view(storage, {4}, {0}, {0, 0, 0, 0});
}

TEST(ElementOrder, AxesThatContinueEachOtherAreOneRun) {
  EXPECT_EQ(StridedOrder(Shape{2, 3, 4}, Shape{100, 4, 1}).longest_run(), 12u);
  EXPECT_EQ(StridedOrder(Shape{2, 3, 4}, Shape{100, 5, 1}).longest_run(), 4u);
  EXPECT_EQ(StridedOrder(Shape{2, 3}, Shape{1, 2}).longest_run(), 1u);
}

TEST(ElementOrder, NegatedFloatsChangeTheirSign) {
  double numbers[] = {1.5, -2, 0};
  negate(std::as_writable_bytes(std::span(numbers)), sizeof(double));
  EXPECT_EQ(numbers[0], -1.5);
  EXPECT_EQ(numbers[1], 2);
  EXPECT_TRUE(std::signbit(numbers[2]));
}

}  // namespace
}  // namespace msdbg
