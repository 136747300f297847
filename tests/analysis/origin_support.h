// Searches for origins in a small network whose values a test writes down.
#pragma once

#include <gtest/gtest.h>

#include <cmath>

#include "msdbg/analysis.h"
#include "support/fake_session.h"

namespace msdbg {

using testing::f32;
using testing::fake_graph;
using testing::FakeSession;
inline constexpr double kInf = INFINITY;
inline constexpr Slot kIn0{Io::kInput, 0}, kIn1{Io::kInput, 1};

inline OriginResult search(FakeSession& session, const std::string& when = "nan or inf", OriginOptions options = {}) {
  options.predicate = parse_predicate(when).value();
  options.threads = 2;
  Result<OriginResult> result = find_origins(session, options);
  EXPECT_TRUE(result.ok()) << result.status().message();
  return result ? *result : OriginResult{};
}

inline std::vector<std::string> names(const FakeSession& session, const StepOrigins& step) {
  std::vector<std::string> out;
  for (const Origin& origin : step.origins) out.push_back(session.tensor_name(origin.tensor));
  return out;
}
using Names = std::vector<std::string>;

// x -> Log -> MatMul(w) -> ReLU, and ApplyMomentum updates w with the gradient.
inline GraphPtr small_net() {
  return fake_graph({{"x", "Parameter"},
                     {"fc.weight", "Parameter"},
                     {"moments.fc.weight", "Parameter"},
                     {"Default/Log-op0", "Log", {"x"}},
                     {"Default/wl", "Load", {"fc.weight"}},
                     {"Default/MatMul-op0", "MatMul", {"Default/Log-op0", "Default/wl"}},
                     {"Default/ReLU-op0", "ReLU", {"Default/MatMul-op0"}},
                     {"Gradients/Mul-op0", "Mul", {"Default/MatMul-op0"}},
                     {"Default/optimizer-M/ApplyMomentum-op0",
                      "ApplyMomentum",
                      {"fc.weight", "moments.fc.weight", "", "Gradients/Mul-op0"}}});
}

inline void put_healthy(FakeSession& s, int64_t step) {
  s.put("x", step, f32({1, 2}));
  s.put("fc.weight", step, f32({1}));
  s.put("moments.fc.weight", step, f32({1}));
  s.put("Default/Log-op0", step, f32({1, 2}));
  s.put("Default/MatMul-op0", step, f32({3}));
  s.put("Default/ReLU-op0", step, f32({3}));
  s.put("Gradients/Mul-op0", step, f32({3}));
  s.put("Default/optimizer-M/ApplyMomentum-op0", step, f32({1}));
}

}  // namespace msdbg
