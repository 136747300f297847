// Gathering elements by strides, against the definition.
#include "agent/value_layout.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

namespace msdbg::agent {
namespace {

/// Element by element: index (i, j, ...) is at i * strides[0] + j * strides[1] + ...
std::vector<std::byte> by_definition(const Shape& shape, const std::vector<int64_t>& strides, size_t item, const std::byte* data) {
  std::vector<std::byte> out;
  const uint64_t count = *element_count(shape);
  for (uint64_t flat = 0; flat < count; ++flat) {
    int64_t offset = 0;
    uint64_t rest = flat;
    for (size_t i = shape.size(); i-- > 0;) {
      offset += static_cast<int64_t>(rest % static_cast<uint64_t>(shape[i])) * strides[i];
      rest /= static_cast<uint64_t>(shape[i]);
    }
    const std::byte* element = data + offset * static_cast<int64_t>(item);
    out.insert(out.end(), element, element + item);
  }
  return out;
}

std::vector<std::byte> gathered(DType dtype, const Shape& shape, std::span<const int64_t> strides, const void* data) {
  const Result<ValueLayout> layout = ValueLayout::create(dtype, shape, strides, data);
  EXPECT_TRUE(layout.ok()) << layout.status().message();
  if (!layout) return {};
  std::vector<std::byte> out(layout->bytes);
  layout->gather(out);
  return out;
}

TEST(ValueLayout, GathersAnyStridesLikeTheDefinition) {
  std::vector<std::byte> memory(1 << 16);
  for (size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::byte>(i * 7 + i / 256);
  std::mt19937 random(17);
  const auto number = [&](int64_t least, int64_t most) { return std::uniform_int_distribution<int64_t>(least, most)(random); };
  for (int run = 0; run < 2000; ++run) {
    constexpr DType kTypes[] = {DType::kInt8, DType::kBFloat16, DType::kFloat32, DType::kFloat64, DType::kComplex128};
    const DType dtype = kTypes[number(0, 4)];
    Shape shape;
    std::vector<int64_t> strides;
    for (int64_t rank = number(0, 4); rank > 0; --rank) {
      shape.push_back(number(1, 5));
      strides.push_back(number(-20, 20));
    }
    const std::byte* middle = memory.data() + memory.size() / 2;
    EXPECT_EQ(gathered(dtype, shape, strides, middle), by_definition(shape, strides, item_size(dtype), middle));
  }
}

TEST(ValueLayout, FiniteIsWhatHasNoNanAtAnyIndex) {
  std::mt19937 random(18);
  const auto number = [&](int64_t least, int64_t most) { return std::uniform_int_distribution<int64_t>(least, most)(random); };
  int finite = 0;
  for (int run = 0; run < 4000; ++run) {
    std::vector<float> memory(2000, 1.0f);
    memory[static_cast<size_t>(number(950, 1050))] = run % 2 == 0 ? std::numeric_limits<float>::quiet_NaN() : -HUGE_VALF;
    Shape shape;
    std::vector<int64_t> strides;
    int64_t dense = 1;
    for (int64_t rank = number(0, 4); rank > 0; --rank) {
      shape.push_back(number(1, 5));
      // Dense ones of permuted dimensions among them.
      strides.push_back(run % 3 == 0 ? dense : number(-20, 20));
      dense *= shape.back();
    }
    const auto* middle = reinterpret_cast<const std::byte*>(memory.data() + 1000);
    const std::vector<std::byte> elements = by_definition(shape, strides, sizeof(float), middle);
    bool wanted = true;
    for (size_t i = 0; i < elements.size(); i += sizeof(float)) {
      float value;
      std::memcpy(&value, elements.data() + i, sizeof value);
      wanted = wanted && std::isfinite(value);
    }
    const Result<ValueLayout> layout = ValueLayout::create(DType::kFloat32, shape, strides, middle);
    ASSERT_TRUE(layout.ok());
    EXPECT_EQ(layout->is_finite(), wanted) << shape_text(shape) << " strides " << shape_text(strides);
    finite += wanted;
  }
  EXPECT_GT(finite, 1000);
  EXPECT_LT(finite, 3500);
}

TEST(ValueLayout, WithoutStridesTheElementsFollowEachOther) {
  const int32_t row[4] = {1, 2, 3, 4};
  EXPECT_EQ(std::memcmp(gathered(DType::kInt32, {2, 2}, {}, row).data(), row, sizeof row), 0);
}

TEST(ValueLayout, EmptyTensorsReadNothing) {
  const int64_t strides[] = {std::numeric_limits<int64_t>::max(), 1};
  EXPECT_TRUE(gathered(DType::kFloat32, {3, 0}, {strides, 2}, nullptr).empty());
}

TEST(ValueLayout, SizesBeyondMemoryAreRefused) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  EXPECT_FALSE(checked_bytes(DType::kFloat32, {kMost}).ok());
  EXPECT_FALSE(checked_bytes(DType::kFloat32, {kMost / 2, 2, 2}).ok());
  EXPECT_FALSE(checked_bytes(DType::kFloat32, {1, -1}).ok());
  EXPECT_FALSE(checked_bytes(DType::kUnknown, {1}).ok());
  EXPECT_EQ(*checked_bytes(DType::kFloat16, {3, 5}), 30u);
  EXPECT_EQ(*checked_bytes(DType::kFloat64, {}), 8u);
}

}  // namespace
}  // namespace msdbg::agent
