#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "msdbg/analysis.h"
#include "support/fake_session.h"

namespace msdbg {
namespace {

using testing::f32;
using testing::fake_graph;
using testing::FakeSession;
using testing::make_tensor;
constexpr double kInf = INFINITY;

/// A finding on a tensor, with the statistics that the session has.
Hit hit(FakeSession& session, const std::string& rule, const std::string& node, int64_t step = 0) {
  Hit out;
  out.rule = rule;
  out.tensor = session.id(node, step);
  if (const auto stats = session.stats(out.tensor)) out.stats = *stats;
  return out;
}

struct Found {
  CheckResult result;
  size_t count() const { return result.causes->size(); }
  const Cause& cause(size_t i = 0) const { return result.causes->at(i); }
  std::string kinds() const {
    std::string out;
    for (const Cause& each : *result.causes) out += (out.empty() ? "" : " ") + std::string(cause_kind_name(each.kind));
    return out;
  }
  /// "0 0 -": what the findings follow from, in their order.
  std::string follows() const {
    std::string out;
    for (const Hit& each : result.hits) out += (out.empty() ? "" : " ") + (each.follows ? std::to_string(*each.follows) : "-");
    return out;
  }
};

Found causes_of(FakeSession& session, std::vector<Hit> hits) {
  Found found;
  found.result.hits = std::move(hits);
  found.result.total_hits = found.result.hits.size();
  CheckOptions limits;
  limits.threads = 2;
  const Status status = find_causes(session, limits, &found.result);
  EXPECT_TRUE(status.ok()) << status.message();
  return found;
}

/// One operator with these inputs, in step 0, as a finding.
Found cause_of(const std::string& op, const std::vector<std::vector<double>>& inputs, std::vector<double> output,
               DType out_type = DType::kFloat32) {
  std::vector<testing::FakeNode> nodes;
  std::vector<std::string> names;
  for (size_t i = 0; i < inputs.size(); ++i) {
    names.push_back("x" + std::to_string(i));
    nodes.push_back({names.back(), "Parameter"});
  }
  nodes.push_back({"Default/" + op + "-op0", op, names});
  FakeSession session(fake_graph(nodes));
  for (size_t i = 0; i < inputs.size(); ++i)
    session.put(names[i], 0, make_tensor(DType::kFloat32, {static_cast<int64_t>(inputs[i].size())}, inputs[i]));
  session.put("Default/" + op + "-op0", 0, make_tensor(out_type, {static_cast<int64_t>(output.size())}, output));
  return causes_of(session, {hit(session, "tensor_overflow", "Default/" + op + "-op0")});
}

// ---- the reason ----------------------------------------------------------------------------------------------------

TEST(Causes, LogarithmOfZero) {
  const Found found = cause_of("Log", {{0, 1, 0}}, {-kInf, 0, -kInf});
  EXPECT_EQ(found.kinds(), "log_of_zero");
  EXPECT_EQ(found.cause().what, "logarithm of 0");
  EXPECT_EQ(found.cause().evidence, "2 zeros in input:0, at the same places");
  EXPECT_EQ(cause_of("Log", {{-2, 1}}, {NAN, 0}).kinds(), "log_of_negative");
}

TEST(Causes, OutsideOfWhereAnOperatorIsDefined) {
  const Found found = cause_of("ACos", {{1.5, 0.5}}, {NAN, 1});
  EXPECT_EQ(found.kinds(), "out_of_domain");
  EXPECT_EQ(found.cause().what, "arccosine of a number outside -1 to 1");
  EXPECT_EQ(found.cause().evidence, "input:0 goes up to 1.5");
  EXPECT_EQ(cause_of("Asin", {{-2, 3}}, {NAN, NAN}).cause().evidence, "input:0 goes down to -2 and up to 3");
  EXPECT_EQ(cause_of("Asin", {{-1, 1}}, {NAN, NAN}).kinds(), "unknown");
  EXPECT_EQ(cause_of("Log1p", {{-3, 1}}, {NAN, 0}).kinds(), "log_of_negative");
  EXPECT_EQ(cause_of("Log1p", {{-1, 1}}, {-kInf, 0}).kinds(), "log_of_zero");
  EXPECT_EQ(cause_of("Log1p", {{0, 1}}, {-kInf, 0}).kinds(), "unknown");
  EXPECT_EQ(cause_of("Atanh", {{0, 1}}, {0, kInf}).cause().what, "inverse hyperbolic tangent of 1 or -1");
  EXPECT_EQ(cause_of("Logit", {{0, 0.5}}, {-kInf, 0}).cause().evidence, "input:0 goes down to 0");
}

TEST(Causes, NothingToTake) {
  EXPECT_EQ(cause_of("std", {{1}}, {NAN}).cause().what, "standard deviation or variance of a single number");
  EXPECT_EQ(cause_of("std", {{1, 2}}, {kInf}).kinds(), "unknown");
  EXPECT_EQ(cause_of("mean", {{}}, {NAN}).cause().what, "mean of an empty tensor");
  EXPECT_EQ(cause_of("mse_loss", {{}, {}}, {NAN}).cause().what, "mean of an empty tensor");
  EXPECT_EQ(cause_of("ReduceStd", {{}}, {NAN}).cause().what, "standard deviation or variance of an empty tensor");
  EXPECT_EQ(cause_of("MeanExt", {{}}, {-kInf}).cause().what, "mean of an empty tensor");  // in MindSpore 2.10
  EXPECT_EQ(cause_of("median", {{}}, {NAN}).cause().what, "statistic of an empty tensor");
  EXPECT_EQ(cause_of("mean", {{1, 2}}, {NAN}).kinds(), "unknown");
  EXPECT_EQ(cause_of("nll_loss_forward", {{-1, -2}, {-100}}, {NAN}).cause().what, "mean loss over no label: each is ignored or has weight 0");
  EXPECT_EQ(cause_of("nll_loss_forward", {{-1, -2}, {1}}, {NAN, 1}).kinds(), "unknown");
  EXPECT_EQ(cause_of("Softmax", {{1, 2}}, {NAN, NAN}).kinds(), "unknown");
  EXPECT_EQ(cause_of("fmod", {{1, 1}, {0, 1}}, {NAN, 0}).kinds(), "division_by_zero");
}

TEST(Causes, Powers) {
  EXPECT_EQ(cause_of("Pow", {{-2, 1}, {0.5, 0.5}}, {NAN, 1}).cause().what, "fractional power of a negative number");
  EXPECT_EQ(cause_of("Pow", {{0, 1}, {-1, -1}}, {kInf, 1}).kinds(), "division_by_zero");
  EXPECT_EQ(cause_of("Pow", {{1e30, 1}, {2, 2}}, {kInf, 1}).cause().what, "overflow of a power");
  EXPECT_EQ(cause_of("Pow", {{10, 1}, {2, 2}}, {kInf, 1}).kinds(), "unknown");
  EXPECT_EQ(cause_of("Pow", {{10, 1}}, {kInf, 1}).cause().what, "overflow of a power");  // the program has the exponent
  EXPECT_EQ(cause_of("Pow", {{0.5, 1}}, {kInf, 1}).kinds(), "unknown");
}

TEST(Causes, DivisionByZeroNeedsAZeroInTheDivisor) {
  EXPECT_EQ(cause_of("Div", {{1, 1}, {0, 1}}, {kInf, 1}).cause().what, "division by 0");
  EXPECT_EQ(cause_of("Div", {{0, 1}, {1e-45, 1}}, {kInf, 1}).cause().what, "overflow of a quotient");
  EXPECT_EQ(cause_of("Rsqrt", {{0, 1}}, {kInf, 1}).kinds(), "division_by_zero");
  EXPECT_EQ(cause_of("DivNoNan", {{1, 1}, {0, 1}}, {kInf, 1}).kinds(), "unknown");
}

TEST(Causes, OverflowNeedsValuesThatDoNotFit) {
  EXPECT_EQ(cause_of("MatMul", {{1e30, 1}, {1e20, 1}}, {kInf}).kinds(), "product_overflow");
  EXPECT_EQ(cause_of("MatMul", {{1, 1}, {1, 1}}, {NAN}).kinds(), "unknown");
  EXPECT_EQ(cause_of("Exp", {{100}}, {kInf}).kinds(), "exp_overflow");
  EXPECT_EQ(cause_of("Exp", {{2}}, {kInf}).kinds(), "unknown");
  EXPECT_EQ(cause_of("Cosh", {{-100}}, {kInf}).kinds(), "exp_overflow");
  EXPECT_EQ(cause_of("ReduceSum", {{3e38, 3e38}}, {kInf}).kinds(), "sum_overflow");
  EXPECT_EQ(cause_of("Add", {{3e38}, {3e38}}, {kInf}).kinds(), "sum_overflow");
  EXPECT_EQ(cause_of("Add", {{1e38}, {1e38}}, {kInf}).kinds(), "unknown");
  EXPECT_EQ(cause_of("addmm", {{1}, {1e30, 1}, {1e20, 1}}, {kInf}).kinds(), "product_overflow");
  EXPECT_EQ(cause_of("addmm", {{1e38}, {1, 1}, {1, 1}}, {kInf}).kinds(), "unknown");
  EXPECT_EQ(cause_of("mul", {{1e30}, {1e20}}, {kInf}).cause().what, "overflow of a product");
  EXPECT_EQ(cause_of("mul", {{1e30}}, {kInf}).cause().what, "overflow of a product");  // with a number of the program
  EXPECT_EQ(cause_of("mul", {{1}, {1}}, {kInf}).kinds(), "unknown");
  EXPECT_EQ(cause_of("pow", {{0, 1e30}}, {kInf, kInf}).kinds(), "unknown");
  EXPECT_EQ(cause_of("mse_loss", {{1e19}, {-1e19}}, {kInf}).cause().what, "overflow of a square");
  EXPECT_EQ(cause_of("mse_loss", {{1}, {-1}}, {kInf}).kinds(), "unknown");
  EXPECT_EQ(cause_of("linalg_vector_norm", {{3e38, 3e38}}, {kInf}).cause().what, "overflow of a norm");
  EXPECT_EQ(cause_of("prod", {{1e20, 1e20}}, {kInf}).kinds(), "product_overflow");
  EXPECT_EQ(cause_of("prod", {{1, 0.5}}, {kInf}).kinds(), "unknown");
  EXPECT_EQ(cause_of("Div", {{1e30}, {1e-20}}, {kInf}).cause().what, "overflow of a quotient");
  EXPECT_EQ(cause_of("Div", {{1}, {1e-20}}, {kInf}).kinds(), "unknown");
  EXPECT_EQ(cause_of("div", {{1}}, {kInf}).kinds(), "division_by_zero");
  EXPECT_EQ(cause_of("var", {{1e20, -1e20}}, {kInf}).cause().what, "overflow of a variance");
  EXPECT_EQ(cause_of("native_layer_norm", {{1e25, 1}}, {NAN, NAN}).cause().what, "overflow of a variance");
  EXPECT_EQ(cause_of("native_layer_norm", {{1, 1}}, {NAN, NAN}).kinds(), "unknown");
  EXPECT_EQ(cause_of("mean", {{3e38, 3e38}}, {kInf}).kinds(), "sum_overflow");
  const Found cast = cause_of("Cast", {{70000, 1}}, {kInf, 1}, DType::kFloat16);
  EXPECT_EQ(cast.kinds(), "cast_overflow");
  EXPECT_EQ(cast.cause().evidence, "input up to 7e+04, float16 ends at 6.55e+04");
}

TEST(Causes, AGradientThatDoesNotFit) {
  for (const char* op : {"Cast", "Mul"}) {
    const std::string node = fmt::format("Gradients/Default/net/Grad_{}/{}-op0", op, op);
    FakeSession session(fake_graph({{"x", "Parameter"}, {"y", "Parameter"}, {node, op, {"x", "y"}}}));
    session.put("x", 0, make_tensor(DType::kFloat32, {1}, std::vector<double>{70000}));
    session.put("y", 0, make_tensor(DType::kFloat32, {1}, std::vector<double>{1}));
    session.put(node, 0, make_tensor(DType::kFloat16, {1}, std::vector<double>{kInf}));
    const Found found = causes_of(session, {hit(session, "tensor_overflow", node)});
    EXPECT_EQ(found.kinds(), std::string(op) == "Cast" ? "cast_overflow" : "product_overflow");
  }
}

TEST(Causes, AProbabilityThatBecameZeroInTheLoss) {
  const std::string op = "SparseSoftmaxCrossEntropyWithLogits";
  EXPECT_EQ(cause_of(op, {{0, 200}, {0}}, {kInf}).cause().what, "a probability became 0 in the loss");
  EXPECT_EQ(cause_of(op, {{0, 200}, {0}}, {kInf}).cause().evidence, "logits from 0 to 200");
  EXPECT_EQ(cause_of(op, {{0, 2}, {0}}, {kInf}).cause().what, "1 +Inf from sound inputs");
}

TEST(Causes, ReasonIsUnknownWhereAnInputIs) {
  FakeSession s(fake_graph({{"Default/Sub-op0", "Sub"}, {"Default/MatMul-op0", "MatMul", {"Default/Sub-op0", "w"}}, {"w", "Parameter"}}));
  s.put("w", 0, f32({1e30f}));
  s.put("Default/MatMul-op0", 0, f32({INFINITY}));
  const Found found = causes_of(s, {hit(s, "tensor_overflow", "Default/MatMul-op0")});
  EXPECT_EQ(found.kinds(), "unknown");
  EXPECT_EQ(found.cause().what, "1 +Inf, as far as its inputs are known");
}

TEST(Causes, DataThatCameInBad) {
  FakeSession s(fake_graph({{"x", "Parameter"}, {"Default/ReLU-op0", "ReLU", {"x"}}}));
  s.put("x", 3, f32({NAN, 1}));
  s.put("Default/ReLU-op0", 3, f32({NAN, 1}));
  const Found found = causes_of(s, {hit(s, "tensor_overflow", "Default/ReLU-op0", 3)});
  EXPECT_EQ(found.kinds(), "bad_input");
  EXPECT_EQ(found.cause().what, "it came in with 1 NaN of 2");
  EXPECT_EQ(found.cause().steps, std::vector<int64_t>{3});
}

// ---- what follows --------------------------------------------------------------------------------------------------

// x -> Log -> MatMul(w) -> loss, a gradient for w, an optimizer with a learning rate, and a branch of its own from x.
GraphPtr net() {
  return fake_graph({{"x", "Parameter"},
                     {"w", "Parameter"},
                     {"moments.w", "Parameter"},
                     {"learning_rate", "Parameter"},
                     {"Default/Log-op0", "Log", {"x"}},
                     {"Default/MatMul-op0", "MatMul", {"Default/Log-op0", "w"}},
                     {"Default/Abs-op0", "Abs", {"x"}},
                     {"Gradients/Mul-op0", "Mul", {"Default/MatMul-op0"}},
                     {"Default/optimizer-M/ApplyMomentum-op0", "ApplyMomentum", {"w", "moments.w", "learning_rate", "Gradients/Mul-op0"}}});
}

void put_step(FakeSession& s, int64_t step, double x, double w, double product, double rate = 0.1) {
  const auto put = [&](const char* name, double value) {
    s.put(name, step, make_tensor(DType::kFloat32, {1, 1}, std::vector<double>{value}));
  };
  put("x", x);
  put("w", w);
  put("moments.w", w);
  s.put("learning_rate", step, make_tensor(DType::kFloat32, {}, std::vector<double>{rate}));
  put("Default/Log-op0", std::log(x));
  put("Default/MatMul-op0", product);
  put("Default/Abs-op0", std::abs(x));
  put("Gradients/Mul-op0", product);
}

TEST(Causes, OnlyWhatTheEdgesReachFollows) {
  FakeSession s(net());
  put_step(s, 0, 0, 1, -kInf);
  s.put("Default/Abs-op0", 0, f32({NAN}));
  const Found found = causes_of(s, {hit(s, "tensor_overflow", "Default/Log-op0"), hit(s, "tensor_overflow", "Default/MatMul-op0"),
                                    hit(s, "tensor_overflow", "Default/Abs-op0"), hit(s, "tensor_overflow", "Gradients/Mul-op0"),
                                    hit(s, "frozen-inputs", "x")});
  EXPECT_EQ(found.kinds(), "log_of_zero unknown");
  EXPECT_EQ(found.follows(), "0 0 1 0 -");
  EXPECT_EQ(found.cause(0).findings, 3u);
  EXPECT_EQ(found.cause(0).total, 5u);
}

TEST(Causes, ABrokenWeightCarriesTheFaultIntoTheNextStep) {
  FakeSession s(net());
  put_step(s, 0, 0, NAN, -kInf);
  s.put("Default/optimizer-M/ApplyMomentum-op0", 0, f32({NAN}));
  put_step(s, 1, 1, NAN, NAN);
  const Found found = causes_of(s, {hit(s, "tensor_overflow", "Default/Log-op0"), hit(s, "weight_overflow", "w", 0),
                                    hit(s, "tensor_overflow", "Default/MatMul-op0", 1)});
  EXPECT_EQ(found.kinds(), "log_of_zero");
  EXPECT_EQ(found.follows(), "0 0 0");
  EXPECT_EQ(found.cause().steps, std::vector<int64_t>{0});
}

TEST(Causes, OneCauseForANodeThatBreaksInSeveralSteps) {
  FakeSession s(net());
  put_step(s, 0, 0, 1, -kInf);
  put_step(s, 1, 0, 1, -kInf);
  const Found found = causes_of(s, {hit(s, "tensor_overflow", "Default/Log-op0"), hit(s, "tensor_overflow", "Default/Log-op0", 1)});
  EXPECT_EQ(found.follows(), "0 0");
  EXPECT_EQ(found.cause().steps, (std::vector<int64_t>{0, 1}));
}

TEST(Causes, LearningRateOfZero) {
  for (const double rate : {0.0, 0.1}) {
    FakeSession s(net());
    put_step(s, 0, 1, 1, 1, rate);
    put_step(s, 1, 1, 1, 1, rate);
    const Found found = causes_of(s, {hit(s, "unchanged-weight", "w", 1), hit(s, "dead-relu", "Default/Abs-op0", 1)});
    EXPECT_EQ(found.kinds(), rate == 0 ? "rate_zero dead_units" : "dead_units");
    EXPECT_EQ(found.follows(), rate == 0 ? "0 1" : "- 0");
    EXPECT_EQ(s.tensor_name(found.cause().tensor), rate == 0 ? "learning_rate:output:0" : "Default/Abs-op0:output:0");
  }
}

TEST(Causes, LearningRateThatIsTooLarge) {
  const auto train = [](double rate, double rate_before) {
    FakeSession s(net());
    put_step(s, 0, 2, 1, 1, rate_before);
    put_step(s, 1, 2, 2, 1, rate);
    put_step(s, 2, 2, 9e30, 1, rate);
    put_step(s, 3, 2, 9e38, kInf, rate);
    s.put("Default/Log-op0", 3, f32({3e30f}));
    s.put("w", 3, make_tensor(DType::kFloat32, {1, 1}, std::vector<double>{9e37}));
    return causes_of(s, {hit(s, "loss-explosion", "Default/MatMul-op0", 1), hit(s, "update-too-large", "w", 1),
                         hit(s, "value-jump", "Default/MatMul-op0", 2), hit(s, "value-jump", "Default/Abs-op0", 2),
                         hit(s, "tensor_overflow", "Default/MatMul-op0", 3)});
  };
  // The update of step 0 had this rate, too. Nothing leads from the weight to Abs.
  Found found = train(30, 30);
  EXPECT_EQ(found.kinds(), "rate_too_large");
  EXPECT_EQ(found.follows(), "0 0 0 - 0");
  // The loss of step 1 came before the update of step 1, the first one with this rate.
  found = train(30, 0.001);
  EXPECT_EQ(found.follows(), "- 0 0 - 0");
  EXPECT_EQ(found.cause().what, "the learning rate 30 is too large");
  EXPECT_EQ(found.cause().steps, std::vector<int64_t>{1});
  // Here it is the gradient that is large.
  found = train(0.1, 0.1);
  EXPECT_EQ(found.kinds(), "product_overflow");
  EXPECT_EQ(found.follows(), "- - - - 0");
}

TEST(Causes, DeadUnitsStopGradients) {
  FakeSession s(fake_graph({{"w", "Parameter"},
                            {"learning_rate", "Parameter"},
                            {"Default/ReLU-op0", "ReLU", {"w"}},
                            {"Gradients/ReluGrad-op0", "ReluGrad", {"Default/loss", "Default/ReLU-op0"}},
                            {"Gradients/MatMul-op1", "MatMul", {"Gradients/ReluGrad-op0"}},
                            {"Gradients/MatMul-op2", "MatMul", {"Default/other"}}}));
  s.put("w", 0, f32({-1}));
  s.put("Default/ReLU-op0", 0, f32({0}));
  for (const char* name : {"Gradients/ReluGrad-op0", "Gradients/MatMul-op1", "Gradients/MatMul-op2"}) s.put(name, 0, f32({0}));
  const Found found = causes_of(s, {hit(s, "dead-relu", "Default/ReLU-op0"), hit(s, "zero-gradient", "Gradients/MatMul-op1"),
                                    hit(s, "zero-gradient", "Gradients/MatMul-op2"), hit(s, "value-jump", "Gradients/MatMul-op1")});
  EXPECT_EQ(found.kinds(), "dead_units");
  EXPECT_EQ(found.follows(), "0 0 - -");
}

TEST(Causes, VanishingByDepth) {
  FakeSession s(fake_graph({{"Gradients/SigmoidGrad-op2", "SigmoidGrad", {"Default/loss"}},
                            {"Gradients/MatMul-op2", "MatMul", {"Gradients/SigmoidGrad-op2"}},
                            {"Gradients/SigmoidGrad-op1", "SigmoidGrad", {"Gradients/SigmoidGrad-op2"}},
                            {"Gradients/MatMul-op1", "MatMul", {"Gradients/SigmoidGrad-op1"}},
                            {"Gradients/MatMul-op9", "MatMul", {"Default/loss"}}}));
  for (const char* name : {"Gradients/MatMul-op1", "Gradients/MatMul-op2", "Gradients/MatMul-op9"}) s.put(name, 0, f32({1e-9f}));
  const Found found =
      causes_of(s, {hit(s, "vanishing-by-depth", "Gradients/MatMul-op1"), hit(s, "vanishing-gradient", "Gradients/MatMul-op2"),
                    hit(s, "vanishing-gradient", "Gradients/MatMul-op9")});
  EXPECT_EQ(found.kinds(), "vanishing");
  EXPECT_EQ(found.follows(), "0 0 -");
}

TEST(Causes, LossScaleThatNeverFits) {
  FakeSession s(fake_graph({{"scale_value", "Parameter"},
                            {"x", "Parameter"},
                            {"Gradients/Mul-op0", "Mul", {"x", "scale_value"}},
                            {"Default/Log-op0", "Log", {"x"}}}));
  for (const int64_t step : {0, 1}) {
    s.put("scale_value", step, f32({1e30f}));
    s.put("x", step, f32({1e20f}));
    s.put("Gradients/Mul-op0", step, f32({INFINITY}));
    s.put("Default/Log-op0", step, f32({NAN}));
  }
  const Found found = causes_of(s, {hit(s, "tensor_overflow", "Gradients/Mul-op0", 0), hit(s, "tensor_overflow", "Default/Log-op0", 0),
                                    hit(s, "tensor_overflow", "Gradients/Mul-op0", 1), hit(s, "loss-scale-stuck", "scale_value", 1)});
  EXPECT_EQ(found.kinds(), "unknown loss_scale");
  EXPECT_EQ(found.follows(), "1 0 1 1");
}

// ---- a training ----------------------------------------------------------------------------------------------------

class Training : public FakeSession {
 public:
  Training() : FakeSession(net()) {
    mutable_info().kind = SessionKind::kLive;
    put_step(*this, 0, 0, 1, -kInf);
    put_step(*this, 1, 0, 1, -kInf);
  }
  bool can_step() const override { return true; }
  std::optional<int64_t> held_step() override { return held; }
  Result<TensorInfo> describe(const TensorId& id) override {
    Result<TensorInfo> info = FakeSession::describe(id);
    if (info) info->bytes = std::max(info->bytes, each_bytes);
    return info;
  }

  std::optional<int64_t> held = 0;
  uint64_t each_bytes = 0;
};

/// As a training reports it: without statistics.
Hit reported(FakeSession& s, const std::string& node, int64_t step = 0, const std::string& rule = "tensor_overflow") {
  Hit out;
  out.rule = rule;
  out.tensor = s.id(node, step);
  return out;
}

TEST(CausesOfATraining, OfTheStepAtWhichItIsHeld) {
  Training s;
  const Found found = causes_of(s, {reported(s, "Default/Log-op0"), reported(s, "Default/Log-op0", 1)});
  EXPECT_EQ(found.kinds(), "log_of_zero");
  EXPECT_EQ(found.follows(), "0 -");
  EXPECT_EQ(found.result.hits[0].stats.neg_inf_count, 1u);
  EXPECT_EQ(found.result.hits[1].stats.known, 0u);
}

TEST(CausesOfATraining, NotOnceItRunsOrHasGoneOn) {
  Training s;
  s.held = 1;
  EXPECT_FALSE(causes_of(s, {reported(s, "Default/Log-op0")}).result.causes);
  s.held.reset();
  EXPECT_FALSE(causes_of(s, {reported(s, "Default/Log-op0")}).result.causes);
}

TEST(CausesOfATraining, NothingIsReadWithoutAHitThatIsNotFinite) {
  Training s;
  s.reset_counters();
  (void)causes_of(s, {});
  Hit large = reported(s, "Default/Log-op0", 0, "tensor_too_large");
  large.params = {{.name = "max_gt", .threshold = 3, .actual = 4, .hit = true}};
  EXPECT_EQ(causes_of(s, {large}).follows(), "-");
  EXPECT_EQ(s.reads(), 0u);
  large.params[0].actual = kInf;
  EXPECT_EQ(causes_of(s, {large}).follows(), "0");
}

TEST(CausesOfATraining, AStepWithTooManyValuesIsNotSearched) {
  Training s;
  s.each_bytes = kMostCauseBytes;
  const Found found = causes_of(s, {reported(s, "Default/Log-op0")});
  EXPECT_FALSE(found.result.causes);
  EXPECT_NE(found.result.no_causes.find("of values; origin reads them"), std::string::npos) << found.result.no_causes;
}

TEST(Causes, ACheckpointIsNotSearched) {
  FakeSession s(net());
  put_step(s, 0, 0, 1, -kInf);
  s.mutable_info().kind = SessionKind::kCheckpoint;
  const Found found = causes_of(s, {hit(s, "tensor_overflow", "Default/Log-op0")});
  EXPECT_FALSE(found.result.causes.has_value());
  EXPECT_EQ(found.follows(), "-");
}

}  // namespace
}  // namespace msdbg
