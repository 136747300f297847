// A ratio measured in one run: both sides in turn, many short rounds, the median of the rounds' ratios. A process that uses the
// machine for a moment then disturbs both sides equally.
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <vector>

namespace msdbg::bench {

template <typename Function>
double seconds(Function&& function) {
  const auto start = std::chrono::steady_clock::now();
  function();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Ratio {
  double value;              ///< time of `ours` / time of `baseline`
  double ours, baseline;     ///< seconds, medians
};

template <typename Ours, typename Baseline>
Ratio compare(Ours&& ours, Baseline&& baseline, int rounds) {
  baseline();
  ours();
  std::vector<double> ratios, a, b;
  for (int i = 0; i < rounds; ++i) {
    b.push_back(seconds(baseline));
    a.push_back(seconds(ours));
    ratios.push_back(a.back() / b.back());
  }
  return {median(ratios), median(a), median(b)};
}

}  // namespace msdbg::bench
