// Every target of this processor, checked against a reference that computes element by element in long double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "msdbg/sanitizers.h"
#include "msdbg/simd.h"

namespace msdbg {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr DType kTypes[] = {DType::kBool,     DType::kInt8,    DType::kInt16,  DType::kInt32,  DType::kInt64,
                            DType::kUInt8,    DType::kUInt16,  DType::kUInt32, DType::kUInt64, DType::kFloat16,
                            DType::kBFloat16, DType::kFloat32, DType::kFloat64};

// Writes `value`, rounded to the type.
void put(DType dtype, double value, std::byte* out) {
  const auto store = [&](auto v) { std::memcpy(out, &v, sizeof v); };
  switch (dtype) {
    case DType::kBool: return store(static_cast<uint8_t>(value != 0));
    case DType::kInt8: return store(static_cast<int8_t>(value));
    case DType::kInt16: return store(static_cast<int16_t>(value));
    case DType::kInt32: return store(static_cast<int32_t>(value));
    case DType::kInt64: return store(static_cast<int64_t>(value));
    case DType::kUInt8: return store(static_cast<uint8_t>(std::fabs(value)));
    case DType::kUInt16: return store(static_cast<uint16_t>(std::fabs(value)));
    case DType::kUInt32: return store(static_cast<uint32_t>(std::fabs(value)));
    case DType::kUInt64: return store(static_cast<uint64_t>(std::fabs(value)));
    case DType::kFloat16: return store(float_to_half(value));
    case DType::kBFloat16: return store(float_to_bfloat16(value));
    case DType::kFloat32: return store(static_cast<float>(value));
    default: return store(value);
  }
}

struct Tensor {
  Tensor(DType type, size_t n, size_t misalign = 0)
      : dtype(type), count(n), offset(misalign), bytes(n * item_size(type) + misalign + 8), shape{static_cast<int64_t>(n)} {}
  std::byte* at(size_t i) { return bytes.data() + offset + i * item_size(dtype); }
  void set(size_t i, double value) { put(dtype, value, at(i)); }
  TensorView view() const { return {dtype, shape, bytes.data() + offset, count}; }

  DType dtype;
  size_t count, offset;
  std::vector<std::byte> bytes;
  Shape shape;
};

Tensor random_tensor(DType dtype, size_t n, uint64_t seed, size_t misalign = 0) {
  Tensor tensor(dtype, n, misalign);
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(0.3, 20);
  for (size_t i = 0; i < n; ++i) tensor.set(i, random() % 7 == 0 ? 0 : normal(random));
  return tensor;
}

void expect_near(double got, long double want, long double scale, const char* what) {
  if (std::isnan(static_cast<double>(want))) {
    EXPECT_TRUE(std::isnan(got)) << what;
    return;
  }
  EXPECT_LE(std::fabs(static_cast<double>(static_cast<long double>(got) - want)), 1e-12 * static_cast<double>(scale))
      << what << ": " << got << " for " << static_cast<double>(want);
}

// Everything that Stats defines, the slow way.
void expect_matches(const TensorView& x, const TensorView* p, const StatsRequest& request, const Stats& got) {
  uint64_t nan = 0, pos_inf = 0, neg_inf = 0, zero = 0, pos = 0, neg = 0;
  std::optional<uint64_t> first_bad;
  long double sum = 0, abs_sum = 0, squares = 0;
  double min = kInf, max = -kInf;
  for (uint64_t i = 0; i < x.count; ++i) {
    const double v = x.at(i);
    if (!std::isfinite(v)) {
      if (!first_bad) first_bad = i;
      nan += std::isnan(v);
      pos_inf += v > 0;
      neg_inf += v < 0;
      continue;
    }
    zero += v == 0;
    pos += v > 0;
    neg += v < 0;
    min = std::min(min, v);
    max = std::max(max, v);
    sum += v;
    abs_sum += std::fabs(v);
    squares += static_cast<long double>(v) * v;
  }
  const uint64_t finite = zero + pos + neg;
  EXPECT_EQ(got.count, x.count);
  EXPECT_EQ(got.nan_count, nan);
  EXPECT_EQ(got.pos_inf_count, pos_inf);
  EXPECT_EQ(got.neg_inf_count, neg_inf);
  EXPECT_EQ(got.zero_count, zero);
  EXPECT_EQ(got.pos_count, pos);
  EXPECT_EQ(got.neg_count, neg);
  EXPECT_EQ(got.first_bad, first_bad);
  const auto n = static_cast<long double>(finite);
  if (finite == 0) {
    EXPECT_TRUE(std::isnan(got.min) && std::isnan(got.max) && std::isnan(got.mean) && std::isnan(got.std));
  } else {
    EXPECT_EQ(got.min, min);
    EXPECT_EQ(got.max, max);
    expect_near(got.mean, sum / n, abs_sum / n, "mean");
    expect_near(got.abs_mean, abs_sum / n, abs_sum / n, "abs_mean");
    expect_near(got.l2_norm, std::sqrt(squares), std::sqrt(squares), "l2_norm");
    long double m2 = 0;
    for (uint64_t i = 0; i < x.count; ++i) {
      const double v = x.at(i);
      if (std::isfinite(v)) m2 += (v - sum / n) * (v - sum / n);
    }
    const long double deviation = finite == 1 ? 0 : std::sqrt(m2 / (n - 1));
    EXPECT_LE(std::fabs(static_cast<double>(got.std - deviation)), 1e-10 * static_cast<double>(deviation)) << "std";
  }
  for (size_t r = 0; r < request.ranges.size(); ++r) {
    uint64_t inside = 0;
    for (uint64_t i = 0; i < x.count; ++i) {
      const double v = x.at(i);
      inside += std::isfinite(v) && v >= request.ranges[r].low && v <= request.ranges[r].high;
    }
    EXPECT_EQ(got.range_counts.at(r), inside) << "range " << r;
  }
  if (p == nullptr) return;
  uint64_t pairs = 0, prev_bad = 0;
  long double diff = 0, prev_abs = 0;
  std::vector<uint64_t> close(request.close.size());
  for (uint64_t i = 0; i < x.count; ++i) {
    const double v = x.at(i), w = p->at(i);
    prev_bad += !std::isfinite(w);
    if (!std::isfinite(v) || !std::isfinite(w)) continue;
    ++pairs;
    diff += std::fabs(v - w);
    prev_abs += std::fabs(w);
    for (size_t c = 0; c < close.size(); ++c) close[c] += std::fabs(v - w) <= request.close[c].atol + request.close[c].rtol * std::fabs(w);
  }
  EXPECT_EQ(got.pairs, pairs);
  EXPECT_EQ(got.prev_nonfinite_count, prev_bad);
  EXPECT_EQ(got.close_counts, close);
  if (pairs > 0) {
    expect_near(got.diff_abs_mean, diff / static_cast<long double>(pairs), diff / static_cast<long double>(pairs), "diff_abs_mean");
    expect_near(got.prev_abs_mean, prev_abs / static_cast<long double>(pairs), prev_abs / static_cast<long double>(pairs), "prev_abs_mean");
  }
}

class EveryTarget : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    before_ = simd_target();
    ASSERT_TRUE(set_simd_target(GetParam()).ok());
  }
  void TearDown() override { ASSERT_TRUE(set_simd_target(before_).ok()); }
  const StatsRequest ranges_{{{-1, 1}, {0, 0}, {-kInf, 0.1}, {5, -5}, {0.1, kInf}, {kNan, 1}}, {}, false};
  const StatsRequest both_{{{-3, 3}}, {{1e-5, 1e-8}, {0.5, 0}}, true};
  std::string_view before_;
};

TEST_P(EveryTarget, AllLengthsUpToThreeBatches) {
  for (DType dtype : kTypes) {
    SCOPED_TRACE(dtype_name(dtype));
    for (size_t n = 0; n <= 3 * 64 + 1; ++n) {
      const Tensor x = random_tensor(dtype, n, n + 1);
      expect_matches(x.view(), nullptr, ranges_, compute_stats(x.view(), ranges_));
    }
  }
}

TEST_P(EveryTarget, BlockEdgesAndMisalignedStarts) {
  for (DType dtype : kTypes) {
    SCOPED_TRACE(dtype_name(dtype));
    for (size_t n : {4095, 4096, 4097, 8192, 12289}) {
      for (size_t misalign : {0, 1, 3}) {
        const Tensor x = random_tensor(dtype, n, n, misalign), p = random_tensor(dtype, n, n + 7, misalign);
        const TensorView previous = p.view();
        expect_matches(x.view(), &previous, both_, compute_stats(x.view(), previous, both_));
      }
    }
  }
}

TEST_P(EveryTarget, SpecialValuesInEveryLane) {
  for (DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64}) {
    SCOPED_TRACE(dtype_name(dtype));
    const double denormal = dtype == DType::kFloat64 ? 5e-324 : dtype == DType::kFloat16 ? 6e-8 : 9.2e-41;
    for (double special : {kNan, kInf, -kInf, -0.0, denormal, -denormal}) {
      for (size_t lane = 0; lane < 70; ++lane) {
        Tensor x = random_tensor(dtype, 133, lane), p = random_tensor(dtype, 133, lane + 99);
        x.set(lane, special);
        p.set((lane * 7) % 133, special);
        const TensorView previous = p.view();
        expect_matches(x.view(), &previous, both_, compute_stats(x.view(), previous, both_));
      }
    }
  }
}

TEST_P(EveryTarget, CountsOfNanAndInfAlone) {
  const uint32_t fields = kStatNan | kStatPosInf | kStatNegInf;
  for (DType dtype : kTypes) {
    SCOPED_TRACE(dtype_name(dtype));
    const bool is_float = dtype == DType::kFloat16 || dtype == DType::kBFloat16 || dtype == DType::kFloat32 || dtype == DType::kFloat64;
    for (size_t n : {1, 70, 4096 + 70}) {
      Tensor x = random_tensor(dtype, n, n, 1);
      // The largest finite value must not be taken for Inf.
      if (is_float) x.set(n / 2, dtype == DType::kFloat16 ? 65504.0 : dtype == DType::kFloat64 ? 0x1.fffffffffffffp1023 : 0x1.fep127);
      const Stats clean = compute_stats(x.view(), {}, fields);
      EXPECT_TRUE(clean.knows(fields | kStatCount));
      EXPECT_FALSE(clean.knows(kStatMean)) << "all statistics were computed";
      EXPECT_EQ(clean.count, n);
      EXPECT_EQ(clean.nan_count + clean.inf_count(), 0u);
      EXPECT_TRUE(compute_stats(x.view(), {}, fields | kStatMean).knows(kStatMean));
      for (size_t at = n > 70 ? n - 70 : 0; is_float && at < n; ++at) {
        for (double special : {kNan, kInf, -kInf}) {
          const double before = element_as_double(dtype, x.at(at));
          x.set(at, special);
          const Stats bad = compute_stats(x.view(), {}, fields);
          x.set(at, before);
          EXPECT_EQ(bad.nan_count, std::isnan(special) ? 1u : 0u) << at;
          EXPECT_EQ(bad.inf_count(), std::isnan(special) ? 0u : 1u) << at;
          EXPECT_EQ(bad.first_bad, at);
        }
      }
    }
  }
}

TEST_P(EveryTarget, OnlyNonFiniteElements) {
  Tensor x(DType::kFloat32, 9000);
  for (size_t i = 0; i < x.count; ++i) x.set(i, i % 3 == 0 ? kNan : i % 3 == 1 ? kInf : -kInf);
  expect_matches(x.view(), nullptr, ranges_, compute_stats(x.view(), ranges_));
}

TEST_P(EveryTarget, NanInTheTailBlockIsCounted) {
  Tensor x = random_tensor(DType::kFloat32, 4096 * 2 + 3, 5);
  x.set(4096 * 2 + 2, kNan);
  const Stats stats = compute_stats(x.view());
  EXPECT_EQ(stats.nan_count, 1u);
  EXPECT_EQ(stats.first_bad, 4096u * 2 + 2);
}

TEST_P(EveryTarget, ThresholdsCompareAfterWidening) {
  Tensor x(DType::kFloat32, 64);
  for (size_t i = 0; i < x.count; ++i) x.set(i, 0.1);  // 0.1f is above 0.1
  const StatsRequest request{{{0, 0.1}, {0.1, 1}}, {}, false};
  EXPECT_EQ(compute_stats(x.view(), request).range_counts, (std::vector<uint64_t>{0, 64}));
}

TEST_P(EveryTarget, DeviationSurvivesALargeMean) {
  for (DType dtype : {DType::kFloat32, DType::kFloat64, DType::kInt32}) {
    Tensor x(dtype, 20000);
    std::mt19937_64 random(3);
    for (size_t i = 0; i < x.count; ++i) x.set(i, 40000 + static_cast<double>(random() % 9) - 4);
    long double sum = 0, m2 = 0;
    for (size_t i = 0; i < x.count; ++i) sum += x.view().at(i);
    for (size_t i = 0; i < x.count; ++i) m2 += std::pow(x.view().at(i) - sum / 20000, 2);
    const double want = static_cast<double>(std::sqrt(m2 / 19999));
    EXPECT_NEAR(compute_stats(x.view()).std, want, 1e-9 * want) << dtype_name(dtype);
  }
}

TEST_P(EveryTarget, SumsOfHugeDoublesDoNotOverflow) {
  Tensor x(DType::kFloat64, 1000);
  for (size_t i = 0; i < x.count; ++i) x.set(i, 1.7e308);
  const Stats stats = compute_stats(x.view());
  EXPECT_NEAR(stats.mean / 1.7e308, 1, 1e-12);
  EXPECT_EQ(stats.nan_count, 0u);
  EXPECT_EQ(stats.std, 0);
}

TEST_P(EveryTarget, WideIntegersRoundToNearestEven) {
  Tensor x(DType::kInt64, 40);
  const int64_t value = (int64_t{1} << 53) + 1;
  for (size_t i = 0; i < x.count; ++i) std::memcpy(x.at(i), &value, sizeof value);
  EXPECT_EQ(compute_stats(x.view()).max, 9007199254740992.0);
  Tensor u(DType::kUInt64, 40);
  const uint64_t all = UINT64_MAX;
  for (size_t i = 0; i < u.count; ++i) std::memcpy(u.at(i), &all, sizeof all);
  EXPECT_EQ(compute_stats(u.view()).min, 18446744073709551616.0);
}

TEST_P(EveryTarget, SaturatedElementsAreCounted) {
  Tensor x = random_tensor(DType::kFloat16, 5000, 1);
  x.set(3, 65504);
  x.set(4999, -65504);
  EXPECT_EQ(compute_stats(x.view()).dtype_max_count, 2u);
}

TEST_P(EveryTarget, PreviousOfAnotherTypeIsWidenedWithItsOwn) {
  const Tensor x = random_tensor(DType::kFloat32, 5000, 1), p = random_tensor(DType::kFloat16, 5000, 2);
  const TensorView previous = p.view();
  expect_matches(x.view(), &previous, both_, compute_stats(x.view(), previous, both_));
}

constexpr DType kHalves[] = {DType::kFloat16, DType::kBFloat16};

Tensor from_bits(DType dtype, const std::vector<uint16_t>& bits, size_t misalign = 0) {
  Tensor tensor(dtype, bits.size(), misalign);
  std::memcpy(tensor.at(0), bits.data(), bits.size() * sizeof bits[0]);
  return tensor;
}

TEST_P(EveryTarget, EachPatternOf16BitsAlone) {
  for (DType dtype : kHalves) {
    SCOPED_TRACE(dtype_name(dtype));
    for (uint32_t pattern = 0; pattern < 0x10000; ++pattern) {
      const Tensor x = from_bits(dtype, std::vector<uint16_t>(67, static_cast<uint16_t>(pattern)));
      const double value = x.view().at(0);
      const Stats stats = compute_stats(x.view());
      const bool finite = std::isfinite(value);
      const auto all_if = [](bool holds) { return holds ? 67u : 0u; };
      ASSERT_EQ(stats.nan_count, all_if(std::isnan(value))) << pattern;
      ASSERT_EQ(stats.pos_inf_count, all_if(value == kInf)) << pattern;
      ASSERT_EQ(stats.neg_inf_count, all_if(value == -kInf)) << pattern;
      ASSERT_EQ(stats.zero_count, all_if(value == 0)) << pattern;
      ASSERT_EQ(stats.pos_count, all_if(finite && value > 0)) << pattern;
      ASSERT_EQ(stats.neg_count, all_if(finite && value < 0)) << pattern;
      ASSERT_EQ(stats.dtype_max_count, all_if(std::fabs(value) == dtype_max(dtype))) << pattern;
      if (!finite) continue;
      ASSERT_EQ(stats.min, value) << pattern;
      ASSERT_EQ(stats.max, value) << pattern;
      ASSERT_EQ(stats.mean, value) << pattern;
      ASSERT_NEAR(stats.l2_norm, std::fabs(value) * std::sqrt(67.0), 1e-12 * stats.l2_norm) << pattern;
    }
  }
}

TEST_P(EveryTarget, AllPatternsOf16BitsTogether) {
  for (DType dtype : kHalves) {
    SCOPED_TRACE(dtype_name(dtype));
    std::vector<uint16_t> all(0x10000), finite;
    for (uint32_t pattern = 0; pattern < all.size(); ++pattern) {
      all[pattern] = static_cast<uint16_t>(pattern);
      const auto* bytes = reinterpret_cast<const std::byte*>(&all[pattern]);
      if (std::isfinite(element_as_double(dtype, bytes))) finite.push_back(all[pattern]);
    }
    for (size_t misalign : {0, 1}) {
      const Tensor x = from_bits(dtype, all, misalign), y = from_bits(dtype, finite, misalign);
      expect_matches(x.view(), nullptr, ranges_, compute_stats(x.view(), ranges_));
      expect_matches(y.view(), nullptr, ranges_, compute_stats(y.view(), ranges_));
      std::shuffle(finite.begin(), finite.end(), std::mt19937_64(7));
      const Tensor shuffled = from_bits(dtype, finite, misalign);
      const TensorView previous = shuffled.view();
      expect_matches(y.view(), &previous, both_, compute_stats(y.view(), previous, both_));
    }
  }
}

// The extremes of 16-bit floats are computed from their bits, whose order depends on the signs.
TEST_P(EveryTarget, ExtremesWhateverTheSigns) {
  for (DType dtype : kHalves) {
    for (const auto& [low, high] : {std::pair(0.5, 3.0), std::pair(-3.0, -0.5), std::pair(-3.0, 0.5), std::pair(-0.0, 2.0),
                                    std::pair(-2.0, -0.0), std::pair(-0.0, 0.0), std::pair(-0.0, -0.0), std::pair(0.0, 0.0)}) {
      for (size_t n : {size_t{64}, size_t{65}, size_t{4096}, size_t{4099}}) {
        Tensor x(dtype, n);
        for (size_t i = 0; i < n; ++i) x.set(i, i == n / 3 ? low : high);
        const Stats stats = compute_stats(x.view());
        EXPECT_EQ(stats.min, std::min(low, high)) << low << ' ' << high << ' ' << n;
        EXPECT_EQ(stats.max, std::max(low, high)) << low << ' ' << high << ' ' << n;
        expect_matches(x.view(), nullptr, ranges_, compute_stats(x.view(), ranges_));
      }
    }
  }
}

// Sums of values of very different sizes: small ones must not be lost next to large ones.
TEST_P(EveryTarget, SumsHoldOverTheWholeRangeOf16Bits) {
  for (DType dtype : kHalves) {
    SCOPED_TRACE(dtype_name(dtype));
    std::mt19937_64 random(5);
    for (int round = 0; round < 20; ++round) {
      std::vector<uint16_t> bits(round % 2 == 0 ? 4096 : 97);
      for (uint16_t& each : bits) {
        do {
          each = static_cast<uint16_t>(random());
        } while (!std::isfinite(element_as_double(dtype, reinterpret_cast<const std::byte*>(&each))));
      }
      const Tensor x = from_bits(dtype, bits);
      expect_matches(x.view(), nullptr, ranges_, compute_stats(x.view(), ranges_));
    }
  }
}

TEST_P(EveryTarget, ZerosAndSignsOfFloatsAreCountedInFullBlocks) {
  for (DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kFloat64}) {
    SCOPED_TRACE(dtype_name(dtype));
    for (double value : {0.0, -0.0, -1.0, 1.0, kNan, kInf, -kInf}) {
      Tensor x(dtype, 4096 + 64);
      for (size_t i = 0; i < x.count; ++i) x.set(i, value);
      expect_matches(x.view(), nullptr, ranges_, compute_stats(x.view(), ranges_));
      x.set(9, -2);
      x.set(4100, 0);
      expect_matches(x.view(), nullptr, ranges_, compute_stats(x.view(), ranges_));
    }
  }
}

TEST_P(EveryTarget, NoElementsAndNoPreviousAreFine) {
  for (DType dtype : kTypes) {
    StatsPass pass(dtype, both_, DType::kFloat64);
    pass.update(nullptr, nullptr, 0);
    pass.update(nullptr, 0);
    const Stats stats = pass.finish();
    EXPECT_EQ(stats.count, 0u);
    EXPECT_EQ(stats.pairs, 0u);
    EXPECT_TRUE(std::isnan(stats.mean) && std::isnan(stats.diff_abs_mean)) << dtype_name(dtype);
    // A request for changes without a previous value gives no change statistics.
    const Tensor x = random_tensor(dtype, 77, 1, 1);
    StatsPass alone(dtype, both_);
    alone.update(x.view().data, x.count);
    EXPECT_FALSE(alone.finish().knows(kStatChange));
  }
}

TEST_P(EveryTarget, PreviousOfEveryOtherTypeAndAlignment) {
  for (DType dtype : kTypes) {
    for (DType before : kTypes) {
      SCOPED_TRACE(std::string(dtype_name(dtype)) + " after " + std::string(dtype_name(before)));
      const Tensor x = random_tensor(dtype, 4096 + 35, 1, 1), p = random_tensor(before, 4096 + 35, 2, 3);
      const TensorView previous = p.view();
      expect_matches(x.view(), &previous, both_, compute_stats(x.view(), previous, both_));
    }
  }
}

TEST_P(EveryTarget, TypesWithoutStatisticsAreAnInternalError) {
  for (size_t i = 0; i <= kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (is_evaluable(dtype)) continue;
    EXPECT_THROW(StatsPass(dtype, {}), InternalError) << i;
    if (dtype != DType::kUnknown) {
      EXPECT_THROW(StatsPass(DType::kFloat32, both_, dtype), InternalError) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Simd, EveryTarget, testing::ValuesIn([] {
                           std::vector<std::string> names;
                           for (std::string_view name : simd_targets()) names.emplace_back(name);
                           return names;
                         }()),
                         [](const auto& param) { return param.param; });

TEST(SimdTargets, UnknownNameListsTheKnown) {
  const Status status = set_simd_target("neon9");
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(status.message().find("scalar"), std::string::npos);
}

TEST(SimdTargets, TargetsAgreeOnCounts) {
  Tensor x = random_tensor(DType::kFloat32, 100003, 11);
  x.set(77, kNan);
  const std::string before(simd_target());
  std::optional<Stats> first;
  for (std::string_view name : simd_targets()) {
    ASSERT_TRUE(set_simd_target(name).ok());
    const Stats stats = compute_stats(x.view());
    if (!first) first = stats;
    EXPECT_EQ(stats.zero_count, first->zero_count) << name;
    EXPECT_EQ(stats.max, first->max) << name;
    EXPECT_EQ(stats.first_bad, first->first_bad) << name;
  }
  ASSERT_TRUE(set_simd_target(before).ok());
}

// It reads more than two gigabytes, which takes a minute under a sanitizer and finds nothing new.
#if !defined(MSDBG_ASAN) && !defined(MSDBG_TSAN)
TEST(SimdCounters, CountBeyondThirtyTwoBits) {
  // The same mebibyte repeatedly: more than 2^31 elements without the memory.
  std::vector<std::byte> block(1 << 20, std::byte{1});
  block[0] = std::byte{0};
  StatsPass pass(DType::kInt8, {});
  constexpr uint64_t kTimes = 2200;
  for (uint64_t i = 0; i < kTimes; ++i) pass.update(block.data(), block.size());
  const Stats stats = pass.finish();
  EXPECT_EQ(stats.count, kTimes << 20);
  EXPECT_EQ(stats.zero_count, kTimes);
  EXPECT_EQ(stats.pos_count, (kTimes << 20) - kTimes);
}
#endif

}  // namespace
}  // namespace msdbg
