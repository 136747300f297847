// At what share of the read limit of two streams does the comparison of two tensors run?
//
// The limit is the time in which one thread sums the bytes of both as float32 with AVX2, with eight accumulators. The RATIO lines
// are measured by alternating with it. The two tensors differ by rounding in every third element, so comparing bits alone decides
// nothing.
#include <immintrin.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>

#include "msdbg/compare.h"
#include "ratio.h"
#include "read_limit.h"

namespace msdbg {
namespace {

constexpr size_t kInCache = size_t{128} << 10, kOutOfCache = size_t{256} << 20;

struct Case {
  const char* name;
  DType dtype;
  size_t nan_every;
  double target;  ///< out of the cache; 0: none
};
constexpr Case kCases[] = {{"float32", DType::kFloat32, 0, 0.50},  {"float16", DType::kFloat16, 0, 0.70},
                           {"bfloat16", DType::kBFloat16, 0, 0.70}, {"float64", DType::kFloat64, 0, 0},
                           {"int32", DType::kInt32, 0, 0},          {"float32_nan_in_every_block", DType::kFloat32, 4096, 0}};

void store(DType dtype, double value, std::byte* out) {
  const auto put = [&](auto v) { std::memcpy(out, &v, sizeof v); };
  switch (dtype) {
    case DType::kFloat16: return put(float_to_half(value));
    case DType::kBFloat16: return put(float_to_bfloat16(value));
    case DType::kFloat64: return put(value);
    case DType::kInt32: return put(static_cast<int32_t>(value * 1000));
    default: return put(static_cast<float>(value));
  }
}

std::vector<std::byte> make_data(const Case& what, size_t bytes, bool second) {
  const size_t item = item_size(what.dtype);
  std::vector<std::byte> pattern(std::min(bytes, size_t{1} << 20)), data(bytes);
  std::mt19937 random(1);
  std::normal_distribution<double> normal(0, 1);
  for (size_t i = 0; i < pattern.size() / item; ++i) {
    double v = normal(random);
    if (second && i % 3 == 0) v *= 1 + 0x1p-9;
    if (what.nan_every != 0 && i % what.nan_every == 0) v = NAN;
    store(what.dtype, v, pattern.data() + i * item);
  }
  for (size_t at = 0; at < bytes; at += pattern.size()) std::memcpy(data.data() + at, pattern.data(), std::min(pattern.size(), bytes - at));
  return data;
}

void print_share(const Case& what, size_t bytes, const char* where, double least) {
  const auto a = make_data(what, bytes, false), b = make_data(what, bytes, true);
  const size_t n = bytes / item_size(what.dtype), repeat = bytes < (size_t{1} << 24) ? 200 : 1;
  const auto ours = [&] {
    for (size_t i = 0; i < repeat; ++i) {
      ComparePass pass(what.dtype, what.dtype, {1e-5, 1e-8});
      pass.update(a.data(), b.data(), n);
      benchmark::DoNotOptimize(pass.finish());
    }
  };
  const auto limit = [&] {
    for (size_t i = 0; i < repeat; ++i) {
      benchmark::DoNotOptimize(sum_avx2(a.data(), bytes));
      benchmark::DoNotOptimize(sum_avx2(b.data(), bytes));
    }
  };
  const bench::Ratio ratio = bench::compare(ours, limit, 11);
  const double streamed = static_cast<double>(2 * bytes * repeat) / 1e9;
  char target[32] = "target none";
  if (least > 0) std::snprintf(target, sizeof target, "target >= %.2f", least);
  std::printf("RATIO compare_%s_%s %.2f %s   (%.1f GB/s, limit %.1f GB/s)\n", what.name, where, 1 / ratio.value, target,
              streamed / ratio.ours, streamed / ratio.baseline);
  std::fflush(stdout);
}

}  // namespace
}  // namespace msdbg

int main() {
  using namespace msdbg;
  std::printf("# %s\n", std::string(simd_target()).c_str());
  for (const Case& what : kCases) print_share(what, kOutOfCache, "out_of_cache", what.target);
  for (const Case& what : kCases) print_share(what, kInCache, "in_L2", 0);
  return 0;
}
