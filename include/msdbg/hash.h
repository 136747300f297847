// A fast hash of bytes, the same on every machine: the index of a dump keeps its values.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace msdbg {

inline constexpr uint64_t kHashFactor = 0x9fb21c651e98df25u;

/// Adds a word to the state of a hash.
inline uint64_t hash_step(uint64_t state, uint64_t word) {
  state ^= word * kHashFactor;
  return std::rotl(state, 29) * 0xff51afd7ed558ccdu;
}

/// The hash from its last state.
inline uint64_t hash_end(uint64_t state) {
  state ^= state >> 32;
  state *= 0xd6e8feb86659fd93u;
  return state ^ (state >> 29);
}

/// The first `count` of eight bytes as a number, the lowest one first.
inline uint64_t hash_word(const char* bytes, size_t count = 8) {
  uint64_t word = 0;
  if constexpr (std::endian::native == std::endian::little) {
    if (count > 0) std::memcpy(&word, bytes, count);
  } else {
    for (size_t i = 0; i < count; ++i) word |= uint64_t{static_cast<uint8_t>(bytes[i])} << (8 * i);
  }
  return word;
}

inline uint64_t hash_of(std::string_view bytes, uint64_t seed = 0) {
  uint64_t state = seed ^ (bytes.size() * kHashFactor);
  size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) state = hash_step(state, hash_word(bytes.data() + at));
  return hash_end(hash_step(state, hash_word(bytes.data() + at, bytes.size() - at)));
}

}  // namespace msdbg
