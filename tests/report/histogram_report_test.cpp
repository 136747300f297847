// Histograms as text and as a tree.
#include "msdbg/histogram_report.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/fake_session.h"

namespace msdbg {
namespace {

using testing::f32;
using testing::fake_graph;
using testing::FakeSession;

class Reported : public ::testing::Test {
 protected:
  Reported() : session_(fake_graph({{"Default/w", "Parameter"}})) {
    session_.put("Default/w", 0, f32({0, 1, 1, 2}));
    session_.put("Default/w", 1, f32({2, 2, 2, NAN}));
  }
  std::string text(Format format, BinOptions bins = {.bins = 2}, FollowOptions options = {}) {
    const auto found = histograms(session_, follow_target(session_, "Default/w").value(), bins, "", options);
    ReportStyle style;
    style.format = format;
    return histogram_report(session_, found.value(), style);
  }
  FakeSession session_;
};

TEST(HistogramText, BarsAreProportional) {
  Histogram h;
  h.edges = {0, 1, 2};
  h.counts = {4, 2};
  h.nan = 3;
  EXPECT_EQ(histogram_text(h, 18), "  0 | ████████ 4\n  1 | ████     2\n  2 | and 3 NaN\n");
  EXPECT_EQ(histogram_text(h, 18, false, true), "  0 | ######## 4\n  1 | ####     2\n  2 | and 3 NaN\n");
  EXPECT_NE(histogram_text(h, 18, true).find("| lengths are logarithms of the counts; 3 NaN"), std::string::npos);
}

TEST(HistogramText, PowersOfTwoAreWrittenAsSuch) {
  const auto h = histogram(f32({0, 0.25, 0.3, 1})->view(), {.scale = BinScale::kExponent});
  const std::string text = histogram_text(*h, 20, false, true);
  EXPECT_NE(text.find("2^-2 | "), std::string::npos) << text;
  EXPECT_NE(text.find("and 1 zero\n"), std::string::npos) << text;
}

TEST_F(Reported, OneTensorIsBarsAndSeveralStepsAreRows) {
  EXPECT_EQ(text(Format::kTable, {.bins = 2}, {.steps = IntSet::of(0)}).substr(0, 35), "Default/w:output:0  float32  step 0");
  const std::string rows = text(Format::kTable);
  EXPECT_NE(rows.find("elements from 0 to 2 in 2 bins\n"), std::string::npos) << rows;
  EXPECT_NE(rows.find("\n   0  Default/w  ▃█\n   1  Default/w  ·█        1 NaN\n"), std::string::npos) << rows;
}

TEST_F(Reported, CsvHasARowForEachBin) {
  EXPECT_EQ(text(Format::kCsv, {.bins = 2, .max = 1}),
            "rank,graph,graph_id,node,op,slot,step,execution,scale,from,to,count,reason\r\n"
            "0,kernel_graph0,0,Default/w,Parameter,output:0,0,0,linear,0,0.5,1,\r\n"
            "0,kernel_graph0,0,Default/w,Parameter,output:0,0,0,linear,0.5,1,2,\r\n"
            "0,kernel_graph0,0,Default/w,Parameter,output:0,0,0,linear,1,,1,\r\n"
            "0,kernel_graph0,0,Default/w,Parameter,output:0,1,0,linear,0,0.5,0,\r\n"
            "0,kernel_graph0,0,Default/w,Parameter,output:0,1,0,linear,0.5,1,0,\r\n"
            "0,kernel_graph0,0,Default/w,Parameter,output:0,1,0,linear,1,,3,\r\n");
}

TEST_F(Reported, PowersOfTwoSayWhichLossScaleFits) {
  const std::string all = text(Format::kTable, {.scale = BinScale::kExponent});
  EXPECT_NE(all.find("float16: these values fit; a loss scale may be up to 2^13, with room for a factor of 2\n"), std::string::npos) << all;
  session_.put("Default/w", 2, f32({1e-8, 2e-7}));
  const std::string small = text(Format::kTable, {.scale = BinScale::kExponent}, {.steps = IntSet::of(2)});
  EXPECT_NE(small.find("float16: a loss scale of 2^13 to 2^37 keeps these values normal"), std::string::npos) << small;
  session_.put("Default/w", 3, f32({1e-12, 60000}));
  const std::string wide = text(Format::kTable, {.scale = BinScale::kExponent}, {.steps = IntSet::of(3)});
  EXPECT_NE(wide.find("float16: no loss scale suits all of these values; at 2^-1, 0 % of those other than 0 are subnormal, 50 % become 0"),
            std::string::npos) << wide;
  EXPECT_NE(text(Format::kJson, {.scale = BinScale::kExponent}, {.steps = IntSet::of(0)}).find("\"most_exponent\": 13"), std::string::npos);
}

}  // namespace
}  // namespace msdbg
