#include "analysis/replica_moves.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <vector>

namespace msdbg {
namespace {

constexpr size_t kOdd = 0, kOther = 1, kBefore = 2;

/// The value as it was one step before; nullopt if that step was left out.
std::optional<TensorId> step_before(Session& session, const TensorId& id) {
  bool missing = false;
  const Result<TensorId> before = session.previous(id, &missing);
  return before && before->step + 1 == id.step ? std::optional(*before) : std::nullopt;
}

struct Move {
  std::optional<double> times;
  bool own_way = false;
};

std::optional<double> unless_equal(double times) {
  constexpr double kAsFar = 0.02;
  return std::abs(times - 1) > kAsFar ? std::optional(times) : std::nullopt;
}

/// The factor between two moves, by least squares.
class Factor {
 public:
  void add(double odd, double other, double before) {
    const double a = odd - before, b = other - before;
    ++count_;
    odd_ += a * a;
    other_ += b * b;
    both_ += a * b;
    // Each value was rounded when it was stored.
    const double rounding = 0x1p-24 * std::max(std::abs(before), std::max(std::abs(odd), std::abs(other)));
    noise_ += 4 * rounding * rounding;
  }

  Move result() const {
    // Where nothing moves by more than it is rounded, any factor fits. NaN and Inf end here, too.
    constexpr double kClear = 100, kRest = 1e-3;
    constexpr uint64_t kFew = 8;  // elements fit by chance
    if (!(other_ > kClear * noise_) || !std::isfinite(odd_ + other_)) return {};
    if (odd_ == 0) return {0, false};
    const double times = both_ / other_;
    const double rest = times > 0 ? odd_ - times * both_ : odd_;
    if (count_ < kFew || !(odd_ > kClear * noise_)) return {};
    if (rest <= kRest * odd_ + kClear * noise_) return {unless_equal(times), false};
    // Weights that were loaded instead move much further than an update moves them.
    constexpr double kOtherWay = 0.05, kMuchFurther = 30 * 30;
    return {std::nullopt, rest > kOtherWay * odd_ && odd_ < kMuchFurther * other_ && other_ < kMuchFurther * odd_};
  }

 private:
  uint64_t count_ = 0;
  double odd_ = 0, other_ = 0, both_ = 0, noise_ = 0;
};

Move by_elements(std::span<OpenTensor> tensors, ReplicaBuffers& buffers) {
  const TensorInfo& info = tensors[kOdd].info;
  if (!is_float(info.dtype)) return {};
  for (const OpenTensor& each : tensors) {
    if (each.info.dtype != info.dtype || each.info.shape != info.shape) return {};
  }
  const size_t size = item_size(info.dtype);
  std::array<std::vector<std::byte>*, 3> blocks{&buffers.a, &buffers.b, &buffers.c};
  Factor factor;
  for (uint64_t first = 0; first < info.count; first += kReplicaBlock) {
    if (interrupt_requested()) return {};
    const uint64_t n = std::min(kReplicaBlock, info.count - first);
    for (size_t i = 0; i < tensors.size(); ++i) {
      blocks[i]->resize(n * size);
      if (!tensors[i].reader->read(first, *blocks[i]).ok()) return {};
    }
    for (uint64_t i = 0; i < n; ++i) {
      const auto at = [&](size_t tensor) { return element_as_double(info.dtype, blocks[tensor]->data() + i * size); };
      factor.add(at(kOdd), at(kOther), at(kBefore));
    }
  }
  return factor.result();
}

/// The extremes are elements; mostly, each is the same one before and after a small step.
std::optional<double> by_statistics(const Stats& odd, const Stats& other, const Stats& before) {
  constexpr uint32_t kNeeded = kStatMin | kStatMax;
  if (!odd.knows(kNeeded) || !other.knows(kNeeded) || !before.knows(kNeeded) || before.min == before.max) return std::nullopt;
  const bool all = odd.knows(kStatMean | kStatL2Norm) && before.knows(kStatMean | kStatL2Norm);
  const bool still = odd.min == before.min && odd.max == before.max && (!all || (odd.mean == before.mean && odd.l2_norm == before.l2_norm));
  if (still) return all && (other.mean != before.mean || other.l2_norm != before.l2_norm) ? std::optional(0.0) : std::nullopt;
  constexpr double kClear = 1e-4, kAlike = 1e-2;
  const auto clear = [](double now, double then) { return std::abs(now - then) > kClear * std::abs(then); };
  if (!clear(other.min, before.min) || !clear(other.max, before.max)) return std::nullopt;
  const double low = (odd.min - before.min) / (other.min - before.min), high = (odd.max - before.max) / (other.max - before.max);
  if (!(high > 0) || !(std::abs(low - high) <= kAlike * high)) return std::nullopt;
  const double times = (low + high) / 2;
  // The mean moves by all elements: if it moved otherwise, two extremes are alike by chance.
  const double size = std::max(std::abs(before.min), std::abs(before.max));
  const bool means = odd.knows(kStatMean) && other.knows(kStatMean) && before.knows(kStatMean);
  if (means) {
    constexpr double kRounding = 0x1p-22;  // of a sum of many elements
    const double rounding = kRounding * size * (1 + times);
    if (std::abs(odd.mean - before.mean - times * (other.mean - before.mean)) > rounding + kAlike * std::abs(odd.mean - before.mean))
      return std::nullopt;
  }
  return unless_equal(times);
}

bool same_elements(OpenTensor& a, OpenTensor& b, ReplicaBuffers& buffers) {
  if (a.info.dtype != b.info.dtype || a.info.shape != b.info.shape) return false;
  const size_t size = item_size(a.info.dtype);
  for (uint64_t first = 0; first < a.info.count; first += kReplicaBlock) {
    if (interrupt_requested()) return false;
    const uint64_t n = std::min(kReplicaBlock, a.info.count - first);
    buffers.a.resize(n * size);
    buffers.b.resize(n * size);
    if (!a.reader->read(first, buffers.a).ok() || !b.reader->read(first, buffers.b).ok() || buffers.a != buffers.b) return false;
  }
  return true;
}

/// A weight that is what it was some steps ago, and was another one in between.
std::optional<int64_t> step_held(Session& session, const TensorId& id, ReplicaBuffers& buffers) {
  constexpr int kMost = 8;
  bool missing = false;
  Result<TensorId> before = session.previous(id, &missing);
  if (!before || same_value(session, id, *before, buffers)) return std::nullopt;
  for (int i = 0; i < kMost; ++i) {
    before = session.previous(*before, &missing);
    if (!before) return std::nullopt;
    if (same_value(session, id, *before, buffers)) return before->step;
  }
  return std::nullopt;
}

}  // namespace

bool same_value(Session& session, const TensorId& a, const TensorId& b, ReplicaBuffers& buffers) {
  Result<OpenTensor> one = session.open_elements(a), two = session.open_elements(b);
  if (one && two) return same_elements(*one, *two, buffers);
  const std::optional<Stats> left = session.given_statistics(a), right = session.given_statistics(b);
  constexpr uint32_t kNeeded = kStatMin | kStatMax | kStatMean | kStatL2Norm;
  if (!left || !right || !left->knows(kNeeded) || !right->knows(kNeeded)) return false;
  return left->min == right->min && left->max == right->max && left->mean == right->mean && left->l2_norm == right->l2_norm;
}

void compare_moves(Session& session, ReplicaBuffers& buffers, ReplicaDifference* difference) {
  const std::optional<TensorId> before = step_before(session, difference->seen);
  const bool came_from_update = difference->cause == ReplicaCause::kValue || difference->cause == ReplicaCause::kUnknown;
  if (!came_from_update || difference->what != ReplicaKind::kParameter) return;
  const bool mostly = difference->elements == 0 || 2 * difference->elements > difference->of;
  if (mostly && difference->cause == ReplicaCause::kValue) difference->held = step_held(session, difference->seen, buffers);
  if (!before || difference->held) return;
  const std::optional<TensorId> theirs = mostly ? step_before(session, difference->expected) : std::nullopt;
  difference->alone = theirs && same_value(session, difference->expected, *theirs, buffers) &&
                      !same_value(session, difference->seen, *before, buffers);
  if (difference->alone) return;
  const std::array<TensorId, 3> ids{difference->seen, difference->expected, *before};
  std::vector<OpenTensor> tensors;
  std::vector<Stats> stats;
  for (const TensorId& id : ids) {
    if (Result<OpenTensor> tensor = session.open_elements(id)) tensors.push_back(std::move(*tensor));
    else if (const std::optional<Stats> given = session.given_statistics(id)) stats.push_back(*given);
  }
  if (tensors.size() == ids.size()) {
    const Move move = by_elements(tensors, buffers);
    difference->moved = move.times;
    // Some elements that are wrong hide how the others moved.
    // An update whose states are not known may have taken others of these.
    const bool known = difference->cause == ReplicaCause::kValue;
    difference->own_way = known && move.own_way && 2 * difference->elements > difference->of;
  } else if (stats.size() == ids.size()) {
    difference->moved = by_statistics(stats[kOdd], stats[kOther], stats[kBefore]);
  }
}

}  // namespace msdbg
