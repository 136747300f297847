#include <gtest/gtest.h>

#include <cmath>

#include "msdbg/report.h"
#include "report/origin_words.h"
#include "support/fake_session.h"

namespace msdbg {
namespace {

using testing::f32;
using testing::fake_graph;
using testing::FakeSession;

GraphPtr origin_net() {
  return fake_graph({{"x", "Parameter"},
                     {"fc.weight", "Parameter"},
                     {"moments.fc.weight", "Parameter"},
                     {"Default/net/Log-op0", "Log", {"x"}, 1, {{"/data/train.py", 70, "x = self.log(x)"}}},
                     {"Default/net/wl", "Load", {"fc.weight"}},
                     {"Default/net/MatMul-op0", "MatMul", {"Default/net/Log-op0", "Default/net/wl"}},
                     {"Default/net/ReLU-op0", "ReLU", {"Default/net/MatMul-op0"}},
                     {"Default/_loss_fn-X/Loss-op0", "CrossEntropyLoss", {"Default/net/ReLU-op0"}}});
}

void put_broken(FakeSession& s, int64_t step) {
  s.put("x", step, f32({2, 2}, std::vector<double>{0, 1, 0, 0.5}));
  s.put("fc.weight", step, f32({1}));
  s.put("Default/net/Log-op0", step, f32({2, 2}, std::vector<double>{-INFINITY, 0, -INFINITY, -0.69}));
  s.put("Default/net/MatMul-op0", step, f32({NAN, NAN}));
  s.put("Default/net/ReLU-op0", step, f32({0, 0}));
  s.put("Default/_loss_fn-X/Loss-op0", step, f32({2.3046174}));
}

OriginResult search(FakeSession& s, const std::string& when = "nan or inf") {
  OriginOptions options;
  options.predicate = parse_predicate(when).value();
  return find_origins(s, options).value();
}

TEST(OriginReport, ShowsTheWholeStoryOfAStep) {
  FakeSession s(origin_net());
  put_broken(s, 0);
  EXPECT_EQ(
      origin_report(s, search(s), {}),
      "step 0  rank 0  kernel_graph0\n"
      "  first bad  Default/net/Log-op0:output:0        float32[2,2]\n"
      "             2 of 4 elements are -Inf, none NaN; first at [0,0] [1,0]; all 2 rows are affected (1 each)\n"
      "  source     /data/train.py:70   x = self.log(x)\n"
      "  inputs     input:0  parameter x   finite, min 0, max 1, 2 zeros at the same places\n"
      "  spread     2 tensors in this step\n"
      "             Log-op0 -> MatMul-op0 (2 of 2 NaN) -> ReLU-op0  absorbed: its output has no NaN, it is all zero\n"
      "  the loss   2.3046, finite: it does not show the fault\n"
      "\n"
      "next: msdbg show fake x:output:0 --step 0\n");
}

TEST(OriginReport, SameNodeInLaterStepsTakesOneLine) {
  FakeSession s(origin_net());
  put_broken(s, 0);
  put_broken(s, 1);
  put_broken(s, 2);
  const std::string text = origin_report(s, search(s), {});
  EXPECT_NE(text.find("\n\nstep 1  the same node again (2 of 4 are -Inf); 2 tensors\nstep 2  the same node again"),
            std::string::npos)
      << text;
}

TEST(OriginReport, ManyEqualStepsAreJoined) {
  FakeSession s(origin_net());
  for (int64_t step = 0; step < 30; ++step) put_broken(s, step);
  const std::string text = origin_report(s, search(s), {});
  EXPECT_NE(text.find("... and in 19 further steps (each one: --wide)\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("step 11 "), std::string::npos);
}

TEST(OriginReport, CleanResultShowsItsCoverage) {
  FakeSession s(origin_net());
  s.put("x", 0, f32({1}));
  s.put("Default/net/Log-op0", 0, f32({0}));
  s.put("Default/net/Log-op0", 0, f32({1}), {Io::kInput, 0});
  EXPECT_EQ(origin_report(s, search(s), {}),
            "healthy: no NaN and no Inf in 3 output, parameter and input tensors, all checked\n");
  s.set_problem(s.id("x", 0), Status(Code::kCorrupt, "cut off"));
  FakeSession damaged(origin_net());
  damaged.put("x", 0, f32({1}));
  damaged.set_problem(damaged.id("Default/net/Log-op0", 0), Status(Code::kCorrupt, "file is cut off"));
  EXPECT_EQ(origin_report(damaged, search(damaged), {}),
            "not checked: 1 of 2 tensors\n"
            "  step 0  Default/net/Log-op0:output:0  TO  file is cut off\n"
            "healthy otherwise: no NaN and no Inf in 1 output, parameter and input tensor\n");
}

TEST(OriginReport, UncertaintyNamesTheUnknownInput) {
  FakeSession s(origin_net());
  s.put("Default/net/Log-op0", 0, f32({1}));
  s.put("Default/net/MatMul-op0", 0, f32({NAN}));
  const std::string text = origin_report(s, search(s), {});
  EXPECT_NE(text.find("  certain?   not later than this node: input:1 is unknown (parameter fc.weight was not dumped)"),
            std::string::npos)
      << text;
}

TEST(OriginReport, ParameterFromTheStepBefore) {
  FakeSession s(fake_graph({{"w", "Parameter"},
                            {"m", "Parameter"},
                            {"x", "Parameter"},
                            {"wl", "Load", {"w"}},
                            {"mm", "MatMul", {"x", "wl"}},
                            {"g", "Grad", {"x"}},
                            {"opt", "ApplyMomentum", {"w", "m", "x", "g"}}}));
  for (int64_t step : {0, 1}) {
    s.put("x", step, f32({1}));
    s.put("g", step, f32({1}));
    s.put("w", step, f32({INFINITY}));
    s.put("m", step, f32({1}));
    s.put("opt", step, f32({INFINITY}));
  }
  s.put("mm", 0, f32({1}));
  s.put("mm", 0, f32({1}), {Io::kInput, 1});
  s.put("mm", 1, f32({INFINITY}));
  const std::string text = origin_report(s, search(s), {});
  EXPECT_NE(text.find("step 0  rank 0  kernel_graph0\n  first bad  opt:output:0"), std::string::npos) << text;
  EXPECT_NE(text.find("step 1  rank 0  kernel_graph0\n  first bad  parameter w        float32[1]\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("it was so already when the step began"), std::string::npos) << text;
  EXPECT_NE(text.find("  update     opt:output:0 in step 0 wrote it\n"), std::string::npos) << text;
}

TEST(OriginReport, AnUpdateThatOnlyAnotherRankTells) {
  Origin origin;
  origin.update = TensorId{};
  origin.update->step = 4;
  EXPECT_EQ(update_place(origin), " in step 4");
  origin.update->rank = 3;
  EXPECT_EQ(update_place(origin), " on rank 3 in step 4");
}

TEST(OriginReport, SecondOriginIsListedBelowTheFirst) {
  FakeSession s(fake_graph({{"p", "Parameter"}, {"a", "Log", {"p"}}, {"b", "Exp", {"p"}, 1, {{"t.py", 3, ""}}}}));
  s.put("p", 0, f32({1}));
  s.put("a", 0, f32({NAN}));
  s.put("b", 0, f32({INFINITY}));
  const std::string text = origin_report(s, search(s), {});
  EXPECT_NE(text.find("  also       b:output:0 broke on its own (1 of 1 +Inf)   t.py:3\n  spread     2 tensors in this "
                      "step, 1 of them from here\n"),
            std::string::npos)
      << text;
}

TEST(OriginReport, MiddleOfALongWayIsLeftOut) {
  std::vector<testing::FakeNode> nodes = {{"p", "Parameter"}, {"n0", "Log", {"p"}}};
  for (int i = 1; i < 20; ++i) nodes.push_back({"n" + std::to_string(i), "Exp", {"n" + std::to_string(i - 1)}});
  FakeSession s(fake_graph(nodes));
  s.put("p", 0, f32({1}));
  for (int i = 0; i < 20; ++i) s.put("n" + std::to_string(i), 0, f32({NAN}));
  const OriginResult result = search(s);
  EXPECT_NE(origin_report(s, result, {})
                .find("n0 -> n1 (1 of 1 NaN) -> n2 -> n3 -> ... 13 more ... -> n17 -> n18 -> n19 (1 of 1 NaN)\n"),
            std::string::npos)
      << origin_report(s, result, {});
  ReportStyle style;
  style.wide = true;
  EXPECT_NE(origin_report(s, result, style).find(" -> n9 -> n10 -> "), std::string::npos);
}

TEST(OriginReport, ScalarIsDescribedInWords) {
  FakeSession s(fake_graph(
      {{"p", "Parameter"},
       {"loss", "Log", {"p"}, 1, {{"/x/mindspore/nn/loss.py", 869, "y"}, {"/home/me/train.py", 7, "loss = f(x)"}}}}));
  s.put("p", 0, f32({1}));
  s.put("loss", 0, f32(Shape{}, std::vector<double>{INFINITY}));
  const std::string text = origin_report(s, search(s), {});
  EXPECT_NE(text.find("             its only element is +Inf\n"), std::string::npos) << text;
  // A line of the framework is useless; its caller is not.
  EXPECT_NE(text.find("  source     /home/me/train.py:7   loss = f(x)\n"), std::string::npos) << text;
}

TEST(OriginReport, ConditionIsNamed) {
  FakeSession s(origin_net());
  s.put("x", 0, f32({1}));
  s.put("Default/net/Log-op0", 0, f32({50}));
  const std::string text = origin_report(s, search(s, "TL max_gt=10"), {});
  EXPECT_NE(text.find("             satisfies: tensor_too_large max_gt 10\n"), std::string::npos) << text;
  EXPECT_NE(text.find("1 element: min 50  max 50"), std::string::npos) << text;
}

}  // namespace
}  // namespace msdbg
