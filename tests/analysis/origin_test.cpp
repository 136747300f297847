#include "analysis/origin_support.h"

namespace msdbg {
namespace {

TEST(Origin, HealthyStepsHaveNone) {
  FakeSession s(small_net());
  put_healthy(s, 0);
  put_healthy(s, 1);
  const OriginResult result = search(s);
  EXPECT_TRUE(result.steps.empty());
  EXPECT_TRUE(result.not_checked.empty());
  EXPECT_EQ(result.coverage.tensors, 16u);
  EXPECT_EQ(result.coverage.checked, 16u);
}

// As PyTorch's optimizers work: two operators change the weight in place, and only outputs are recorded.
TEST(Origin, OwnArithmeticOfAnOperatorWithFiniteInputs) {
  FakeSession s(small_net());
  put_healthy(s, 0);
  s.put("Default/Log-op0", 0,
        testing::make_tensor(DType::kFloat32, {2, 2}, std::vector<double>{-kInf, 1, -kInf, -kInf}));
  s.put("x", 0, testing::make_tensor(DType::kFloat32, {2, 2}, std::vector<double>{0, 1, 0, 0}));
  s.put("Default/MatMul-op0", 0, f32({NAN}));
  const OriginResult result = search(s);
  ASSERT_EQ(result.steps.size(), 1u);
  const Origin& origin = result.steps[0].origins.at(0);
  EXPECT_EQ(names(s, result.steps[0]), Names{"Default/Log-op0:output:0"});
  EXPECT_EQ(origin.kind, OriginKind::kOperator);
  EXPECT_TRUE(origin.certain);
  EXPECT_EQ(origin.bad_count, 3u);
  EXPECT_EQ(origin.first, (std::vector<std::vector<int64_t>>{{0, 0}, {1, 0}, {1, 1}}));
  ASSERT_TRUE(origin.rows);
  EXPECT_EQ(origin.rows->first, 2);
  EXPECT_EQ(origin.rows->second, (std::pair<uint64_t, uint64_t>{1, 2}));
  ASSERT_EQ(origin.inputs.size(), 1u);
  EXPECT_EQ(origin.inputs[0].state, InputState::kGood);
  EXPECT_TRUE(origin.inputs[0].zeros_at_bad);
}

TEST(Origin, RecordedInputCountsMoreThanTheProducersOutput) {
  FakeSession s(small_net());
  put_healthy(s, 0);
  s.put("Default/MatMul-op0", 0, f32({NAN}));
  s.put("Default/MatMul-op0", 0, f32({kInf, 2}), kIn0);
  const OriginResult result = search(s);
  // MatMul used a value that Log did not write: neither broke it by itself, so the input is the origin, and marked as such.
  ASSERT_EQ(result.steps.size(), 1u);
  EXPECT_EQ(names(s, result.steps[0]), Names{"Default/MatMul-op0:input:0"});
  EXPECT_FALSE(result.steps[0].origins[0].certain);
}

TEST(Origin, GraphInputThatCameInBad) {
  FakeSession s(small_net());
  put_healthy(s, 0);
  s.put("x", 0, f32({NAN, 1}));
  s.put("Default/Log-op0", 0, f32({NAN, 0}));
  const OriginResult result = search(s);
  ASSERT_EQ(result.steps.size(), 1u);
  EXPECT_EQ(names(s, result.steps[0]), Names{"x:output:0"});
  EXPECT_EQ(result.steps[0].origins[0].kind, OriginKind::kInput);
  EXPECT_EQ(result.steps[0].origins[0].reached, 2u);
}

TEST(Origin, InputThatCameInBadIsToldBeforeWhatAnUnknownInputMayHaveBroken) {
  // What `kernel` was given, nobody has seen.
  const auto graph = [](bool unknown) {
    std::vector<std::string> inputs;
    if (unknown) inputs = {"unseen"};
    return fake_graph({{"unseen", "Parameter"}, {"x", "Parameter"}, {"kernel", "Mul", inputs}, {"MatMul-op0", "MatMul", {"x"}}});
  };
  for (const bool unknown : {true, false}) {
    FakeSession s(graph(unknown));
    s.put("x", 0, f32({NAN, 1}));
    s.put("kernel", 0, f32({NAN}));
    s.put("MatMul-op0", 0, f32({NAN}));
    const OriginResult result = search(s);
    ASSERT_EQ(result.steps.size(), 1u);
    const Names expected = unknown ? Names{"x:output:0", "kernel:output:0"} : Names{"kernel:output:0", "x:output:0"};
    EXPECT_EQ(names(s, result.steps[0]), expected);
  }
}

TEST(Origin, BadConstantIsAnInput) {
  FakeSession s(fake_graph({{"mask", "Const"}, {"Add-op0", "Add", {"mask"}}}));
  s.put("mask", 0, f32({-kInf}));
  s.put("Add-op0", 0, f32({-kInf}));
  const OriginResult result = search(s);
  ASSERT_EQ(result.steps.size(), 1u);
  EXPECT_EQ(names(s, result.steps[0]), Names{"mask:output:0"});
  EXPECT_EQ(result.steps[0].origins[0].kind, OriginKind::kInput);
}

TEST(Origin, UnknownInputMakesItUncertainAndIsNamed) {
  FakeSession s(small_net());
  s.put("Default/Log-op0", 0, f32({1, 2}));
  s.put("Default/MatMul-op0", 0, f32({NAN}));
  const OriginResult result = search(s);
  ASSERT_EQ(result.steps.size(), 1u);
  const Origin& origin = result.steps[0].origins[0];
  EXPECT_EQ(s.tensor_name(origin.tensor), "Default/MatMul-op0:output:0");
  EXPECT_FALSE(origin.certain);
  ASSERT_EQ(origin.inputs.size(), 2u);
  EXPECT_EQ(origin.inputs[0].state, InputState::kGood);
  EXPECT_EQ(origin.inputs[1].state, InputState::kUnknown);
  EXPECT_NE(origin.inputs[1].reason.find("fc.weight"), std::string::npos);
}

TEST(Origin, UnreadableInputIsUnknownAndListed) {
  FakeSession s(small_net());
  put_healthy(s, 0);
  s.put("Default/MatMul-op0", 0, f32({1}), kIn1);
  s.set_problem(s.id("Default/Log-op0", 0), Status(Code::kCorrupt, "file is cut off"));
  s.put("Default/MatMul-op0", 0, f32({NAN}));
  const OriginResult result = search(s);
  ASSERT_EQ(result.steps.size(), 1u);
  EXPECT_FALSE(result.steps[0].origins[0].certain);
  EXPECT_NE(result.steps[0].origins[0].inputs[0].reason.find("cut off"), std::string::npos);
  ASSERT_EQ(result.not_checked.size(), 1u);
}

TEST(Origin, UncertainNodeBehindAnotherOriginIsItsConsequence) {
  // a broke; b was not dumped; c has no known input but is after a.
  FakeSession s(fake_graph({{"p", "Parameter"}, {"a", "Log", {"p"}}, {"b", "Exp", {"a"}}, {"c", "Add", {"b"}}}));
  s.put("p", 0, f32({1}));
  s.put("a", 0, f32({NAN}));
  s.put("c", 0, f32({NAN}));
  const OriginResult result = search(s);
  ASSERT_EQ(result.steps.size(), 1u);
  EXPECT_EQ(names(s, result.steps[0]), Names{"a:output:0"});
  EXPECT_EQ(result.steps[0].origins[0].reached, 2u);
}

TEST(Origin, NodeThatWasNotDumpedIsSeenThroughItsConsumer) {
  FakeSession s(fake_graph({{"p", "Parameter"}, {"a", "Log", {"p"}}, {"b", "Exp", {"a"}}}));
  s.put("p", 0, f32({1}));
  s.put("b", 0, f32({NAN}), kIn0);
  s.put("b", 0, f32({NAN}));
  const OriginResult result = search(s);
  ASSERT_EQ(result.steps.size(), 1u);
  EXPECT_EQ(names(s, result.steps[0]), Names{"b:input:0"});
  EXPECT_TRUE(result.steps[0].origins[0].certain);  // Log's input is known
  EXPECT_EQ(result.steps[0].origins[0].inputs.at(0).value, s.id("p", 0));
}

TEST(Origin, TwoIndependentOnesAreListedInExecutionOrder) {
  FakeSession s(fake_graph({{"p", "Parameter"}, {"a", "Log", {"p"}}, {"b", "Exp", {"p"}}, {"c", "Add", {"a", "b"}}}));
  s.put("p", 0, f32({1}));
  s.put("a", 0, f32({-kInf}));
  s.put("b", 0, f32({kInf}));
  s.put("c", 0, f32({NAN}));
  const OriginResult result = search(s);
  ASSERT_EQ(result.steps.size(), 1u);
  EXPECT_EQ(names(s, result.steps[0]), (Names{"a:output:0", "b:output:0"}));
  EXPECT_EQ(result.steps[0].bad_tensors, 3u);
}

TEST(Origin, LoopBodyBreaksInItsSecondExecution) {
  FakeSession s(fake_graph({{"p", "Parameter"}, {"a", "Exp", {"p"}}, {"b", "Mul", {"a"}}}));
  s.put("p", 0, f32({1}));
  for (uint32_t k = 0; k < 3; ++k) {
    s.put("a", 0, f32({k == 2 ? kInf : 1}), {}, k);
    s.put("b", 0, f32({k >= 1 ? kInf : 1}), {}, k);
  }
  const OriginResult result = search(s);
  ASSERT_EQ(result.steps.size(), 1u);
  const StepOrigins& step = result.steps[0];
  // Execution 1 of b comes before execution 2 of a, although b is after a in the graph.
  ASSERT_EQ(step.origins.size(), 2u);
  EXPECT_EQ(step.origins[0].tensor, s.id("b", 0, {}, 1));
  EXPECT_EQ(step.origins[1].tensor, s.id("a", 0, {}, 2));
}

TEST(Origin, LaterRunsOfALoopBodyFollowFromTheFirstThatBroke) {
  // The body passes values to its next run as a parameter that was not dumped.
  FakeSession s(fake_graph({{"i", "Parameter"}, {"mm", "MatMul", {"i"}}, {"add", "Add", {"mm"}}}));
  for (uint32_t k = 0; k < 4; ++k) {
    s.put("mm", 0, f32({k == 0 ? 1 : kInf}), {}, k);
    s.put("add", 0, f32({k == 0 ? 1 : kInf}), {}, k);
  }
  const OriginResult result = search(s);
  ASSERT_EQ(result.steps.size(), 1u);
  ASSERT_EQ(result.steps[0].origins.size(), 1u);
  EXPECT_EQ(result.steps[0].origins[0].tensor, s.id("mm", 0, {}, 1));
  EXPECT_FALSE(result.steps[0].origins[0].certain);
}

TEST(Origin, BadValueThatComesFromAnotherGraphIsAnInput) {
  FakeSession s(fake_graph({{"i", "Parameter"}, {"mm", "MatMul", {"i"}}}));
  s.put("mm", 0, f32({1}), kIn0, 0);
  s.put("mm", 0, f32({1}), {}, 0);
  s.put("mm", 0, f32({NAN}), kIn0, 1);
  s.put("mm", 0, f32({NAN}), {}, 1);
  const OriginResult result = search(s);
  ASSERT_EQ(result.steps.size(), 1u);
  ASSERT_EQ(result.steps[0].origins.size(), 1u);
  EXPECT_EQ(result.steps[0].origins[0].kind, OriginKind::kInput);
  EXPECT_EQ(result.steps[0].origins[0].tensor, s.id("mm", 0, kIn0, 1));
}

TEST(UnwrittenOutputs, DependOnReleaseDeviceAndOperator) {
  const auto unwritten = [](const char* epoch, const char* device, const char* op) {
    FakeSession s(fake_graph({{"w", "Parameter"}, {"Default/optimizer-O/" + std::string(op) + "-op0", op, {"w"}}}));
    s.mutable_info().epoch = epoch;
    s.mutable_info().device_target = device;
    return has_unwritten_outputs(s.info(), *s.graphs()[0]->find("Default/optimizer-O/" + std::string(op) + "-op0"));
  };
  EXPECT_TRUE(unwritten("B", "GPU", "ApplyMomentum"));
  EXPECT_FALSE(unwritten("C", "CPU", "ApplyMomentum"));
  EXPECT_TRUE(unwritten("C", "CPU", "ApplyRMSProp"));
  EXPECT_TRUE(unwritten("E", "CPU", "Adam"));
  EXPECT_TRUE(unwritten("E", "CPU", "AdamWeightDecay"));
  EXPECT_FALSE(unwritten("E", "Ascend", "Adam"));
  EXPECT_FALSE(unwritten("E", "CPU", "ReLU"));
}

TEST(Origin, TableForADerivativeHasInfinitiesByDesign) {
  for (const auto& [op, padding] : {std::pair{"CTCLossV2", -kInf}, std::pair{"_efficient_attention_forward", kInf}}) {
    for (const double result_of : {2.0, kInf}) {
      FakeSession s(fake_graph({{"x", "Parameter"}, {"Default/it-op0", op, {"x"}, 2}}));
      s.put("x", 0, f32({1, 2}));
      s.put("Default/it-op0", 0, f32({result_of}));
      s.put("Default/it-op0", 0, f32({-1, padding}), {Io::kOutput, 1});
      const OriginResult result = search(s);
      EXPECT_EQ(result.put_in.size(), 1u);
      ASSERT_EQ(result.steps.size(), result_of == kInf ? 1u : 0u);
      if (!result.steps.empty()) {
        EXPECT_EQ(names(s, result.steps[0]), Names{"Default/it-op0:output:0"});
      }
    }
  }
}

TEST(Origin, ConditionIsAPredicate) {
  FakeSession s(small_net());
  put_healthy(s, 0);
  s.put("Default/MatMul-op0", 0, f32({1000}));
  s.put("Gradients/Mul-op0", 0, f32({2000}));
  const OriginResult result = search(s, "TL max_gt=100");
  ASSERT_EQ(result.steps.size(), 1u);
  EXPECT_EQ(result.predicate, "tensor_too_large max_gt 100");
  EXPECT_EQ(names(s, result.steps[0]), Names{"Default/MatMul-op0:output:0"});
  EXPECT_TRUE(result.steps[0].origins[0].first.empty());
  EXPECT_EQ(result.steps[0].origins[0].stats.max, 1000);
}

TEST(Origin, ScriptIsAPredicateAndMayDecline) {
  FakeSession s(small_net());
  put_healthy(s, 0);
  s.put("Gradients/Mul-op0", 0, f32({7}));
  OriginOptions options;
  options.predicate.text = "seven";
  options.predicate.when = Predicate::Function([](const CheckedTensor& tensor) -> std::optional<bool> {
    if (tensor.stats->max == 2) return std::nullopt;
    return tensor.stats->max == 7;
  });
  const Result<OriginResult> result = find_origins(s, options);
  ASSERT_TRUE(result.ok());
  ASSERT_EQ(result->steps.size(), 1u);
  EXPECT_EQ(names(s, result->steps[0]), Names{"Gradients/Mul-op0:output:0"});
  EXPECT_EQ(result->not_checked.size(), 2u);  // x and Log hold a 2
}

TEST(Origin, HealthyLossIsReported) {
  FakeSession s(
      fake_graph({{"p", "Parameter"},
                  {"a", "Log", {"p"}},
                  {"r", "ReLU", {"a"}},
                  {"Default/_loss_fn-X/SoftmaxCrossEntropyWithLogits-op0", "SoftmaxCrossEntropyWithLogits", {"r"}}}));
  s.put("p", 0, f32({0}));
  s.put("a", 0, f32({NAN}));
  s.put("r", 0, f32({0}));
  s.put("Default/_loss_fn-X/SoftmaxCrossEntropyWithLogits-op0", 0, f32({2.3}));
  const OriginResult result = search(s);
  ASSERT_EQ(result.steps.size(), 1u);
  ASSERT_EQ(result.steps[0].losses.size(), 1u);
  EXPECT_EQ(result.steps[0].losses[0].node, s.id("Default/_loss_fn-X/SoftmaxCrossEntropyWithLogits-op0", 0).node);
}

TEST(Origin, AGoodPartOfABadLossIsNotTheLoss) {
  FakeSession s(fake_graph({{"p", "Parameter"},
                            {"a", "Log", {"p"}},
                            {"Default/_loss_fn-X/ReduceSum-op0", "ReduceSum", {"p"}},
                            {"Default/_loss_fn-X/Mul-op0", "Mul", {"a", "Default/_loss_fn-X/ReduceSum-op0"}}}));
  s.put("p", 0, f32({0}));
  s.put("a", 0, f32({NAN}));
  s.put("Default/_loss_fn-X/ReduceSum-op0", 0, f32({16}));
  s.put("Default/_loss_fn-X/Mul-op0", 0, f32({NAN}));
  const OriginResult result = search(s);
  ASSERT_EQ(result.steps.size(), 1u);
  EXPECT_TRUE(result.steps[0].losses.empty());
}

TEST(Origin, UnknownStepIsAnErrorThatNamesTheStepsThere) {
  FakeSession s(small_net());
  put_healthy(s, 0);
  OriginOptions options;
  options.steps = IntSet::of(9);
  const Result<OriginResult> result = find_origins(s, options);
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.status().message().find('9'), std::string::npos);
}

TEST(Origin, InterruptIsReportedAsPartial) {
  FakeSession s(small_net());
  put_healthy(s, 0);
  s.put("Default/MatMul-op0", 0, f32({NAN}));
  request_interrupt();
  const Result<OriginResult> result = find_origins(s, {});
  clear_interrupt();
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result->interrupted);
  EXPECT_TRUE(result->steps.empty());
}

TEST(Origin, RanksAndGraphsAreJudgedEachForThemselves) {
  const std::vector<testing::FakeNode> nodes = {{"p", "Parameter"}, {"a", "Log", {"p"}}};
  FakeSession s({fake_graph(nodes, 0, 0), fake_graph(nodes, 0, 1), fake_graph(nodes, 1, 0)});
  for (int64_t step : {0, 1}) {
    for (const auto& [rank, graph] : {std::pair(0, 0), std::pair(0, 1), std::pair(1, 0)}) {
      s.put(s.id("p", step, {}, 0, rank, graph), f32({1}));
      const bool broken = (rank == 1 && step == 0) || (graph == 1 && step == 1);
      s.put(s.id("a", step, {}, 0, rank, graph), f32({broken ? NAN : 1}));
    }
  }
  const OriginResult result = search(s);
  ASSERT_EQ(result.steps.size(), 2u);
  EXPECT_EQ(std::tuple(result.steps[0].rank, result.steps[0].graph, result.steps[0].step), std::tuple(1, 0, 0));
  EXPECT_EQ(std::tuple(result.steps[1].rank, result.steps[1].graph, result.steps[1].step), std::tuple(0, 1, 1));
  OriginOptions first_rank;
  first_rank.ranks = IntSet::of(0);
  EXPECT_EQ(search(s, "nan", first_rank).steps.size(), 1u);
}

TEST(Origin, ProgressRisesAndEndsAtTheTotal) {
  FakeSession s(small_net());
  put_healthy(s, 0);
  put_healthy(s, 1);
  OriginOptions options;
  std::vector<uint64_t> done;
  uint64_t first_total = 0, last_total = 0;
  options.progress = [&](uint64_t now, uint64_t total, uint64_t) {
    done.push_back(now);
    if (first_total == 0) first_total = total;
    last_total = total;
  };
  const OriginResult result = search(s, "nan", options);
  ASSERT_FALSE(done.empty());
  EXPECT_TRUE(std::is_sorted(done.begin(), done.end()));
  EXPECT_EQ(done.back(), last_total);
  EXPECT_EQ(first_total, last_total);  // the first step must not look like the whole work
  EXPECT_EQ(last_total, result.coverage.tensors);
}

TEST(Origin, ThreadsDoNotChangeTheAnswer) {
  FakeSession s(small_net());
  for (int64_t step = 0; step < 4; ++step) {
    put_healthy(s, step);
    s.put("Default/MatMul-op0", step, f32({NAN}));
    s.put("Gradients/Mul-op0", step, f32({NAN}));
  }
  std::vector<std::vector<std::string>> answers;
  for (unsigned threads : {1u, 7u}) {
    OriginOptions options;
    options.threads = threads;
    const OriginResult result = find_origins(s, options).value();
    std::vector<std::string> answer;
    for (const StepOrigins& step : result.steps) {
      for (const std::string& name : names(s, step)) answer.push_back(std::to_string(step.step) + name);
    }
    answers.push_back(answer);
  }
  EXPECT_EQ(answers[0].size(), 4u);
  EXPECT_EQ(answers[0], answers[1]);
}

}  // namespace
}  // namespace msdbg
