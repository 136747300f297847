// Builds the arrangement of each format. Private to device_format.
#pragma once

#include "msdbg/device_format.h"

namespace msdbg {

class LayoutBuilder {
 public:
  LayoutBuilder(std::string_view format, std::span<const int64_t> device, std::span<const int64_t> host, DType dtype, uint64_t groups);
  Result<DeviceLayout> build();

 private:
  using Step = DeviceLayout::Step;
  using Axis = DeviceLayout::Axis;

  static Axis plain_axis(uint64_t length, Step step);
  static Axis split_axis(uint64_t length, uint64_t block, Step outer, Step inner);
  Status to_axes(size_t axes);
  uint64_t block() const;
  Status expect_device(Shape shape);
  Status contradiction(std::string_view why) const;
  /// Divides the tensor. `rows` of `row_device` elements in each piece; a row has `row_host` elements of the tensor.
  void divide(uint64_t slabs, uint64_t pieces, uint64_t rows, uint64_t row_host, uint64_t row_device);
  Status nhwc();
  Status hwcn();
  Status blocked(bool with_depth, uint64_t c0);
  Status fractal_z(bool with_depth);
  Status fractal_z_groups();
  Status fractal_z_c04();
  Status depthwise();
  Status fractal_nz();

  const std::string_view format_;
  const Shape device_, host_;
  const DType dtype_;
  const uint64_t groups_;
  uint64_t n_ = 1, c_ = 1, d_ = 1, h_ = 1, w_ = 1;
  DeviceLayout out_;
};

}  // namespace msdbg
