// statistic.csv: its format, and what its rows tell.
#include <gtest/gtest.h>

#include "dump/dump_support.h"
#include "msdbg/check.h"
#include "session/dump/statistic_csv.h"

namespace msdbg::testing {
namespace {

using dump::parse_statistics;
using dump::StatisticTable;

const std::string kNames = "Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape";
const std::string kOld = kNames +
                         ",Max Value,Min Value,Avg Value,Count,Negative Zero Count,Positive Zero Count,NaN "
                         "Count,Negative Inf Count,Positive "
                         "Inf Count,Zero Count";
const std::string kNew = kNames + ",Max Value,Min Value,L2Norm Value";
const std::string kAdd = "Add,Default_Add-op0,0,0,5,output,0,24,float32,\"(2,3)\",";

constexpr uint32_t kBad = kStatNan | kStatPosInf | kStatNegInf;

StatisticTable parse(std::vector<std::string> lines) { return parse_statistics(lines); }

TEST(StatisticRows, OldFormGivesCounts) {
  const StatisticTable table = parse({kOld, kAdd + "2.5,-1,0.5,6,1,2,1,0,1,1"});
  ASSERT_EQ(table.rows.size(), 1u);
  const dump::StatisticRow& row = table.rows[0];
  EXPECT_EQ(row.name.op, "Default_Add-op0");
  EXPECT_EQ(row.name.timestamp, 5u);
  EXPECT_EQ(row.shape, (Shape{2, 3}));
  EXPECT_EQ(row.dtype, DType::kFloat32);
  EXPECT_EQ(row.bytes, 24u);
  EXPECT_EQ(row.stats.max, 2.5);
  EXPECT_EQ(row.stats.min, -1);
  EXPECT_EQ(row.stats.mean, 0.5);
  EXPECT_EQ(row.stats.neg_count, 1u);
  EXPECT_EQ(row.stats.pos_count, 2u);
  EXPECT_EQ(row.stats.nan_count, 1u);
  EXPECT_EQ(row.stats.pos_inf_count, 1u);
  EXPECT_EQ(row.stats.known, kStatCount | kStatMin | kStatMax | kStatMean | kBad | kStatZero | kStatPos | kStatNeg);
}

TEST(StatisticRows, NullMeansThatNoElementIsFinite) {
  const StatisticTable table = parse({kOld, kAdd + "null,null,null,6,0,0,6,0,0,0"});
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_TRUE(std::isnan(table.rows[0].stats.max));
  EXPECT_TRUE(table.rows[0].stats.knows(kStatMax | kStatMin | kStatMean));
}

TEST(StatisticRows, AFiniteNormProvesThatAllIsFinite) {
  const StatisticTable table = parse({kNew, kAdd + "2.5,-1,3.25,"});
  ASSERT_EQ(table.rows.size(), 1u);
  const Stats& stats = table.rows[0].stats;
  EXPECT_EQ(stats.known, kStatCount | kStatMin | kStatMax | kStatL2Norm | kBad);
  EXPECT_EQ(stats.count, 6u);
  EXPECT_EQ(stats.l2_norm, 3.25);
  EXPECT_EQ(stats.nan_count + stats.inf_count(), 0u);
}

TEST(StatisticRows, NanAndInfAreKnownToBeThereButNotHowMany) {
  const StatisticTable table = parse({kNew, kAdd + "nan,nan,nan,", kAdd + "2.5,-inf,inf,"});
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_GE(table.rows[0].stats.nan_count, 1u);
  EXPECT_EQ(table.rows[0].stats.known, kStatCount);
  EXPECT_GE(table.rows[1].stats.neg_inf_count, 1u);
  EXPECT_EQ(table.rows[1].stats.pos_inf_count, 0u);
  EXPECT_EQ(table.rows[1].stats.known, kStatCount | kStatMax);
}

TEST(StatisticRows, IntegersHaveNoNan) {
  const StatisticTable table = parse({kNames + ",Max Value", "Add,a,0,0,5,output,0,8,int32,\"(2)\",3,"});
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_EQ(table.rows[0].stats.known, kStatCount | kStatMax | kBad);
}

TEST(StatisticRows, NewerCountsOfSignsIncludeInf) {
  const std::string heading = kNames + ",Positive Zero Count,Positive Inf Count,Negative Zero Count";
  const StatisticTable table = parse({heading, kAdd + "4,1,2,"});
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_EQ(table.rows[0].stats.pos_count, 3u);
  EXPECT_TRUE(table.rows[0].stats.knows(kStatPos));
  EXPECT_FALSE(table.rows[0].stats.knows(kStatNeg));  // how many of them are -Inf is unknown
}

TEST(StatisticRows, ColumnsMayComeInAnyOrderAndBeFew) {
  const StatisticTable table = parse({"Slot,IO,Op Name,Op Type,Extra", "1,input,x,Mul,?"});
  EXPECT_TRUE(table.rows.empty()) << "a heading must begin with Op Type to be told from a row";
  const StatisticTable other = parse({"Op Type,Slot,IO,Op Name", "Mul,1,input,x"});
  ASSERT_EQ(other.rows.size(), 1u);
  EXPECT_EQ(other.rows[0].name.slot, 1u);
  EXPECT_EQ(other.rows[0].name.io, Io::kInput);
  EXPECT_EQ(other.rows[0].stats.known & kStatMax, 0u);
}

TEST(StatisticRows, MissingColumnsAndCutLinesAreTold) {
  const StatisticTable no_slot = parse({"Op Type,Op Name,IO", "Add,x,output"});
  EXPECT_TRUE(no_slot.rows.empty());
  ASSERT_FALSE(no_slot.problems.empty());
  EXPECT_NE(no_slot.problems[0].find("'slot'"), std::string::npos);
  const StatisticTable cut = parse({kNew, kAdd + "2,1,3,", "Add,Default_Ad"});
  EXPECT_EQ(cut.rows.size(), 1u);
  ASSERT_EQ(cut.problems.size(), 1u);
  EXPECT_NE(cut.problems[0].find("line 3"), std::string::npos);
}

TEST(StatisticRows, CountsThatContradictEachOtherAreNamedAndNotUsed) {
  const char* contradictions[] = {
      "2.5,-1,0.5,6,0,0,4,1,2,0",                                                     // 7 of 6 are not finite
      "2.5,-1,0.5,6,0,0,7,0,0,0",                                                     // 7 NaN
      "2.5,-1,0.5,6,3,3,0,0,0,1",                                                     // 7 signs
      "2.5,-1,0.5,6,0,0,9223372036854775807,9223372036854775807,9223372036854775807,0",  // their sum is beyond 64 bits
      "2.5,-1,0.5,0,0,0,1,0,0,0",                                                     // an empty tensor with a NaN
  };
  for (const char* counts : contradictions) {
    const StatisticTable table = parse({kOld, kAdd + "2.5,-1,0.5,6,1,2,1,0,1,1", kAdd + counts});
    ASSERT_EQ(table.rows.size(), 2u) << counts;
    EXPECT_TRUE(table.rows[0].problem.ok());
    EXPECT_EQ(table.rows[1].problem.code(), Code::kCorrupt) << counts;
    ASSERT_EQ(table.problems.size(), 1u);
    EXPECT_TRUE(table.problems[0].starts_with("1 lines are not used, the first is line 3: the counts contradict each other: "))
        << table.problems[0];
  }
}

TEST(StatisticRows, WithoutANumberOfElementsThereAreAtLeastThoseThatWereCounted) {
  const StatisticTable table = parse({"Op Type,Op Name,IO,Slot,NaN Count,Positive Inf Count", "Add,x,output,0,3,2"});
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_TRUE(table.rows[0].problem.ok());
  EXPECT_FALSE(table.rows[0].stats.knows(kStatCount));
  EXPECT_EQ(table.rows[0].stats.finite_count(), 0u);
}

TEST(StatisticRows, AHeadingOfALaterRunIsNoRow) {
  EXPECT_EQ(parse({kNew, kAdd + "2,1,3,", kNew, kAdd + "4,1,3,"}).rows.size(), 2u);
}

// ---- in a dump -------------------------------------------------------------------------------------------------------

TEST(StatisticDump, ALineThatContradictsItselfIsNotJudged) {
  TempDir dir;
  dir.text("rank_0/Net/0/0/statistic.csv", kOld + "\n" + kAdd + "2.5,-1,0.5,6,0,0,4,1,2,0\n");
  auto session = open(dir.path());
  const TensorId id = id_of(*session, "Default_Add-op0", 0);
  EXPECT_EQ(session->describe(id)->problem.code(), Code::kCorrupt);
  EXPECT_EQ(session->stats(id).status().code(), Code::kCorrupt);
  EXPECT_FALSE(session->given_statistics(id).has_value());
  EXPECT_TRUE(reports(*session, "statistic.csv", "line 2: the counts contradict each other: 6 elements, but 4 NaN"));
  Watchpoint watch;
  watch.id = 1;
  watch.on = Selector::parse("**").value();
  watch.condition = parse_condition("TO").value();
  const auto result = check(*session, std::span(&watch, 1), {});
  ASSERT_TRUE(result.ok());
  ASSERT_EQ(result->not_checked.size(), 1u);
  EXPECT_NE(result->not_checked[0].reason.find("contradict"), std::string::npos);
}

TEST(StatisticDump, OldFormServesItsCounts) {
  auto session = open_data("synthetic-stat-old");
  auto full = open_data("lenet-2.0.0-ok");
  size_t compared = 0;
  for (int64_t step : {0, 1}) {
    for (const TensorId& id : all_tensors(*session, step)) {
      const Result<TensorInfo> info = session->describe(id);
      ASSERT_TRUE(info.ok());
      EXPECT_EQ(info->availability, Availability::kStatisticsOnly);
      EXPECT_EQ(session->open_elements(id).status().code(), Code::kNoData);
      const std::optional<Stats> given = session->given_statistics(id);
      ASSERT_TRUE(given);
      const Stats real = full->stats(id).value();
      EXPECT_EQ(info->shape, full->describe(id)->shape);
      EXPECT_EQ(given->dtype, real.dtype);
      EXPECT_EQ(given->count, real.count);
      EXPECT_EQ(given->zero_count, real.zero_count);
      EXPECT_EQ(given->neg_count, real.neg_count);
      EXPECT_EQ(given->pos_count, real.pos_count);
      EXPECT_EQ(given->nan_count, real.nan_count);
      EXPECT_NEAR(given->max, real.max, 1e-5 * std::abs(real.max));
      EXPECT_NEAR(given->min, real.min, 1e-5 * std::abs(real.min));
      EXPECT_EQ(given->known, kStatCount | kStatMin | kStatMax | kStatMean | kBad | kStatZero | kStatPos | kStatNeg);
      ++compared;
    }
  }
  EXPECT_EQ(session->inspect().statistic_rows, 319u);
  EXPECT_GT(compared, 300u);
}

TEST(StatisticDump, NewFormDistinguishesFiniteFromBroken) {
  auto session = open_data("synthetic-stat-new");
  auto full = open_data("lenet-2.7.1-lognan");
  EXPECT_EQ(session->info().epoch, "E");
  size_t broken = 0;
  for (const TensorId& id : all_tensors(*session, 0)) {
    const Stats given = session->given_statistics(id).value();
    const Stats real = full->stats(id).value();
    const bool bad = real.nan_count + real.inf_count() > 0;
    EXPECT_EQ(given.nan_count + given.inf_count() > 0, bad) << session->tensor_name(id);
    EXPECT_EQ(given.knows(kBad), !bad) << session->tensor_name(id);
    if (!bad) {
      EXPECT_NEAR(given.l2_norm, real.l2_norm, 1e-5 * real.l2_norm);
    }
    broken += bad ? 1 : 0;
  }
  EXPECT_EQ(broken, 16u);  // 14 of kernels, and two parameters
  EXPECT_EQ(session->inspect().statistic_rows, 400u);
}

TEST(StatisticDump, RowsBesideFilesBelongToThem) {
  TempDir dir;
  const std::string folder = "rank_0/Net/0/0/";
  dir.npy(folder + "Add.Default_Add-op0.0.0.5.output.0.DefaultFormat.float32.npy", {1, 2});
  dir.npy(folder + "Add.Default_Add-op0.0.0.9.output.0.DefaultFormat.float32.npy", {3, 4});
  dir.text(folder + "statistic.csv", kNew + "\n" +
                                         "Add,Default_Add-op0,0,0,4,output,0,8,float32,\"(2)\",2,1,2.23607,\n" +
                                         "Add,Default_Add-op0,0,0,10,output,0,8,float32,\"(2)\",4,3,5,\n" +
                                         "Mul,Default_Mul-op0,0,0,6,output,0,8,float32,\"(2)\",7,7,9.89949,\n");
  auto session = open(dir.path());
  EXPECT_EQ(session->given_statistics(id_of(*session, "Default_Add-op0", 0, 0))->max, 2);
  EXPECT_EQ(session->given_statistics(id_of(*session, "Default_Add-op0", 0, 1))->max, 4);
  EXPECT_EQ(session->describe(id_of(*session, "Default_Add-op0", 0))->availability, Availability::kElements);
  EXPECT_EQ(session->describe(id_of(*session, "Default_Mul-op0", 0))->availability, Availability::kStatisticsOnly);
  EXPECT_TRUE(session->describe(id_of(*session, "Default_Mul-op0", 0))->source.ends_with("statistic.csv:4"));
}

TEST(StatisticDump, ATableWithoutItsColumnsIsReported) {
  TempDir dir;
  const std::string folder = "rank_0/Net/0/0/";
  dir.npy(folder + "Add.Default_Add-op0.0.0.5.output.0.DefaultFormat.float32.npy", {1, 2});
  dir.text(folder + "statistic.csv", "Op Type,IO\nAdd,output\n");
  auto session = open(dir.path());
  EXPECT_TRUE(reports(*session, "statistic.csv", "lacks the columns 'op name', 'slot'"));
  EXPECT_EQ(all_tensors(*session, 0).size(), 1u);
}

}  // namespace
}  // namespace msdbg::testing
