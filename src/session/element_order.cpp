#include "session/element_order.h"

#include <algorithm>
#include <cstring>

namespace msdbg {

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

void negate(std::span<std::byte> elements, size_t item) {
  // The sign is the highest bit of every float type.
  for (size_t at = item - 1; at < elements.size(); at += item) elements[at] ^= std::byte{0x80};
}

StridedOrder::StridedOrder(std::span<const int64_t> shape, std::span<const int64_t> strides) {
  for (size_t i = 0; i < shape.size(); ++i) {
    const Axis axis{static_cast<uint64_t>(shape[i]), static_cast<uint64_t>(strides[i])};
    if (axis.length == 1) continue;
    // An axis that continues where the next one ends is part of it.
    if (!axes_.empty() && axes_.back().stride == axis.stride * axis.length && axis.stride != 0) {
      axes_.back() = {axes_.back().length * axis.length, axis.stride};
    } else {
      axes_.push_back(axis);
    }
  }
  if (axes_.empty()) axes_.push_back({1, 1});
}

StridedOrder::Run StridedOrder::run_at(uint64_t first, uint64_t most) const {
  const Axis& inner = axes_.back();
  const uint64_t place = first % inner.length;
  Run run{place * inner.stride, std::min(inner.length - place, most), inner.stride};
  uint64_t rest = first / inner.length;
  for (size_t i = axes_.size() - 1; i-- > 0;) {
    run.from += rest % axes_[i].length * axes_[i].stride;
    rest /= axes_[i].length;
  }
  return run;
}

uint64_t StridedOrder::longest_run() const { return axes_.back().stride == 1 ? axes_.back().length : 1; }

namespace {

template <size_t kItem>
void copy_run(const std::byte* from, const StridedOrder::Run& run, std::byte* to) {
  for (uint64_t i = 0; i < run.count; ++i) std::memcpy(to + i * kItem, from + i * run.step * kItem, kItem);
}

}  // namespace

void gather(std::span<const std::byte> storage, const StridedOrder& order, size_t item, uint64_t first, std::span<std::byte> out) {
  for (uint64_t done = 0, total = out.size() / item; done < total;) {
    const StridedOrder::Run run = order.run_at(first + done, total - done);
    const std::byte* const from = storage.data() + run.from * item;
    std::byte* const to = out.data() + done * item;
    if (run.step == 1) {
      std::memcpy(to, from, run.count * item);
    } else if (item == 1) {
      copy_run<1>(from, run, to);
    } else if (item == 2) {
      copy_run<2>(from, run, to);
    } else if (item == 4) {
      copy_run<4>(from, run, to);
    } else {
      copy_run<8>(from, run, to);
    }
    done += run.count;
  }
}

}  // namespace msdbg
