// How the elements of tensors are distributed: bins with common edges for every step and tensor, and what a loss scale must do to keep
// them within float16.
//
// The session's owner thread only. Source: the elements; statistics alone have no distribution.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "msdbg/follow.h"
#include "msdbg/tensor.h"

namespace msdbg {

enum class BinScale : uint8_t {
  kLinear,    ///< bins of equal width
  kLog,       ///< of magnitudes: bins of equal width in log(|x|)
  kExponent,  ///< of magnitudes: powers of two, as floating point stores them
};
std::string_view bin_scale_name(BinScale scale);  ///< "linear", "log", "exponent"

struct BinOptions {
  size_t bins = 20;  ///< 1 to 10000; kExponent: at most so many, joining neighbouring powers of two
  BinScale scale = BinScale::kLinear;
  std::optional<double> min = {}, max = {};  ///< first and last edge; default: the elements' own range. Not for kExponent
};

struct Histogram {
  BinScale scale = BinScale::kLinear;
  std::vector<double> edges;             ///< bins + 1, ascending; the last one belongs to the last bin
  std::vector<uint64_t> counts;
  uint64_t below = 0, above = 0;         ///< finite elements outside of the edges
  uint64_t zeros = 0;                    ///< kLog and kExponent: they have no bin
  uint64_t nan = 0, inf = 0;
  std::map<int, uint64_t> exponents;     ///< kExponent: elements in [2^e, 2^(e+1)) by e
};

/// Counts elements of several tensors into the same bins: first every add_range(), then count().
class Binning {
 public:
  /// Error: kInvalidArgument for a number of bins or a range that makes no bins.
  static Result<Binning> make(const BinOptions& options);
  bool needs_range() const;
  /// Error: kUnsupported for elements that are no numbers.
  Status add_range(const TensorView& view);
  void add_range(double low, double high);  ///< smallest and largest finite element; only for kLinear
  Result<Histogram> count(const TensorView& view);

 private:
  explicit Binning(const BinOptions& options) : options_(options) {}
  const std::vector<double>& edges();
  size_t bin_of(double value) const;

  BinOptions options_;
  double low_ = 0, high_ = 0;
  bool any_ = false;
  std::vector<double> edges_;
};

/// The histogram of one tensor.
Result<Histogram> histogram(const TensorView& view, const BinOptions& options = {});

/// What float16 makes of values that a loss scale of 2^k multiplies first. Shares are percentages of the elements other than 0.
struct LossScaleAdvice {
  int least = 0;             ///< from 2^least on, at most 0.1 % are subnormal
  int most = 0;              ///< up to 2^most, the largest keeps a factor of 2 from the overflow
  int largest = 0;           ///< the largest magnitude is in [2^largest, 2^(largest+1))
  double subnormal = 0;      ///< share of subnormals and zeros at 2^most
  double lost = 0;           ///< of these, the share that becomes 0
  bool fits() const { return least <= most; }
};
/// nullopt without a finite element other than 0.
std::optional<LossScaleAdvice> advise_loss_scale(const std::map<int, uint64_t>& exponents);

struct HistogramLine {
  TensorId tensor;
  DType dtype = DType::kUnknown;
  std::optional<Histogram> histogram;
  std::string reason;  ///< without a histogram: why
};

struct HistogramResult {
  std::string target;
  BinScale scale = BinScale::kLinear;
  std::vector<double> edges;         ///< of all lines; empty if there is no histogram
  std::vector<HistogramLine> lines;  ///< tensor by tensor, ascending steps
  std::vector<int64_t> steps;
  std::optional<LossScaleAdvice> advice;  ///< kExponent: of all lines together
  bool interrupted = false;
};

/// The tensors of the target in the requested steps, in common bins. `part`: a slice of each, "" for all of it.
/// Error: kNotFound if none was dumped; kInvalidArgument for a bad slice or range.
Result<HistogramResult> histograms(Session& session, const FollowTarget& target, const BinOptions& bins, const std::string& part,
                                   const FollowOptions& options);

}  // namespace msdbg
