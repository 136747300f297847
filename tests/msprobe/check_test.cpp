// Conditions decided from the statistics of a table.
#include "msdbg/check.h"
#include "msprobe/msprobe_support.h"

namespace msdbg::testing {
namespace {

/// The verdict of a condition on the output of one call.
std::string verdict_of(const std::string& tensor, const std::string& when, bool weight = false) {
  WrittenDump dump;
  if (weight) {
    dump.table("step0/rank0", R"("Module.net.Net.forward.0": {"input_args": [], "output": [], "parameters": {"weight": )" + tensor + "}}");
  } else {
    dump.table("step0/rank0", call_entry("Torch.a.0.forward", "", tensor));
  }
  const auto session = dump.open();
  Watchpoint watch;
  watch.id = 1;
  watch.rule = when;
  watch.on = Selector::parse(weight ? "@weight" : "@all").value();
  watch.condition = parse_condition(when).value();
  Result<CheckResult> result = check(*session, {&watch, 1}, {});
  EXPECT_TRUE(result.ok()) << result.status().message();
  if (!result->not_checked.empty()) return "not checked: " + result->not_checked[0].reason;
  return result->hits.empty() ? "clean" : "hit";
}

const std::string kGradient = R"(, "requires_grad": true)";
const std::string kFinite = tensor_entry("[4]", "2.0", "-1.0", kGradient), kBad = tensor_entry("[4]", "NaN", "NaN", kGradient);
const std::string kInfinite = tensor_entry("[4]", "Infinity", "0.0"), kZeros = tensor_entry("[4]", "0.0", "0.0");
const std::string kPositive = tensor_entry("[4]", "2.0", "1.0"), kUnsaid = tensor_entry("[4]", "null", "null");

TEST(CheckOfStatistics, OverflowNeedsMaximumAndMinimumOnly) {
  EXPECT_EQ(verdict_of(kFinite, "TO"), "clean");
  EXPECT_EQ(verdict_of(kBad, "TO"), "hit");
  EXPECT_EQ(verdict_of(kInfinite, "TO"), "hit");
  EXPECT_EQ(verdict_of(kFinite, "WO", true), "clean");
  EXPECT_EQ(verdict_of(kBad, "WO", true), "hit");
  EXPECT_EQ(verdict_of(kUnsaid, "TO"), "not checked: the dump has no statistics of it (null)");
}

TEST(CheckOfStatistics, ThresholdsOfWhatIsRecorded) {
  EXPECT_EQ(verdict_of(kFinite, "TL max_gt=1"), "hit");
  EXPECT_EQ(verdict_of(kFinite, "TL max_gt=3"), "clean");
  EXPECT_EQ(verdict_of(kFinite, "TS min_lt=0"), "hit");
}

TEST(CheckOfStatistics, ZerosAreKnownOfConstantsAndOfOneSign) {
  EXPECT_EQ(verdict_of(kZeros, "TZ 100"), "hit");
  EXPECT_EQ(verdict_of(kPositive, "TZ 1"), "clean");
  EXPECT_EQ(verdict_of(kFinite, "TZ 1"), "not checked: no tensor data (statistics only)");
}

TEST(CheckOfStatistics, TheRestIsNotChecked) {
  for (const char* when : {"TR range_start_inclusive=0 range_end_inclusive=1 range_percentage_lt=10", "WCL", "WNC"})
    EXPECT_TRUE(verdict_of(kFinite, when, std::string(when) != "TR").starts_with("not checked: ")) << when;
}

}  // namespace
}  // namespace msdbg::testing
