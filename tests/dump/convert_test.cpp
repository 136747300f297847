// Converting a dump: names, contents, what stays in its container, and runs that were interrupted.
#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>

#include "dump/dump_support.h"
#include "support/container_file.h"

namespace msdbg::testing {
namespace {

namespace fs = std::filesystem;
using test::StoredContainer;
using test::StoredTensor;

std::vector<std::string> files_below(const std::string& directory) {
  std::vector<std::string> out;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(directory)) {
    if (entry.is_regular_file()) out.push_back(entry.path().lexically_relative(directory).string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::string whole_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class Convert : public ::testing::Test {
 protected:
  void SetUp() override {
    std::vector<float> values(600);
    std::iota(values.begin(), values.end(), -7.0f);
    values[5] = NAN;
    values[77] = INFINITY;
    const auto image = test::device_memory("NC1HWC0", {2, 20, 1, 3, 5, false}, 16);
    const auto matrix = test::fractal_nz({20, 30}, 16);
    StoredContainer conv;
    conv.inputs = {{test::kTypeFloat, test::kFormatFractalNz, matrix.shape, std::vector<int64_t>{20, 30},
                    test::device_bytes(matrix, values, NAN)}};
    conv.outputs = {{test::kTypeFloat, test::kFormatNc1hwc0, image.shape, std::vector<int64_t>{2, 20, 3, 5},
                     test::device_bytes(image, values, NAN)},
                    {test::kTypeInt4, test::kFormatNd, {3}, std::vector<int64_t>{3}, "\x21\x0f"}};
    for (const char* step : {"0", "1"}) {
      dump_.text(std::string("dump/rank_0/Net/0/") + step + "/Conv2D.Default_net_Conv2D-op1.12.7.10" + step, conv.bytes());
    }
    dump_.npy("dump/rank_0/Net/0/0/Add.Default_net_Add-op2.13.7.200.output.0.ND.npy", {1, 2});
    dump_.text("dump/rank_0/graphs/ms_output_trace_code_graph_0.pb",
               graph_pb("g", "0", {"x"}, {{"Default/net/Conv2D-op1", "Conv2D", {"x"}, 43, {2, 20, 3, 5}},
                                          {"Default/net/Add-op2", "Add", {"Default/net/Conv2D-op1"}, 43, {2}}}));
    dump_.text("dump/rank_0/.dump_metadata/config.json", R"({"ms_version": "2.2.0", "device_target": "Ascend"})");
    dump_.text("dump/rank_0/debug_files/0/Opdebug.Node_OpDebug.1.1.300", "record");
  }
  Result<ConvertResult> convert(const TensorQuery& query = everything()) {
    auto session = open(dump_.at("dump"));
    return convert_dump(*session, query, {.output = dump_.at("out"), .threads = 2});
  }
  static TensorQuery everything() {
    TensorQuery query;
    query.inputs = true;
    return query;
  }

  TempDir dump_;
};

TEST_F(Convert, NamesAreThoseOfMindSporeAndTheRestIsCopied) {
  const Result<ConvertResult> result = convert();
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->converted, 6u);
  EXPECT_EQ(result->copied, 4u);
  EXPECT_TRUE(result->left.empty());
  EXPECT_EQ(files_below(dump_.at("out")),
            (std::vector<std::string>{"rank_0/.dump_metadata/config.json",
                                      "rank_0/Net/0/0/Add.Default_net_Add-op2.13.7.200.output.0.ND.npy",
                                      "rank_0/Net/0/0/Conv2D.Default_net_Conv2D-op1.12.7.100.input.0.ND.npy",
                                      "rank_0/Net/0/0/Conv2D.Default_net_Conv2D-op1.12.7.100.output.0.NCHW.npy",
                                      "rank_0/Net/0/0/Conv2D.Default_net_Conv2D-op1.12.7.100.output.1.ND.npy",
                                      "rank_0/Net/0/1/Conv2D.Default_net_Conv2D-op1.12.7.101.input.0.ND.npy",
                                      "rank_0/Net/0/1/Conv2D.Default_net_Conv2D-op1.12.7.101.output.0.NCHW.npy",
                                      "rank_0/Net/0/1/Conv2D.Default_net_Conv2D-op1.12.7.101.output.1.ND.npy",
                                      "rank_0/debug_files/0/Opdebug.Node_OpDebug.1.1.300",
                                      "rank_0/graphs/ms_output_trace_code_graph_0.pb"}));
}

TEST_F(Convert, BothDumpsSayTheSame) {
  ASSERT_TRUE(convert().ok());
  auto before = open(dump_.at("dump")), after = open(dump_.at("out"));
  ASSERT_EQ(before->tensors(everything()), after->tensors(everything()));
  EXPECT_EQ(before->tensors(everything()).size(), 7u);
  for (const TensorId& id : before->tensors(everything())) {
    const Result<TensorInfo> a = before->describe(id), b = after->describe(id);
    EXPECT_EQ(a->dtype, b->dtype);
    EXPECT_EQ(a->shape, b->shape);
    EXPECT_EQ(a->format, b->format);
    EXPECT_EQ(a->note, b->note);
    const Result<Stats> x = before->stats(id), y = after->stats(id);
    ASSERT_TRUE(x.ok() && y.ok());
    // The same elements in the same order give the same sums, bit by bit.
    EXPECT_EQ(x->mean, y->mean);
    EXPECT_EQ(x->std, y->std);
    EXPECT_EQ(x->first_bad, y->first_bad);
    EXPECT_EQ(x->nan_count, y->nan_count);
    const Result<TensorPtr> left = before->load(id), right = after->load(id);
    ASSERT_TRUE(left.ok() && right.ok());
    EXPECT_TRUE(std::ranges::equal((*left)->bytes(), (*right)->bytes()));
  }
}

TEST_F(Convert, OnlyTheChosenTensorsAreWritten) {
  TensorQuery query = everything();
  query.steps = IntSet::of(1);
  query.inputs = false;
  ASSERT_TRUE(convert(query).ok());
  EXPECT_EQ(files_below(dump_.at("out/rank_0/Net")), (std::vector<std::string>{"0/1/Conv2D.Default_net_Conv2D-op1.12.7.101.output.0.NCHW.npy",
                                                                               "0/1/Conv2D.Default_net_Conv2D-op1.12.7.101.output.1.ND.npy"}));
}

TEST_F(Convert, ASecondRunGoesOn) {
  ASSERT_TRUE(convert().ok());
  const std::string lost = "out/rank_0/Net/0/1/Conv2D.Default_net_Conv2D-op1.12.7.101.output.0.NCHW.npy";
  const std::string content = whole_file(dump_.at(lost));
  fs::remove(dump_.at(lost));
  // A file of another size is not what a run left.
  dump_.text("out/rank_0/Net/0/0/Conv2D.Default_net_Conv2D-op1.12.7.100.input.0.ND.npy", "half");
  const Result<ConvertResult> again = convert();
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->converted, 2u);
  EXPECT_EQ(again->copied, 0u);
  EXPECT_EQ(again->present, 8u);
  EXPECT_EQ(whole_file(dump_.at(lost)), content);
}

TEST_F(Convert, WhatChangedSinceIsWrittenAgain) {
  ASSERT_TRUE(convert().ok());
  fs::last_write_time(dump_.at("dump/rank_0/.dump_metadata/config.json"), fs::file_time_type::clock::now() + std::chrono::hours(1));
  EXPECT_EQ(convert()->copied, 1u);
}

TEST_F(Convert, WhatCannotBeConvertedStaysInItsContainer) {
  StoredContainer odd;
  odd.outputs = {{test::kTypeFloat, test::kFormatZnLstm, {4}, std::vector<int64_t>{3}, std::string(16, 'a')},
                 {18, test::kFormatNd, {4}, std::vector<int64_t>{4}, std::string(4, 'a')},
                 {test::kTypeFloat, test::kFormatNd, {2}, std::vector<int64_t>{2}, std::string(8, 'a')}};
  const std::string name = "rank_0/Net/0/0/LSTM.Default_net_LSTM-op3.14.7.300";
  dump_.text("dump/" + name, odd.bytes());
  dump_.text("dump/rank_0/Net/0/0/Sub.Default_net_Sub-op4.15.7.301", "damaged");
  const Result<ConvertResult> result = convert();
  ASSERT_TRUE(result.ok());
  ASSERT_EQ(result->left.size(), 3u);
  EXPECT_TRUE(result->left[0].tensor.ends_with(name + ":output:0"));
  EXPECT_EQ(result->left[0].reason, "in the order of the device: format FRACTAL_ZN_LSTM cannot be converted");
  EXPECT_FALSE(result->left[0].damaged);
  EXPECT_EQ(result->left[1].reason, "QINT8 elements are not evaluated");
  EXPECT_TRUE(result->left[2].damaged);
  EXPECT_EQ(whole_file(dump_.at("out/" + name)), odd.bytes());
  // The third tensor of the container was converted, and is there once.
  auto before = open(dump_.at("dump")), after = open(dump_.at("out"));
  EXPECT_EQ(before->tensors(everything()), after->tensors(everything()));
}

TEST_F(Convert, LongNamesGetANumber) {
  const std::string scope(215, 's'), original = "Add.Default_" + scope + "_Add-op5.1.2.400";
  StoredContainer add;
  add.outputs = {{test::kTypeFloat, test::kFormatNd, {1}, std::vector<int64_t>{1}, test::plain_bytes(std::vector<float>{8})}};
  dump_.text("dump/rank_0/Net/0/0/" + original, add.bytes());
  ASSERT_TRUE(convert().ok());
  EXPECT_NE(whole_file(dump_.at("out/rank_0/Net/0/0/mapping.csv")).find(".npy," + original + ".output.0.ND.npy\n"), std::string::npos);
  auto after = open(dump_.at("out"));
  EXPECT_EQ(elements(*after, "Default_" + scope + "_Add-op5", 0), (std::vector<double>{8}));
}

TEST_F(Convert, ADirectoryInsideOfTheDumpIsRefused) {
  auto session = open(dump_.at("dump"));
  for (const char* output : {"dump", "dump/rank_0", "dump/rank_0/../new"}) {
    const Result<ConvertResult> result = convert_dump(*session, everything(), {.output = dump_.at(output)});
    EXPECT_EQ(result.status().code(), Code::kInvalidArgument) << output;
  }
}

TEST_F(Convert, AFileThatCannotBeWrittenEndsIt) {
  auto session = open(dump_.at("dump"));
  dump_.text("file", "");
  EXPECT_EQ(convert_dump(*session, everything(), {.output = dump_.at("file/out")}).status().code(), Code::kIoError);
}

}  // namespace
}  // namespace msdbg::testing
