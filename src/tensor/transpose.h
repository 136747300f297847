// Transposes tiles of elements: channels that lie next to each other become rows. Private to tensor.
#pragma once

#include <cstddef>
#include <cstdint>

namespace msdbg {

/// How many channels transpose() handles at once: those that fill 16 bytes. 0 for other sizes than 1, 2, 4 and 8.
uint64_t tile_of(size_t item);

/// `places` times `tiles` * tile_of(item) elements that follow each other, `step` elements apart, become as many rows of `places` elements.
void transpose(const std::byte* from, uint64_t step, uint64_t places, uint64_t tiles, size_t item, std::byte* to);

}  // namespace msdbg
