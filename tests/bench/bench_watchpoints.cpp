// How much do 17 watchpoints on one tensor cost compared with one?
//
// Both sides make one pass with the requirements of their conditions and decide them: once without and once with a previous value.
#include <cstdio>
#include <random>

#include "msdbg/simd.h"
#include "msdbg/watch.h"
#include "ratio.h"

namespace msdbg {
namespace {

constexpr size_t kElements = size_t{64} << 20;  // 256 MiB, out of cache

std::vector<Condition> conditions(std::initializer_list<const char*> texts) {
  std::vector<Condition> out;
  for (const char* text : texts) out.push_back(*parse_condition(text));
  return out;
}

// One pass for all of them, then the decisions.
size_t check(const std::vector<Condition>& list, const std::vector<float>& data, const std::vector<float>* previous) {
  StatsRequest request;
  for (const Condition& condition : list) add_needs(condition, request);
  StatsPass pass(DType::kFloat32, request, previous ? DType::kFloat32 : DType::kUnknown);
  const auto* x = reinterpret_cast<const std::byte*>(data.data());
  if (previous) pass.update(x, reinterpret_cast<const std::byte*>(previous->data()), data.size());
  else pass.update(x, data.size());
  const Stats stats = pass.finish();
  size_t hits = 0;
  for (const Condition& condition : list) {
    hits += decide(condition, stats, request, previous ? Previous::kPresent : Previous::kNotNeeded, Semantics::kCompat).hit();
  }
  return hits;
}

void print_ratio(const char* name, const std::vector<Condition>& many, const std::vector<Condition>& one, const std::vector<float>& data,
                 const std::vector<float>* previous) {
  const bench::Ratio ratio = bench::compare([&] { benchmark::DoNotOptimize(check(many, data, previous)); },
                                            [&] { benchmark::DoNotOptimize(check(one, data, previous)); }, 11);
  std::printf("RATIO %s %.2f target <= 1.15   (%zu watchpoints %.1f ms, one %.1f ms)\n", name, ratio.value, many.size(), ratio.ours * 1e3,
              ratio.baseline * 1e3);
  std::fflush(stdout);
}

}  // namespace
}  // namespace msdbg

int main(int argc, char** argv) {
  using namespace msdbg;
  benchmark::Initialize(&argc, argv);
  std::vector<float> data(kElements), previous;
  std::mt19937 random(2);
  std::normal_distribution<float> normal(0, 1);
  for (size_t i = 0; i < (size_t{1} << 20); ++i) data[i] = normal(random);
  for (size_t i = size_t{1} << 20; i < data.size(); ++i) data[i] = data[i - (size_t{1} << 20)];
  previous = data;
  for (size_t i = 0; i < previous.size(); i += 3) previous[i] *= 1.01f;

  const auto plain = {"TO",
                      "WO",
                      "GE",
                      "TL max_gt=9",
                      "WL abs_mean_gt=9",
                      "GL mean_gt=9",
                      "TS max_lt=-9",
                      "WS abs_mean_lt=1e-9",
                      "GV mean_lt=-9",
                      "TZ 100",
                      "TR max_min_gt=99",
                      "AR range_start_inclusive=-0.99 range_end_inclusive=0.99 range_percentage_lt=0.1"};
  std::vector<Condition> all = conditions(plain);
  std::vector<Condition> with_previous = all;
  for (const Condition& extra : conditions({"sd_gt param=9", "nan", "inf", "max_min_lt param=1e-9", "min_gt param=9"}))
    all.push_back(extra);
  for (const Condition& extra : conditions({"WCL 1", "WCS 1e-9", "WNC rtol=1e-5", "sd_gt param=9", "nan"})) with_previous.push_back(extra);
  print_ratio("17_watchpoints_against_tensor_overflow", all, conditions({"TO"}), data, nullptr);
  print_ratio("17_watchpoints_with_previous_against_weight_change_too_large", with_previous, conditions({"WCL 1"}), data, &previous);
  return 0;
}
