// Bins of one tensor and of several, and the loss scale that float16 needs.
#include "msdbg/histogram.h"

#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>

#include "support/fake_session.h"

namespace msdbg {
namespace {

using testing::f32;
using testing::fake_graph;
using testing::FakeSession;
using testing::make_tensor;
using Counts = std::vector<uint64_t>;

Histogram made(std::initializer_list<double> values, const BinOptions& options) {
  const auto found = histogram(f32(values)->view(), options);
  EXPECT_TRUE(found.ok()) << found.status().message();
  return found ? *found : Histogram{};
}

TEST(Histogram, CountsEveryFiniteElementOnce) {
  const Histogram h = made({0, 1, 2, 3, 4, NAN, INFINITY}, {.bins = 4});
  EXPECT_EQ(h.edges, (std::vector<double>{0, 1, 2, 3, 4}));
  EXPECT_EQ(h.counts, (Counts{1, 1, 1, 2}));
  EXPECT_EQ(h.nan, 1u);
  EXPECT_EQ(h.inf, 1u);
}

TEST(Histogram, EqualElementsAndHugeSpans) {
  EXPECT_EQ(made({5, 5, 5}, {.bins = 3}).counts, (Counts{3, 0, 0}));
  const std::vector<double> ends = {-1.7e308, 1.7e308};
  const Result<Histogram> h = histogram(make_tensor(DType::kFloat64, {2}, ends)->view(), {.bins = 2});
  EXPECT_EQ(h->counts, (Counts{1, 1}));
  EXPECT_EQ(h->edges[1], 0);
  EXPECT_EQ(made({NAN}, {.bins = 2}).counts, (Counts{0, 0}));
}

TEST(Histogram, ElementsOutsideOfTheGivenRangeAreCountedApart) {
  const Histogram h = made({-2, -1, 0, 0.5, 1, 7}, {.bins = 2, .min = -1, .max = 1});
  EXPECT_EQ(h.counts, (Counts{1, 3}));
  EXPECT_EQ(h.below, 1u);
  EXPECT_EQ(h.above, 1u);
  const Histogram all_above = made({3, 4}, {.bins = 1, .max = 1});
  EXPECT_EQ(all_above.above, 2u);
}

TEST(Histogram, LogarithmicBinsHaveEqualRatios) {
  const Histogram h = made({0, -1, 1, 5, -10, 99, 100}, {.bins = 2, .scale = BinScale::kLog});
  ASSERT_EQ(h.edges.size(), 3u);
  EXPECT_EQ(h.edges[0], 1);
  EXPECT_NEAR(h.edges[1], 10, 1e-9);
  EXPECT_EQ(h.edges[2], 100);
  EXPECT_EQ(h.zeros, 1u);
  EXPECT_EQ(h.counts[0] + h.counts[1], 6u);
  EXPECT_GE(h.counts[1], 2u);
}

TEST(Histogram, ExponentsArePowersOfTwoAndJoinWhenThereAreTooMany) {
  const Histogram h = made({0, 1, -1.5, 2, 7.9, 8}, {.bins = 20, .scale = BinScale::kExponent});
  EXPECT_EQ(h.edges, (std::vector<double>{1, 2, 4, 8, 16}));
  EXPECT_EQ(h.counts, (Counts{2, 1, 1, 1}));
  EXPECT_EQ(h.zeros, 1u);
  EXPECT_EQ(h.exponents.at(0), 2u);
  const Histogram joined = made({1, 2, 4, 8, 16}, {.bins = 2, .scale = BinScale::kExponent});
  EXPECT_EQ(joined.edges, (std::vector<double>{1, 8, 64}));
  EXPECT_EQ(joined.counts, (Counts{3, 2}));
  const std::vector<double> huge = {DBL_MAX, 5e-324};
  const auto widest = histogram(make_tensor(DType::kFloat64, {2}, huge)->view(), {.bins = 10, .scale = BinScale::kExponent});
  EXPECT_LE(widest->counts.size(), 10u);
  EXPECT_EQ(widest->edges.back(), DBL_MAX);
  EXPECT_EQ(widest->counts.front() + widest->counts.back(), 2u);
}

TEST(Histogram, WhatMakesNoBinsIsRefused) {
  const auto why = [](const BinOptions& options) {
    const auto h = histogram(f32({1})->view(), options);
    EXPECT_EQ(h.status().code(), Code::kInvalidArgument);
    return h.status().message();
  };
  EXPECT_EQ(why({.bins = 0}), "histogram: 0 bins; give 1 to 10000");
  EXPECT_EQ(why({.bins = 10001}), "histogram: 10001 bins; give 1 to 10000");
  EXPECT_EQ(why({.min = 2, .max = 1}), "histogram: min 2 is not below max 1");
  EXPECT_EQ(why({.min = NAN}), "histogram: min and max are finite numbers");
  EXPECT_EQ(why({.scale = BinScale::kLog, .min = 0}), "histogram: 0 has no logarithm; give magnitudes above 0");
  EXPECT_EQ(why({.scale = BinScale::kExponent, .max = 1}), "histogram: powers of two have no min and max");
  TensorView text;
  text.dtype = DType::kString;
  EXPECT_EQ(histogram(text).status().code(), Code::kUnsupported);
}

TEST(LossScale, KeepsTheLargestBelowTheOverflowAndTheSmallestNormal) {
  const auto small = advise_loss_scale({{-20, 500}, {-10, 500}});
  EXPECT_EQ(small->least, 6);   // 2^-20 * 2^6 is float16's smallest normal number
  EXPECT_EQ(small->most, 24);   // below 2^-9 * 2^24 = 2^15, a factor of 2 from the overflow
  EXPECT_EQ(small->largest, -10);
  EXPECT_TRUE(small->fits());
  EXPECT_EQ(small->subnormal, 0);
}

TEST(LossScale, AFewSmallValuesDoNotCount) {
  EXPECT_EQ(advise_loss_scale({{-60, 1}, {-10, 9999}})->least, -4);
  EXPECT_EQ(advise_loss_scale({{-60, 100}, {-10, 9900}})->least, 46);
}

TEST(LossScale, DoesNotSuitValuesThatAreTooFarApart) {
  const auto wide = advise_loss_scale({{-40, 10}, {-25, 40}, {4, 50}});
  EXPECT_FALSE(wide->fits());
  EXPECT_EQ(wide->most, 10);
  EXPECT_NEAR(wide->subnormal, 50, 1e-9);
  EXPECT_NEAR(wide->lost, 10, 1e-9);
  EXPECT_FALSE(advise_loss_scale({}).has_value());
}

TEST(Histograms, OfSeveralStepsShareTheirBins) {
  FakeSession session(fake_graph({{"Default/w", "Parameter"}}));
  session.put("Default/w", 0, f32({0, 1}));
  session.put("Default/w", 1, f32({1, 3, NAN}));
  session.put("Default/w", 2, f32({-1, 2}));
  const auto target = follow_target(session, "Default/w");
  ASSERT_TRUE(target.ok());
  const auto all = histograms(session, *target, {.bins = 4}, "", {});
  ASSERT_TRUE(all.ok()) << all.status().message();
  EXPECT_EQ(all->edges, (std::vector<double>{-1, 0, 1, 2, 3}));
  ASSERT_EQ(all->lines.size(), 3u);
  EXPECT_EQ(all->lines[0].histogram->counts, (Counts{0, 1, 1, 0}));
  EXPECT_EQ(all->lines[1].histogram->counts, (Counts{0, 0, 1, 1}));
  EXPECT_EQ(all->lines[1].histogram->nan, 1u);
  EXPECT_EQ(all->lines[2].histogram->counts, (Counts{1, 0, 0, 1}));
  EXPECT_EQ(all->steps, (std::vector<int64_t>{0, 1, 2}));
  const auto part = histograms(session, *target, {.bins = 1}, ":1", {.steps = IntSet::of(1)});
  EXPECT_EQ(part->lines[0].histogram->counts, (Counts{1}));
  EXPECT_EQ(histograms(session, *target, {}, "7:,2", {}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(histograms(session, *target, {}, "", {.steps = IntSet::of(9)}).status().code(), Code::kNotFound);
}

}  // namespace
}  // namespace msdbg
