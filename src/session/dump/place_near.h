// Searches in sorted lists where the place can be guessed: few steps from there instead of many through all of it, which for a
// million short questions are mostly misses of the processor's cache.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

namespace msdbg::dump {

/// The number of items for which `before` holds; it holds for the first ones only. `reach`: how far off the guess usually is.
template <typename Item, typename Before>
size_t place_near(std::span<const Item> items, size_t guess, size_t reach, Before before) {
  size_t low = 0, high = items.size();
  const size_t at = std::min(guess, high);
  if (at < high && before(items[at])) {
    low = at + 1;
    for (; low + reach < high; reach *= 2) {
      if (!before(items[low + reach])) {
        high = low + reach;
        break;
      }
      low += reach + 1;
    }
  } else {
    high = at;
    for (; low + reach < high; reach *= 2) {
      if (before(items[high - reach])) {
        low = high - reach + 1;
        break;
      }
      high -= reach;
    }
  }
  const auto end = items.begin() + static_cast<std::ptrdiff_t>(high);
  return static_cast<size_t>(std::partition_point(items.begin() + static_cast<std::ptrdiff_t>(low), end, before) - items.begin());
}

}  // namespace msdbg::dump
