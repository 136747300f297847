#include "tensor/transpose.h"

#include <cstring>
#include <utility>

namespace msdbg {
namespace {

constexpr size_t kTileBytes = 16;

/// A square tile. Every loop over its rows is a pack, so that the rows stay in registers.
template <typename T, typename = std::make_index_sequence<kTileBytes / sizeof(T)>,
          typename = std::make_index_sequence<kTileBytes / sizeof(T) / 2>>
struct Tile;

template <typename T, size_t... kRow, size_t... kPair>
struct Tile<T, std::index_sequence<kRow...>, std::index_sequence<kPair...>> {
  static constexpr size_t kLanes = sizeof...(kRow), kHalf = kLanes / 2;
  typedef T Row __attribute__((vector_size(kTileBytes)));
  Row rows[kLanes];

  void load(const std::byte* from, size_t apart) { (std::memcpy(&rows[kRow], from + kRow * apart, kTileBytes), ...); }
  void store(std::byte* to, size_t apart) const { (std::memcpy(to + kRow * apart, &rows[kRow], kTileBytes), ...); }

  /// Two rows, element by element in turn, from element kFirst on.
  template <size_t kFirst>
  static Row interleave(Row a, Row b) {
    return __builtin_shufflevector(a, b, (kFirst + kRow / 2 + (kRow % 2 ? kLanes : 0))...);
  }
  /// Interleaving the first half of the rows with the second one log2(rows) times transposes the tile.
  Tile interleaved() const {
    Tile next;
    ((next.rows[2 * kPair] = interleave<0>(rows[kPair], rows[kPair + kHalf]),
      next.rows[2 * kPair + 1] = interleave<kHalf>(rows[kPair], rows[kPair + kHalf])),
     ...);
    return next;
  }
  Tile transposed() const {
    Tile tile = interleaved();
    if constexpr (kLanes > 2) tile = tile.interleaved();
    if constexpr (kLanes > 4) tile = tile.interleaved();
    if constexpr (kLanes > 8) tile = tile.interleaved();
    return tile;
  }
};

template <typename T>
void transpose_all(const std::byte* from, uint64_t step, uint64_t places, uint64_t channels, std::byte* to, uint64_t pitch) {
  constexpr size_t kLanes = Tile<T>::kLanes;
  const uint64_t apart = step * sizeof(T), row = pitch * sizeof(T), tiles = channels / kLanes;
  const auto copy = [&](uint64_t place, uint64_t channel) {
    std::memcpy(to + channel * row + place * sizeof(T), from + place * apart + channel * sizeof(T), sizeof(T));
  };
  // All tiles of some places at once: their channels share lines of the cache.
  const auto move_tiles = [&](uint64_t at) {
    for (uint64_t t = 0; t < tiles; ++t) {
      Tile<T> tile;
      tile.load(from + at * apart + t * kTileBytes, apart);
      tile.transposed().store(to + t * kLanes * row + at * sizeof(T), row);
    }
  };
  uint64_t at = 0;
  for (; at + kLanes <= places; at += kLanes) move_tiles(at);
  // The last places once more with some before them.
  if (at < places && places >= kLanes) {
    move_tiles(places - kLanes);
    at = places;
  }
  for (; at < places; ++at) {
    for (uint64_t channel = 0; channel < tiles * kLanes; ++channel) copy(at, channel);
  }
  for (uint64_t channel = tiles * kLanes; channel < channels; ++channel) {
    for (at = 0; at < places; ++at) copy(at, channel);
  }
}

}  // namespace

uint64_t tile_of(size_t item) { return item == 1 || item == 2 || item == 4 || item == 8 ? kTileBytes / item : 0; }

void transpose(const std::byte* from, uint64_t step, uint64_t places, uint64_t channels, size_t item, std::byte* to, uint64_t pitch) {
  switch (item) {
    case 1: return transpose_all<uint8_t>(from, step, places, channels, to, pitch);
    case 2: return transpose_all<uint16_t>(from, step, places, channels, to, pitch);
    case 4: return transpose_all<uint32_t>(from, step, places, channels, to, pitch);
    default: return transpose_all<uint64_t>(from, step, places, channels, to, pitch);
  }
}

}  // namespace msdbg
