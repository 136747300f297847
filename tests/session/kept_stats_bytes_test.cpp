#include "session/kept_stats_bytes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace msdbg {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Every field differs from its default.
KeptStats everything() {
  KeptStats entry;
  entry.info.id = {3, 1, 40, 2, 17, {Io::kInput, 5}};
  entry.info.dtype = DType::kBFloat16;
  entry.info.shape = {2, 300};
  entry.info.count = 600;
  entry.info.bytes = 1200;
  entry.info.source = "rank_3/net/1/40/Add.npy";
  entry.info.format = "NCHW";
  entry.info.note = "the file holds 8 bytes more than header promises";
  entry.request = {{{-1, 0.5}, {-kInfinity, kInfinity}}, {{1e-5, 1e-8}}, true};
  Stats& stats = entry.stats;
  stats.dtype = entry.info.dtype;
  stats.known = kStatAll;
  stats.count = 600;
  stats.nan_count = 1;
  stats.pos_inf_count = 2;
  stats.neg_inf_count = 3;
  stats.zero_count = 4;
  stats.pos_count = 300;
  stats.neg_count = 290;
  stats.dtype_max_count = 5;
  stats.first_bad = 0;
  stats.min = -0.0;
  stats.max = std::numeric_limits<double>::denorm_min();
  stats.mean = 1.0 / 3;
  stats.abs_mean = kInfinity;
  stats.std = 2;
  stats.l2_norm = 1e300;
  stats.range_counts = {7, 600};
  stats.pairs = 590;
  stats.prev_nonfinite_count = 4;
  stats.diff_abs_mean = 0.25;
  stats.prev_abs_mean = 0.5;
  stats.close_counts = {80};
  entry.previous = Previous::kPresent;
  entry.previous_id = TensorId{3, 1, 39, 2, 17, {Io::kInput, 5}};
  entry.previous_bytes = 2400;
  ExpressionValue value;
  value.is_truth = true;
  value.number = 1;
  value.is_decided = false;
  value.actual = 12.5;
  value.threshold = -3;
  entry.values = {{"mean(abs(x)) > 10", value}, {"x == prev", std::nullopt}};
  return entry;
}

bool same(double a, double b) { return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b)); }

void expect_same(const Stats& a, const Stats& b) {
  EXPECT_EQ(a.dtype, b.dtype);
  EXPECT_EQ(a.known, b.known);
  EXPECT_EQ(
      (std::vector{a.count, a.nan_count, a.pos_inf_count, a.neg_inf_count, a.zero_count, a.pos_count, a.neg_count, a.dtype_max_count}),
      (std::vector{b.count, b.nan_count, b.pos_inf_count, b.neg_inf_count, b.zero_count, b.pos_count, b.neg_count, b.dtype_max_count}));
  EXPECT_EQ(a.first_bad, b.first_bad);
  for (double Stats::*field : {&Stats::min, &Stats::max, &Stats::mean, &Stats::abs_mean, &Stats::std, &Stats::l2_norm,
                               &Stats::diff_abs_mean, &Stats::prev_abs_mean}) {
    EXPECT_TRUE(same(a.*field, b.*field)) << a.*field << " and " << b.*field;
  }
  EXPECT_EQ(a.range_counts, b.range_counts);
  EXPECT_EQ(a.close_counts, b.close_counts);
  EXPECT_EQ(a.pairs, b.pairs);
  EXPECT_EQ(a.prev_nonfinite_count, b.prev_nonfinite_count);
}

TensorInfo identity(const KeptStats& entry) {
  TensorInfo info;
  info.id = entry.info.id;
  info.source = entry.info.source;
  info.format = entry.info.format;
  return info;
}

TEST(KeptStatsBytes, EveryFieldReturns) {
  const KeptStats entry = everything();
  const auto decoded = decode(encode(entry), identity(entry));
  ASSERT_TRUE(decoded) << decoded.status().message();
  const KeptStats& read = **decoded;
  EXPECT_EQ(read.info.id, entry.info.id);
  EXPECT_EQ(read.info.availability, Availability::kElements);
  EXPECT_EQ(read.info.dtype, entry.info.dtype);
  EXPECT_EQ(read.info.shape, entry.info.shape);
  EXPECT_EQ(read.info.count, entry.info.count);
  EXPECT_EQ(read.info.bytes, entry.info.bytes);
  EXPECT_EQ(read.info.source, entry.info.source);
  EXPECT_EQ(read.info.format, entry.info.format);
  EXPECT_EQ(read.info.note, entry.info.note);
  EXPECT_EQ(read.request.ranges, entry.request.ranges);
  EXPECT_EQ(read.request.close, entry.request.close);
  EXPECT_TRUE(read.request.change);
  expect_same(read.stats, entry.stats);
  EXPECT_EQ(read.previous, Previous::kPresent);
  EXPECT_EQ(read.previous_id, entry.previous_id);
  EXPECT_EQ(read.previous_bytes, 2400u);
  ASSERT_EQ(read.values.size(), 2u);
  const ExpressionValue& value = *read.values.at("mean(abs(x)) > 10");
  EXPECT_TRUE(value.is_truth && !value.is_decided && value.number == 1 && value.actual == 12.5 && value.threshold == -3);
  EXPECT_FALSE(read.values.at("x == prev").has_value());
}

TEST(KeptStatsBytes, PlainStatisticsOfAScalarReturn) {
  KeptStats entry;
  entry.info.dtype = DType::kInt64;
  entry.info.count = 1;
  entry.info.bytes = 8;
  entry.stats = compute_stats(TensorView{DType::kInt64, {}, reinterpret_cast<const std::byte*>("\x05\0\0\0\0\0\0\0"), 1});
  entry.previous = Previous::kMissing;
  entry.previous_reason = "previous step 3 cannot be used: the value is empty";
  const std::string bytes = encode(entry);
  EXPECT_LT(bytes.size(), 150u);
  const auto decoded = decode(bytes, {});
  ASSERT_TRUE(decoded) << decoded.status().message();
  const KeptStats& read = **decoded;
  expect_same(read.stats, entry.stats);
  EXPECT_EQ(read.previous, Previous::kMissing);
  EXPECT_EQ(read.previous_reason, entry.previous_reason);
  EXPECT_FALSE(read.stats.first_bad.has_value());
}

TEST(KeptStatsBytes, SayWhetherThePreviousValueMatters) {
  KeptStats entry = everything();
  EXPECT_TRUE(depends_on_previous(encode(entry)));
  entry.previous = Previous::kNotNeeded;
  entry.previous_id.reset();
  EXPECT_FALSE(depends_on_previous(encode(entry)));
  EXPECT_FALSE(depends_on_previous(""));
}

TEST(KeptStatsBytes, EveryCutIsRefused) {
  const std::string bytes = encode(everything());
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(decode(std::string_view(bytes).substr(0, size), {}).status().code(), Code::kCorrupt) << size;
  }
  EXPECT_EQ(decode(bytes + "x", {}).status().code(), Code::kCorrupt);
}

TEST(KeptStatsBytes, OtherVersionsAndContradictionsAreRefused) {
  std::string other = encode(everything());
  ++other[0];
  EXPECT_EQ(decode(other, {}).status().message(), "statistics in the format of another version");

  KeptStats entry = everything();
  entry.stats.nan_count = 601;
  EXPECT_EQ(decode(encode(entry), {}).status().message(), "damaged statistics");
  entry = everything();
  entry.stats.range_counts.pop_back();
  EXPECT_EQ(decode(encode(entry), {}).status().message(), "damaged statistics");
  entry = everything();
  entry.previous_id.reset();
  EXPECT_EQ(decode(encode(entry), {}).status().message(), "damaged statistics");
}

}  // namespace
}  // namespace msdbg
