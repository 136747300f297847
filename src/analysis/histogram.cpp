// Elements by size.
#include "msdbg/histogram.h"

#include <fmt/format.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <tuple>

#include "analysis/follow.h"

namespace msdbg {
namespace {

constexpr size_t kMostBins = 10000;

// float16: the exponents of its largest values, of the smallest normal one, and of the largest one that is rounded to 0.
constexpr int kHalfLargest = 15, kHalfNormal = -14, kHalfLost = -26;
constexpr int kRoom = 1;                 // a factor of 2: the next step's gradients may be larger
constexpr double kFewSubnormals = 0.1;   // percent

bool of_magnitudes(BinScale scale) { return scale != BinScale::kLinear; }

int exponent_of(double magnitude) { return std::ilogb(magnitude); }

Status unsupported(DType dtype) {
  return Status(Code::kUnsupported, fmt::format("histogram of {}: elements have no numeric value", dtype_name(dtype)));
}

}  // namespace

std::string_view bin_scale_name(BinScale scale) {
  switch (scale) {
    case BinScale::kLinear: return "linear";
    case BinScale::kLog: return "log";
    case BinScale::kExponent: return "exponent";
  }
  return "";
}

Result<Binning> Binning::make(const BinOptions& options) {
  const auto refuse = [](std::string text) { return Status(Code::kInvalidArgument, "histogram: " + std::move(text)); };
  if (options.bins < 1 || options.bins > kMostBins) return refuse(fmt::format("{} bins; give 1 to {}", options.bins, kMostBins));
  for (const auto& edge : {options.min, options.max}) {
    if (!edge) continue;
    if (options.scale == BinScale::kExponent) return refuse("powers of two have no min and max");
    if (!std::isfinite(*edge)) return refuse("min and max are finite numbers");
    if (options.scale == BinScale::kLog && *edge <= 0) {
      return refuse(fmt::format("{} has no logarithm; give magnitudes above 0", format_short(*edge)));
    }
  }
  if (options.min && options.max && *options.min >= *options.max) {
    return refuse(fmt::format("min {} is not below max {}", format_short(*options.min), format_short(*options.max)));
  }
  return Binning(options);
}

bool Binning::needs_range() const { return !options_.min || !options_.max; }

void Binning::add_range(double low, double high) {
  low_ = any_ ? std::min(low_, low) : low;
  high_ = any_ ? std::max(high_, high) : high;
  any_ = true;
}

Status Binning::add_range(const TensorView& view) {
  if (!is_evaluable(view.dtype)) return unsupported(view.dtype);
  for (uint64_t i = 0; i < view.count; ++i) {
    double value = view.at(i);
    if (of_magnitudes(options_.scale)) value = std::fabs(value);
    if (!std::isfinite(value) || (of_magnitudes(options_.scale) && value == 0)) continue;
    add_range(value, value);
  }
  return Status();
}

const std::vector<double>& Binning::edges() {
  if (!edges_.empty()) return edges_;
  const size_t bins = options_.bins;
  if (options_.scale == BinScale::kExponent) {
    const int first = any_ ? exponent_of(low_) : 0, last = any_ ? exponent_of(high_) : 0;
    const int step = std::max(1, (last - first + static_cast<int>(bins)) / static_cast<int>(bins));
    for (int e = first; e <= last; e += step) edges_.push_back(std::ldexp(1, e));
    const double end = std::ldexp(1, first + static_cast<int>(edges_.size()) * step);
    edges_.push_back(std::isfinite(end) ? end : DBL_MAX);
    return edges_;
  }
  const bool log = options_.scale == BinScale::kLog;
  double low = options_.min.value_or(any_ ? low_ : log ? 1 : 0), high = options_.max.value_or(any_ ? high_ : low);
  // All elements may be beyond the one edge that was given.
  if (high < low) (options_.min ? high : low) = options_.min ? low : high;
  const double first = log ? std::log(low) : low;
  // Halves first: the span of two large values of opposite sign overflows.
  const double half_span = log ? (std::log(high) - first) / 2 : high / 2 - low / 2;
  for (size_t i = 0; i <= bins; ++i) {
    const double at = first + 2 * (half_span * (static_cast<double>(i) / static_cast<double>(bins)));
    edges_.push_back(log ? std::exp(at) : at);
  }
  edges_.front() = low;
  edges_.back() = high;
  return edges_;
}

size_t Binning::bin_of(double value) const {
  if (edges_.front() == edges_.back()) return 0;  // equal elements
  const auto above = std::upper_bound(edges_.begin(), edges_.end(), value);
  const auto bin = static_cast<size_t>(std::max<ptrdiff_t>(0, above - edges_.begin() - 1));
  return std::min(bin, edges_.size() - 2);
}

Result<Histogram> Binning::count(const TensorView& view) {
  if (!is_evaluable(view.dtype)) return unsupported(view.dtype);
  Histogram out;
  out.scale = options_.scale;
  out.edges = edges();
  out.counts.assign(out.edges.size() - 1, 0);
  const double low = out.edges.front(), high = out.edges.back();
  for (uint64_t i = 0; i < view.count; ++i) {
    double value = view.at(i);
    if (std::isnan(value)) {
      ++out.nan;
      continue;
    }
    if (std::isinf(value)) {
      ++out.inf;
      continue;
    }
    if (of_magnitudes(options_.scale)) {
      value = std::fabs(value);
      if (value == 0) {
        ++out.zeros;
        continue;
      }
      if (options_.scale == BinScale::kExponent) ++out.exponents[exponent_of(value)];
    }
    if (value < low) ++out.below;
    else if (value > high) ++out.above;
    else ++out.counts[bin_of(value)];
  }
  return out;
}

Result<Histogram> histogram(const TensorView& view, const BinOptions& options) {
  auto binning = Binning::make(options);
  if (!binning) return binning.status();
  if (binning->needs_range()) {
    if (const Status added = binning->add_range(view); !added.ok()) return added;
  }
  return binning->count(view);
}

std::optional<LossScaleAdvice> advise_loss_scale(const std::map<int, uint64_t>& exponents) {
  double all = 0;
  for (const auto& [exponent, count] : exponents) all += static_cast<double>(count);
  if (all == 0) return std::nullopt;
  LossScaleAdvice advice;
  advice.largest = exponents.rbegin()->first;
  advice.most = kHalfLargest - kRoom - advice.largest;
  double smaller = 0;
  for (const auto& [exponent, count] : exponents) {
    advice.least = kHalfNormal - exponent;
    const double share = 100 * static_cast<double>(count) / all;
    smaller += share;
    if (smaller > kFewSubnormals) break;
  }
  for (const auto& [exponent, count] : exponents) {
    const double share = 100 * static_cast<double>(count) / all;
    if (exponent + advice.most < kHalfNormal) advice.subnormal += share;
    if (exponent + advice.most <= kHalfLost) advice.lost += share;
  }
  return advice;
}

namespace {

class Reader {
 public:
  Reader(Session& session, const std::string& part, uint64_t limit) : session_(session), part_(part), limit_(limit) {}

  Result<TensorPtr> read(const TensorId& id) {
    auto tensor = session_.load(id, limit_);
    if (tensor && !part_.empty()) return slice((*tensor)->view(), part_);
    return tensor;
  }
  /// The range without reading elements again, if statistics of the whole tensor say it.
  Status range_of(const TensorId& id, BinScale scale, Binning& binning) {
    if (scale == BinScale::kLinear && part_.empty()) {
      const auto stats = session_.stats(id);
      if (stats && stats->knows(kStatMin | kStatMax | kStatNan) && stats->finite_count() > 0 && std::isfinite(stats->min) &&
          std::isfinite(stats->max)) {
        binning.add_range(stats->min, stats->max);
        return Status();
      }
    }
    const auto tensor = read(id);
    return tensor ? binning.add_range((*tensor)->view()) : tensor.status();
  }

 private:
  Session& session_;
  const std::string& part_;
  const uint64_t limit_;
};

}  // namespace

Result<HistogramResult> histograms(Session& session, const FollowTarget& target, const BinOptions& bins, const std::string& part,
                                   const FollowOptions& options) {
  auto binning = Binning::make(bins);
  if (!binning) return binning.status();
  std::vector<TensorId> tensors = target_tensors(session, target, options.steps, options.ranks);
  if (tensors.empty()) {
    return Status(Code::kNotFound, fmt::format("nothing of {} was dumped in steps {} (have steps {}); the command why gives the reason",
                                               target.text, options.steps.text(), numbers_text(session.steps())));
  }
  const auto place = [](const TensorId& id) {
    return std::tuple(id.rank, id.graph, id.node, id.slot.io, id.slot.index, id.step, id.execution);
  };
  std::sort(tensors.begin(), tensors.end(), [&](const TensorId& a, const TensorId& b) { return place(a) < place(b); });
  HistogramResult result;
  result.target = target.text;
  result.scale = bins.scale;
  const uint64_t passes = binning->needs_range() ? 2 : 1;
  uint64_t done = 0;
  const auto advance = [&] {
    ++done;
    if (options.progress) options.progress(done, passes * tensors.size(), 0);
    result.interrupted = result.interrupted || interrupt_requested();
    return !result.interrupted;
  };
  Reader reader(session, part, options.mem_limit_bytes);
  for (const TensorId& id : tensors) {
    HistogramLine& line = result.lines.emplace_back();
    line.tensor = id;
    const auto info = session.describe(id);
    if (info) line.dtype = info->dtype;
    const Status problem = !info ? info.status() : info->problem;
    if (!problem.ok()) line.reason = problem.message();
    else if (info->availability != Availability::kElements) line.reason = "no tensor data (statistics only)";
    if (!line.reason.empty() || passes == 1) continue;
    const Status read = reader.range_of(id, bins.scale, *binning);
    if (read.code() == Code::kInvalidArgument) return read;  // the slice
    if (!read.ok()) line.reason = read.message();
    if (!advance()) return result;
  }
  std::map<int, uint64_t> exponents;
  for (HistogramLine& line : result.lines) {
    if (result.steps.empty() || !std::binary_search(result.steps.begin(), result.steps.end(), line.tensor.step)) {
      result.steps.insert(std::upper_bound(result.steps.begin(), result.steps.end(), line.tensor.step), line.tensor.step);
    }
    if (!line.reason.empty()) continue;
    const auto tensor = reader.read(line.tensor);
    auto counted = tensor ? binning->count((*tensor)->view()) : Result<Histogram>(tensor.status());
    if (counted.status().code() == Code::kInvalidArgument) return counted.status();
    if (counted) {
      for (const auto& [exponent, count] : counted->exponents) exponents[exponent] += count;
      result.edges = counted->edges;
      line.histogram = std::move(*counted);
    } else {
      line.reason = counted.status().message();
    }
    if (!advance()) return result;
  }
  result.advice = advise_loss_scale(exponents);
  return result;
}

}  // namespace msdbg
