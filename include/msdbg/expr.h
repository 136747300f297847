// Condition expressions: `percent(abs(x) > 3 * std(x)) > 5`, compiled once and evaluated block by block.
//
// An Expression is a checked text. An ExpressionSet is several of them compiled for one tensor, sharing common parts. An
// ExpressionRun is one evaluation, fed with blocks alongside a StatsPass. Expressions and sets are immutable and may be used from
// any thread; a run belongs to one. docs/expressions.md describes the language.
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

/// The kind of expression that a use requires.
enum class ExpressionKind : uint8_t {
  kCondition,     ///< a single truth value: a watchpoint
  kElementTruth,  ///< a truth value for each element: where
  kAny,           ///< any kind: eval
};

class Expression {
 public:
  /// Error: kInvalidArgument; the message has the reason, the expression, and a line with a caret below the position.
  static Result<Expression> parse(std::string_view text, ExpressionKind wanted = ExpressionKind::kCondition);

  const std::string& text() const;
  bool needs_previous() const;
  bool asks_about_nan() const;  ///< it says what NaN means: isnan, isinf, isfinite, finite, or x != x
  bool is_scalar() const;  ///< otherwise one value per element
  bool is_truth() const;   ///< otherwise a number
  /// Passes over the tensor, parts that the statistics provide at no cost, and operations per element.
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
  bool is_decided = true;  ///< false: the truth rests on a comparison with a reduction that is NaN
  /// For a comparison at the top: its measured side and the other one, so `mean(abs(x)) > 10` reports the mean. If both sides are
  /// measured, the left one is the actual value.
  std::optional<double> actual, threshold;

  bool truth() const { return is_truth && number != 0; }
};

/// The tensor of a run, and the values of the scalar names.
struct ExpressionInputs {
  DType dtype = DType::kUnknown;
  DType prev_dtype = DType::kUnknown;  ///< kUnknown: no previous value
  uint64_t count = 0;
  double step = std::numeric_limits<double>::quiet_NaN();
  double rank = std::numeric_limits<double>::quiet_NaN();
};

class ExpressionSet {
 public:
  explicit ExpressionSet(std::span<const Expression> expressions);

  size_t size() const;
  bool needs_previous() const;

  /// What the StatsPass of the first pass must count besides its fixed statistics; a caller may add more.
  const StatsRequest& stats_request() const;
  /// Bits of StatField that the first pass must provide.
  uint32_t stats_fields() const;
  /// The number of passes over the tensor, including the statistics pass; 0 if no element is needed.
  int passes() const;
  /// True if statistics are sufficient: cached ones give the result without reading the tensor.
  bool decided_by_stats() const { return passes() <= 1 && !has_first_pass_work(); }
  /// The same for one expression, with the statistics it uses; a statistic.csv may suffice.
  bool decided_by_stats(size_t i) const;
  uint32_t stats_fields(size_t i) const;
  /// True if the first pass does work besides the statistics.
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
/// As with StatsPass, the sums depend on the block boundaries within rounding; callers that need byte-identical results cut blocks
/// at multiples of StatsPass::kStatsBlock elements.
class ExpressionRun {
 public:
  /// Precondition: is_evaluable(inputs.dtype), and of prev_dtype unless it is kUnknown. Without a previous value, expressions that
  /// need it have no value; the others do.
  ExpressionRun(const ExpressionSet& set, const ExpressionInputs& inputs);
  ~ExpressionRun();
  ExpressionRun(ExpressionRun&&) noexcept;
  ExpressionRun& operator=(ExpressionRun&&) noexcept;

  /// True if the next pass needs the elements.
  bool wants_blocks() const;
  /// `n` elements, in any alignment. `previous` holds the same number of prev_dtype, or is null without a previous value.
  void update(const std::byte* block, const std::byte* previous, size_t n);
  /// Ends a pass; true if another one over the same elements must follow. `request` is the one used for `stats`; it must include
  /// the set's own. Both are used only after the first pass.
  bool end_pass(const Stats& stats, const StatsRequest& request);

  /// The value of a scalar expression after the last pass; nullopt if it needs a missing previous value.
  std::optional<ExpressionValue> value(size_t i) const;
  /// The values of an element-wise expression for one block, after the last pass: truth as 1 and 0. False if it needs a missing
  /// previous value. `out` holds `n` doubles.
  bool elements(size_t i, const std::byte* block, const std::byte* previous, size_t n, double* out);

 private:
  std::unique_ptr<expr::Evaluation> state_;
};

// ---- whole tensors in memory ---------------------------------------------------------------------------------------

/// The values of the scalar names without a session.
struct ExpressionPlace {
  double step = std::numeric_limits<double>::quiet_NaN();
  double rank = std::numeric_limits<double>::quiet_NaN();
};

/// Error: kInvalidArgument for an element-wise expression, kNotFound "no previous step" if it needs one and `previous` is null,
/// kUnsupported for dtypes without elements, kInvalidArgument for a previous value of another size.
Result<ExpressionValue> evaluate(const Expression& expression, const TensorView& view,
                                 const TensorView* previous = nullptr, ExpressionPlace place = {});

/// The first `limit` flat indexes where an element-wise truth value holds. Errors as for evaluate(), kInterrupted.
Result<std::vector<uint64_t>> where(const Expression& expression, const TensorView& view, uint64_t limit,
                                    const TensorView* previous = nullptr, ExpressionPlace place = {});

/// One value per element. Errors as for evaluate(); kOutOfMemory for more than 2^24 elements.
Result<std::vector<double>> evaluate_elements(const Expression& expression, const TensorView& view,
                                              const TensorView* previous = nullptr, ExpressionPlace place = {});

}  // namespace msdbg
