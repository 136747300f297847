// What origin, check and replicas say of dumps made from the real ones and of networks that a test writes down: other numbers of
// ranks, ranks and steps that are missing, faults that other ranks see first, shards, pipelines.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "msdbg/analysis.h"
#include "msdbg/dump.h"
#include "msdbg/replicas.h"
#include "support/made_ranks.h"
#include "support/rank_dumps.h"

namespace msdbg {
namespace {

using test::MadeNode;
using test::MadeRanks;
using test::RankDump;
using Ranks = std::vector<int>;
const std::string kReducer = "Default/grad_reducer-DistributedGradReducer/";

/// The answers to all three questions.
struct Answers {
  std::unique_ptr<Session> session;
  OriginResult origins;
  CheckResult checked;  ///< for NaN and Inf, with causes
  ReplicasResult replicas;

  std::string name(const TensorId& id) const { return session->tensor_name(id); }
  std::vector<const StepOrigins*> stories(int64_t step) const {
    std::vector<const StepOrigins*> out;
    for (const StepOrigins& each : origins.steps) {
      if (each.step == step) out.push_back(&each);
    }
    return out;
  }
  /// `RANK TENSOR` of each cause.
  std::set<std::string> causes() const {
    std::set<std::string> out;
    if (!checked.causes) return out;
    for (const Cause& cause : *checked.causes) out.insert(std::to_string(cause.tensor.rank) + " " + name(cause.tensor));
    return out;
  }
  uint64_t findings_with_cause() const {
    uint64_t sum = 0;
    for (const Hit& hit : checked.hits) sum += hit.follows ? 1 : 0;
    return sum;
  }
};

Answers ask(const std::string& path) {
  Answers out;
  out.session = testing::open(path);
  if (Result<OriginResult> found = find_origins(*out.session, {}); found) out.origins = std::move(*found);
  else ADD_FAILURE() << found.status().message();
  Watchpoint point;
  point.id = 1;
  point.rule = "tensor_overflow";
  point.on = Selector::parse("@all").value();
  point.condition = make_condition("tensor_overflow", {}).value();
  if (Result<CheckResult> checked = check(*out.session, std::span(&point, 1), {}); checked) out.checked = std::move(*checked);
  else ADD_FAILURE() << checked.status().message();
  EXPECT_TRUE(find_causes(*out.session, {}, &out.checked).ok());
  if (Result<ReplicasResult> compared = replicas(*out.session, {}); compared) out.replicas = std::move(*compared);
  else ADD_FAILURE() << compared.status().message();
  return out;
}

Ranks reached(const Origin& origin) {
  Ranks out;
  for (const RankReached& rank : origin.ranks_reached) out.push_back(rank.rank);
  return out;
}

TEST(DerivedRanks, OneBadBatchAmongTwoThreeOrEightRanks) {
  for (const int ranks : {2, 3, 8}) {
    RankDump dump("ranks-2.7.1-badbatch");
    Ranks others;
    for (int rank = 0; rank < ranks; ++rank) {
      dump.copy_rank(rank == 1 ? 2 : rank == 0 ? 0 : 3, rank);
      if (rank != 1) others.push_back(rank);
    }
    const Answers answers = ask(dump.path());
    ASSERT_EQ(answers.stories(1).size(), 1u) << ranks;
    EXPECT_EQ(answers.stories(1)[0]->rank, 1);
    ASSERT_EQ(answers.stories(1)[0]->origins.size(), 1u);
    EXPECT_EQ(reached(answers.stories(1)[0]->origins[0]), others);
    EXPECT_EQ(answers.causes(), std::set<std::string>{"1 inputs0:output:0"}) << ranks;
    EXPECT_EQ(answers.findings_with_cause(), answers.checked.hits.size()) << ranks;
    EXPECT_TRUE(answers.replicas.differences.empty()) << ranks;
    EXPECT_EQ(answers.replicas.ranks.size(), static_cast<size_t>(ranks));
  }
}

TEST(DerivedRanks, NumbersWithGaps) {
  RankDump dump("ranks-2.7.1-badbatch");
  dump.copy_rank(0, 1).copy_rank(2, 4).copy_rank(3, 6);
  const Answers answers = ask(dump.path());
  ASSERT_EQ(answers.stories(1).size(), 1u);
  EXPECT_EQ(answers.stories(1)[0]->rank, 4);
  EXPECT_TRUE(answers.stories(1)[0]->origins[0].certain);
  EXPECT_EQ(reached(answers.stories(1)[0]->origins[0]), (Ranks{1, 6}));
  EXPECT_EQ(answers.replicas.ranks, (Ranks{1, 4, 6}));
  EXPECT_TRUE(answers.replicas.differences.empty());
}

TEST(DerivedRanks, TheRankThatBrokeFirstIsMissing) {
  RankDump dump("ranks-2.7.1-badbatch");
  dump.copy_rank(0, 0).copy_rank(1, 1).copy_rank(3, 3);
  const Answers answers = ask(dump.path());
  ASSERT_EQ(answers.stories(1).size(), 1u);
  const StepOrigins& story = *answers.stories(1)[0];
  EXPECT_EQ(story.ranks, (Ranks{0, 1, 3}));
  EXPECT_FALSE(story.origins[0].certain);
  EXPECT_EQ(answers.name(story.origins[0].tensor), kReducer + "AllReduce-op2:output:0");
  EXPECT_TRUE(std::ranges::any_of(story.origins[0].inputs, [](const OriginInput& input) {
    return input.reason == "rank 2 takes part in it and has no such call in this session";
  }));
  // It came through all collectives, and is one cause.
  EXPECT_EQ(unseen_ranks(*answers.session, story.origins[0]), "rank 2 takes part in it and has no such call in this session");
  EXPECT_EQ(answers.causes(), std::set<std::string>{"0 " + kReducer + "AllReduce-op2:output:0"});
  EXPECT_EQ(answers.findings_with_cause(), answers.checked.hits.size());
}

TEST(DerivedRanks, AStepOfARankIsMissing) {
  RankDump victim("ranks-2.7.1-badbatch");
  victim.copy_ranks(4).remove_step(3, 1);
  const Answers without = ask(victim.path());
  ASSERT_EQ(without.stories(1).size(), 1u);
  EXPECT_EQ(without.stories(1)[0]->rank, 2);
  EXPECT_EQ(reached(without.stories(1)[0]->origins[0]), (Ranks{0, 1}));
  EXPECT_TRUE(without.replicas.differences.empty());
  EXPECT_TRUE(
      std::ranges::any_of(without.replicas.not_checked, [](const NotChecked& each) { return each.reason == "rank 3 has no step 1"; }));

  // Without the step in which it broke, nobody knows where it came from.
  RankDump culprit("ranks-2.7.1-badbatch");
  culprit.copy_ranks(4).remove_step(2, 1);
  const Answers open = ask(culprit.path());
  ASSERT_EQ(open.stories(1).size(), 1u);
  EXPECT_EQ(open.stories(1)[0]->ranks, (Ranks{0, 1, 3}));
  EXPECT_FALSE(open.stories(1)[0]->origins[0].certain);
}

TEST(DerivedRanks, OtherWeightsAreOneDifference) {
  RankDump dump("ranks-2.7.1-ok");
  dump.copy_ranks(3);
  for (uint64_t i = 0; i < 50; ++i) dump.set(dump.file(2, 1, "Parameter.conv1_weight"), i, 7);
  for (uint64_t i = 0; i < 200; ++i) dump.set(dump.file(2, 1, "Parameter.conv2_weight"), i, 7);
  const Answers other = ask(dump.path());
  ASSERT_EQ(other.replicas.differences.size(), 1u);
  ASSERT_EQ(other.replicas.differences[0].also.size(), 1u);
  EXPECT_TRUE(difference_sentence(other.replicas.differences[0]).ends_with("; 1 more parameter differs as much"));

  // Single bits of two parameters are two faults.
  RankDump flips("ranks-2.7.1-ok");
  flips.copy_ranks(3);
  for (const char* name : {"Parameter.conv1_weight", "Parameter.conv2_weight"}) flips.flip(flips.file(2, 1, name), 3, 24);
  EXPECT_EQ(ask(flips.path()).replicas.differences.size(), 2u);
}

TEST(DerivedRanks, ARankThatIsOneStepBehind) {
  RankDump dump("ranks-2.7.1-ok");
  dump.copy_ranks(3);
  const std::filesystem::path steps = dump.file(1, 0, "Parameter.conv1_weight").parent_path().parent_path();
  std::filesystem::remove_all(steps / "1");
  std::filesystem::copy(steps / "0", steps / "1");
  const Answers answers = ask(dump.path());
  ASSERT_EQ(answers.replicas.differences.size(), 1u);
  EXPECT_EQ(answers.replicas.differences[0].odd, Ranks{1});
  EXPECT_EQ(answers.replicas.differences[0].cause, ReplicaCause::kStep);
}

TEST(DerivedRanks, ARankThatIsOneStepAhead) {
  RankDump dump("ranks-2.7.1-ok");
  dump.copy_ranks(3);
  const std::filesystem::path steps = dump.file(1, 0, "Parameter.conv1_weight").parent_path().parent_path();
  std::filesystem::remove_all(steps / "0");
  std::filesystem::copy(steps / "1", steps / "0");
  const Answers answers = ask(dump.path());
  ASSERT_EQ(answers.replicas.differences.size(), 1u);
  EXPECT_EQ(answers.replicas.differences[0].odd, Ranks{1});
  EXPECT_EQ(answers.replicas.differences[0].cause, ReplicaCause::kStepAhead);
}

/// The weights alone are old: it missed an update, and what the AllReduce gave it is that of the step.
TEST(DerivedRanks, ARankThatMissedAnUpdate) {
  RankDump dump("ranks-2.7.1-ok");
  dump.copy_ranks(3);
  for (const char* weight : {"conv1_weight", "fc1_weight", "moments_conv1_weight", "moments_fc1_weight"}) {
    const std::string name = std::string("Parameter.") + weight;
    std::filesystem::copy_file(dump.file(1, 0, name), dump.file(1, 1, name), std::filesystem::copy_options::overwrite_existing);
  }
  const Answers answers = ask(dump.path());
  ASSERT_FALSE(answers.replicas.differences.empty());
  for (const ReplicaDifference& each : answers.replicas.differences) EXPECT_EQ(each.cause, ReplicaCause::kValue);
}

TEST(DerivedRanks, WithoutGraphFilesNamesTellWeights) {
  RankDump dump("ranks-2.7.1-flip");
  dump.copy_ranks(4);
  for (int rank = 0; rank < 4; ++rank) std::filesystem::remove_all(dump.path() + "/rank_" + std::to_string(rank) + "/graphs");
  const Answers answers = ask(dump.path());
  ASSERT_EQ(answers.replicas.differences.size(), 1u);
  EXPECT_EQ(answers.replicas.differences[0].odd, Ranks{1});
  EXPECT_TRUE(answers.replicas.differences[0].assumed);
  EXPECT_EQ(answers.name(answers.replicas.differences[0].tensor), "fc1_weight:output:0");
}

TEST(DerivedRanks, TheGraphOfAnotherRankServesOneWithoutAny) {
  RankDump dump("ranks-2.7.1-badbatch");
  dump.copy_rank(0, 0).copy_rank(1, 1).copy_rank(2, 2).copy_rank(3, 3);
  std::filesystem::remove_all(dump.path() + "/rank_2/graphs");
  std::filesystem::remove_all(dump.path() + "/rank_2/execution_order");
  const Answers answers = ask(dump.path());
  EXPECT_EQ(answers.causes(), std::set<std::string>{"2 inputs0:output:0"});
  ASSERT_EQ(answers.stories(1).size(), 1u);
  EXPECT_EQ(answers.stories(1)[0]->ranks, Ranks{2});
}

TEST(DerivedRanks, ASumThatMayOverflowIsNotBlamedOnAnotherRankAlone) {
  RankDump dump("ranks-2.7.1-ok");
  dump.copy_rank(0, 0).copy_rank(1, 1).copy_rank(3, 3);
  for (const int rank : {0, 1, 3}) dump.set(dump.file(rank, 1, "AllReduce.", "AllReduce-op6.", ".output.0."), 7, INFINITY);
  const Answers answers = ask(dump.path());
  ASSERT_TRUE(answers.checked.causes);
  ASSERT_EQ(answers.checked.causes->size(), 1u);
  EXPECT_TRUE(answers.checked.causes->front().what.starts_with("1 +Inf from another rank, or the sum overflows: rank 2 takes part"));
}

TEST(DerivedRanks, ACollectiveThatFailsOnOneRankWasNotFedByAnother) {
  RankDump dump("ranks-2.7.1-ok");
  dump.copy_rank(0, 0).copy_rank(1, 1).copy_rank(3, 3);
  dump.set(dump.file(1, 1, "AllReduce.", "AllReduce-op6.", ".output.0."), 7, NAN);
  const Answers answers = ask(dump.path());
  ASSERT_EQ(answers.stories(1).size(), 1u);
  EXPECT_EQ(answers.stories(1)[0]->rank, 1);
  const Origin& origin = answers.stories(1)[0]->origins[0];
  EXPECT_TRUE(origin.certain);
  EXPECT_EQ(origin.good_on, (Ranks{0, 3}));
  EXPECT_EQ(unseen_ranks(*answers.session, origin), "");
}

TEST(DerivedRanks, AWeightThatGrewBeforeTheStep) {
  RankDump dump("ranks-2.7.1-badbatch");
  dump.copy_ranks(4);
  // The batch of rank 2 is good here, but an exponent of a weight was changed.
  const auto input = [&](int rank, int slot) {
    return dump.file(rank, 1, "Conv2D.", "conv1-Conv2d_Conv2D-op0.0.0.", ".input." + std::to_string(slot) + ".");
  };
  constexpr auto kOverwrite = std::filesystem::copy_options::overwrite_existing;
  std::filesystem::copy_file(dump.file(0, 1, "Parameter.inputs0"), dump.file(2, 1, "Parameter.inputs0"), kOverwrite);
  std::filesystem::copy_file(input(0, 0), input(2, 0), kOverwrite);
  std::filesystem::copy_file(input(0, 1), input(2, 1), kOverwrite);
  dump.set(input(2, 1), 3, 1e30F);
  const Answers answers = ask(dump.path());
  ASSERT_EQ(answers.stories(1).size(), 1u);
  const Origin& origin = answers.stories(1)[0]->origins[0];
  EXPECT_EQ(origin.kind, OriginKind::kOperator);
  ASSERT_EQ(origin.grown.size(), 1u);
  EXPECT_EQ(answers.name(origin.grown[0].parameter), "conv1.weight:output:0");
  EXPECT_EQ(origin.grown[0].parameter.step, 0);
  EXPECT_FLOAT_EQ(static_cast<float>(origin.grown[0].largest), 1e30F);
  EXPECT_LT(origin.grown[0].before, 1);
}

TEST(DerivedRanks, AWeightThatWasNanBeforeTheStep) {
  RankDump dump("ranks-2.7.1-badbatch");
  dump.copy_ranks(4);
  // Before step 1 one element of a weight of rank 2 became NaN; the update made NaN of the rest.
  const auto good = dump.file(0, 1, "Parameter.inputs0");
  std::filesystem::copy_file(good, dump.file(2, 1, "Parameter.inputs0"), std::filesystem::copy_options::overwrite_existing);
  std::filesystem::copy_file(dump.file(0, 1, "Conv2D.", "conv1-Conv2d_Conv2D-op0.0.0.", ".input.0."),
                             dump.file(2, 1, "Conv2D.", "conv1-Conv2d_Conv2D-op0.0.0.", ".input.0."),
                             std::filesystem::copy_options::overwrite_existing);
  dump.set(dump.file(2, 1, "Conv2D.", "conv1-Conv2d_Conv2D-op0.0.0.", ".input.1."), 3, NAN);
  const Answers answers = ask(dump.path());
  ASSERT_EQ(answers.stories(1).size(), 1u);
  const Origin& origin = answers.stories(1)[0]->origins[0];
  EXPECT_EQ(answers.name(origin.tensor), "conv1.weight:output:0");
  EXPECT_EQ(origin.bad_count, 1u) << "not the 50 of the end of the step";
  ASSERT_TRUE(origin.sound_before);
  EXPECT_EQ(origin.sound_before->step, 0);
  ASSERT_EQ(answers.replicas.differences.size(), 1u);
  EXPECT_EQ(answers.name(answers.replicas.differences[0].tensor), "conv1.weight:output:0");
  EXPECT_EQ(answers.replicas.differences[0].odd, Ranks{2});
}

TEST(DerivedRanks, ARankWithAnotherGraph) {
  RankDump dump("ranks-2.7.1-badbatch");
  dump.copy_rank(0, 0).copy_rank(1, 1).copy_rank(2, 2).copy_foreign("lenet-2.7.1-ok", 0, 3);
  const Answers answers = ask(dump.path());
  ASSERT_EQ(answers.stories(1).size(), 1u);
  EXPECT_EQ(answers.stories(1)[0]->rank, 2);
  EXPECT_EQ(reached(answers.stories(1)[0]->origins[0]), (Ranks{0, 1}));
  EXPECT_EQ(answers.causes(), std::set<std::string>{"2 inputs0:output:0"});
  for (const ReplicaDifference& difference : answers.replicas.differences) ADD_FAILURE() << answers.name(difference.tensor);
  EXPECT_TRUE(std::ranges::any_of(answers.replicas.not_replicated, [](const NotReplicated& each) {
    return each.reason == "on rank 3 no collective reduces their gradients";
  }));
}

TEST(DerivedRanks, TwoFaultsOnTwoRanksOfOneStep) {
  RankDump dump("ranks-2.7.1-badbatch");
  dump.copy_ranks(4);
  dump.set(dump.file(0, 1, "Parameter.inputs0"), 5, NAN);
  const Answers answers = ask(dump.path());
  std::set<int> ranks;
  for (const StepOrigins* story : answers.stories(1)) ranks.insert(story->rank);
  EXPECT_EQ(ranks, (std::set<int>{0, 2}));
  const std::set<std::string> causes = answers.causes();
  EXPECT_TRUE(causes.contains("0 inputs0:output:0"));
  EXPECT_TRUE(causes.contains("2 inputs0:output:0"));
}

// ---- networks that the test writes down

/// Data-parallel: x -> Log -> Tanh, and the gradient of w, reduced by `reduce`, into Momentum.
MadeRanks trained(int ranks, const std::string& reduce) {
  MadeRanks dump(2);
  for (int rank = 0; rank < ranks; ++rank) {
    dump.rank(rank, {"x", "w", "moments.w", "learning_rate", "momentum"},
              {{"Default/Log-op0", "Log", {"x"}},
               {"Default/Tanh-op0", "Tanh", {"Default/Log-op0"}},
               {"Default/MatMul-op0", "MatMul", {"Default/Tanh-op0", "w"}},
               {"Gradients/Default/MatMul-op1", "MatMul", {"Default/Log-op0", "Default/MatMul-op0"}},
               {kReducer + reduce + "-op0", reduce, {"Gradients/Default/MatMul-op1"}, {{"group", std::string("hccl_world_group")}}},
               {kReducer + "Mul-op0", "Mul", {kReducer + reduce + "-op0"}},
               {"Default/optimizer-Momentum/ApplyMomentum-op0", "ApplyMomentum",
                {"w", "moments.w", "learning_rate", kReducer + "Mul-op0", "momentum"}}});
  }
  return dump;
}

TEST(DerivedRanks, WhatTheForwardAbsorbsShowsInAGradientOfAllRanks) {
  MadeRanks dump = trained(3, "AllReduce");
  dump.value(1, 1, "Default/Log-op0", {-INFINITY}).value(1, 1, "Gradients/Default/MatMul-op1", {INFINITY});
  for (int rank = 0; rank < 3; ++rank) {
    for (const std::string& name : {kReducer + "AllReduce-op0", kReducer + "Mul-op0", std::string("w"), std::string("moments.w")})
      dump.value(rank, 1, name, {INFINITY});
  }
  const Answers answers = ask(dump.path());
  ASSERT_EQ(answers.stories(1).size(), 1u);
  const StepOrigins& story = *answers.stories(1)[0];
  EXPECT_EQ(story.rank, 1);
  ASSERT_EQ(story.origins.size(), 1u);
  EXPECT_EQ(answers.name(story.origins[0].tensor), "Default/Log-op0:output:0");
  EXPECT_EQ(reached(story.origins[0]), (Ranks{0, 2}));
  EXPECT_EQ(answers.causes().size(), 1u);
  EXPECT_EQ(answers.findings_with_cause(), answers.checked.hits.size());
  EXPECT_TRUE(answers.replicas.differences.empty());
}

/// x -> Add of a mask -> Softmax.
MadeRanks masked(std::initializer_list<double> sum, std::initializer_list<double> shares) {
  MadeRanks dump;
  dump.rank(0, {"x", "mask"},
            {{"Default/Add-op0", "Add", {"x", "mask"}}, {"Default/Softmax-op0", "Softmax", {"Default/Add-op0"}}});
  dump.value(0, 0, "mask", {0, -INFINITY}).value(0, 0, "Default/Add-op0", sum).value(0, 0, "Default/Softmax-op0", shares);
  return dump;
}

TEST(Masks, InfinitiesThatASoftmaxAbsorbsAreNoFault) {
  const MadeRanks dump = masked({1, -INFINITY}, {1, 0});
  const Answers answers = ask(dump.path());
  EXPECT_TRUE(answers.checked.hits.empty());
  EXPECT_EQ(answers.checked.explained.size(), 2u);
  for (const StepOrigins& step : answers.origins.steps) EXPECT_TRUE(step.origins.empty());
}

TEST(Masks, ARowThatIsMaskedWhollyBreaksAtTheSoftmax) {
  const MadeRanks dump = masked({-INFINITY, -INFINITY}, {NAN, NAN});
  const Answers answers = ask(dump.path());
  EXPECT_EQ(answers.causes(), std::set<std::string>{"0 Default/Softmax-op0:output:0"});
  EXPECT_EQ(answers.checked.explained.size(), 2u);
}

TEST(DerivedRanks, ShardsAreNoReplicas) {
  for (const bool sharded : {true, false}) {
    MadeRanks dump = trained(3, sharded ? "ReduceScatter" : "AllReduce");
    for (int step = 0; step < 2; ++step) {
      for (int rank = 0; rank < 3; ++rank) {
        dump.value(rank, step, "w", {rank + 0.5, 1}).value(rank, step, "moments.w", {rank + 0.25, 1});
        dump.value(rank, step, "x", {rank + 0.1});
      }
    }
    const Answers answers = ask(dump.path());
    std::string found;
    for (const ReplicaDifference& difference : answers.replicas.differences) found += answers.name(difference.tensor) + " ";
    EXPECT_EQ(found.empty(), sharded) << found;
    EXPECT_TRUE(answers.origins.steps.empty());
  }
}

// Stages of a pipeline have weights of the same names, which NaN makes equal.
TEST(DerivedRanks, WeightsOfNaNAloneAreNoReplicas) {
  MadeRanks dump;
  for (int rank = 0; rank < 3; ++rank) {
    dump.rank(rank, {"x", "w", "moments.w", "learning_rate", "momentum"},
              {{"Default/Transpose-op0", "Transpose", {"w"}},
               {"Default/AllReduce-op0", "AllReduce", {"x"}, {{"group", std::string("hccl_world_group")}}},
               {"Gradients/Default/MatMul-op1", "MatMul", {"x", "Default/Transpose-op0"}},
               {"Default/optimizer-Momentum/ApplyMomentum-op0", "ApplyMomentum",
                {"w", "moments.w", "learning_rate", "Gradients/Default/MatMul-op1", "momentum"}}});
    dump.value(rank, 0, "w", {NAN, NAN}).value(rank, 0, "Default/Transpose-op0", {rank + 0.5, 1});
  }
  const Answers answers = ask(dump.path());
  EXPECT_TRUE(answers.replicas.differences.empty());
  const auto says = [](const auto& left_out) { return left_out.reason.find("all NaN in step 0") != std::string::npos; };
  EXPECT_TRUE(std::ranges::any_of(answers.replicas.not_replicated, says));
}

/// Tensor-parallel: each rank has a part of w, and what all of them gave is added up before Square.
OriginResult sums_with(std::initializer_list<double> weights) {
  MadeRanks dump(2);
  for (int rank = 0; rank < 3; ++rank) {
    dump.rank(rank, {"x", "w"},
              {{"Default/MatMul-op0", "MatMul", {"x", "w"}},
               {"Default/AllReduce-op0", "AllReduce", {"Default/MatMul-op0"}, {{"group", std::string("hccl_world_group")}}},
               {"Default/Square-op0", "Square", {"Default/AllReduce-op0"}}});
    dump.value(rank, 1, "w", {std::data(weights)[rank]}).value(rank, 1, "Default/Square-op0", {INFINITY});
  }
  return std::move(ask(dump.path()).origins);
}

TEST(DerivedRanks, AWeightOfAnotherRankThatGrewIsNamed) {
  const OriginResult found = sums_with({1, 1e30, 1});
  ASSERT_EQ(found.steps.size(), 1u);
  EXPECT_EQ(found.steps[0].ranks, (Ranks{0, 1, 2}));
  const std::vector<Grown>& grown = found.steps[0].origins.at(0).grown;
  ASSERT_EQ(grown.size(), 1u);
  EXPECT_EQ(grown[0].parameter.rank, 1);
  EXPECT_EQ(grown[0].parameter.step, 0);
  EXPECT_TRUE(grown[0].one_rank);
}

TEST(DerivedRanks, AWeightThatGrewOnAllRanksIsToldOnce) {
  const OriginResult found = sums_with({1e29, 1e30, 1e29});
  ASSERT_EQ(found.steps.size(), 1u);
  const std::vector<Grown>& grown = found.steps[0].origins.at(0).grown;
  ASSERT_EQ(grown.size(), 1u);
  EXPECT_EQ(grown[0].parameter.rank, 0);
  EXPECT_FALSE(grown[0].one_rank);
}

TEST(DerivedRanks, AFaultOfOneStageOfAPipeline) {
  const std::pair<std::string, std::variant<std::string, int>> group{"group", std::string("2-7253829371234567")}, tag{"sr_tag", 0};
  MadeRanks dump;
  dump.rank(0, {"x"},
            {{"Default/Log-op0", "Log", {"x"}}, {"Default/Send-op0", "Send", {"Default/Log-op0"}, {{"dest_rank", 1}, tag, group}}});
  dump.rank(4, {}, {{"Default/Receive-op0", "Receive", {}, {{"src_rank", 0}, tag, group}},
                    {"Default/Exp-op0", "Exp", {"Default/Receive-op0"}}});
  dump.value(0, 0, "Default/Log-op0", {-INFINITY}).value(4, 0, "Default/Receive-op0", {-INFINITY});
  const Answers answers = ask(dump.path());
  ASSERT_EQ(answers.stories(0).size(), 1u);
  EXPECT_EQ(answers.stories(0)[0]->rank, 0);
  EXPECT_EQ(reached(answers.stories(0)[0]->origins[0]), Ranks{4}) << "places in a group of two ranks";
  EXPECT_EQ(answers.causes().size(), 1u);
  EXPECT_EQ(answers.findings_with_cause(), answers.checked.hits.size());
  EXPECT_TRUE(answers.replicas.differences.empty());
}

}  // namespace
}  // namespace msdbg
