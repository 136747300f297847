// What a plan for msprobe lists, for dumps of real programs.
#include <nlohmann/json.hpp>

#include "msdbg/dump_plan.h"
#include "msprobe/msprobe_support.h"

namespace msdbg::testing {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

struct Planned {
  DumpPlan plan;
  Json json;
  Words list() const { return json[json["task"]]["list"]; }
};

Planned plan_for(const std::string& dump, const std::string& selector, const std::string& steps = "", SavedData saved = SavedData::kTensor) {
  const auto session = open_real(dump);
  DumpPlanOptions options = plan_options_of(session->info(), false);
  options.saved = saved;
  if (!steps.empty()) options.steps = *IntSet::parse(steps);
  const auto plan = plan_dump(session->graphs(), Selector::parse(selector)->resolve(session->graphs()), options);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  if (!plan) return {};
  EXPECT_EQ(plan->tool, PlanTool::kMsprobe);
  return {*plan, Json::parse(plan->json)};
}

TEST(MsprobePlan, CallsAreListedByTheirNamesInTheTable) {
  const Planned made = plan_for("26.2-torch-lenet-lognan", "op:log", "0:2,7");
  EXPECT_EQ(made.json["task"], "tensor");
  EXPECT_EQ(made.json["level"], "L1");
  EXPECT_EQ(made.json["risk_level"], "ALL");
  EXPECT_EQ(made.json["step"], Json::parse(R"(["0-2", 7])"));
  EXPECT_EQ(made.json["rank"], Json::array());
  EXPECT_EQ(made.list(), Words{"Torch.log.0.forward"});
  EXPECT_EQ(made.plan.steps, 4u);
  EXPECT_EQ(made.plan.files_per_step, 2u);
}

TEST(MsprobePlan, ANodeOfAnotherStepHasTheSameNameInTheTable) {
  const auto session = open_real("26.2-torch-lenet-good");
  std::string other;
  for (const Node& node : session->graphs()[0]->nodes()) {
    if (node.name.ends_with("#2")) other = node.name;
  }
  ASSERT_NE(other, "") << "the updates of a momentum change their names between steps";
  const Planned made = plan_for("26.2-torch-lenet-good", "=" + other);
  EXPECT_EQ(made.list(), Words{other.substr(0, other.size() - 2)});
  EXPECT_NE(made.plan.notes.at(1).find("1 other name"), std::string::npos) << made.plan.notes.at(1);
}

TEST(MsprobePlan, AParameterIsDumpedWithItsModule) {
  const Planned made = plan_for("26.2-torch-lenet-lognan", "=net.fc1.weight");
  EXPECT_EQ(made.list(), Words{"Module.net.fc1.Linear.forward.0"});
  EXPECT_EQ(made.json["level"], "L0");
  EXPECT_EQ(plan_for("26.2-torch-lenet-lognan", "=net.fc1.weight or op:log").json["level"], "mix");
}

TEST(MsprobePlan, OfSomeRanksNamesThem) {
  const Planned made = plan_for("26.2-torch-ddp-badbatch", "rank:1 and op:log");
  EXPECT_EQ(made.json["rank"], Json::parse("[1]"));
  EXPECT_EQ(made.plan.nodes, 1u);
  for (const std::string& note : made.plan.notes) EXPECT_EQ(note.find("other name"), std::string::npos) << note;
}

TEST(MsprobePlan, EverythingNeedsNoList) {
  const Planned made = plan_for("26.2-torch-lenet-lognan", "**", "", SavedData::kStatistic);
  EXPECT_TRUE(made.plan.everything);
  EXPECT_EQ(made.json["task"], "statistics");
  EXPECT_EQ(made.json["level"], "mix");
  EXPECT_EQ(made.list(), Words{});
  EXPECT_EQ(made.plan.files_per_step, 0u);
  EXPECT_GT(made.plan.bytes_per_step, 0u);
}

TEST(MsprobePlan, TheFirstLookIsAtStatistics) {
  const auto session = open_real("26.2-torch-lenet-lognan");
  EXPECT_EQ(plan_options_of(session->info(), true).saved, SavedData::kStatistic);
  EXPECT_EQ(plan_options_of(session->info(), false).saved, SavedData::kTensor);
}

}  // namespace
}  // namespace msdbg::testing
