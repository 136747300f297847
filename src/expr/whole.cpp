// Evaluates expressions on whole tensors in memory.
#include <fmt/format.h>

#include <algorithm>

#include "msdbg/expr.h"

namespace msdbg {
namespace {

constexpr size_t kChunk = 16 * StatsPass::kStatsBlock;
constexpr uint64_t kMostElements = uint64_t{1} << 24;

Status check_inputs(const Expression& expression, const TensorView& view, const TensorView* previous) {
  for (const TensorView* one : {&view, previous}) {
    if (one && !is_evaluable(one->dtype)) {
      return Status(Code::kUnsupported, fmt::format("no expression is defined for {}", dtype_name(one->dtype)));
    }
  }
  if (!expression.needs_previous()) return Status();
  if (!previous) return Status(Code::kNotFound, "no previous step");
  if (previous->count == view.count) return Status();
  return Status(Code::kInvalidArgument, fmt::format("the previous value has {} elements, this one {}", previous->count, view.count));
}

/// The evaluation of one expression, with all its passes over a tensor in memory.
class Whole {
 public:
  Whole(const Expression& expression, const TensorView& view, const TensorView* previous, ExpressionPlace place)
      : set_(std::span(&expression, 1)),
        view_(view),
        previous_(expression.needs_previous() ? previous : nullptr),
        run_(set_, {view.dtype, previous_ ? previous_->dtype : DType::kUnknown, view.count, place.step, place.rank}) {}

  Status passes() {
    if (set_.passes() == 0) return Status();
    StatsPass stats_pass(view_.dtype, set_.stats_request());
    Status status = walk([&](const std::byte* block, const std::byte* previous, size_t n, uint64_t) {
      if (set_.stats_fields() != 0) stats_pass.update(block, n);
      run_.update(block, previous, n);
      return true;
    });
    const Stats stats = stats_pass.finish();
    while (status.ok() && run_.end_pass(stats, set_.stats_request())) {
      status = walk([&](const std::byte* block, const std::byte* previous, size_t n, uint64_t) {
        run_.update(block, previous, n);
        return true;
      });
    }
    return status;
  }

  /// Calls `use` with blocks until it returns false.
  template <class Use>
  Status walk(Use use) {
    for (uint64_t first = 0; first < view_.count; first += kChunk) {
      if (interrupt_requested()) return Status(Code::kInterrupted, "interrupted while evaluating an expression");
      const auto n = static_cast<size_t>(std::min<uint64_t>(kChunk, view_.count - first));
      const std::byte* block = view_.data + first * item_size(view_.dtype);
      const std::byte* previous = previous_ ? previous_->data + first * item_size(previous_->dtype) : nullptr;
      if (!use(block, previous, n, first)) break;
    }
    return Status();
  }

  ExpressionRun& run() { return run_; }

 private:
  ExpressionSet set_;
  const TensorView& view_;
  const TensorView* previous_;
  ExpressionRun run_;
};

}  // namespace

Result<ExpressionValue> evaluate(const Expression& expression, const TensorView& view, const TensorView* previous,
                                 ExpressionPlace place) {
  if (!expression.is_scalar()) {
    return Status(Code::kInvalidArgument, fmt::format("'{}' has a value for each element, not a single one", printable(expression.text())));
  }
  if (Status status = check_inputs(expression, view, previous); !status.ok()) return status;
  Whole whole(expression, view, previous, place);
  if (Status status = whole.passes(); !status.ok()) return status;
  return *whole.run().value(0);
}

Result<std::vector<uint64_t>> where(const Expression& expression, const TensorView& view, uint64_t limit,
                                    const TensorView* previous, ExpressionPlace place) {
  if (expression.is_scalar() || !expression.is_truth()) {
    return Status(Code::kInvalidArgument, fmt::format("'{}' is not a truth value for each element", printable(expression.text())));
  }
  if (Status status = check_inputs(expression, view, previous); !status.ok()) return status;
  Whole whole(expression, view, previous, place);
  std::vector<uint64_t> found;
  if (limit == 0) return found;
  if (Status status = whole.passes(); !status.ok()) return status;
  std::vector<double> truth(kChunk);
  Status status = whole.walk([&](const std::byte* block, const std::byte* before, size_t n, uint64_t first) {
    whole.run().elements(0, block, before, n, truth.data());
    for (size_t i = 0; i < n && found.size() < limit; ++i) {
      if (truth[i] != 0) found.push_back(first + i);
    }
    return found.size() < limit;
  });
  if (!status.ok()) return status;
  return found;
}

Result<std::vector<double>> evaluate_elements(const Expression& expression, const TensorView& view,
                                              const TensorView* previous, ExpressionPlace place) {
  if (expression.is_scalar()) {
    return Status(Code::kInvalidArgument, fmt::format("'{}' is a single value, not one for each element", printable(expression.text())));
  }
  if (Status status = check_inputs(expression, view, previous); !status.ok()) return status;
  if (view.count > kMostElements) {
    return Status(Code::kOutOfMemory, fmt::format("{} elements are too many to list (at most {}); reduce them, as in mean({})",
                                                  view.count, kMostElements, printable(expression.text())));
  }
  Whole whole(expression, view, previous, place);
  if (Status status = whole.passes(); !status.ok()) return status;
  std::vector<double> values(static_cast<size_t>(view.count));
  Status status = whole.walk([&](const std::byte* block, const std::byte* before, size_t n, uint64_t first) {
    return whole.run().elements(0, block, before, n, values.data() + first);
  });
  if (!status.ok()) return status;
  return values;
}

}  // namespace msdbg
