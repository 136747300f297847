// Transposes tiles of elements: channels that lie next to each other become rows. Private to tensor.
#pragma once

#include <cstddef>
#include <cstdint>

namespace msdbg {

/// How many channels transpose() handles at once: those that fill 16 bytes. 0 for other sizes than 1, 2, 4 and 8.
uint64_t tile_of(size_t item);

/// `places` times `channels` elements that follow each other, `step` elements apart, become `channels` rows of `places` elements, `pitch`
/// elements apart.
void transpose(const std::byte* from, uint64_t step, uint64_t places, uint64_t channels, size_t item, std::byte* to, uint64_t pitch);

}  // namespace msdbg
