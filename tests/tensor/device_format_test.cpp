// The orders of the device against an independent description of its memory, on random shapes.
#include "msdbg/device_format.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "support/device_memory.h"

namespace msdbg {
namespace {

using test::device_memory;
using test::DeviceMemory;
using test::HostShape;

/// Bytes of an element that tell its number.
template <typename T>
T marked(int64_t element) {
  return static_cast<T>(element == test::kPadding ? 0xAAAAAAAAAAAAAAAA : static_cast<uint64_t>(element) * 2654435761u + 7);
}

class DeviceFormat : public ::testing::Test {
 protected:
  int64_t any(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random_); }

  /// Reads the elements in parts, each through the band that a reader would load.
  template <typename T>
  void expect_converted(const DeviceLayout& layout, const DeviceMemory& memory, uint64_t most) {
    std::vector<T> device, host(layout.host_count());
    for (const int64_t element : memory.elements) device.push_back(marked<T>(element));
    for (uint64_t first = 0; first < host.size();) {
      const DeviceLayout::Band band = layout.band_at(first, most);
      ASSERT_TRUE(band.holds(first));
      std::vector<T> stored(band.elements());
      for (uint64_t piece = 0; piece < band.pieces; ++piece) {
        const uint64_t from = band.start + piece * band.pitch;
        ASSERT_LE(from + band.piece, device.size());
        std::copy_n(device.begin() + static_cast<ptrdiff_t>(from), band.piece,
                    stored.begin() + static_cast<ptrdiff_t>(piece * band.stored_pitch));
      }
      const auto left = static_cast<int64_t>(band.end - first);
      const auto count = static_cast<uint64_t>(any(0, 2) == 0 ? left : any(1, left));
      layout.convert(band, std::as_bytes(std::span(stored)), sizeof(T), first,
                     std::as_writable_bytes(std::span(host).subspan(first, count)));
      first += count;
    }
    for (size_t i = 0; i < host.size(); ++i) ASSERT_EQ(host[i], marked<T>(static_cast<int64_t>(i))) << "element " << i;
  }

  void expect_same(const std::string& format, const Shape& host, const DeviceMemory& memory, DType dtype, uint64_t groups = 1) {
    SCOPED_TRACE(format + " " + shape_text(host) + " on the device " + shape_text(memory.shape));
    const Result<DeviceLayout> layout = DeviceLayout::create(format, memory.shape, host, dtype, groups);
    ASSERT_TRUE(layout.ok()) << layout.status().message();
    ASSERT_EQ(layout->device_count(), memory.elements.size());
    uint64_t elements = 0;
    for (size_t at = 0; at < memory.elements.size(); ++at) {
      if (memory.elements[at] == test::kPadding) continue;
      ++elements;
      ASSERT_EQ(layout->device_index(static_cast<uint64_t>(memory.elements[at])), at);
    }
    ASSERT_EQ(elements, layout->host_count());
    for (const uint64_t most : {uint64_t{1}, static_cast<uint64_t>(any(1, 4000)), uint64_t{1} << 30}) {
      expect_converted<uint16_t>(*layout, memory, most);
      expect_converted<uint8_t>(*layout, memory, most);
      expect_converted<uint32_t>(*layout, memory, most);
      expect_converted<uint64_t>(*layout, memory, most);
    }
  }

  std::mt19937 random_{20261123};
};

TEST_F(DeviceFormat, EveryElementOfTheFormatsOfImagesAndWeightsIsAtItsPlace) {
  for (const char* format : {"NHWC", "HWCN", "NC1HWC0", "NDC1HWC0", "FRACTAL_Z", "FRACTAL_Z_3D", "C1HWNCoC0"}) {
    for (int round = 0; round < 15; ++round) {
      HostShape host{any(1, 40), any(1, 70), 1, any(1, 5), any(1, 6), false};
      if (std::string(format) == "NDC1HWC0" || std::string(format) == "FRACTAL_Z_3D") host.depth = true, host.d = any(1, 4);
      if (std::string(format) == "C1HWNCoC0") host.n = any(1, 3);
      const int64_t c0 = std::array<int64_t, 3>{16, 32, 64}[static_cast<size_t>(any(0, 2))];
      expect_same(format, host.list(), device_memory(format, host, c0), DType::kFloat16);
    }
  }
}

TEST_F(DeviceFormat, FourChannelsAtAPlace) {
  for (int round = 0; round < 15; ++round) {
    const HostShape host{any(1, 40), any(1, round % 2 ? 4 : 9), 1, any(1, 6), any(1, 6), false};
    expect_same("FRACTAL_Z_C04", host.list(), device_memory("FRACTAL_Z_C04", host, 4), DType::kFloat16);
    expect_same("NC1HWC0_C04", host.list(), device_memory("NC1HWC0_C04", host, 4), DType::kFloat16);
  }
}

TEST_F(DeviceFormat, WeightsOfGroupedConvolutionsShareBlocks) {
  for (int round = 0; round < 20; ++round) {
    const int64_t groups = any(2, 12);
    const HostShape host{groups * any(1, 10), any(1, 20), 1, any(1, 3), any(1, 3), false};
    const int64_t c0 = round % 3 == 0 ? 32 : 16;
    DeviceMemory memory = grouped_weights(host, groups, c0);
    memory.shape = {memory.shape[0] * memory.shape[1] * host.h * host.w, memory.shape[4] / 16, 16, c0};
    expect_same("FRACTAL_Z", host.list(), memory, DType::kFloat16, static_cast<uint64_t>(groups));
  }
}

TEST_F(DeviceFormat, MatricesOfBlocks) {
  for (int round = 0; round < 30; ++round) {
    Shape host;
    for (int64_t axes = any(0, 2); axes > 0; --axes) host.push_back(any(1, 3));
    host.push_back(any(1, 70));
    if (round % 5 != 0) host.push_back(any(1, 100));
    const int64_t c0 = std::array<int64_t, 4>{16, 32, 64, 8}[static_cast<size_t>(any(0, 3))];
    expect_same("FRACTAL_NZ", host, test::fractal_nz(host, c0), DType::kFloat16);
  }
}

TEST_F(DeviceFormat, WithoutTheDevicesShapeTheTypeTellsTheBlock) {
  const Shape host = {2, 40, 3, 5};
  EXPECT_EQ(DeviceLayout::create("NC1HWC0", {}, host, DType::kFloat16)->device_shape(), (Shape{2, 3, 3, 5, 16}));
  EXPECT_EQ(DeviceLayout::create("NC1HWC0", {}, host, DType::kUInt8)->device_shape(), (Shape{2, 2, 3, 5, 32}));
  EXPECT_EQ(DeviceLayout::create("NC1HWC0", {}, host, DType::kInt4)->device_shape(), (Shape{2, 1, 3, 5, 64}));
  EXPECT_EQ(DeviceLayout::create("FRACTAL_NZ", {}, Shape{5, 20, 40}, DType::kInt8)->device_shape(), (Shape{5, 2, 2, 16, 32}));
}

TEST_F(DeviceFormat, AShortVectorOfAMatrixFormatIsStoredFlat) {
  const Result<DeviceLayout> flat = DeviceLayout::create("FRACTAL_NZ", Shape{32}, Shape{32}, DType::kFloat16);
  EXPECT_TRUE(flat->is_identity());
  const Result<DeviceLayout> blocked = DeviceLayout::create("FRACTAL_NZ", Shape{2, 1, 16, 16}, Shape{32}, DType::kFloat16);
  EXPECT_FALSE(blocked->is_identity());
  EXPECT_EQ(blocked->device_index(17), 257u);
}

TEST_F(DeviceFormat, FewerAxesAreChannelsThenRowsThenColumns) {
  const HostShape vector{1, 20, 1, 1, 1, false}, matrix{1, 20, 1, 3, 1, false}, cube{1, 20, 1, 3, 4, false};
  expect_same("NC1HWC0", {20}, device_memory("NC1HWC0", vector, 16), DType::kFloat16);
  expect_same("NC1HWC0", {20, 3}, device_memory("NC1HWC0", matrix, 16), DType::kFloat16);
  expect_same("NC1HWC0", {20, 3, 4}, device_memory("NC1HWC0", cube, 16), DType::kFloat16);
  expect_same("NC1HWC0", {}, device_memory("NC1HWC0", {}, 16), DType::kFloat16);
}

TEST_F(DeviceFormat, ShapesThatContradictEachOtherAreRefused) {
  const auto problem = [](std::string_view format, const Shape& device, const Shape& host, uint64_t groups = 1) {
    return DeviceLayout::create(format, device, host, DType::kFloat16, groups).status();
  };
  EXPECT_EQ(problem("NC1HWC0", {2, 1, 3, 5, 16}, {2, 40, 3, 5}).message(),
            "the shape [2,40,3,5] does not fit the device's shape [2,1,3,5,16] of format NC1HWC0: [2,3,3,5,16] is expected");
  EXPECT_EQ(problem("FRACTAL_NZ", {2, 1, 16, 16}, {17, 16}).code(), Code::kCorrupt);
  EXPECT_EQ(problem("FRACTAL_Z", {9, 1, 16, 16}, {17, 16, 3, 3}).code(), Code::kCorrupt);
  EXPECT_EQ(problem("FRACTAL_Z_3D", {9, 1, 16, 16}, {16, 16, 3, 3}).code(), Code::kCorrupt);
  EXPECT_EQ(problem("FRACTAL_Z", {}, {17, 1, 3, 3}, 4).code(), Code::kCorrupt);
  EXPECT_EQ(problem("ND", {5}, {6}).code(), Code::kCorrupt);
  EXPECT_EQ(problem("NC1HWC0", {-2, 1, 3, 5, 16}, {2, 16, 3, 5}).code(), Code::kCorrupt);
  EXPECT_EQ(problem("FRACTAL_ZN_LSTM", {}, {16, 16}).message(), "format FRACTAL_ZN_LSTM cannot be converted");
}

TEST_F(DeviceFormat, SizesNearTheLimitDoNotWrap) {
  constexpr int64_t kHuge = int64_t{1} << 61;
  for (const char* format : {"NHWC", "HWCN", "NC1HWC0", "NC1HWC0_C04", "FRACTAL_Z", "FRACTAL_Z_C04", "C1HWNCoC0", "FRACTAL_NZ"}) {
    for (const Shape& host : {Shape{kHuge, 1, 1, 1}, Shape{1, kHuge, 1, 1}, Shape{1, 1, kHuge, 1}, Shape{1, 1, 1, kHuge},
                              Shape{3, 3, 3, kHuge / 32}}) {
      for (const uint64_t groups : {1, 3, 2147483647}) {
        const Result<DeviceLayout> layout = DeviceLayout::create(format, {}, host, DType::kFloat16, groups);
        if (!layout) continue;
        EXPECT_LT(layout->device_index(layout->host_count() - 1), layout->device_count()) << format << shape_text(host);
      }
      (void)DeviceLayout::create(format, Shape{1, kHuge}, host, DType::kFloat16, 1);
      (void)DeviceLayout::create(format, Shape{1, 1, 1, kHuge, 1, kHuge * 2 - 1}, host, DType::kFloat16, 2);
    }
  }
}

TEST_F(DeviceFormat, NumbersHaveNames) {
  EXPECT_EQ(device_format_name(3), "NC1HWC0");
  EXPECT_EQ(device_format_name(29), "FRACTAL_NZ");
  EXPECT_EQ(device_format_name(33), "FRACTAL_Z_3D");
  EXPECT_EQ(device_format_name(25), "C1HWNCoC0");
  EXPECT_EQ(device_format_name(40), "RESERVED");
  EXPECT_EQ(device_format_name(41), "");
}

}  // namespace
}  // namespace msdbg
