#include "tensor/device_layout_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

namespace msdbg {
namespace {

/// Rows of a block of N in the FRACTAL formats.
constexpr uint64_t kBlockRows = 16;
/// A table of places is built for weights only.
constexpr uint64_t kLargestTable = uint64_t{1} << 26;

uint64_t blocks(uint64_t length, uint64_t block) { return (length + block - 1) / block; }
int64_t as_length(uint64_t length) { return static_cast<int64_t>(length); }

}  // namespace

LayoutBuilder::LayoutBuilder(std::string_view format, std::span<const int64_t> device, std::span<const int64_t> host, DType dtype,
                             uint64_t groups)
    : format_(format), device_(device.begin(), device.end()), host_(host.begin(), host.end()), dtype_(dtype), groups_(groups) {}

Status LayoutBuilder::contradiction(std::string_view why) const {
  return Status(Code::kCorrupt, fmt::format("the shape {} does not fit the device's shape {} of format {}: {}", shape_text(host_),
                                            shape_text(device_), format_, why));
}

DeviceLayout::Axis LayoutBuilder::plain_axis(uint64_t length, Step step) {
  Axis axis;
  axis.length = axis.block = length;
  axis.inner = step;
  return axis;
}

DeviceLayout::Axis LayoutBuilder::split_axis(uint64_t length, uint64_t block, Step outer, Step inner) {
  Axis axis;
  axis.length = length;
  axis.block = block;
  axis.outer = outer;
  axis.inner = inner;
  return axis;
}

/// Fewer axes than N, C, H, W are C, or C and H, or C, H and W.
Status LayoutBuilder::to_axes(size_t axes) {
  const auto length = [&](size_t at) { return static_cast<uint64_t>(host_[at]); };
  if (axes == 5) {
    if (host_.size() != 5) return contradiction("it needs the axes N, C, D, H, W");
    n_ = length(0), c_ = length(1), d_ = length(2), h_ = length(3), w_ = length(4);
    return {};
  }
  if (host_.size() > 4) return contradiction("it needs the axes N, C, H, W");
  if (host_.size() == 4) {
    n_ = length(0), c_ = length(1), h_ = length(2), w_ = length(3);
    return {};
  }
  if (host_.size() > 0) c_ = length(0);
  if (host_.size() > 1) h_ = length(1);
  if (host_.size() > 2) w_ = length(2);
  return {};
}

/// The innermost block; the device's shape knows it.
uint64_t LayoutBuilder::block() const {
  return device_.size() >= 2 && device_.back() > 0 ? static_cast<uint64_t>(device_.back()) : default_block(dtype_);
}

/// The device's shape must be the expected one. With other axes, because some are joined, it must have as many elements.
Status LayoutBuilder::expect_device(Shape shape) {
  const std::optional<uint64_t> expected = element_count(shape);
  if (!expected) return contradiction("no device can hold it");
  const bool same = device_.empty() || (device_.size() == shape.size() ? device_ == shape : element_count(device_) == expected);
  if (!same) return contradiction(fmt::format("{} is expected", shape_text(shape)));
  out_.device_shape_ = std::move(shape);
  out_.device_count_ = *expected;
  return {};
}

void LayoutBuilder::divide(uint64_t slabs, uint64_t pieces, uint64_t rows, uint64_t row_host, uint64_t row_device) {
  out_.slabs_ = slabs;
  out_.slab_host_ = out_.host_count_ / slabs;
  out_.slab_device_ = out_.device_count_ / slabs;
  out_.pieces_ = pieces;
  out_.piece_ = out_.slab_device_ / pieces;
  out_.rows_ = rows;
  out_.row_host_ = row_host;
  out_.row_device_ = row_device;
}

Result<DeviceLayout> LayoutBuilder::build() {
  const std::optional<uint64_t> count = element_count(host_);
  if (!count) return contradiction("it is not a shape");
  if (!device_.empty() && !element_count(device_)) return contradiction("it is not a shape");
  out_.host_count_ = *count;
  const bool flat = format_ == "FRACTAL_NZ" && host_.size() <= 1 && device_ == host_;
  const bool same_axes = format_ == "NHWC" || format_ == "HWCN" ? host_.size() != 4 : is_plain_device_format(format_);
  if (flat || same_axes) {
    if (!device_.empty() && element_count(device_) != count) return contradiction("they differ in elements");
    out_.identity_ = true;
    out_.device_count_ = *count;
    out_.device_shape_ = host_;
    return std::move(out_);
  }
  // Without elements, there is nothing to arrange.
  if (*count == 0) {
    out_.identity_ = true;
    out_.device_shape_ = device_;
    return std::move(out_);
  }
  Status status = format_ == "NHWC"             ? nhwc()
                  : format_ == "HWCN"           ? hwcn()
                  : format_ == "NC1HWC0"        ? blocked(false, block())
                  : format_ == "NC1HWC0_C04"    ? blocked(false, 4)
                  : format_ == "NDC1HWC0"       ? blocked(true, block())
                  : format_ == "FRACTAL_Z"      ? (groups_ > 1 ? fractal_z_groups() : fractal_z(false))
                  : format_ == "FRACTAL_Z_3D"   ? fractal_z(true)
                  : format_ == "FRACTAL_Z_C04"  ? fractal_z_c04()
                  : format_ == "C1HWNCoC0"      ? depthwise()
                  : format_ == "FRACTAL_NZ"     ? fractal_nz()
                                                : Status(Code::kUnsupported, fmt::format("format {} cannot be converted", format_));
  if (!status.ok()) return status;
  std::erase_if(out_.axes_, [](const Axis& axis) { return axis.length == 1 && axis.table.empty(); });
  if (out_.axes_.empty()) out_.axes_.push_back(plain_axis(1, {}));
  return std::move(out_);
}

Status LayoutBuilder::nhwc() {
  if (Status status = to_axes(4); !status.ok()) return status;
  if (Status status = expect_device({as_length(n_), as_length(h_), as_length(w_), as_length(c_)}); !status.ok()) return status;
  divide(n_, 1, 1, c_ * h_ * w_, c_ * h_ * w_);
  out_.axes_ = {plain_axis(c_, {0, 1}), plain_axis(h_ * w_, {0, c_})};
  return {};
}

Status LayoutBuilder::hwcn() {
  if (Status status = to_axes(4); !status.ok()) return status;
  if (Status status = expect_device({as_length(h_), as_length(w_), as_length(c_), as_length(n_)}); !status.ok()) return status;
  divide(1, h_ * w_ * c_, n_, c_ * h_ * w_, 1);
  out_.axes_ = {plain_axis(n_, {0, 1}), plain_axis(c_, {1, 0}), plain_axis(h_ * w_, {c_, 0})};
  return {};
}

/// N, C1, H, W, C0; with depth N, D, C1, H, W, C0.
Status LayoutBuilder::blocked(bool with_depth, uint64_t c0) {
  if (Status status = to_axes(with_depth ? 5 : 4); !status.ok()) return status;
  const uint64_t c1 = blocks(c_, c0);
  Shape shape = {as_length(n_), as_length(c1), as_length(h_), as_length(w_), as_length(c0)};
  if (with_depth) shape.insert(shape.begin() + 1, as_length(d_));
  if (Status status = expect_device(std::move(shape)); !status.ok()) return status;
  const uint64_t plane = h_ * w_;
  divide(n_, d_, c1, std::min(c0, c_) * d_ * plane, plane * c0);
  out_.axes_ = {split_axis(c_, c0, {0, plane * c0}, {0, 1}), plain_axis(d_, {1, 0}), plain_axis(plane, {0, c0})};
  return {};
}

/// C1 * H * W, N1, 16, C0; with depth D * C1 * H * W.
Status LayoutBuilder::fractal_z(bool with_depth) {
  if (Status status = to_axes(with_depth ? 5 : 4); !status.ok()) return status;
  const uint64_t c0 = block(), c1 = blocks(c_, c0), n1 = blocks(n_, kBlockRows), plane = h_ * w_;
  const std::optional<uint64_t> pieces = element_count(Shape{as_length(d_), as_length(c1), as_length(h_), as_length(w_)});
  if (!pieces) return contradiction("no device can hold it");
  if (Status status = expect_device({as_length(*pieces), as_length(n1), as_length(kBlockRows), as_length(c0)}); !status.ok()) return status;
  divide(1, *pieces, n_, c_ * d_ * plane, c0);
  out_.axes_ = {plain_axis(n_, {0, c0}), split_axis(c_, c0, {plane, 0}, {0, 1}), plain_axis(d_, {c1 * plane, 0}),
                plain_axis(plane, {1, 0})};
  return {};
}

/// Weights of a grouped convolution: E groups share a block, so that it has less padding.
Status LayoutBuilder::fractal_z_groups() {
  if (Status status = to_axes(4); !status.ok()) return status;
  if (n_ % groups_ != 0) return contradiction(fmt::format("N is no multiple of the {} groups", groups_));
  const uint64_t c0 = block(), cin = c_, cout = n_ / groups_, plane = h_ * w_;
  if (cin > kLargestTable || cout > kLargestTable || c0 > kLargestTable || n_ * c_ > kLargestTable) {
    return Status(Code::kUnsupported, fmt::format("weights of the shape {} in {} groups are not converted", shape_text(host_), groups_));
  }
  const uint64_t together = std::min(std::lcm(std::lcm(cin, c0) / cin, std::lcm(cout, kBlockRows) / cout), groups_);
  const uint64_t c1 = blocks(together * cin, c0), out_rows = blocks(together * cout, kBlockRows) * kBlockRows;
  const Shape shape = {as_length(blocks(groups_, together)), as_length(c1), as_length(h_), as_length(w_), as_length(out_rows),
                       as_length(c0)};
  if (Status status = expect_device(shape); !status.ok()) return status;
  divide(1, 1, 1, out_.host_count_, out_.device_count_);
  Axis weights = plain_axis(n_ * c_, {});
  weights.table.reserve(n_ * c_);
  for (uint64_t n = 0; n < n_; ++n) {
    const uint64_t group = n / cout, place = group % together, out_row = place * cout + n % cout;
    for (uint64_t c = 0; c < c_; ++c) {
      const uint64_t in = place * cin + c;
      weights.table.push_back((group / together * c1 + in / c0) * plane * out_rows * c0 + out_row * c0 + in % c0);
    }
  }
  out_.axes_ = {std::move(weights), plain_axis(plane, {0, out_rows * c0})};
  return {};
}

/// Four channels at each place: x = (place, channel) in blocks of 16, against blocks of 16 of N.
Status LayoutBuilder::fractal_z_c04() {
  if (Status status = to_axes(4); !status.ok()) return status;
  const uint64_t plane = h_ * w_, n1 = blocks(n_, kBlockRows);
  const uint64_t each = out_.host_count_ / n_;
  if (each > kLargestTable) return Status(Code::kUnsupported, fmt::format("weights of the shape {} are not converted", shape_text(host_)));
  // A device that stores more than four channels has a longer first axis.
  const uint64_t least = blocks(4 * plane * blocks(c_, 4), kBlockRows);
  const Shape shape = {as_length(least), as_length(n1), as_length(kBlockRows), as_length(kBlockRows)};
  if (Status status = expect_device(shape); !status.ok()) return status;
  divide(1, 1, 1, out_.host_count_, out_.device_count_);
  Axis places = plain_axis(each, {});
  places.table.reserve(each);
  for (uint64_t c = 0; c < c_; ++c) {
    for (uint64_t place = 0; place < plane; ++place) {
      const uint64_t x = c / 4 * 4 * plane + place * 4 + c % 4;
      places.table.push_back(x / kBlockRows * n1 * kBlockRows * kBlockRows + x % kBlockRows);
    }
  }
  out_.axes_ = {split_axis(n_, kBlockRows, {0, kBlockRows * kBlockRows}, {0, kBlockRows}), std::move(places)};
  return {};
}

/// C1, H, W, N, Co, C0: only the diagonal of Co and C0 has elements.
Status LayoutBuilder::depthwise() {
  if (Status status = to_axes(4); !status.ok()) return status;
  const uint64_t c0 = block(), c1 = blocks(c_, c0), plane = h_ * w_;
  const uint64_t co = device_.size() == 6 && device_[4] > 0 ? static_cast<uint64_t>(device_[4]) : c0;
  if (co < std::min(c0, c_)) return contradiction("Co is too small");
  const Shape shape = {as_length(c1), as_length(h_), as_length(w_), as_length(n_), as_length(co), as_length(c0)};
  if (Status status = expect_device(shape); !status.ok()) return status;
  divide(1, c1 * plane, n_, c_ * plane, co * c0);
  out_.axes_ = {plain_axis(n_, {0, co * c0}), split_axis(c_, c0, {plane, 0}, {0, c0 + 1}), plain_axis(plane, {1, 0})};
  return {};
}

/// ..., W1, H1, 16, C0: blocks of the last two axes, column of blocks by column of blocks.
Status LayoutBuilder::fractal_nz() {
  const size_t axes = host_.size();
  uint64_t lead = 1;
  for (size_t i = 0; i + 2 < axes; ++i) lead *= static_cast<uint64_t>(host_[i]);
  h_ = axes >= 2 ? static_cast<uint64_t>(host_[axes - 2]) : 1;
  w_ = axes >= 1 ? static_cast<uint64_t>(host_[axes - 1]) : 1;
  const uint64_t w0 = block();
  const int64_t given = device_.size() >= 4 ? device_[device_.size() - 2] : 0;
  const uint64_t h0 = given > 0 ? static_cast<uint64_t>(given) : kBlockRows;
  const uint64_t w1 = blocks(w_, w0), h1 = blocks(h_, h0);
  Shape shape(host_.begin(), host_.end() - static_cast<ptrdiff_t>(std::min<size_t>(2, axes)));
  shape.insert(shape.end(), {as_length(w1), as_length(h1), as_length(h0), as_length(w0)});
  if (Status status = expect_device(std::move(shape)); !status.ok()) return status;
  divide(lead, w1, h_, w_, w0);
  out_.axes_ = {plain_axis(h_, {0, w0}), split_axis(w_, w0, {1, 0}, {0, 1})};
  return {};
}

}  // namespace msdbg
