// What a table proves about a tensor.
#include <gtest/gtest.h>

#include <cmath>

#include "session/msprobe/table.h"

namespace msdbg::msprobe {
namespace {

Record record_of(double max, double min, DType dtype = DType::kFloat32, uint64_t count = 4) {
  Record record;
  record.shape = {static_cast<int64_t>(count)};
  record.count = count;
  record.dtype = dtype;
  record.max = max;
  record.min = min;
  record.given = kGivenMax | kGivenMin;
  return record;
}

constexpr uint32_t kBad = kStatNan | kStatPosInf | kStatNegInf;

TEST(GivenStatistics, FiniteExtremesProveThatNothingIsBad) {
  Record record = record_of(2, -1);
  record.mean = INFINITY;
  record.norm = INFINITY;  // an overflow of the sum
  record.given |= kGivenMean | kGivenNorm;
  const Stats stats = statistics_of(record, false);
  EXPECT_TRUE(stats.knows(kBad | kStatMin | kStatMax | kStatCount | kStatDtypeMax));
  EXPECT_EQ(stats.nan_count + stats.inf_count(), 0u);
  EXPECT_FALSE(stats.knows(kStatMean));
  EXPECT_FALSE(stats.knows(kStatL2Norm));
  EXPECT_FALSE(stats.knows(kStatZero));
}

TEST(GivenStatistics, NanIsAtLeastOne) {
  const Stats stats = statistics_of(record_of(NAN, NAN), false);
  EXPECT_GE(stats.nan_count, 1u);
  EXPECT_FALSE(stats.knows(kStatNan));
  EXPECT_FALSE(stats.knows(kStatPosInf));
}

TEST(GivenStatistics, AnInfinityProvesThatThereIsNoNan) {
  const Stats low = statistics_of(record_of(-0.5, -INFINITY), false);
  EXPECT_TRUE(low.knows(kStatNan | kStatPosInf | kStatMax | kStatZero));
  EXPECT_EQ(low.nan_count, 0u);
  EXPECT_EQ(low.neg_inf_count, 1u);
  EXPECT_FALSE(low.knows(kStatNegInf));
  EXPECT_EQ(low.max, -0.5);
  EXPECT_EQ(low.zero_count, 0u);
  const Stats all = statistics_of(record_of(INFINITY, INFINITY), false);
  EXPECT_TRUE(all.knows(kBad));
  EXPECT_EQ(all.pos_inf_count, 4u);
}

TEST(GivenStatistics, OfAConstantAreAllKnown) {
  const Stats zeros = statistics_of(record_of(0, 0), false);
  EXPECT_TRUE(zeros.knows(kStatZero | kStatStd | kStatMean | kStatAbsMean | kStatL2Norm));
  EXPECT_EQ(zeros.zero_count, 4u);
  const Stats twos = statistics_of(record_of(-2, -2), false);
  EXPECT_EQ(twos.l2_norm, 4);
  EXPECT_EQ(twos.neg_count, 4u);
  EXPECT_EQ(twos.std, 0);
}

TEST(GivenStatistics, SignsExcludeZeros) {
  const Stats above = statistics_of(record_of(3, 1), false);
  EXPECT_TRUE(above.knows(kStatZero | kStatPos | kStatNeg));
  EXPECT_EQ(above.pos_count, 4u);
  EXPECT_FALSE(statistics_of(record_of(3, 0), false).knows(kStatZero));
}

TEST(GivenStatistics, WentThroughFloat32UpTo26_0) {
  EXPECT_FALSE(statistics_of(record_of(1e9, 0, DType::kInt64), true).knows(kStatMax));
  EXPECT_TRUE(statistics_of(record_of(1e9, 0, DType::kInt64), false).knows(kStatMax));
  EXPECT_TRUE(statistics_of(record_of(1000, 0, DType::kInt64), true).knows(kStatMax));
  // A 64-bit float may be beyond float32, so Inf proves nothing.
  EXPECT_EQ(statistics_of(record_of(INFINITY, 0, DType::kFloat64), true).inf_count(), 0u);
  EXPECT_FALSE(statistics_of(record_of(INFINITY, 0, DType::kFloat64), true).knows(kStatPosInf));
  EXPECT_GE(statistics_of(record_of(NAN, NAN, DType::kFloat64), true).nan_count, 1u);
}

TEST(GivenStatistics, OfComplexNumbersAreMagnitudes) {
  const Stats stats = statistics_of(record_of(2, 1, DType::kComplex64), false);
  EXPECT_TRUE(stats.knows(kBad));
  EXPECT_FALSE(stats.knows(kStatMin));
  EXPECT_FALSE(stats.knows(kStatZero));
}

TEST(GivenStatistics, AreMissingWithAReason) {
  Record record = record_of(0, 0);
  record.given = 0;
  EXPECT_NE(no_statistics(record).find("null"), std::string::npos);
  record.checksum_bits = 64;
  EXPECT_NE(no_statistics(record).find("xor"), std::string::npos);
  record.count = 0;
  EXPECT_EQ(no_statistics(record), "");
}

TEST(GivenStatistics, ThatNoTensorHasProveNothing) {
  for (const Record& record : {record_of(INFINITY, -INFINITY, DType::kFloat32, 1), record_of(2, 1, DType::kFloat32, 1), record_of(1, 2)}) {
    EXPECT_EQ(statistics_of(record, false).known, kStatCount);
    EXPECT_NE(no_statistics(record), "");
  }
  EXPECT_EQ(no_statistics(record_of(INFINITY, -INFINITY)), "");
  EXPECT_EQ(no_statistics(record_of(NAN, 1, DType::kFloat32, 1)), "");
}

TEST(Table, ReadsNestedValuesDepthFirst) {
  const Table table = read_table(R"({"task": "tensor", "data": {"Torch.cat.0.forward": {
    "input_args": [[{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "Max": 1.0, "Min": 0.0, "data_name": "a.pt"}, null],
                   {"type": "float", "value": -Infinity}],
    "input_kwargs": {"pair": {"left": {"type": "mindspore.Tensor", "dtype": "BFloat16", "shape": []}},
                     "dim": [{"type": "int", "value": 1}]},
    "output": [{"y": {"type": "torch.Tensor", "dtype": "torch.later", "shape": [3]}}, {}]}}})");
  ASSERT_EQ(table.calls.size(), 1u);
  const CallRecord& call = table.calls[0];
  ASSERT_EQ(call.inputs.size(), 2u);
  EXPECT_EQ(call.inputs[0].path, "input_args.0.0");
  EXPECT_EQ(call.inputs[0].file, "a.pt");
  EXPECT_EQ(call.inputs[1].path, "input_kwargs.pair.left");
  EXPECT_EQ(call.inputs[1].dtype, DType::kBFloat16);
  EXPECT_EQ(call.inputs[1].count, 1u);
  ASSERT_EQ(call.outputs.size(), 1u);
  EXPECT_EQ(call.outputs[0].path, "output.0.y");
  EXPECT_EQ(call.outputs[0].dtype_text, "torch.later");
  ASSERT_EQ(call.attributes.size(), 3u);
  EXPECT_EQ(call.attributes[0], (Attribute{"input_args.0.1", "None"}));
  EXPECT_EQ(call.attributes[1], (Attribute{"input_args.1", "-Infinity"}));
  EXPECT_EQ(call.attributes[2], (Attribute{"dim", "[1]"}));
}

std::string tensor(double max) {
  return "{\"type\": \"torch.Tensor\", \"dtype\": \"torch.float32\", \"shape\": [8], \"Max\": " +
         (std::isnan(max) ? std::string("NaN") : std::to_string(max)) + ", \"Min\": -1.0}";
}

std::string operation(const std::string& op, int peer, double max) {
  return R"({"class_type": "torch.distributed.P2POp", "tensor": )" + tensor(max) + R"(, "op": ")" + op + R"(", "peer": )" +
         std::to_string(peer) + R"(, "tag": 3, "group_id": "2a3070ce"})";
}

std::vector<std::string> paths(const std::vector<Record>& records) {
  std::vector<std::string> out;
  for (const Record& record : records) out.push_back(record.path);
  return out;
}

/// A value that is not there yet is no value of the training.
TEST(Table, ABatchOfExchangesIsOneCallForEach) {
  for (const char* argument : {"\"input_args\": [[", "\"input_kwargs\": {\"p2p_op_list\": ["}) {
    const bool named = std::string(argument).find("kwargs") != std::string::npos;
    const Table table = read_table(R"({"data": {"Distributed.batch_isend_irecv.0.forward": {)" + std::string(argument) +
                                   operation("isend", 2, 5) + ", " + operation("irecv", 0, NAN) + ", " + operation("irecv", 2, NAN) +
                                   (named ? "]}" : "]]") + R"(, "output": [[)" + operation("isend", 2, 5) + ", " +
                                   operation("irecv", 0, NAN) + ", " + operation("irecv", 2, 7) +
                                   R"(]]}, "Torch.relu.0.forward": {"input_args": [], "output": []}}})");
    ASSERT_EQ(table.calls.size(), 4u) << table.problem;
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(table.calls[i].name, "Distributed.batch_isend_irecv.0.forward");
    const CallRecord &sends = table.calls[0], &early = table.calls[1], &receives = table.calls[2];
    EXPECT_EQ(sends.op, "isend");
    EXPECT_EQ(sends.inputs.size(), 1u);
    EXPECT_EQ(sends.outputs.size(), 1u);
    EXPECT_EQ(sends.attributes, (std::vector<Attribute>{{"dst", "2"}, {"tag", "3"}, {"group", "2a3070ce"}}));
    EXPECT_EQ(early.op, "irecv");
    EXPECT_TRUE(early.has_inputs && early.inputs.empty());
    EXPECT_TRUE(early.outputs.empty()) << "what it had before is recorded where the value has not arrived";
    EXPECT_EQ(early.attributes[0], (Attribute{"src", "0"}));
    EXPECT_TRUE(receives.inputs.empty());
    EXPECT_EQ(paths(receives.outputs), std::vector<std::string>{"output.0.2.tensor"});
    EXPECT_EQ(receives.outputs[0].max, 7);
  }
}

TEST(Table, WhatAnExchangeOnlyWritesToIsNoInput) {
  const auto inputs_of = [](const std::string& call, const std::string& sides) {
    return paths(read_table("{\"data\": {\"" + call + ".0.forward\": {" + sides + ", \"output\": []}}}").calls.at(0).inputs);
  };
  const std::string two = R"("input_args": [)" + tensor(1) + ", " + tensor(2) + "]";
  const std::string listed = R"("input_args": [[)" + tensor(1) + ", " + tensor(1) + "], " + tensor(2) + "]";
  const std::vector<std::string> second = {"input_args.1"}, both = {"input_args.0", "input_args.1"};
  for (const char* op : {"all_gather_into_tensor", "reduce_scatter_tensor", "all_to_all_single", "_all_gather_base", "scatter"})
    EXPECT_EQ(inputs_of(std::string("Distributed.") + op, two), second) << op;
  EXPECT_EQ(inputs_of("Distributed.all_gather", listed), second);
  EXPECT_EQ(inputs_of("Distributed.gather", two), std::vector<std::string>{"input_args.0"});
  EXPECT_EQ(inputs_of("Distributed.all_reduce", two), both);
  EXPECT_EQ(inputs_of("MintDistributed.all_gather_into_tensor", two), second);
  EXPECT_EQ(inputs_of("Torch.scatter", two), both) << "another call of that name";
  const std::string named =
      R"("input_args": [], "input_kwargs": {"output_tensor": )" + tensor(1) + R"(, "input_tensor": )" + tensor(2) + "}";
  EXPECT_EQ(inputs_of("Distributed.all_gather_into_tensor", named), std::vector<std::string>{"input_kwargs.input_tensor"});
  EXPECT_EQ(inputs_of("Distributed.recv", R"("input_args": [)" + tensor(1) + "]"), std::vector<std::string>());
}

// All arguments are recorded again as outputs.
TEST(Table, WhatAnExchangeOnlyReadsIsNoOutput) {
  const auto outputs_of = [](const std::string& call, const std::string& outputs) {
    return paths(read_table("{\"data\": {\"" + call + ".0.forward\": {\"input_args\": [], \"output\": [" + outputs + "]}}}").calls.at(0).outputs);
  };
  const std::string two = tensor(1) + ", " + tensor(2), listed = "[" + tensor(1) + ", " + tensor(1) + "], " + tensor(2);
  const std::vector<std::string> first = {"output.0"}, list = {"output.0.0", "output.0.1"}, both = {"output.0", "output.1"};
  for (const char* op : {"all_gather_into_tensor", "reduce_scatter_tensor", "all_to_all_single", "scatter"})
    EXPECT_EQ(outputs_of(std::string("Distributed.") + op, two), first) << op;
  EXPECT_EQ(outputs_of("Distributed.all_gather", listed), list);
  EXPECT_EQ(outputs_of("Distributed.all_gather", two), both) << "these are what was gathered";
  EXPECT_EQ(outputs_of("Distributed.gather", two), std::vector<std::string>{"output.1"});
  EXPECT_EQ(outputs_of("Distributed.all_reduce", two), both);
  EXPECT_EQ(outputs_of("Torch.split", two), both);
}

}  // namespace
}  // namespace msdbg::msprobe
