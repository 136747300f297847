// The origins of every real dump, step and rank: those that Python finds by the same rules.
#include <filesystem>
#include <set>

#include "msdbg/analysis.h"
#include "msprobe/expected.h"
#include "support/copy_dump.h"
#include "support/temp_dir.h"

namespace msdbg::testing {
namespace {

class OriginsData : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    session_ = open_real(GetParam());
    ASSERT_NE(session_, nullptr);
    Result<OriginResult> result = find_origins(*session_, {});
    ASSERT_TRUE(result.ok()) << result.status().message();
    result_ = std::move(*result);
  }

  const StepOrigins* at(int rank, int64_t step) const {
    for (const auto* list : {&result_.steps, &result_.others}) {
      for (const StepOrigins& each : *list) {
        if (each.rank == rank && each.step == step) return &each;
      }
    }
    return nullptr;
  }

  std::unique_ptr<Session> session_;
  OriginResult result_;
};

/// "net.conv1.weight" of "Module.net.conv1.Conv2d.weight".
std::string parameter_name(const std::string& entry) {
  const size_t last = entry.rfind('.'), before = entry.rfind('.', last - 1), first = entry.find('.');
  return first == before ? entry.substr(last + 1) : entry.substr(first + 1, before - first - 1) + entry.substr(last);
}

/// Entries that broke something, without what was put in on purpose and what came from other ranks.
std::set<std::string> wanted_entries(const nlohmann::json& wanted) {
  std::set<std::string> out;
  bool put_in = false;
  for (const auto& origin : wanted["origins"]) {
    put_in = put_in || origin.contains("infinite_argument");
    const bool arrived = origin.contains("came_from") && !origin["came_from"].empty();
    if (!origin.contains("infinite_argument") && !arrived) out.insert(origin["entry"].get<std::string>());
  }
  // Behind an infinity that was put in, what broke is what made NaN of it.
  if (put_in) {
    for (const auto& origin : wanted["origins_nan_only"]) out.insert(origin["entry"].get<std::string>());
  }
  return out;
}

TEST_P(OriginsData, AreThoseThatPythonFinds) {
  const nlohmann::json expected = expected_of(GetParam());
  for (const auto& [folder, ranks] : expected["steps"].items()) {
    for (const auto& [rank, wanted] : ranks.items()) {
      if (!wanted["origins"].is_array()) continue;
      SCOPED_TRACE(folder + " " + rank);
      std::set<std::string> operators, parameters;
      if (const StepOrigins* step = at(rank_number(rank), step_number(folder))) {
        for (const Origin& origin : step->origins) {
          const Node& node = session_->node(origin.tensor);
          if (origin.kind == OriginKind::kOperator) {
            operators.insert(node.name);
            EXPECT_TRUE(origin.certain) << node.name;
          }
          if (origin.kind == OriginKind::kParameter) parameters.insert(node.name);
        }
      }
      EXPECT_EQ(operators, wanted_entries(wanted));
      std::set<std::string> wanted_parameters;
      for (const auto& each : wanted["bad_parameters"]) wanted_parameters.insert(parameter_name(each));
      EXPECT_EQ(parameters, wanted_parameters);
    }
  }
}

TEST_P(OriginsData, HaveTheLineOfTheUsersProgram) {
  const nlohmann::json expected = expected_of(GetParam());
  for (const auto& [folder, ranks] : expected["steps"].items()) {
    for (const auto& [rank, wanted] : ranks.items()) {
      if (!wanted["origins"].is_array()) continue;
      for (const auto& origin : wanted["origins"]) {
        const Node* node = session_->graph(rank_number(rank), 0)->find(origin["entry"].get<std::string>());
        ASSERT_NE(node, nullptr);
        if (origin["line"].is_null()) {
          EXPECT_TRUE(node->stack.empty());
          continue;
        }
        const auto user = std::find_if(node->stack.begin(), node->stack.end(), [](const StackFrame& frame) {
          return frame.file->find("/site-packages/") == std::string::npos;
        });
        ASSERT_NE(user, node->stack.end());
        EXPECT_EQ(user->file, origin["line"]["file"].get<std::string>());
        EXPECT_EQ(user->line, origin["line"]["line"].get<int>());
        EXPECT_EQ(user->code, origin["line"]["code"].get<std::string>());
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Real, OriginsData, ::testing::ValuesIn(kExpectedDumps), test_name);

OriginResult origins_of(Session& session) {
  Result<OriginResult> result = find_origins(session, {});
  EXPECT_TRUE(result.ok());
  return result ? std::move(*result) : OriginResult();
}

TEST(CallOrigins, AParameterNamesTheUpdateThatBrokeIt) {
  const auto session = open_real("26.2-torch-lenet-lognan");
  const OriginResult result = origins_of(*session);
  ASSERT_EQ(result.steps.size(), 2u);
  const Origin& weight = result.steps[1].origins.front();
  EXPECT_EQ(session->node(weight.tensor).name, "net.conv1.weight");
  ASSERT_TRUE(weight.update);
  EXPECT_EQ(weight.update->step, 1);
  EXPECT_EQ(session->node(*weight.update).op, "add_");
  EXPECT_EQ(session->node(*weight.update).role, CallRole::kOptimizer);
}

TEST(CallOrigins, AFusedUpdateIsNamedByTheBadGradientThatItTook) {
  const auto session = open_real("26.2-torch-gpt-padnan");
  OriginOptions options;
  options.steps = IntSet::of(2);
  const Result<OriginResult> result = find_origins(*session, options);
  ASSERT_TRUE(result.ok());
  const Origin& weight = result->steps.at(0).origins.at(0);
  ASSERT_TRUE(weight.update);
  EXPECT_EQ(session->node(*weight.update).op, "_fused_adamw_");
  EXPECT_EQ(weight.update->step, 1);
  EXPECT_EQ(weight.update->slot.io, Io::kInput);
  EXPECT_EQ(session->stats(*weight.update)->nan_count, 1u);
}

TEST(CallOrigins, InADumpOfModulesTheCallInBetweenWasNotRecorded) {
  const auto session = open_real("26.2-torch-lenet-lognan-L0");
  const OriginResult result = origins_of(*session);
  ASSERT_FALSE(result.steps.empty());
  const StepOrigins& step = result.steps.front();
  EXPECT_EQ(step.step, 1);
  ASSERT_EQ(step.origins.size(), 1u);
  const Origin& origin = step.origins.front();
  EXPECT_EQ(origin.kind, OriginKind::kUnrecorded);
  EXPECT_EQ(session->tensor_name(origin.tensor), "Module.net.conv1.Conv2d.forward.0:input:0");
  ASSERT_TRUE(origin.sound_before);
  EXPECT_EQ(session->tensor_name(*origin.sound_before), "Module.net.LeNet.forward.0:input:0");
}

TEST(CallOrigins, WithoutModulesAParameterIsAnInputThatNobodyMade) {
  const auto session = open_real("26.2-torch-lenet-lognan-L1");
  const OriginResult result = origins_of(*session);
  ASSERT_EQ(result.steps.size(), 2u);
  const StepOrigins& step = result.steps[1];
  ASSERT_GE(step.origins.size(), 2u);
  for (uint32_t i = 0; i < 2; ++i) {
    EXPECT_EQ(step.origins[i].kind, OriginKind::kInput);
    EXPECT_EQ(session->tensor_name(step.origins[i].tensor), "Functional.conv2d.0.forward:input:" + std::to_string(i + 1));
  }
}

TEST(CallOrigins, WithoutInputsTheFirstBadOutputIsNotCertain) {
  const auto session = open_real("26.2-torch-lenet-outputs");
  const OriginResult result = origins_of(*session);
  ASSERT_EQ(result.steps.size(), 1u);
  ASSERT_EQ(result.steps[0].origins.size(), 1u);
  EXPECT_EQ(session->node(result.steps[0].origins[0].tensor).name, "Torch.log.0.forward");
  EXPECT_FALSE(result.steps[0].origins[0].certain);
}

TEST(CallOrigins, InfinitiesOfAMaskAreNoFault) {
  for (const char* name : {"26.2-torch-gpt-good", "26.2-torch-gpt-plain-L1"}) {
    const auto session = open_real(name);
    const OriginResult result = origins_of(*session);
    EXPECT_TRUE(result.steps.empty()) << name;
    ASSERT_FALSE(result.put_in.empty());
    EXPECT_EQ(session->node(result.put_in[0].tensor).name, "Tensor.masked_fill.0.forward");
    EXPECT_EQ(result.put_in[0].argument, "input_args.2 = -Infinity");
    EXPECT_EQ(result.put_in[0].held_by.size(), 2u);
  }
}

TEST(CallOrigins, AnInfinityThatReachesTheLossIsOne) {
  WrittenDump dump;
  const std::string finite = tensor_entry("[4]", "1.0", "0.0"), filled = tensor_entry("[4]", "1.0", "-Infinity");
  const std::string loss = call_entry("Functional.mse_loss.0.forward", filled, tensor_entry("[]", "-Infinity", "-Infinity"));
  dump.table("step0/rank0", R"("Tensor.masked_fill.0.forward": {"input_args": [)" + finite +
                                R"(, {"type": "float", "value": -Infinity}], "output": [)" + filled + "]}, " + loss);
  const auto session = dump.open();
  const OriginResult result = origins_of(*session);
  ASSERT_EQ(result.steps.size(), 1u);
  ASSERT_EQ(result.steps[0].origins.size(), 1u);
  EXPECT_EQ(session->node(result.steps[0].origins[0].tensor).op, "masked_fill");
  EXPECT_EQ(result.steps[0].origins[0].put_in, "input_args.1 = -Infinity");
  EXPECT_TRUE(result.put_in.empty());
}

TEST(CallOrigins, OnAnotherRankArriveThroughACollective) {
  const auto session = open_real("26.2-torch-ddp-badbatch");
  const OriginResult result = origins_of(*session);
  ASSERT_FALSE(result.steps.empty());
  const StepOrigins& told = result.steps.front();
  EXPECT_EQ(told.rank, 1);
  EXPECT_EQ(session->node(told.origins[0].tensor).name, "Torch.log.0.forward");
  ASSERT_EQ(told.origins[0].ranks_reached.size(), 1u);
  EXPECT_EQ(told.origins[0].ranks_reached[0].rank, 0);
  EXPECT_EQ(session->node(told.origins[0].ranks_reached[0].through).name, "Distributed.all_reduce.0.forward");
  ASSERT_EQ(told.losses.size(), 1u);
  EXPECT_NEAR(session->stats(told.losses[0])->max, 1.2033, 1e-4);
}

// torch.cat is not recorded: rank 0 takes the 6 NaN that it got from rank 1 out of a tensor of another shape.
TEST(CallOrigins, WhatAnUnrecordedCallMovedIsNoOrigin) {
  const auto session = open_real("26.2-torch-gather-nanweight");
  const OriginResult result = origins_of(*session);
  ASSERT_EQ(result.steps.size(), 1u);
  EXPECT_EQ(result.steps[0].rank, 1);
  ASSERT_EQ(result.steps[0].origins.size(), 1u);
  EXPECT_EQ(session->node(result.steps[0].origins[0].tensor).name, "fc1.weight");
  ASSERT_EQ(result.steps[0].origins[0].ranks_reached.size(), 1u);
  EXPECT_EQ(result.steps[0].origins[0].ranks_reached[0].rank, 0);
}

// Four ranks in two groups; the logarithm of 0 of rank 3 reaches rank 1 in step 1. The optimizer's first step has other calls.
TEST(CallOrigins, AWeightNamesTheCallThatWroteItInTheStepBefore) {
  const auto session = open_real("26.2-torch-groups-lognan");
  const OriginResult result = origins_of(*session);
  ASSERT_EQ(result.steps.size(), 2u);
  EXPECT_EQ(session->node(result.steps[0].origins[0].tensor).name, "Torch.log.0.forward");
  EXPECT_EQ(result.steps[0].rank, 3);
  const StepOrigins& later = result.steps[1];
  EXPECT_EQ(later.step, 2);
  EXPECT_EQ(later.ranks, (std::vector<int>{1, 3}));
  EXPECT_EQ(later.origins[0].kind, OriginKind::kParameter);
  ASSERT_TRUE(later.origins[0].update);
  EXPECT_EQ(later.origins[0].update->step, 1);
  const Node& update = session->node(*later.origins[0].update);
  EXPECT_EQ(update.role, CallRole::kOptimizer);
  EXPECT_GT(session->executions(1, 0, 1, update.id), 0u);
}

TEST(CallOrigins, AWeightThatNobodyWritesOnRecordNamesItsGradient) {
  const auto session = open_real("26.2-torch-scatter-lognan");
  const OriginResult result = origins_of(*session);
  ASSERT_EQ(result.steps.size(), 2u);
  // Only rank 1 has a bad gradient of its own: that of rank 0 was reduced into another tensor.
  EXPECT_EQ(result.steps[1].ranks, (std::vector<int>{0, 1}));
  const std::optional<TensorId>& update = result.steps[1].origins[0].update;
  ASSERT_TRUE(update);
  EXPECT_EQ(session->node(*update).name, "Module.0.fc1.Linear.parameters_grad.0");
  EXPECT_EQ(update->slot, (Slot{Io::kOutput, 1}));
  EXPECT_EQ(update->step, 1);
}

TEST(CallOrigins, FindingsOfLaterStepsFollowFromTheFirstOne) {
  for (const char* name : {"26.2-torch-groups-lognan", "26.2-torch-scatter-lognan"}) {
    const auto session = open_real(name);
    ASSERT_NE(session, nullptr);
    Watchpoint watch;
    watch.id = 1;
    watch.rule = "tensor_overflow";
    watch.on = *Selector::parse("@all");
    watch.condition = *make_condition("tensor_overflow", {});
    Result<CheckResult> result = check(*session, {&watch, 1}, {});
    ASSERT_TRUE(result.ok());
    ASSERT_TRUE(find_causes(*session, {}, &*result).ok());
    ASSERT_TRUE(result->causes) << name;
    ASSERT_EQ(result->causes->size(), 1u) << name;
    EXPECT_EQ(session->node(result->causes->front().tensor).name, "Torch.log.0.forward") << name;
  }
}

TEST(CallOrigins, ABackwardCallUsesWhatItsForwardCallTook) {
  WrittenDump dump;
  const std::string bad = tensor_entry("[4]", "NaN", "NaN"), good = tensor_entry("[4]", "1.0", "0.0");
  dump.table("step0/rank0", call_entry("Torch.log.0.forward", good, bad) + ", " + call_entry("Torch.tanh.0.forward", bad, good) +
                                R"(, "Torch.tanh.0.backward": {"input": [)" + good + R"(], "output": [)" + bad + "]}");
  const auto session = dump.open();
  const OriginResult result = origins_of(*session);
  ASSERT_EQ(result.steps.size(), 1u);
  ASSERT_EQ(result.steps[0].origins.size(), 1u);
  EXPECT_EQ(session->node(result.steps[0].origins[0].tensor).op, "log");
}

/// One step of a dump of several ranks, which no other step explains.
class LoneStep {
 public:
  explicit LoneStep(const std::string& name) {
    test::copy_dump(MSDBG_TEST_DATA "/ranks-more/" + name + "/step1", path() / "step1");
  }
  std::filesystem::path path() const { return temp_.file("dump"); }
  /// Its only story.
  StepOrigins story() {
    auto opened = open_msprobe(path(), {});
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    if (!opened.ok()) return {};
    session_ = std::move(*opened);
    const OriginResult result = origins_of(*session_);
    EXPECT_EQ(result.steps.size(), 1u);
    EXPECT_FALSE(!result.steps.empty() && result.steps[0].origins.empty());
    return result.steps.empty() ? StepOrigins() : result.steps[0];
  }
  std::string name(const TensorId& id) const { return session_->tensor_name(id); }

 private:
  test::TempDir temp_;
  std::unique_ptr<Session> session_;
};

TEST(CallOrigins, APartOfAGatheredWeight) {
  LoneStep dump("flat-26.2-nan");
  const std::string weight = "_fsdp_wrapped_module.blocks.1._fsdp_wrapped_module._flat_param:output:0";
  {
    const StepOrigins story = dump.story();
    EXPECT_EQ(story.rank, 1);
    ASSERT_EQ(story.origins.size(), 1u);
    EXPECT_EQ(dump.name(story.origins[0].tensor), "Distributed.all_gather.2.forward:input:0");
    ASSERT_TRUE(story.origins[0].part_of);
    EXPECT_EQ(dump.name(*story.origins[0].part_of), weight);
    EXPECT_EQ(story.origins[0].ranks_reached.size(), 2u);
  }
  // Without that rank, it came from a rank that nobody sees.
  std::filesystem::remove_all(dump.path() / "step1/rank1");
  const StepOrigins story = dump.story();
  EXPECT_EQ(story.ranks, (std::vector<int>{0, 2}));
  ASSERT_EQ(story.origins.size(), 1u);
  EXPECT_EQ(dump.name(story.origins[0].tensor), "Distributed.all_gather.2.forward:output:1");
  EXPECT_FALSE(story.origins[0].certain);
}

TEST(CallOrigins, WhatNoRecordedCallMadeMayFollowFromAFault) {
  const std::pair<const char*, const char*> cases[] = {
      // Indexing takes rows from what all_to_all_single brought.
      {"experts-26.2-nan", "blocks.1.expert.0.weight:output:0"},
      // A hook of DistributedDataParallel works on gradients during the backward pass.
      {"hook-26.2-nan", "module.blocks.1.up.weight:output:0"}};
  for (const auto& [name, weight] : cases) {
    SCOPED_TRACE(name);
    LoneStep dump(name);
    const StepOrigins story = dump.story();
    EXPECT_EQ(story.rank, 1);
    ASSERT_EQ(story.origins.size(), 1u);
    EXPECT_EQ(dump.name(story.origins[0].tensor), weight);
  }
}

}  // namespace
}  // namespace msdbg::testing
