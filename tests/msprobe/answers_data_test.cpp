// What commands say of recorded calls: replicas and layers without elements, hyper-parameters, missing values.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "msdbg/analysis.h"
#include "msdbg/layers.h"
#include "msdbg/replicas.h"
#include "msdbg/settings.h"
#include "msprobe/expected.h"

namespace msdbg::testing {
namespace {

TEST(CallReplicas, AreComparedByTheirStatistics) {
  const auto session = open_real("26.2-torch-ddp-good");
  const Result<ReplicasResult> result = replicas(*session, {});
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result->differences.empty());
  EXPECT_GT(result->coverage.checked, 0u);
  EXPECT_EQ(result->by_statistics, result->coverage.checked);
  EXPECT_EQ(result->by_checksum, 0u);
  EXPECT_TRUE(result->not_checked.empty());
}

TEST(CallReplicas, WithElementsTheyCountNotTheStatistics) {
  const auto session = open_real("26.2-torch-ddp-badbatch-tensor");
  const Result<ReplicasResult> result = replicas(*session, {});
  ASSERT_TRUE(result.ok());
  EXPECT_GT(result->coverage.checked, 0u);
  EXPECT_EQ(result->by_statistics, 0u);
}

TEST(CallReplicas, HaveTheGroupThatReducesTheirGradientsInPlace) {
  const auto session = open_real("26.2-torch-groups-lognan");
  const Result<ReplicasResult> result = replicas(*session, {});
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result->differences.empty());
  std::vector<std::vector<int>> ranks;
  for (const ReplicaSet& set : result->sets) {
    if (set.what != ReplicaKind::kParameter) continue;
    EXPECT_FALSE(set.assumed);
    EXPECT_TRUE(set.reason.starts_with("their gradients pass AllReduce of ")) << set.reason;
    ranks.push_back(set.ranks);
  }
  EXPECT_EQ(ranks, (std::vector<std::vector<int>>{{0, 2}, {1, 3}}));
}

// Rank 2 has another learning rate from step 1 on.
TEST(CallReplicas, NameOtherArgumentsOfTheOptimizer) {
  const auto session = open_real("26.2-torch-rates");
  const Result<ReplicasResult> result = replicas(*session, {});
  ASSERT_TRUE(result.ok());
  ASSERT_EQ(result->differences.size(), 1u);
  const ReplicaDifference& difference = result->differences[0];
  EXPECT_EQ(difference.odd, std::vector<int>{2});
  EXPECT_EQ(difference.tensor.step, 2);
  EXPECT_EQ(difference.arguments, "alpha = -0.11 instead of -0.1");
  ASSERT_TRUE(difference.called);
  EXPECT_EQ(difference.called->rank, 2);
  EXPECT_EQ(difference.called->step, 1);
  EXPECT_EQ(session->node(*difference.called).op, "add_");
  EXPECT_TRUE(difference_sentence(difference).ends_with("; the optimizer was called with alpha = -0.11 instead of -0.1"));
}

TEST(CallReplicas, AreNotWhatARankGaveToAllGather) {
  const auto session = open_real("26.2-torch-scatter-lognan");
  const Result<ReplicasResult> result = replicas(*session, {});
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result->differences.empty());
  EXPECT_TRUE(std::ranges::any_of(result->sets, [](const ReplicaSet& set) { return set.what == ReplicaKind::kCollectiveOutput; }));
}

/// Two ranks with one parameter each.
std::unique_ptr<Session> two_ranks(WrittenDump& dump, const std::string& first, const std::string& second) {
  int rank = 0;
  for (const std::string& weight : {first, second}) {
    const std::string input = tensor_entry("[2, 4]", "3.0", "-1.0");
    dump.table(fmt::format("step0/rank{}", rank++),
               R"("Module.fc.Linear.forward.0": {"input_args": [)" + input + R"(], "input_kwargs": {}, "output": [)" + input +
                   R"(], "parameters": {"weight": )" + weight + "}}");
  }
  return dump.open();
}

TEST(CallReplicas, OtherStatisticsAreADifferenceWithBothValues) {
  WrittenDump dump;
  const auto session = two_ranks(dump, tensor_entry("[4, 4]", "1.5", "-1.0"), tensor_entry("[4, 4]", "1.75", "-1.0"));
  ASSERT_NE(session, nullptr);
  const Result<ReplicasResult> result = replicas(*session, {});
  ASSERT_TRUE(result.ok());
  // In the first step nobody knows that they are replicas, unless they are equal.
  EXPECT_TRUE(result->differences.empty());
}

void write_weight(WrittenDump& dump, int step, int rank, const std::string& max) {
  const std::string input = tensor_entry("[2, 4]", "3.0", "-1.0");
  dump.table(fmt::format("step{}/rank{}", step, rank),
             R"("Module.fc.Linear.forward.0": {"input_args": [)" + input + R"(], "input_kwargs": {}, "output": [)" + input +
                 R"(], "parameters": {"weight": )" + tensor_entry("[4, 4]", max, "-1.0", R"(, "requires_grad": true)") + "}}");
}

TEST(CallReplicas, OfTwoRanksTheOneWithNaNIsOdd) {
  for (const int broken : {0, 1}) {
    WrittenDump dump;
    for (const int rank : {0, 1}) write_weight(dump, 0, rank, "1.5");
    for (const int rank : {0, 1}) write_weight(dump, 1, rank, rank == broken ? "NaN" : "1.625");
    const auto session = dump.open();
    const Result<ReplicasResult> result = replicas(*session, {});
    ASSERT_TRUE(result.ok());
    ASSERT_EQ(result->differences.size(), 1u);
    EXPECT_TRUE(result->differences[0].decided);
    EXPECT_EQ(result->differences[0].odd, std::vector<int>{broken});
  }
}

TEST(CallReplicas, ADifferenceAfterAnEqualStepNamesTheStatistics) {
  WrittenDump dump;
  for (int rank = 0; rank < 3; ++rank) write_weight(dump, 0, rank, "1.5");
  for (int rank = 0; rank < 3; ++rank) write_weight(dump, 1, rank, rank == 1 ? "1.75" : "1.625");
  const auto session = dump.open();
  Result<ReplicasResult> result = replicas(*session, {});
  ASSERT_TRUE(result.ok());
  ASSERT_EQ(result->differences.size(), 1u);
  const ReplicaDifference& difference = result->differences[0];
  EXPECT_EQ(difference.odd, std::vector<int>{1});
  EXPECT_EQ(difference.tensor.step, 1);
  EXPECT_EQ(difference.problem,
            "max 1.75 instead of 1.625, mean 1.75 instead of 1.625, norm 1.75 instead of 1.625; the dump has no elements");
}

TEST(CallReplicas, EqualChecksumsAreToldApartFromStatistics) {
  WrittenDump dump;
  const std::string sum = R"(, "md5": "0badcafe")";
  const auto session = two_ranks(dump, tensor_entry("[4, 4]", "1.5", "-1.0", sum), tensor_entry("[4, 4]", "1.5", "-1.0", sum));
  const Result<ReplicasResult> result = replicas(*session, {});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->by_checksum, result->coverage.checked);
  EXPECT_EQ(result->by_statistics, 0u);
}

const Layer* layer_named(const LayersResult& result, const std::string& name) {
  for (const Layer& layer : result.layers) {
    if (layer.name == name) return &layer;
  }
  return nullptr;
}

TEST(CallLayers, HaveTheGradientsThatTheirModulesRecorded) {
  const auto session = open_real("26.2-torch-lenet-good");
  const Result<LayersResult> result = layers(*session, {});
  ASSERT_TRUE(result.ok());
  ASSERT_EQ(result->layers.size(), 8u);
  for (const Layer& layer : result->layers) {
    ASSERT_TRUE(layer.gradient) << layer.name;
    const Node& node = session->node(*layer.gradient);
    EXPECT_EQ(node.role, CallRole::kParameterGradients);
    EXPECT_TRUE(layer.gradient_mean) << layer.name;
    EXPECT_FALSE(layer.by_norm);
    // The same elements as the file that bears the name of the parameter.
    const Result<TensorInfo> info = session->describe(*layer.gradient);
    ASSERT_TRUE(info.ok());
    EXPECT_NE(info->source.find("." + layer.name.substr(layer.name.rfind('.') + 1) + "."), std::string::npos) << info->source;
  }
}

TEST(CallLayers, WithoutElementsShowRootMeanSquares) {
  const auto session = open_real("26.2-torch-gpt-good");
  const Result<LayersResult> result = layers(*session, {});
  ASSERT_TRUE(result.ok());
  const Layer* layer = layer_named(*result, "blocks.0.attn.qkv.weight");
  ASSERT_NE(layer, nullptr);
  EXPECT_TRUE(layer->by_norm);
  ASSERT_TRUE(layer->weight && layer->gradient_mean);
  const std::optional<Stats> stats = session->given_statistics(layer->parameters.front());
  ASSERT_TRUE(stats);
  EXPECT_NEAR(*layer->weight, stats->l2_norm / std::sqrt(768.0), 1e-9);
}

TEST(CallLayers, DoNotCountWhatStatisticsDoNotCount) {
  const auto session = open_real("26.2-torch-gpt-padnan");
  const Result<LayersResult> result = layers(*session, {});
  ASSERT_TRUE(result.ok());
  const Layer* layer = layer_named(*result, "blocks.0.attn.qkv.weight");
  ASSERT_NE(layer, nullptr);
  ASSERT_TRUE(layer->first_bad);
  EXPECT_FALSE(layer->points.back().counted);
}

const Setting* setting_named(const SettingsResult& result, const std::string& name) {
  for (const Setting& each : result.settings) {
    if (each.name == name) return &each;
  }
  return nullptr;
}

TEST(CallSettings, OfAFusedOptimizerAreItsArguments) {
  const auto session = open_real("26.2-torch-gpt-good");
  const Result<SettingsResult> result = settings(*session, {});
  ASSERT_TRUE(result.ok());
  const Setting* rate = setting_named(*result, "lr (_fused_adamw_)");
  ASSERT_NE(rate, nullptr);
  EXPECT_EQ(rate->role, SettingRole::kLearningRate);
  ASSERT_EQ(rate->series.size(), 1u);
  ASSERT_EQ(rate->series[0].values.size(), 2u);
  EXPECT_TRUE(rate->series[0].values[0] && *rate->series[0].values[0] > 0);
  EXPECT_NE(setting_named(*result, "beta1 (_fused_adamw_)"), nullptr);
}

TEST(CallSettings, TheRateOfAPlainUpdateIsItsNegativeAlpha) {
  const auto session = open_real("26.2-torch-lenet-good");
  const Result<SettingsResult> result = settings(*session, {});
  ASSERT_TRUE(result.ok());
  const Setting* rate = setting_named(*result, "lr (add_)");
  ASSERT_NE(rate, nullptr);
  EXPECT_EQ(rate->series.at(0).values.at(0), 0.05);
  EXPECT_EQ(setting_named(*result, "lr (add_) 2"), nullptr);
}

TEST(CallArguments, NameScalarsAndThePlacesOfTensors) {
  const auto session = open_real("26.2-torch-gpt-good");
  TensorId id;
  id.step = 1;
  id.node = session->graph(0, 0)->find("Tensor.masked_fill.0.forward")->id;
  std::map<std::string, std::string> named;
  for (const Attribute& each : session->arguments(id)) named[each.name.get()] = each.value.get();
  const std::map<std::string, std::string> wanted{{"input_args.0", "input:0"}, {"input_args.1", "input:1"}, {"input_args.2", "-Infinity"}};
  EXPECT_EQ(named, wanted);
}

TEST(CallWhy, SpeaksOfMsprobeAndNotOfGraphs) {
  const auto session = open_real("26.2-torch-gpt-good");
  const Result<WhyAnswer> statistics = why(*session, "Functional.gelu.0.forward", {});
  ASSERT_TRUE(statistics.ok());
  EXPECT_EQ(statistics->kind, WhyKind::kStatisticsOnly);
  EXPECT_NE(statistics->next.find("msprobe"), std::string::npos) << statistics->next;
  const Result<WhyAnswer> absent = why(*session, "Tensor.view.0.forward", {});
  ASSERT_TRUE(absent.ok());
  EXPECT_EQ(absent->kind, WhyKind::kNeverExisted);
  EXPECT_NE(absent->next.find("risk_level"), std::string::npos) << absent->next;
}

/// Two ranks at level L0, of two modules each. In step 0, rank 0 takes a value that rank 1 makes; with `ring`, rank 1 also one of rank 0's.
/// All is NaN in step 1.
OriginResult origins_of_two_ranks(bool ring) {
  WrittenDump dump;
  const auto value = [](const std::string& max) { return tensor_entry("[4]", max, "-1.0"); };
  for (const int rank : {0, 1}) {
    const std::string own = rank == 0 ? "2.5" : "3.5", made = rank == 0 ? "4.5" : "5.5";
    const std::string taken = rank == 0 ? "5.5" : ring ? "4.5" : "6.5";
    for (const int step : {0, 1}) {
      const auto is = [&](const std::string& max) { return step == 0 ? value(max) : tensor_entry("[4]", "NaN", "NaN"); };
      dump.table("step" + std::to_string(step) + "/rank" + std::to_string(rank),
                 call_entry("Module.a.Linear.forward.0", is(taken), is(own)) + ", " + call_entry("Module.b.Linear.forward.0", is(own), is(made)));
    }
  }
  const auto session = dump.open();
  Result<OriginResult> found = find_origins(*session, {});
  EXPECT_TRUE(found.ok()) << found.status().message();
  return found ? std::move(*found) : OriginResult{};
}

TEST(Origins, WhatARankHandsOnIsOneStory) {
  const OriginResult found = origins_of_two_ranks(false);
  ASSERT_EQ(found.steps.size(), 1u);
  EXPECT_EQ(found.steps[0].rank, 1);
  EXPECT_EQ(found.others.size(), 1u);
}

TEST(Origins, RanksThatPointAtEachOtherKeepTheirStories) {
  const OriginResult found = origins_of_two_ranks(true);
  EXPECT_EQ(found.steps.size() + found.others.size(), 2u);
  ASSERT_FALSE(found.steps.empty());
  EXPECT_FALSE(found.steps[0].origins.empty());
}

}  // namespace
}  // namespace msdbg::testing
