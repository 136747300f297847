// Values that were overwritten between two calls: none in the real dumps, and those that a test writes into them.
#include <filesystem>

#include "msdbg/analysis.h"
#include "msprobe/expected.h"
#include "support/copy_dump.h"

namespace msdbg::testing {
namespace {

namespace fs = std::filesystem;

std::vector<Overwritten> all_overwritten(Session& session) {
  std::vector<Overwritten> all;
  for (const int rank : session.ranks()) {
    for (const int64_t step : session.steps()) {
      const std::vector<Overwritten> here = session.overwritten(rank, step);
      all.insert(all.end(), here.begin(), here.end());
    }
  }
  return all;
}

class NothingOverwritten : public ::testing::TestWithParam<const char*> {};

void expect_nothing(Session& session) {
  for (const Overwritten& each : all_overwritten(session))
    ADD_FAILURE() << session.tensor_name(each.after) << " and " << session.tensor_name(each.before) << ": " << each.reason;
}

TEST_P(NothingOverwritten, InARealDump) {
  const auto session = open_real(GetParam());
  ASSERT_NE(session, nullptr);
  expect_nothing(*session);
}

TEST_P(NothingOverwritten, InOneStepOfARealDump) {
  for (const auto& entry : fs::directory_iterator(real_dump(GetParam()))) {
    if (!entry.path().filename().string().starts_with("step")) continue;
    Result<std::unique_ptr<Session>> session = open_msprobe(entry.path().string(), {});
    if (session) expect_nothing(**session);  // of a run that was killed, a step may have no table
  }
}

INSTANTIATE_TEST_SUITE_P(Real, NothingOverwritten, ::testing::ValuesIn(kExpectedDumps), test_name);
INSTANTIATE_TEST_SUITE_P(Rest, NothingOverwritten,
                         ::testing::Values("26.2-torch-lenet-killed", "26.2-torch-lenet-structure", "26.2-torch-lenet-debug"),
                         test_name);

/// A copy of a real dump in which the first tensor that a call took has other statistics.
class ChangedDump {
 public:
  ChangedDump(const std::string& name, const std::string& step, const std::string& call, const std::string& max) {
    const std::string copy = temp_.file("dump");
    test::copy_dump(real_dump(name), copy);
    const fs::path table = fs::directory_iterator(fs::path(copy) / step)->path() / "dump.json";
    std::ifstream in(table);
    std::string text(std::istreambuf_iterator<char>(in), {});
    in.close();
    const size_t entry = text.find("\"" + call + "\""), at = text.find("\"Max\": ", entry);
    EXPECT_NE(entry, std::string::npos);
    text.replace(at + 7, text.find_first_of(",\n", at + 7) - at - 7, max);
    fs::permissions(table, fs::perms::owner_write, fs::perm_options::add);
    std::ofstream(table) << text;
    Result<std::unique_ptr<Session>> opened = open_msprobe(copy, {});
    EXPECT_TRUE(opened.ok());
    session_ = std::move(*opened);
  }
  Session& session() { return *session_; }
  /// "NODE:input:0 NODE:output:0: why" of each.
  std::vector<std::string> found() {
    std::vector<std::string> out;
    for (const Overwritten& each : all_overwritten(*session_))
      out.push_back(session_->tensor_name(each.after) + " " + session_->tensor_name(each.before) + ": " + each.reason);
    return out;
  }

 private:
  test::TempDir temp_;
  std::unique_ptr<Session> session_;
};

using Texts = std::vector<std::string>;

TEST(OverwrittenValues, BetweenALayerOfTheFrameworkAndItsOnlyCall) {
  ChangedDump dump("26.2-torch-gpt-good", "step1", "Functional.linear.2.forward", "9.5");
  EXPECT_EQ(dump.found(), Texts{"Functional.linear.2.forward:input:0 Module.blocks.0.mlp.0.Linear.forward.0:input:0: "
                                "Linear passes it to this call as it is"});
  const Overwritten found = dump.session().overwritten(0, 1).at(0);
  EXPECT_EQ(found.after.step, 1);
  EXPECT_EQ(dump.session().given_statistics(found.after)->max, 9.5);
  EXPECT_LT(dump.session().given_statistics(found.before)->max, 9.5);
}

TEST(OverwrittenValues, BetweenTwoPartsOfAContainer) {
  ChangedDump dump("26.2-torch-gpt-good", "step0", "Module.blocks.0.mlp.1.GELU.forward.0", "9.5");
  ASSERT_EQ(dump.found().size(), 2u);  // the call inside got the right one
  EXPECT_EQ(dump.found()[1], "Module.blocks.0.mlp.1.GELU.forward.0:input:0 Module.blocks.0.mlp.0.Linear.forward.0:output:0: "
                             "Sequential passes it on as it is");
}

TEST(OverwrittenValues, AnInputThatIsTheOutputOfOneCallInOtherSteps) {
  ChangedDump dump("26.2-torch-gpt-good", "step1", "Tensor.__truediv__.0.forward", "99.5");
  EXPECT_EQ(dump.found(), Texts{"Tensor.__truediv__.0.forward:input:0 Torch.matmul.0.forward:output:0: it is that output in other steps"});
}

TEST(OverwrittenValues, WhatACallThatIsNotRecordedMayHaveDoneIsNotClaimed) {
  // A limit or a mask leaves a smaller range.
  ChangedDump dump("26.2-torch-gpt-good", "step1", "Tensor.__truediv__.0.forward", "0.001");
  EXPECT_EQ(dump.found(), Texts{});
}

TEST(OverwrittenValues, NaNFromNowhereInALayerIsOne) {
  ChangedDump dump("26.2-torch-gpt-good", "step1", "Functional.linear.2.forward", "NaN");
  EXPECT_EQ(dump.found().size(), 1u);
}

TEST(OverwrittenValues, AreInTheResultOfOrigin) {
  ChangedDump dump("26.2-torch-gpt-good", "step1", "Functional.linear.2.forward", "9.5");
  Result<OriginResult> result = find_origins(dump.session(), {});
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result->steps.empty());
  EXPECT_EQ(result->overwritten.size(), 1u);
  OriginOptions options;
  options.steps = IntSet::of(0);
  result = find_origins(dump.session(), options);
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result->overwritten.empty());
}

// ---- findings that are none ----

CheckResult check_of(Session& session) {
  Watchpoint watch;
  watch.id = 1;
  watch.rule = "tensor_overflow";
  watch.on = *Selector::parse("@all");
  watch.inputs = true;
  watch.condition = *make_condition("tensor_overflow", {});
  Result<CheckResult> result = check(session, {&watch, 1}, {});
  EXPECT_TRUE(result.ok());
  EXPECT_TRUE(find_causes(session, {}, &*result).ok());
  return std::move(*result);
}

TEST(ExplainedFindings, TheMaskOfAHealthyTransformerIsNoFinding) {
  const auto session = open_real("26.2-torch-gpt-good");
  const CheckResult result = check_of(*session);
  EXPECT_TRUE(result.hits.empty());
  EXPECT_EQ(result.total_hits, 0u);
  ASSERT_EQ(result.explained.size(), 8u);  // in each step, two masked scores and the two inputs of softmax
  EXPECT_EQ(result.explained[0].evidence, "input_args.2 = -Infinity");
  EXPECT_EQ(session->node(result.explained[1].hit.tensor).op, "softmax");
  EXPECT_EQ(session->node(result.explained[1].from).op, "masked_fill");
}

TEST(ExplainedFindings, AFaultBesideTheMaskIsOne) {
  const auto session = open_real("26.2-torch-gpt-padnan");
  const CheckResult result = check_of(*session);
  ASSERT_FALSE(result.hits.empty());
  EXPECT_EQ(result.total_hits, result.hits.size());
  EXPECT_EQ(session->node(result.hits[0].tensor).op, "softmax");
  EXPECT_EQ(result.hits[0].tensor.step, 1);
  EXPECT_EQ(result.explained.size(), 7u);
}

}  // namespace
}  // namespace msdbg::testing
