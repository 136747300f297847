// How the elements of a tensor are arranged in the memory of an Ascend device: blocked, padded, permuted. Maps the tensor's own order to
// that of the device, for single elements and for whole runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "msdbg/tensor.h"

namespace msdbg {

/// The runtime's name of a format's number, "NC1HWC0"; "" for a number that is not known.
std::string_view device_format_name(uint64_t number);
/// True for formats whose elements are in the order of their shape: ND, NCHW, NHWC of a tensor that has that shape, ...
bool is_plain_device_format(std::string_view format);
/// True for formats whose elements are blocked, padded or permuted, and for numbers that are not known.
bool is_blocked_device_format(std::string_view format);
/// Elements of a type in the innermost block of a format, unless the device's shape says otherwise: 16; 32 for 8-bit types; 64 for int4.
uint64_t default_block(DType dtype);

/// The arrangement of one tensor. Immutable; any thread.
class DeviceLayout {
 public:
  /// `device_shape` may be empty: then it follows from the format. `groups`: of a grouped convolution's weights, else 1.
  ///
  /// Shape:  the host's is NCHW with four axes, NCDHW with five, any for FRACTAL_NZ; fewer axes are 1,C,H,W without those at the end.
  /// Error:  kUnsupported: a format that cannot be converted; kCorrupt: shapes that contradict each other.
  /// Source: docs/ascend.md.
  static Result<DeviceLayout> create(std::string_view format, std::span<const int64_t> device_shape, std::span<const int64_t> host_shape,
                                     DType dtype, uint64_t groups = 1);

  uint64_t host_count() const { return host_count_; }
  /// With padding.
  uint64_t device_count() const { return device_count_; }
  const Shape& device_shape() const { return device_shape_; }
  /// True if both orders are the same, without padding.
  bool is_identity() const { return identity_; }
  /// The place of element `host` on the device. Precondition: it exists.
  uint64_t device_index(uint64_t host) const;

  /// Part of the device's memory that holds the elements from `first` up to `end`: `pieces` of `piece` elements each, from `start` on and
  /// `pitch` apart on the device, and `stored_pitch` apart in the buffer of the reader.
  struct Band {
    uint64_t first = 0, end = 0;
    uint64_t start = 0, pieces = 0, piece = 0, pitch = 0, stored_pitch = 0;
    uint64_t slab = 0, row = 0;
    bool holds(uint64_t host) const { return host >= first && host < end; }
    /// Elements of the buffer.
    uint64_t elements() const { return pieces == 0 ? 0 : (pieces - 1) * stored_pitch + piece; }
  };
  /// The band with element `host`, with about `most` elements on the device, more if the format needs them. Precondition: it exists.
  Band band_at(uint64_t host, uint64_t most) const;
  /// True if a band is best converted at once, and not in parts.
  bool wants_whole_bands() const;
  /// A band with one block of channels. On the device it has `places` groups of `step` elements; the first `channels` of each group are
  /// data, the rest is padding.
  struct Columns {
    uint64_t places = 0, step = 0, channels = 0;
  };
  /// Without places for bands that are anything else.
  Columns columns_of(const Band& band) const;
  /// Converts `count` of the places from `first` on into `whole`, the whole band in the tensor's order. `stored`: only these places.
  void convert_columns(const Columns& columns, std::span<const std::byte> stored, size_t item, uint64_t first, uint64_t count,
                       std::span<std::byte> whole) const;
  /// Fills `out` with elements from `first` on. `stored`: the buffer with the pieces of `band`. `item`: bytes of an element: 1, 2, 4 or 8.
  /// Precondition: the band holds all of them.
  void convert(const Band& band, std::span<const std::byte> stored, size_t item, uint64_t first, std::span<std::byte> out) const;

 private:
  friend class LayoutBuilder;
  /// A distance on the device, in whole pieces and in elements: the distance between pieces depends on the band.
  struct Step {
    uint64_t pieces = 0, elements = 0;
  };
  /// An axis of the tensor. Element i is `i / block` outer and `i % block` inner steps away; or at the place in the table.
  struct Axis {
    uint64_t length = 1, block = 1;
    Step outer, inner;
    std::vector<uint64_t> table;
  };
  class Walk;

  DeviceLayout() = default;
  bool has_channels() const;

  Shape device_shape_;
  uint64_t host_count_ = 0, device_count_ = 0;
  bool identity_ = false;
  // The tensor is divided into slabs that are contiguous on both sides. A slab has rows: a band is some rows of one slab, or whole slabs.
  uint64_t slabs_ = 1, slab_host_ = 0, slab_device_ = 0;
  uint64_t pieces_ = 1, piece_ = 0;  // of a slab
  uint64_t rows_ = 1, row_host_ = 0, row_device_ = 0;  // of a piece
  std::vector<Axis> axes_;  // of a slab; the last one moves fastest
};

}  // namespace msdbg
