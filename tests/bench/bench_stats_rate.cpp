// At what share of the read limit do full statistics run?
//
// The limit is the rate at which one thread sums the same bytes as float32 with AVX2, with eight accumulators. Google Benchmark
// reports GB/s; the RATIO lines after it are measured by alternating with the limit.
#include <immintrin.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>

#include "msdbg/simd.h"
#include "ratio.h"
#include "read_limit.h"

namespace msdbg {
namespace {

constexpr size_t kInCache = size_t{256} << 10, kOutOfCache = size_t{512} << 20;

// Finite values of the type; `nan_every` sets the distance between NaN elements.
std::vector<std::byte> make_data(DType dtype, size_t bytes, size_t nan_every) {
  const size_t item = item_size(dtype);
  std::vector<std::byte> pattern(size_t{1} << 20), data(bytes);
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 1);
  for (size_t i = 0; i < pattern.size() / item; ++i) {
    const float v = normal(random);
    const double d = static_cast<double>(v);
    const uint16_t half = float_to_half(d), brain = float_to_bfloat16(d);
    const int32_t whole = static_cast<int32_t>(v * 1000);
    const float nan = NAN;
    const uint16_t brain_nan = float_to_bfloat16(NAN);
    const void* from = &v;
    if (dtype == DType::kFloat64) from = &d;
    if (dtype == DType::kFloat16) from = &half;
    if (dtype == DType::kBFloat16) from = &brain;
    if (dtype == DType::kInt32) from = &whole;
    if (nan_every != 0 && i % nan_every == 0) from = dtype == DType::kBFloat16 ? static_cast<const void*>(&brain_nan) : &nan;
    std::memcpy(pattern.data() + i * item, from, item);
  }
  for (size_t at = 0; at < bytes; at += pattern.size()) std::memcpy(data.data() + at, pattern.data(), std::min(pattern.size(), bytes - at));
  return data;
}

struct Case {
  const char* name;
  DType dtype;
  size_t nan_every;
  bool previous;
  double target, cached_target;  ///< out of the cache and in L2; 0: none
};
constexpr Case kCases[] = {
    {"float32", DType::kFloat32, 0, false, 0.85, 0.16},
    {"bfloat16", DType::kBFloat16, 0, false, 0.85, 0.09},
    {"float16", DType::kFloat16, 0, false, 0.85, 0.09},
    {"float64", DType::kFloat64, 0, false, 0.75, 0},
    {"int32", DType::kInt32, 0, false, 0.75, 0},
    {"float32_with_previous", DType::kFloat32, 0, true, 0.70, 0},
    {"float32_nan_in_every_block", DType::kFloat32, 4096, false, 0.40, 0},
    {"bfloat16_nan_in_every_block", DType::kBFloat16, 4096, false, 0, 0},
};

Stats run(const Case& what, const std::vector<std::byte>& data, const std::vector<std::byte>& previous) {
  StatsRequest request;
  request.change = what.previous;
  if (what.previous) request.close = {{1e-5, 1e-8}};
  StatsPass pass(what.dtype, request, what.previous ? what.dtype : DType::kUnknown);
  const size_t n = data.size() / item_size(what.dtype);
  if (what.previous) pass.update(data.data(), previous.data(), n);
  else pass.update(data.data(), n);
  return pass.finish();
}

void statistics(benchmark::State& state, const Case& what, size_t bytes) {
  const auto data = make_data(what.dtype, bytes, what.nan_every);
  const auto previous = what.previous ? data : std::vector<std::byte>();
  for (auto _ : state) benchmark::DoNotOptimize(run(what, data, previous));
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(bytes) * (what.previous ? 2 : 1));
}

void read_limit(benchmark::State& state, size_t bytes) {
  const auto data = make_data(DType::kFloat32, bytes, 0);
  for (auto _ : state) benchmark::DoNotOptimize(sum_avx2(data.data(), bytes));
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(bytes));
}

void print_share(const Case& what, size_t bytes, const char* where, double least) {
  const auto data = make_data(what.dtype, bytes, what.nan_every);
  const auto previous = what.previous ? data : std::vector<std::byte>();
  const size_t repeat = bytes < (size_t{1} << 24) ? 200 : 1;
  const auto ours = [&] {
    for (size_t i = 0; i < repeat; ++i) benchmark::DoNotOptimize(run(what, data, previous));
  };
  const auto limit = [&] {
    for (size_t i = 0; i < repeat; ++i) {
      benchmark::DoNotOptimize(sum_avx2(data.data(), bytes));
      if (what.previous) benchmark::DoNotOptimize(sum_avx2(previous.data(), bytes));
    }
  };
  const bench::Ratio ratio = bench::compare(ours, limit, 11);
  const double streamed = static_cast<double>(bytes * repeat * (what.previous ? 2 : 1)) / 1e9;
  char target[32] = "target none";
  if (least > 0) std::snprintf(target, sizeof target, "target >= %.2f", least);
  std::printf("RATIO %s_%s %.2f %s   (%.1f GB/s, limit %.1f GB/s)\n", what.name, where, 1 / ratio.value, target, streamed / ratio.ours,
              streamed / ratio.baseline);
  std::fflush(stdout);
}

}  // namespace
}  // namespace msdbg

int main(int argc, char** argv) {
  using namespace msdbg;
  for (const Case& what : kCases) {
    benchmark::RegisterBenchmark((std::string("statistics/") + what.name + "/in_cache").c_str(),
                                 [&what](benchmark::State& state) { statistics(state, what, kInCache); });
  }
  benchmark::RegisterBenchmark("read_limit/in_cache", [](benchmark::State& state) { read_limit(state, kInCache); });
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  for (const Case& what : kCases) print_share(what, kOutOfCache, "out_of_cache", what.target);
  for (const Case& what : kCases) print_share(what, kInCache, "in_L2", what.cached_target);
  return 0;
}
