#include "msdbg/device_format.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "tensor/device_layout_builder.h"
#include "tensor/transpose.h"

namespace msdbg {
namespace {

// By the runtime's number (enum OutputFormat of its dump_data.proto).
constexpr std::array<std::string_view, 41> kFormats = {
    "NCHW", "NHWC", "ND", "NC1HWC0", "FRACTAL_Z", "NC1C0HWPAD", "NHWC1C0", "FSR_NCHW", "FRACTAL_DECONV", "C1HWNC0",
    "FRACTAL_DECONV_TRANSPOSE", "FRACTAL_DECONV_SP_STRIDE_TRANS", "NC1HWC0_C04", "FRACTAL_Z_C04", "CHWN",
    "FRACTAL_DECONV_SP_STRIDE8_TRANS", "HWCN", "NC1KHKWHWC0", "BN_WEIGHT", "FILTER_HWCK", "HASHTABLE_LOOKUP_LOOKUPS",
    "HASHTABLE_LOOKUP_KEYS", "HASHTABLE_LOOKUP_VALUE", "HASHTABLE_LOOKUP_OUTPUT", "HASHTABLE_LOOKUP_HITS", "C1HWNCoC0", "MD", "NDHWC",
    "FRACTAL_ZZ", "FRACTAL_NZ", "NCDHW", "DHWCN", "NDC1HWC0", "FRACTAL_Z_3D", "CN", "NC", "DHWNC", "FRACTAL_Z_3D_TRANSPOSE",
    "FRACTAL_ZN_LSTM", "FRACTAL_Z_G", "RESERVED"};

/// A piece is worth a read of its own if it is at least this part of a band.
constexpr uint64_t kPiecesPerBand = 32;
constexpr uint64_t kFewPieces = 8;
constexpr uint64_t kGap = 48;

/// Elements of one size, copied `step` elements apart.
template <size_t kItem>
void copy_apart(const std::byte* from, uint64_t step, uint64_t count, std::byte* to) {
  if (step == 1) {
    std::memcpy(to, from, count * kItem);
    return;
  }
  const uint64_t bytes = step * kItem;
  for (uint64_t i = 0; i < count; ++i) std::memcpy(to + i * kItem, from + i * bytes, kItem);
}

/// Rows of whole blocks, in bytes. A block is `block` long, the next one of its row `apart` away, and the one below it `below`.
struct BlockRows {
  uint64_t block, blocks, apart, rows, below, row;  // `row`: length of a row in the tensor
};

/// Some columns of blocks at a time: those of a column are neighbours on the device, and those of a row in the tensor.
template <size_t kBytes>
void copy_block_rows(const std::byte* from, const BlockRows& of, std::byte* to) {
  constexpr uint64_t kColumns = 16, kLine = 64;
  const uint64_t column = of.rows * of.below;
  for (uint64_t first = 0; first < of.blocks; first += kColumns) {
    const uint64_t end = std::min(of.blocks, first + kColumns);
    // Columns lie pages apart, where the processor does not fetch ahead by itself.
    for (uint64_t i = end; i < std::min(of.blocks, end + kColumns); ++i) {
      for (uint64_t at = 0; at < column; at += kLine) __builtin_prefetch(from + i * of.apart + at);
    }
    for (uint64_t row = 0; row < of.rows; ++row) {
      const std::byte* const left = from + row * of.below;
      std::byte* const line = to + row * of.row;
      for (uint64_t i = first; i < end; ++i) std::memcpy(line + i * of.block, left + i * of.apart, kBytes == 0 ? of.block : kBytes);
    }
  }
}

void copy_block_rows(const std::byte* from, const BlockRows& of, std::byte* to) {
  switch (of.block) {
    case 16: return copy_block_rows<16>(from, of, to);
    case 32: return copy_block_rows<32>(from, of, to);
    case 64: return copy_block_rows<64>(from, of, to);
    case 128: return copy_block_rows<128>(from, of, to);
    default: return copy_block_rows<0>(from, of, to);
  }
}

}  // namespace

std::string_view device_format_name(uint64_t number) { return number < kFormats.size() ? kFormats[number] : ""; }

bool is_plain_device_format(std::string_view format) {
  return format == "ND" || format == "NCHW" || format == "NCDHW" || format == "NC" || format == "DefaultFormat";
}

bool is_blocked_device_format(std::string_view format) {
  constexpr std::string_view kAxes = "NCDHW";
  if (format.starts_with("format ") || format == "unknown format") return true;
  const bool known = std::find(kFormats.begin(), kFormats.end(), format) != kFormats.end();
  // The others have the names of their axes only.
  return known && format != "ND" && format != "MD" && format.find_first_not_of(kAxes) != std::string_view::npos;
}

uint64_t default_block(DType dtype) {
  if (dtype == DType::kInt4) return 64;
  return dtype == DType::kInt8 || dtype == DType::kUInt8 ? 32 : 16;
}

Result<DeviceLayout> DeviceLayout::create(std::string_view format, std::span<const int64_t> device_shape,
                                          std::span<const int64_t> host_shape,
                                          DType dtype, uint64_t groups) {
  return LayoutBuilder(format, device_shape, host_shape, dtype, groups).build();
}

/// The places of elements in a band, in the tensor's order.
class DeviceLayout::Walk {
 public:
  Walk(const DeviceLayout& layout, const Band& band) : layout_(layout) {
    // The pieces of whole slabs, which are read at once, are as far apart as on the device.
    const uint64_t pitch = band.pieces > 1 ? band.stored_pitch : layout.piece_;
    for (const Axis& axis : layout.axes_) {
      outer_.push_back(axis.outer.pieces * pitch + axis.outer.elements);
      inner_.push_back(axis.inner.pieces * pitch + axis.inner.elements);
    }
    slab_ = band.slab;
    row_elements_ = band.row * layout.row_device_;
    place_.resize(layout.axes_.size());
  }

  /// Goes to an element; its place among those of the band.
  void seek(uint64_t host) {
    at_slab_ = host / layout_.slab_host_;
    uint64_t rest = host % layout_.slab_host_;
    for (size_t i = place_.size(); i-- > 0;) {
      place_[i] = rest % layout_.axes_[i].length;
      rest /= layout_.axes_[i].length;
    }
  }
  /// To the beginning of the next row of the last axis.
  void next_row() {
    place_.back() = 0;
    for (size_t i = place_.size() - 1; i-- > 0;) {
      if (++place_[i] < layout_.axes_[i].length) return;
      place_[i] = 0;
    }
    ++at_slab_;
  }
  uint64_t along() const { return place_.back(); }
  /// Elements of the second last axis from here on that follow each other.
  uint64_t left_in_block() const {
    const Axis& axis = layout_.axes_[place_.size() - 2];
    const uint64_t at = place_[place_.size() - 2];
    return std::min(axis.block - at % axis.block, axis.length - at);
  }
  /// Where the row of the last axis begins.
  uint64_t row_base() const {
    uint64_t base = (at_slab_ - slab_) * layout_.slab_device_ - row_elements_;
    for (size_t i = 0; i + 1 < place_.size(); ++i) base += offset(i, place_[i]);
    return base;
  }
  uint64_t offset(size_t axis, uint64_t at) const {
    const Axis& of = layout_.axes_[axis];
    if (!of.table.empty()) return of.table[at];
    if (of.block >= of.length) return at * inner_[axis];
    return at / of.block * outer_[axis] + at % of.block * inner_[axis];
  }
  /// Rows of the last axis from here on that are below() apart.
  uint64_t rows_left() const {
    if (place_.size() < 2) return 1;
    const Axis& axis = layout_.axes_[place_.size() - 2];
    return axis.table.empty() && axis.block >= axis.length ? axis.length - place_[place_.size() - 2] : 1;
  }
  uint64_t below() const { return place_.size() < 2 ? 0 : inner_[place_.size() - 2]; }
  uint64_t outer() const { return outer_.back(); }
  uint64_t inner() const { return inner_.back(); }

 private:
  const DeviceLayout& layout_;
  std::vector<uint64_t> outer_, inner_, place_;
  uint64_t slab_ = 0, at_slab_ = 0, row_elements_ = 0;
};

uint64_t DeviceLayout::device_index(uint64_t host) const {
  if (identity_) return host;
  Band whole;
  whole.pieces = 1;
  Walk walk(*this, whole);
  walk.seek(host);
  return walk.row_base() + walk.offset(axes_.size() - 1, walk.along());
}

/// True if the channels of a block follow each other at each place, and the places are equally far apart.
bool DeviceLayout::has_channels() const {
  if (identity_ || axes_.size() < 2) return false;
  const Axis &channels = axes_[axes_.size() - 2], &places = axes_.back();
  return channels.inner.elements == 1 && channels.inner.pieces == 0 && channels.table.empty() && places.table.empty() &&
         places.block >= places.length;
}

bool DeviceLayout::wants_whole_bands() const { return has_channels() && axes_.back().inner.elements > 1; }

DeviceLayout::Columns DeviceLayout::columns_of(const Band& band) const {
  Columns columns;
  if (!wants_whole_bands() || pieces_ > 1 || band.piece != row_device_) return columns;
  const Axis& places = axes_.back();
  columns.places = places.length;
  columns.step = places.inner.elements;
  columns.channels = (band.end - band.first) / places.length;
  return columns;
}

void DeviceLayout::convert_columns(const Columns& columns, std::span<const std::byte> stored, size_t item, uint64_t first, uint64_t count,
                                   std::span<std::byte> whole) const {
  transpose(stored.data(), columns.step, count, columns.channels, item, whole.data() + first * item, columns.places);
}

DeviceLayout::Band DeviceLayout::band_at(uint64_t host, uint64_t most) const {
  Band band;
  if (identity_) {
    band = {0, host_count_, 0, 1, device_count_, device_count_, device_count_, 0, 0};
    return band;
  }
  band.slab = host / slab_host_;
  const uint64_t short_piece = most / kPiecesPerBand;
  const bool in_pieces = pieces_ >= kFewPieces && piece_ >= short_piece;
  if (rows_ == 1 || (slab_device_ <= most && !in_pieces)) {
    const uint64_t slabs = std::clamp<uint64_t>(most / slab_device_, 1, slabs_ - band.slab);
    band.first = band.slab * slab_host_;
    band.end = (band.slab + slabs) * slab_host_;
    band.start = band.slab * slab_device_;
    band.pieces = 1;
    band.piece = band.pitch = band.stored_pitch = slabs * slab_device_;
    return band;
  }
  band.row = host % slab_host_ / row_host_;
  // Many small reads cost more than a larger buffer.
  const uint64_t least = pieces_ > 1 ? short_piece / row_device_ + 1 : 1;
  const uint64_t rows = std::min(std::max(most / (pieces_ * row_device_), least), rows_ - band.row);
  band.first = band.slab * slab_host_ + band.row * row_host_;
  band.end = band.slab * slab_host_ + std::min(slab_host_, (band.row + rows) * row_host_);
  band.start = band.slab * slab_device_ + band.row * row_device_;
  band.pieces = pieces_;
  band.piece = rows * row_device_;
  band.pitch = piece_;
  // Pieces that are a power of two apart would compete for the same lines of the cache.
  band.stored_pitch = band.piece + kGap;
  return band;
}

void DeviceLayout::convert(const Band& band, std::span<const std::byte> stored, size_t item, uint64_t first,
                           std::span<std::byte> out) const {
  if (out.empty()) return;
  if (identity_) {
    std::memcpy(out.data(), stored.data() + (first - band.first) * item, out.size());
    return;
  }
  Walk walk(*this, band);
  walk.seek(first);
  const Axis& axis = axes_.back();
  const uint64_t tile = has_channels() ? tile_of(item) : 0;
  const auto copy = [&](uint64_t from, uint64_t step, uint64_t count, std::byte* to) {
    const std::byte* const begin = stored.data() + from * item;
    switch (item) {
      case 1: return copy_apart<1>(begin, step, count, to);
      case 2: return copy_apart<2>(begin, step, count, to);
      case 4: return copy_apart<4>(begin, step, count, to);
      default: return copy_apart<8>(begin, step, count, to);
    }
  };
  for (uint64_t done = 0, total = out.size() / item; done < total; walk.next_row()) {
    const uint64_t base = walk.row_base();
    uint64_t at = walk.along();
    // Several channels at once, if the range holds all of their elements.
    const uint64_t tiles = tile > 1 && at == 0 ? std::min((total - done) / axis.length, walk.left_in_block()) / tile : 0;
    if (tiles > 0) {
      transpose(stored.data() + base * item, walk.inner(), axis.length, tiles * tile, item, out.data() + done * item, axis.length);
      done += tiles * tile * axis.length;
      for (uint64_t i = 1; i < tiles * tile; ++i) walk.next_row();
      continue;
    }
    // Several rows of blocks at once.
    const bool split = axis.table.empty() && axis.block < axis.length && walk.inner() == 1;
    const uint64_t rows = split && at == 0 ? std::min((total - done) / axis.length, walk.rows_left()) : 0;
    if (rows > 0) {
      const uint64_t blocks = axis.length / axis.block, rest = axis.length % axis.block;
      const std::byte* const from = stored.data() + base * item;
      std::byte* const to = out.data() + done * item;
      BlockRows whole{axis.block * item, blocks, walk.outer() * item, rows, walk.below() * item, axis.length * item};
      copy_block_rows(from, whole, to);
      const BlockRows last{rest * item, 1, 0, rows, whole.below, whole.row};
      if (rest > 0) copy_block_rows<0>(from + blocks * whole.apart, last, to + blocks * whole.block);
      done += rows * axis.length;
      for (uint64_t i = 1; i < rows; ++i) walk.next_row();
      continue;
    }
    const uint64_t end = std::min(axis.length, at + (total - done));
    std::byte* to = out.data() + done * item;
    done += end - at;
    if (!axis.table.empty()) {
      for (; at < end; ++at, to += item) copy(base + axis.table[at], 1, 1, to);
    } else if (axis.block >= axis.length) {
      copy(base + at * walk.inner(), walk.inner(), end - at, to);
    } else {
      while (at < end) {
        const uint64_t within = at % axis.block;
        const uint64_t from = base + at / axis.block * walk.outer() + within * walk.inner();
        const uint64_t whole = within == 0 && walk.inner() == 1 ? (end - at) / axis.block : 0;
        const uint64_t count = whole > 0 ? whole * axis.block : std::min(axis.block - within, end - at);
        if (whole > 0) {
          const uint64_t bytes = axis.block * item;
          copy_block_rows(stored.data() + from * item, {bytes, whole, walk.outer() * item, 1, bytes, count * item}, to);
        } else {
          copy(from, walk.inner(), count, to);
        }
        at += count;
        to += count * item;
      }
    }
  }
}

}  // namespace msdbg
