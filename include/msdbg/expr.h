// Condition expressions: `percent(abs(x) > 3 * std(x)) > 5`, compiled once and evaluated block by block.
//
// An Expression is a checked text; an ExpressionSet is several of them compiled for one tensor, so they share
// what they have in common; an ExpressionRun is one evaluation, fed with blocks next to a StatsPass. Expressions and sets
// are immutable and may be used from any thread; a run belongs to one. The language: docs/expressions.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "msdbg/base.h"
#include "msdbg/simd.h"
#include "msdbg/tensor.h"

namespace msdbg {

namespace expr {
struct Tree;
class Program;
class Evaluation;
}  // namespace expr

/// What an expression must be for its use.
enum class Wanted : uint8_t {
  kCondition,     ///< a single truth value: a watchpoint
  kElementTruth,  ///< a truth value for each element: where
  kAny,           ///< any kind: eval
};

class Expression {
 public:
  /// Error: kInvalidArgument; the message is the reason, the expression, and a line with a caret under the place.
  static Result<Expression> parse(std::string_view text, Wanted wanted = Wanted::kCondition);

  const std::string& text() const;
  bool needs_previous() const;
  bool is_scalar() const;  ///< else one value for each element
  bool is_truth() const;   ///< else a number
  /// Passes over the tensor, what the statistics provide at no cost, and the operations per element.
  std::string explain() const;

 private:
  friend class expr::Program;
  struct Data;
  explicit Expression(std::shared_ptr<const Data> data) : data_(std::move(data)) {}
  std::shared_ptr<const Data> data_;
};

/// Every name of the language, for completion: variables, constants, functions, words.
const std::vector<std::string>& expression_names();

struct ExpressionValue {
  bool is_truth = false;
  double number = 0;  ///< 1 and 0 for truth values
  /// Of a comparison at the top: its measured side and the other one, so `mean(abs(x)) > 10` reports the mean. When
  /// both sides are measured, the left one is the actual value.
  std::optional<double> actual, threshold;

  bool truth() const { return is_truth && number != 0; }
};

/// The tensor a run looks at, and what the scalar names mean.
struct ExpressionInputs {
  DType dtype = DType::kUnknown;
  DType prev_dtype = DType::kUnknown;  ///< kUnknown: there is no previous value
  uint64_t count = 0;
  double step = std::numeric_limits<double>::quiet_NaN();
  double rank = std::numeric_limits<double>::quiet_NaN();
};

class ExpressionSet {
 public:
  explicit ExpressionSet(std::span<const Expression> expressions);

  size_t size() const;
  bool needs_previous() const;

  /// What the StatsPass of the first pass has to count besides its fixed statistics; a caller may ask it for more.
  const StatsRequest& stats_request() const;
  /// Bits of StatField that the first pass must have given.
  uint32_t stats_fields() const;
  /// Times the tensor is walked, the statistics pass included; 0 when no element is needed at all.
  int passes() const;
  /// True when the first pass needs nothing but the statistics: kept ones answer it without reading the tensor.
  bool decided_by_stats() const { return passes() <= 1 && !has_first_pass_work(); }
  /// The same for one expression, with the statistics it takes; a statistic.csv can answer it.
  bool decided_by_stats(size_t i) const;
  uint32_t stats_fields(size_t i) const;
  /// True when the first pass does work besides the statistics.
  bool has_first_pass_work() const;
  std::string explain() const;

 private:
  friend class ExpressionRun;
  std::shared_ptr<const expr::Program> program_;
};

/// One evaluation:
///
///   StatsPass stats_pass(dtype, set.stats_request() merged with others);
///   ExpressionRun run(set, inputs);
///   for (block) { stats_pass.update(...); if (run.wants_blocks()) run.update(...); }
///   Stats stats = stats_pass.finish();
///   while (run.end_pass(stats, request)) for (block) run.update(...);
///   run.value(0);
///
/// As with StatsPass the sums depend on the cut of the blocks as far as rounding goes; callers that need byte-identical
/// results cut at multiples of StatsPass::kStatsBlock elements.
class ExpressionRun {
 public:
  /// Precondition: is_evaluable(inputs.dtype), and of prev_dtype unless it is kUnknown. Without a previous value the
  /// expressions that need it have no value; the others do.
  ExpressionRun(const ExpressionSet& set, const ExpressionInputs& inputs);
  ~ExpressionRun();
  ExpressionRun(ExpressionRun&&) noexcept;
  ExpressionRun& operator=(ExpressionRun&&) noexcept;

  /// True when the coming pass needs the elements.
  bool wants_blocks() const;
  /// `n` elements, in any alignment. `previous` holds as many of prev_dtype, or is null without a previous value.
  void update(const std::byte* block, const std::byte* previous, size_t n);
  /// Ends a pass; true when another one over the same elements must follow. `request` is the one that `stats` were
  /// computed with; it must hold the set's own. Both are looked at after the first pass only.
  bool end_pass(const Stats& stats, const StatsRequest& request);

  /// The value of a scalar expression after the last pass; nullopt without the previous value that it needs.
  std::optional<ExpressionValue> value(size_t i) const;
  /// The values of an element-wise expression for one block, after the last pass: truth as 1 and 0. False without the
  /// previous value that it needs. `out` holds `n` doubles.
  bool elements(size_t i, const std::byte* block, const std::byte* previous, size_t n, double* out);

 private:
  std::unique_ptr<expr::Evaluation> state_;
};

// ---- whole tensors in memory ---------------------------------------------------------------------------------------

/// What the scalar names mean where there is no session.
struct ExpressionPlace {
  double step = std::numeric_limits<double>::quiet_NaN();
  double rank = std::numeric_limits<double>::quiet_NaN();
};

/// Error: kInvalidArgument for an element-wise expression, kNotFound "no previous step" when one is needed and `previous`
/// is null, kUnsupported for dtypes without elements, kInvalidArgument for a previous value of another size.
Result<ExpressionValue> evaluate(const Expression& expression, const TensorView& view,
                                 const TensorView* previous = nullptr, ExpressionPlace place = {});

/// The first `limit` flat indexes where an element-wise truth value holds. Errors as for evaluate(), kInterrupted.
Result<std::vector<uint64_t>> where(const Expression& expression, const TensorView& view, uint64_t limit,
                                    const TensorView* previous = nullptr, ExpressionPlace place = {});

/// The value for each element. Errors as for evaluate(); kOutOfMemory for more than 2^24 elements.
Result<std::vector<double>> evaluate_elements(const Expression& expression, const TensorView& view,
                                              const TensorView* previous = nullptr, ExpressionPlace place = {});

}  // namespace msdbg
