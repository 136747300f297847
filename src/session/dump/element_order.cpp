#include "session/dump/element_order.h"

#include <algorithm>
#include <cstring>

namespace msdbg::dump {

void swap_bytes(std::span<std::byte> elements, size_t item) {
  if (item < 2) return;
  for (size_t at = 0; at + item <= elements.size(); at += item) {
    std::reverse(elements.data() + at, elements.data() + at + item);
  }
}

std::vector<std::byte> to_row_major(std::span<const std::byte> columns, std::span<const int64_t> shape, size_t item) {
  std::vector<size_t> stride(shape.size());
  size_t step = 1;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    stride[axis] = step;
    step *= static_cast<size_t>(shape[axis]);
  }
  std::vector<std::byte> rows(columns.size());
  std::vector<int64_t> place(shape.size(), 0);
  size_t from = 0;
  for (size_t to = 0; to + item <= rows.size(); to += item) {
    std::memcpy(rows.data() + to, columns.data() + from * item, item);
    // Counts like an odometer: the last axis moves fastest.
    for (size_t axis = shape.size(); axis-- > 0;) {
      from += stride[axis];
      if (++place[axis] < shape[axis]) break;
      from -= stride[axis] * static_cast<size_t>(shape[axis]);
      place[axis] = 0;
    }
  }
  return rows;
}

}  // namespace msdbg::dump
