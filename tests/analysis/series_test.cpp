// Losses from the output of programs, and comparison of two of them.
#include <gtest/gtest.h>

#include <cmath>

#include "msdbg/series.h"

namespace msdbg {
namespace {

std::vector<std::pair<int64_t, double>> points(const Result<Series>& series) {
  std::vector<std::pair<int64_t, double>> out;
  EXPECT_TRUE(series.ok()) << series.status().message();
  if (!series) return out;
  for (const SeriesPoint& point : series->points) out.emplace_back(point.step, point.value);
  return out;
}
using Points = std::vector<std::pair<int64_t, double>>;

TEST(ParseSeries, FindsTheLossesThatTrainingsPrint) {
  EXPECT_EQ(points(parse_series("step 0 loss 2.5\nstep 1 loss 2.25\n", "log")), (Points{{0, 2.5}, {1, 2.25}}));
  EXPECT_EQ(points(parse_series("epoch: 1 step: 1, loss is 2.5\nnoise\nepoch: 1 step: 2, loss is 2.25\n", "log")),
            (Points{{1, 2.5}, {2, 2.25}}));
  EXPECT_EQ(points(parse_series("Epoch:[  0/  1], step:[    1/ 1875], loss:[2.5/2.5], time:5.1\n", "log")), (Points{{1, 2.5}}));
  EXPECT_EQ(points(parse_series("Loss = 2.5.\nLoss = 2.25.\n", "log")), (Points{{1, 2.5}, {2, 2.25}}));
  EXPECT_EQ(points(parse_series("loss: Tensor(shape=[], dtype=Float32, value= 2.5)\n", "log")), (Points{{1, 2.5}}));
}

TEST(ParseSeries, NanAndInfAreValues) {
  const auto series = parse_series("step 1 loss inf\nstep 2 loss nan\n", "log");
  ASSERT_EQ(points(series).size(), 2u);
  EXPECT_TRUE(std::isinf(series->points[0].value));
  EXPECT_TRUE(std::isnan(series->points[1].value));
}

TEST(ParseSeries, WordsThatOnlyContainLossAreNoLoss) {
  EXPECT_FALSE(parse_series("gloss 1\nlosses 2\nloss_scale: 1024\n", "log").ok());
}

TEST(ParseSeries, StepsThatStartAgainAreCounted) {
  const auto series = parse_series("epoch 1 step 1 loss 3\nepoch 1 step 2 loss 2\nepoch 2 step 1 loss 1\n", "log");
  EXPECT_EQ(points(series), (Points{{1, 3}, {2, 2}, {3, 1}}));
  EXPECT_TRUE(series->counted);
}

TEST(ParseSeries, TakesAPatternWithOneOrTwoGroups) {
  EXPECT_EQ(points(parse_series("it 7 acc=0.5\nit 9 acc=0.75\n", "log", {"it (\\d+) acc=(\\S+)", ""})), (Points{{7, 0.5}, {9, 0.75}}));
  EXPECT_EQ(points(parse_series("acc=0.5\nacc=0.75\n", "log", {"acc=(\\S+)", ""})), (Points{{1, 0.5}, {2, 0.75}}));
  EXPECT_EQ(parse_series("x", "log", {"(", ""}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(parse_series("x", "log", {"acc", ""}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(parse_series("x", "log", {"acc=(\\S+)", ""}).status().code(), Code::kNotFound);
}

TEST(ParseSeries, ReadsCsvByColumn) {
  const std::string csv = "step,loss,acc\r\n1,2.5,0.1\r\n2,2.25,0.2\r\n";
  EXPECT_EQ(points(parse_series(csv, "x.csv")), (Points{{1, 2.5}, {2, 2.25}}));
  EXPECT_EQ(points(parse_series(csv, "x.csv", {"", "acc"})), (Points{{1, 0.1}, {2, 0.2}}));
  EXPECT_EQ(points(parse_series("step,value\n4,1\n5,2\n", "x.csv")), (Points{{4, 1}, {5, 2}}));
  EXPECT_EQ(parse_series(csv, "x.csv", {"", "accc"}).status().message(), "series: x.csv has no column 'accc'; did you mean 'acc'?");
}

Series made(std::vector<double> values, int64_t first = 1) {
  Series series;
  series.source = "made";
  for (double value : values) series.points.push_back({first++, value});
  return series;
}

TEST(ParseSeries, ReadsTheCsvOfOtherPrograms) {
  EXPECT_EQ(points(parse_series("\xEF\xBB\xBFstep,loss\r\n10,2.5\r\n20,2.25\r\n", "x.csv")), (Points{{10, 2.5}, {20, 2.25}}));
  EXPECT_EQ(points(parse_series("\"step\";\"loss\"\n1;2,5\n2;2,25\n", "x.csv")), (Points{{1, 2.5}, {2, 2.25}}));
  EXPECT_EQ(points(parse_series("iter\ttrain_loss\n1\t2.5\n", "x.tsv")), (Points{{1, 2.5}}));
  // The column applies to the csv; the other side is a log.
  EXPECT_EQ(points(parse_series("step: 1, loss is 2.5\n", "log", {"", "loss"})), (Points{{1, 2.5}}));
}

TEST(ParseSeries, ProgressBarsOverwriteTheirLine) {
  EXPECT_EQ(points(parse_series("step 1 loss 3\rstep 2 loss 2\rstep 3 loss 1\n", "log")), (Points{{1, 3}, {2, 2}, {3, 1}}));
}

TEST(CompareSeries, StepsThatOnlyOneSideNumbersAreCountedOnBoth) {
  const auto numbered = parse_series("step 0 loss 3\nstep 1 loss 2\n", "a"), counted = parse_series("loss 3\nloss 2\n", "b");
  const auto found = compare_series(*numbered, *counted);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->verdict, SeriesVerdict::kClose);
  EXPECT_EQ(found->count, 2u);
}

TEST(CompareSeries, LossesThatBeginLaterSayNothingOfTheForwardPass) {
  const auto verdict = [](const char* a, const char* b) { return compare_series(*parse_series(a, "a"), *parse_series(b, "b"))->verdict; };
  EXPECT_EQ(verdict("step 0 loss 3\nstep 1 loss 2\n", "step 0 loss 4\nstep 1 loss 2\n"), SeriesVerdict::kForward);
  EXPECT_EQ(verdict("step 0 loss 3\nstep 1 loss 2\n", "step 0 loss 3\nstep 1 loss 1\n"), SeriesVerdict::kBackward);
  EXPECT_EQ(verdict("step 100 loss 3\nstep 200 loss 2\n", "step 100 loss 4\nstep 200 loss 2\n"), SeriesVerdict::kLater);
  EXPECT_EQ(verdict("step 1 loss 3\nstep 100 loss 2\n", "step 1 loss 3\nstep 100 loss 1\n"), SeriesVerdict::kLater);
  // A monitor that prints once per epoch repeats the same step number.
  EXPECT_EQ(verdict("epoch 1 step 1875 loss 3\nepoch 2 step 1875 loss 2\n", "epoch 1 step 1875 loss 4\nepoch 2 step 1875 loss 2\n"),
            SeriesVerdict::kLater);
}

TEST(CompareSeries, OneInAThousandIsRounding) {
  const SeriesComparison found = compare_series(made({2.001, 1}), made({2, 1.0009})).value();
  EXPECT_EQ(found.verdict, SeriesVerdict::kClose);
  EXPECT_FALSE(found.diverges_at);
  EXPECT_NEAR(found.mean_abs_error, (0.001 + 0.0009) / 2, 1e-12);
  EXPECT_EQ(found.worst_step, 2);
}

TEST(CompareSeries, TheStepThatPartsNamesThePass) {
  EXPECT_EQ(compare_series(made({3, 2, 1}), made({2, 2, 1})).value().verdict, SeriesVerdict::kForward);
  EXPECT_EQ(compare_series(made({2, 3, 1}), made({2, 2, 1})).value().verdict, SeriesVerdict::kBackward);
  const SeriesComparison later = compare_series(made({2, 2, 3}), made({2, 2, 1})).value();
  EXPECT_EQ(later.verdict, SeriesVerdict::kLater);
  EXPECT_EQ(later.diverges_at, 3);
  EXPECT_EQ(later.a_value, 3);
  // Steps count from 0 in one framework and from 1 in another; the first values correspond.
  EXPECT_EQ(compare_series(made({2, 3}, 0), made({2, 2}, 0)).value().verdict, SeriesVerdict::kBackward);
}

TEST(CompareSeries, NanPartsUnlessBothHaveIt) {
  EXPECT_EQ(compare_series(made({2, NAN}), made({2, NAN})).value().verdict, SeriesVerdict::kClose);
  const SeriesComparison found = compare_series(made({2, 2, NAN}), made({2, 2, 2})).value();
  EXPECT_EQ(found.diverges_at, 3);
  EXPECT_EQ(found.nonfinite_mismatch, 1u);
}

TEST(CompareSeries, WhereNothingIsFiniteThereIsNoError) {
  const SeriesComparison found = compare_series(made({NAN, INFINITY}), made({1, 2})).value();
  EXPECT_EQ(found.verdict, SeriesVerdict::kForward);
  EXPECT_EQ(found.finite, 0u);
  EXPECT_TRUE(std::isnan(found.max_abs_error) && std::isnan(found.max_rel_error) && std::isnan(found.mean_abs_error));
  EXPECT_EQ(found.nonfinite_a, (std::vector<int64_t>{1, 2}));
  EXPECT_TRUE(found.nonfinite_b.empty());
  EXPECT_EQ(compare_series(made({2, NAN}), made({2, NAN})).value().finite, 1u);
}

TEST(CompareSeries, StepsOfOneSideAreListed) {
  const SeriesComparison found = compare_series(made({1, 2, 3}, 0), made({2, 3, 4}, 1)).value();
  EXPECT_EQ(found.only_a, std::vector<int64_t>{0});
  EXPECT_EQ(found.only_b, std::vector<int64_t>{3});
  EXPECT_EQ(found.count, 2u);
  EXPECT_EQ(compare_series(made({1}, 1), made({1}, 2)).status().code(), Code::kNotFound);
}

}  // namespace
}  // namespace msdbg
