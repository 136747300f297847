// How much do condition expressions cost relative to the statistics pass and to the read limit?
//
// The read limit is the rate at which one thread sums the same bytes as float32 with AVX2. Ratios are measured by
// alternating both sides (ratio.h).
#include <immintrin.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>

#include "msdbg/expr.h"
#include "ratio.h"

namespace msdbg {
namespace {

constexpr size_t kElements = size_t{64} << 20, kChunk = 16 * StatsPass::kStatsBlock;

__attribute__((noinline)) float sum_avx2(const std::vector<float>& data) {
  __m256 sums[8] = {};
  for (size_t i = 0; i + 64 <= data.size(); i += 64) {
    for (size_t k = 0; k < 8; ++k) sums[k] = _mm256_add_ps(sums[k], _mm256_loadu_ps(data.data() + i + 8 * k));
  }
  __m256 all = sums[0];
  for (size_t k = 1; k < 8; ++k) all = _mm256_add_ps(all, sums[k]);
  float lanes[8];
  _mm256_storeu_ps(lanes, all);
  return lanes[0] + lanes[1] + lanes[2] + lanes[3] + lanes[4] + lanes[5] + lanes[6] + lanes[7];
}

std::vector<float> make_data() {
  std::vector<float> pattern(size_t{1} << 20), data(kElements);
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 1);
  for (float& value : pattern) value = normal(random);
  for (size_t at = 0; at < kElements; at += pattern.size()) {
    std::memcpy(data.data() + at, pattern.data(), pattern.size() * sizeof(float));
  }
  return data;
}

ExpressionSet make_set(std::initializer_list<const char*> texts) {
  std::vector<Expression> expressions;
  for (const char* text : texts) expressions.push_back(*Expression::parse(text));
  return ExpressionSet(expressions);
}

/// Like a session: the statistics and the expressions process each block in turn.
double run(const ExpressionSet& set, const std::vector<float>& data, bool statistics) {
  const auto* bytes = reinterpret_cast<const std::byte*>(data.data());
  StatsPass stats_pass(DType::kFloat32, set.stats_request());
  ExpressionRun run(set, {DType::kFloat32, DType::kUnknown, data.size(), 1, 0});
  const auto walk = [&](bool first) {
    for (size_t at = 0; at < data.size(); at += kChunk) {
      const size_t n = std::min(kChunk, data.size() - at);
      if (first && statistics) stats_pass.update(bytes + at * 4, n);
      if (run.wants_blocks()) run.update(bytes + at * 4, nullptr, n);
    }
  };
  walk(true);
  const Stats stats = stats_pass.finish();
  while (run.end_pass(stats, set.stats_request())) walk(false);
  return run.value(0)->number;
}

double statistics_alone(const std::vector<float>& data) {
  StatsPass pass(DType::kFloat32, {});
  for (size_t at = 0; at < data.size(); at += kChunk) {
    pass.update(reinterpret_cast<const std::byte*>(data.data() + at), std::min(kChunk, data.size() - at));
  }
  return pass.finish().mean;
}

/// `value` is compared with the target; the rates are those of both sides.
void print(const char* name, double value, const char* target, bench::Ratio ratio) {
  const double gigabytes = static_cast<double>(kElements) * 4e-9;
  std::printf("RATIO expr_%s %.2f %s (%.2f GB/s against %.2f GB/s)\n", name, value, target, gigabytes / ratio.ours,
              gigabytes / ratio.baseline);
}

/// Answers each input line with the seconds that five expressions took, for expr_peers.py.
void serve(const ExpressionSet& set, const std::vector<float>& data) {
  run(set, data, false);
  for (int c = std::getchar(); c != EOF; c = std::getchar()) {
    if (c != '\n') continue;
    std::printf("%.6f\n", bench::seconds([&] { benchmark::DoNotOptimize(run(set, data, false)); }));
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace msdbg

int main(int argc, char** argv) {
  using namespace msdbg;
  const std::vector<float> data = make_data();
  const ExpressionSet five =
      make_set({"any(abs(x) * 2 > 20)", "count(x * x > 4) > 100", "mean(abs(x - 0.5)) > 1", "percent(abs(x - 1) < 0.01) > 5",
                "max(x * 3 - 1) > 100"});
  if (argc > 1 && std::strcmp(argv[1], "--serve") == 0) {
    serve(five, data);
    return 0;
  }
  const auto limit = [&] { benchmark::DoNotOptimize(sum_avx2(data)); };
  const auto stats = [&] { benchmark::DoNotOptimize(statistics_alone(data)); };
  const auto both = [&](const ExpressionSet& set) { return [&] { benchmark::DoNotOptimize(run(set, data, true)); }; };
  const auto alone = [&](const ExpressionSet& set) { return [&] { benchmark::DoNotOptimize(run(set, data, false)); }; };
  constexpr int kRounds = 15;

  const ExpressionSet mean = make_set({"mean(abs(x)) > 0.5"}), percent = make_set({"percent(abs(x) > 1.5) > 5"});
  const ExpressionSet product = make_set({"percent(abs(x * x) > 1.5) > 5"});
  const ExpressionSet nested = make_set({"percent(abs(x) > 3 * std(x)) > 5"});
  bench::Ratio ratio = bench::compare(both(mean), stats, kRounds);
  print("mean_abs_time_over_the_statistics_pass", ratio.value, "target <= 1.02", ratio);
  ratio = bench::compare(both(percent), limit, kRounds);
  print("percent_abs_with_statistics_share_of_the_read_limit", 1 / ratio.value, "target >= 0.50", ratio);
  ratio = bench::compare(alone(product), limit, kRounds);
  print("percent_of_a_product_alone_share_of_the_read_limit", 1 / ratio.value, "target >= 0.50", ratio);
  ratio = bench::compare(both(nested), stats, kRounds);
  print("percent_abs_std_in_two_passes_over_the_statistics_pass", ratio.value, "target <= 2.20", ratio);
  ratio = bench::compare(alone(five), limit, kRounds);
  print("five_expressions_alone_share_of_the_read_limit", 1 / ratio.value, "target >= 0.30", ratio);
  const ExpressionSet root = make_set({"mean(sqrt(abs(x))) > 1"});
  ratio = bench::compare(alone(root), limit, kRounds);
  print("mean_of_a_square_root_alone_share_of_the_read_limit", 1 / ratio.value, "target >= 0.30", ratio);
  return 0;
}
