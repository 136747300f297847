// The comparison of two tensors on every target of this processor, checked against a plain loop.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "msdbg/compare.h"
#include "support/fake_session.h"

namespace msdbg {
namespace {

using testing::make_tensor;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr DType kTypes[] = {DType::kBool,     DType::kInt8,    DType::kInt16,  DType::kInt32,  DType::kInt64,
                            DType::kUInt8,    DType::kUInt16,  DType::kUInt32, DType::kUInt64, DType::kFloat16,
                            DType::kBFloat16, DType::kFloat32, DType::kFloat64};
constexpr size_t kBatch = 16;  // elements of the widest batch

struct Tensor {
  Tensor(DType type, const std::vector<double>& values, size_t misalign = 0)
      : dtype(type), shape{static_cast<int64_t>(values.size())}, offset(misalign) {
    const TensorPtr made = make_tensor(type, shape, values);
    bytes.resize(offset);
    bytes.insert(bytes.end(), made->bytes().begin(), made->bytes().end());
    bytes.resize(bytes.size() + 8);
  }
  TensorView view() const { return {dtype, shape, bytes.data() + offset, static_cast<uint64_t>(shape[0])}; }

  DType dtype;
  Shape shape;
  size_t offset;
  std::vector<std::byte> bytes;
};

// Distance by walking bits: the value's position among all values of its type.
template <typename Bits>
uint64_t ulps(const std::byte* a, const std::byte* b) {
  const auto place = [](const std::byte* at) {
    Bits bits;
    std::memcpy(&bits, at, sizeof bits);
    constexpr Bits kSign = Bits(Bits(1) << (sizeof(Bits) * 8 - 1));
    const auto size = static_cast<long double>(static_cast<Bits>(bits & static_cast<Bits>(~kSign)));
    return bits & kSign ? -size : size;
  };
  return static_cast<uint64_t>(std::fabs(place(a) - place(b)));
}

void near(double got, long double want, const char* what) {
  EXPECT_LE(std::fabs(static_cast<double>(static_cast<long double>(got) - want)), 1e-12 * std::fabs(static_cast<double>(want)))
      << what << ": " << got;
}

void expect_matches(const TensorView& a, const TensorView& b, CloseRequest tolerance) {
  const Comparison got = compare_tensors(a, b, tolerance);
  long double diff = 0, error = 0, aa = 0, bb = 0, ab = 0;
  uint64_t pairs = 0, within = 0, nan_mismatch = 0, inf_mismatch = 0, ulp = 0, nan_a = 0, inf_b = 0;
  double max_abs = 0, max_rel = 0;
  std::optional<uint64_t> abs_at, rel_at, first;
  const size_t item = item_size(a.dtype);
  const bool same = a.dtype == b.dtype;
  for (uint64_t i = 0; i < a.count; ++i) {
    const double x = a.at(i), y = b.at(i);
    const bool differs =
        same ? std::memcmp(a.data + i * item, b.data + i * item, item) != 0 : !(x == y || (std::isnan(x) && std::isnan(y)));
    if (differs && !first) first = i;
    nan_a += std::isnan(x);
    inf_b += std::isinf(y);
    if (!std::isfinite(x) || !std::isfinite(y)) {
      if (std::isnan(x) != std::isnan(y)) ++nan_mismatch;
      else if (!std::isnan(x) && x != y) ++inf_mismatch;
      else ++within;
      continue;
    }
    ++pairs;
    const double d = std::fabs(x - y);
    within += d <= tolerance.atol + tolerance.rtol * std::fabs(y);
    if (d > max_abs) max_abs = d, abs_at = i;
    if (y != 0 && d / std::fabs(y) > max_rel) max_rel = d / std::fabs(y), rel_at = i;
    diff += d;
    const long double lx = x, ly = y;
    error += (lx - ly) * (lx - ly), aa += lx * lx, bb += ly * ly, ab += lx * ly;
    if (same && is_float(a.dtype)) {
      const std::byte *p = a.data + i * item, *q = b.data + i * item;
      ulp = std::max(ulp, item == 2 ? ulps<uint16_t>(p, q) : item == 4 ? ulps<uint32_t>(p, q) : ulps<uint64_t>(p, q));
    }
  }
  EXPECT_EQ(got.count, a.count);
  EXPECT_EQ(got.pairs, pairs);
  EXPECT_EQ(got.within, within);
  EXPECT_EQ(got.nan_mismatch, nan_mismatch);
  EXPECT_EQ(got.inf_mismatch, inf_mismatch);
  EXPECT_EQ(got.nan_a, nan_a);
  EXPECT_EQ(got.inf_b, inf_b);
  EXPECT_EQ(got.first_difference, first);
  EXPECT_EQ(got.bit_equal, same && !first);
  EXPECT_EQ(got.max_ulp.has_value(), same && is_float(a.dtype));
  EXPECT_EQ(got.max_ulp.value_or(0), ulp);
  if (pairs == 0) {
    EXPECT_TRUE(std::isnan(got.max_abs_error) && std::isnan(got.max_rel_error) && std::isnan(got.cosine));
    return;
  }
  EXPECT_EQ(got.max_abs_error, max_abs);
  EXPECT_EQ(got.max_abs_at, abs_at);
  EXPECT_EQ(got.max_rel_error, max_rel);
  EXPECT_EQ(got.max_rel_at, rel_at);
  near(got.mean_abs_error, diff / static_cast<long double>(pairs), "mean_abs_error");
  near(got.norm_a, std::sqrt(aa), "norm_a");
  near(got.norm_b, std::sqrt(bb), "norm_b");
  near(got.norm_error, std::sqrt(error), "norm_error");
  if (aa == 0 || bb == 0) return;
  EXPECT_NEAR(got.cosine, static_cast<double>(ab / std::sqrt(aa) / std::sqrt(bb)), 1e-12);
}

std::vector<double> normal_values(size_t n, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(0.3, 20);
  std::vector<double> values(n);
  for (double& v : values) v = random() % 7 == 0 ? 0 : normal(random);
  return values;
}

// The second tensor is the first with errors of all sizes in some positions.
std::vector<double> disturbed(std::vector<double> values, uint64_t seed) {
  std::mt19937_64 random(seed);
  for (double& v : values) {
    if (random() % 3 == 0) v += v * std::ldexp(1.0, -static_cast<int>(random() % 24));
    if (random() % 50 == 0) v = -v;
  }
  return values;
}

class EveryPairTarget : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    before_ = simd_target();
    ASSERT_TRUE(set_simd_target(GetParam()).ok());
  }
  void TearDown() override { ASSERT_TRUE(set_simd_target(before_).ok()); }

 private:
  std::string before_;
};

std::vector<std::string> targets() { return {simd_targets().begin(), simd_targets().end()}; }
INSTANTIATE_TEST_SUITE_P(Simd, EveryPairTarget, ::testing::ValuesIn(targets()), [](const auto& target) { return target.param; });

TEST_P(EveryPairTarget, AgreesWithThePlainLoopForEveryTypeAndLength) {
  for (DType dtype : kTypes) {
    for (size_t n = 0; n <= 2 * kBatch + 1; ++n) {
      const auto values = normal_values(n, n + 1);
      SCOPED_TRACE(std::string(dtype_name(dtype)) + " of " + std::to_string(n));
      expect_matches(Tensor(dtype, disturbed(values, n)).view(), Tensor(dtype, values).view(), {1e-3, 1e-6});
    }
    SCOPED_TRACE(dtype_name(dtype));
    const auto values = normal_values(3 * ComparePass::kBlock + 17, 3);
    expect_matches(Tensor(dtype, disturbed(values, 4)).view(), Tensor(dtype, values).view(), {1e-3, 1e-6});
  }
}

TEST_P(EveryPairTarget, AlignmentDoesNotMatter) {
  const auto values = normal_values(101, 5);
  for (DType dtype : kTypes) {
    for (size_t shift : {1, 2, 3, 7}) {
      SCOPED_TRACE(dtype_name(dtype));
      expect_matches(Tensor(dtype, disturbed(values, 6), shift).view(), Tensor(dtype, values, shift + 2).view(), {1e-3, 1e-6});
    }
  }
}

TEST_P(EveryPairTarget, NanAndInfAreCountedWhereverTheyLie) {
  const double specials[] = {kNan, kInf, -kInf, -0.0, 0.0, 1.0};
  for (DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64}) {
    for (size_t n : {size_t{1}, kBatch - 1, kBatch, 2 * kBatch + 1, ComparePass::kBlock + 5}) {
      for (size_t at : {size_t{0}, n / 2, n - 1}) {
        for (double left : specials) {
          for (double right : specials) {
            auto a = normal_values(n, 7), b = disturbed(a, 8);
            a[at] = left;
            b[at] = right;
            expect_matches(Tensor(dtype, a).view(), Tensor(dtype, b).view(), {1e-3, 1e-6});
          }
        }
      }
    }
  }
}

TEST_P(EveryPairTarget, DenormalsCountAsTheSmallNumbersTheyAre) {
  for (DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat32}) {
    const double least = dtype == DType::kFloat16 ? 0x1p-24 : dtype == DType::kFloat32 ? 0x1p-149 : 0x1p-133;
    std::vector<double> a(37), b(37);
    for (size_t i = 0; i < a.size(); ++i) {
      a[i] = static_cast<double>(i) * least;
      b[i] = i % 5 == 0 ? a[i] : static_cast<double>(i + 1) * -least;
    }
    SCOPED_TRACE(dtype_name(dtype));
    expect_matches(Tensor(dtype, a).view(), Tensor(dtype, b).view(), {0, 2 * least});
    EXPECT_EQ(compare_tensors(Tensor(dtype, a).view(), Tensor(dtype, b).view(), {}).max_ulp, 36u + 37u);
  }
}

TEST_P(EveryPairTarget, TheEndsOfARangeAreFarthestApart) {
  for (const auto& [dtype, distance] :
       {std::pair(DType::kFloat16, uint64_t{2} * 0x7bff), std::pair(DType::kBFloat16, uint64_t{2} * 0x7f7f),
        std::pair(DType::kFloat32, uint64_t{2} * 0x7f7fffff), std::pair(DType::kFloat64, uint64_t{2} * 0x7fefffffffffffff)}) {
    for (size_t n : {size_t{3}, 2 * kBatch}) {
      const std::vector<double> a(n, dtype_max(dtype)), b(n, -dtype_max(dtype));
      SCOPED_TRACE(dtype_name(dtype));
      EXPECT_EQ(compare_tensors(Tensor(dtype, a).view(), Tensor(dtype, b).view(), {}).max_ulp, distance);
    }
  }
}

TEST_P(EveryPairTarget, EachPatternOf16BitsAgainstOthers) {
  for (DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    SCOPED_TRACE(dtype_name(dtype));
    std::vector<double> left(0x10000);
    for (uint32_t pattern = 0; pattern < left.size(); ++pattern) {
      const auto bits = static_cast<uint16_t>(pattern);
      left[pattern] = element_as_double(dtype, reinterpret_cast<const std::byte*>(&bits));
    }
    for (size_t distance : {size_t{0}, size_t{1}, size_t{3}, size_t{0x8000}, size_t{0x1234}}) {
      std::vector<double> right = left;
      std::rotate(right.begin(), right.begin() + static_cast<std::ptrdiff_t>(distance), right.end());
      expect_matches(Tensor(dtype, left).view(), Tensor(dtype, right).view(), {1e-3, 1e-6});
    }
  }
}

TEST_P(EveryPairTarget, TypesMayDiffer) {
  const auto values = normal_values(2 * ComparePass::kBlock + 9, 9);
  for (DType left : kTypes) {
    for (DType right : {DType::kFloat16, DType::kFloat32, DType::kFloat64, DType::kInt32}) {
      if (left == right) continue;
      SCOPED_TRACE(std::string(dtype_name(left)) + " and " + std::string(dtype_name(right)));
      expect_matches(Tensor(left, disturbed(values, 1)).view(), Tensor(right, values).view(), {1e-3, 1e-6});
    }
  }
}

TEST_P(EveryPairTarget, HugeDoublesKeepTheirNorms) {
  const std::vector<double> a(100, 3e300), b(100, 4e300);
  const Comparison got = compare_tensors(Tensor(DType::kFloat64, a).view(), Tensor(DType::kFloat64, b).view(), {});
  EXPECT_NEAR(got.norm_a / 3e301, 1, 1e-12);
  EXPECT_NEAR(got.norm_error / 1e301, 1, 1e-12);
  EXPECT_NEAR(got.cosine, 1, 1e-12);
  EXPECT_NEAR(got.mean_abs_error / 1e300, 1, 1e-12);
}

TEST_P(EveryPairTarget, TinyDoublesKeepTheirNorms) {
  for (size_t n : {size_t{1}, kBatch + 3, ComparePass::kBlock + 3}) {
    for (double unit : {1e-163, 1e-200, 1e-310, 1e-320}) {
      const std::vector<double> a(n, 3 * unit), b(n, 4 * unit);
      const Comparison got = compare_tensors(Tensor(DType::kFloat64, a).view(), Tensor(DType::kFloat64, b).view(), {});
      const double root = std::sqrt(static_cast<double>(n)), slack = unit < 1e-307 ? 1e-3 : 1e-12;  // of a rounded result
      SCOPED_TRACE(std::to_string(n) + " of " + std::to_string(std::log10(unit)));
      EXPECT_NEAR(got.norm_a / (3 * unit) / root, 1, slack);
      EXPECT_NEAR(got.norm_error / unit / root, 1, slack);
      EXPECT_NEAR(got.mean_abs_error / unit, 1, slack);
      EXPECT_NEAR(got.relative_error(), 0.25, slack);
      EXPECT_NEAR(got.cosine, 1, 1e-12);
    }
  }
}

TEST_P(EveryPairTarget, EachSideIsSummedInUnitsOfItsOwn) {
  const auto compare = [](const std::vector<double>& a, const std::vector<double>& b) {
    return compare_tensors(Tensor(DType::kFloat64, a).view(), Tensor(DType::kFloat64, b).view(), {});
  };
  // Tiny against huge, in opposite directions.
  Comparison got = compare(std::vector<double>(100, 1e-200), std::vector<double>(100, -1e200));
  EXPECT_NEAR(got.norm_a / 1e-199, 1, 1e-12);
  EXPECT_NEAR(got.norm_b / 1e201, 1, 1e-12);
  EXPECT_NEAR(got.norm_error / 1e201, 1, 1e-12);
  EXPECT_NEAR(got.cosine, -1, 1e-12);
  // Orthogonal, and only one side has anything but zeros.
  got = compare({1e-200, 0}, {0, 1e-200});
  EXPECT_EQ(got.cosine, 0);
  EXPECT_NEAR(got.relative_error(), std::sqrt(2.0), 1e-12);
  got = compare({1e-200, 0}, {0, 0});
  EXPECT_TRUE(std::isnan(got.cosine));
  EXPECT_EQ(got.relative_error(), kInf);
  // Differences far below values that are otherwise equal.
  got = compare({1e300, 2e-200}, {1e300, 1e-200});
  EXPECT_NEAR(got.norm_error / 1e-200, 1, 1e-12);
  EXPECT_NEAR(got.mean_abs_error / 0.5e-200, 1, 1e-12);
  EXPECT_NEAR(got.norm_a / 1e300, 1, 1e-12);
  // Later blocks of other sizes.
  std::vector<double> a(3 * ComparePass::kBlock, 2e-200), b(a.size(), 1e-200);
  std::fill(a.begin() + ComparePass::kBlock, a.begin() + 2 * ComparePass::kBlock, 2.0);
  std::fill(b.begin() + ComparePass::kBlock, b.begin() + 2 * ComparePass::kBlock, 1.0);
  got = compare(a, b);
  EXPECT_NEAR(got.norm_error / 64, 1, 1e-12);
  EXPECT_NEAR(got.relative_error(), 1, 1e-12);
}

TEST_P(EveryPairTarget, AnInfiniteRelativeErrorHasAPlace) {
  for (size_t n : {size_t{1}, kBatch, ComparePass::kBlock + 5}) {
    for (size_t at : {size_t{0}, n / 2, n - 1}) {
      std::vector<double> a(n, 1.0), b(n, 1.5);
      b[at] = 1e-310;
      const Comparison got = compare_tensors(Tensor(DType::kFloat64, a).view(), Tensor(DType::kFloat64, b).view(), {});
      SCOPED_TRACE(std::to_string(at) + " of " + std::to_string(n));
      EXPECT_EQ(got.max_rel_error, kInf);
      EXPECT_EQ(got.max_rel_at, at);
    }
  }
  // The difference itself is infinite.
  const Comparison got = compare_tensors(Tensor(DType::kFloat64, {1, -1.5e308}).view(), Tensor(DType::kFloat64, {2, 1.5e308}).view(), {});
  EXPECT_EQ(got.max_rel_error, kInf);
  EXPECT_EQ(got.max_rel_at, 1u);
  EXPECT_EQ(got.max_abs_error, kInf);
  EXPECT_EQ(got.max_abs_at, 1u);
}

TEST_P(EveryPairTarget, SmallRelativeErrorsOfLargeNumbersAreFound) {
  std::vector<double> a(kBatch * 2, 3e38), b = a;
  b[5] = 0x1p-149;
  a[5] = 0;
  expect_matches(Tensor(DType::kFloat32, a).view(), Tensor(DType::kFloat32, b).view(), {1e-3, 0});
  b[5] = 3e38, a[5] = -3e38;  // beyond the range of float
  expect_matches(Tensor(DType::kFloat32, a).view(), Tensor(DType::kFloat32, b).view(), {1e-3, 0});
}

TEST_P(EveryPairTarget, LargestRelativeErrorIsFoundWhicheverBlockHoldsIt) {
  constexpr size_t kBlock = ComparePass::kBlock;
  for (DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat32}) {
    const double least = dtype == DType::kFloat16 ? 0x1p-24 : dtype == DType::kFloat32 ? 0x1p-149 : 0x1p-133;
    // A base value in every block, and a later block with: the same, slightly more, far more, beyond the range of float.
    for (const auto& [x, y] : {std::pair(1.5, 1.0), std::pair(1.5078125, 1.0), std::pair(2000.0, 1.0), std::pair(least, -least),
                               std::pair(dtype_max(dtype), least), std::pair(0.0, dtype_max(dtype))}) {
      for (size_t block : {1, 3}) {
        std::vector<double> b(4 * kBlock + 7, 1.0), a = b;
        for (size_t i = 3; i < a.size(); i += kBlock / 2) a[i] = 1.5;
        a[block * kBlock + 11] = x;
        b[block * kBlock + 11] = y;
        a[3 * kBlock + 100] = 2 * least;
        b[3 * kBlock + 100] = least;
        SCOPED_TRACE(std::string(dtype_name(dtype)) + " " + std::to_string(x) + " for " + std::to_string(y));
        expect_matches(Tensor(dtype, a).view(), Tensor(dtype, b).view(), {1e-3, 0});
      }
    }
  }
}

TEST(Comparison, TypesWithoutValuesAreAnInternalError) {
  for (size_t i = 0; i <= kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (is_evaluable(dtype)) continue;
    EXPECT_THROW(ComparePass(dtype, DType::kFloat32, {}), InternalError) << i;
    EXPECT_THROW(ComparePass(DType::kFloat32, dtype, {}), InternalError) << i;
  }
}

TEST(Comparison, NoElements) {
  ComparePass pass(DType::kFloat16, DType::kFloat32, {});
  pass.update(nullptr, nullptr, 0);
  const Comparison got = pass.finish();
  EXPECT_EQ(got.count, 0u);
  EXPECT_TRUE(got.all_within());
  EXPECT_TRUE(std::isnan(got.norm_a));
}

TEST(Comparison, ZerosOfBothSignsAgreeButAreNotTheSameBits) {
  const Comparison got = compare_tensors(Tensor(DType::kFloat32, {0.0, 1}).view(), Tensor(DType::kFloat32, {-0.0, 1}).view(), {});
  EXPECT_FALSE(got.bit_equal);
  EXPECT_EQ(got.first_difference, 0u);
  EXPECT_EQ(got.max_ulp, 0u);
  EXPECT_TRUE(got.all_within());
  EXPECT_FALSE(got.max_abs_at);
}

TEST(Comparison, RelativeErrorIsThatOfTheNorms) {
  EXPECT_NEAR(compare_tensors(Tensor(DType::kFloat32, {3, 4}).view(), Tensor(DType::kFloat32, {0, 5}).view(), {}).relative_error(),
              std::sqrt(10.0) / 5, 1e-15);
  EXPECT_EQ(compare_tensors(Tensor(DType::kFloat32, {3, 4}).view(), Tensor(DType::kFloat32, {0, 0}).view(), {}).relative_error(), kInf);
  EXPECT_EQ(compare_tensors(Tensor(DType::kFloat32, {3, kNan}).view(), Tensor(DType::kFloat32, {3, 4}).view(), {}).relative_error(), kInf);
  EXPECT_EQ(compare_tensors(Tensor(DType::kFloat32, {0, kNan}).view(), Tensor(DType::kFloat32, {0, kNan}).view(), {}).relative_error(), 0);
}

}  // namespace
}  // namespace msdbg
