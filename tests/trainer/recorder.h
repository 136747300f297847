// A hook that records the values of a training step.
#pragma once

#include <cmath>
#include <cstring>
#include <map>
#include <source_location>
#include <utility>
#include <vector>

#include "net.h"

namespace trainer {

class Recorder : public Hook {
 public:
  void output(Op op, uint32_t slot, const void* data, size_t bytes) override {
    bytes_[{op, slot}] = bytes;
    const auto* first = static_cast<const std::byte*>(data);
    values_[{op, slot}].assign(first, first + bytes);
  }
  void done(Op op, const std::source_location& where) override {
    order_.push_back(op);
    lines_[op] = where.line();
  }

  const std::vector<Op>& order() const { return order_; }
  const std::map<Op, unsigned>& lines() const { return lines_; }
  const std::map<std::pair<Op, uint32_t>, size_t>& bytes() const { return bytes_; }

  Values values(Op op, uint32_t slot = 0) const {
    const auto& raw = values_.at({op, slot});
    Values result(raw.size() / sizeof(float));
    std::memcpy(result.data(), raw.data(), raw.size());
    return result;
  }
  bool sound(Op op) const {
    for (const float value : values(op, op == kMax ? 1 : 0)) {
      if (!std::isfinite(value)) return false;
    }
    return true;
  }
  /// kOpCount if all are.
  Op first_unsound() const {
    for (const Op op : order_) {
      if (!sound(op)) return op;
    }
    return kOpCount;
  }

 private:
  std::vector<Op> order_;
  std::map<Op, unsigned> lines_;
  std::map<std::pair<Op, uint32_t>, size_t> bytes_;
  std::map<std::pair<Op, uint32_t>, std::vector<std::byte>> values_;
};

}  // namespace trainer
