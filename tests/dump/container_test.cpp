// Asynchronous dumps of Ascend: containers with all tensors of a kernel.
#include <gtest/gtest.h>

#include <numeric>

#include "dump/dump_support.h"
#include "msdbg/check.h"
#include "msdbg/located.h"
#include "msdbg/shared.h"
#include "session/dump/container_value.h"
#include "support/container_file.h"

namespace msdbg::testing {
namespace {

using test::StoredContainer;
using test::StoredTensor;

std::vector<float> counting(size_t count) {
  std::vector<float> out(count);
  std::iota(out.begin(), out.end(), 1.0f);
  return out;
}

StoredTensor plain_floats(std::vector<int64_t> shape, const std::vector<float>& values) {
  return {test::kTypeFloat, test::kFormatNd, shape, shape, test::plain_bytes(values)};
}

class Containers : public ::testing::Test {
 protected:
  void put(const std::string& name, const StoredContainer& container) { dir_.text(step_ + name, container.bytes()); }
  std::unique_ptr<Session> open_all() { return open(dir_.path()); }
  /// The only output of the only kernel.
  dump::ContainerValue value_of(const StoredTensor& tensor) {
    StoredContainer container;
    container.outputs = {tensor};
    dir_.text("one", container.bytes());
    return dump::open_container_value(dir_.at("one"), {Io::kOutput, 0});
  }
  template <typename T>
  static std::vector<T> read(dump::ContainerValue& value) {
    if (!value.elements) return {};
    std::vector<T> out(value.elements->count());
    EXPECT_TRUE(value.elements->read(0, std::as_writable_bytes(std::span(out))).ok());
    return out;
  }

  TempDir dir_;
  const std::string step_ = "rank_0/Net/0/3/";
};

TEST_F(Containers, EachInputAndOutputIsAValue) {
  StoredContainer container;
  container.inputs = {plain_floats({2}, {1, 2}), plain_floats({3}, {3, 4, 5})};
  container.outputs = {plain_floats({1, 4}, {6, 7, 8, 9}), plain_floats({}, {10})};
  put("MatMul.Default_net_MatMul-op1.12.7.1700000000000000", container);
  auto session = open_all();
  EXPECT_EQ(names(*session, 3), (std::vector<std::string>{"Default_net_MatMul-op1:input:0", "Default_net_MatMul-op1:input:1",
                                                          "Default_net_MatMul-op1:output:0", "Default_net_MatMul-op1:output:1"}));
  EXPECT_EQ(elements(*session, "Default_net_MatMul-op1:input:1", 3), (std::vector<double>{3, 4, 5}));
  EXPECT_EQ(elements(*session, "Default_net_MatMul-op1:output:0", 3), (std::vector<double>{6, 7, 8, 9}));
  EXPECT_EQ(elements(*session, "Default_net_MatMul-op1:output:1", 3), (std::vector<double>{10}));
  const SessionReport report = session->inspect();
  EXPECT_EQ(report.device_files, 0u);
  EXPECT_EQ(report.tensor_files, 4u);
}

TEST_F(Containers, BlockedElementsComeInTheTensorsOrder) {
  const test::HostShape host{2, 20, 1, 3, 5, false};
  const std::vector<float> values = counting(600);
  StoredContainer container;
  const auto memory = test::device_memory("NC1HWC0", host, 16);
  container.outputs = {{test::kTypeFloat, test::kFormatNc1hwc0, memory.shape, host.list(), test::device_bytes(memory, values, NAN)}};
  const auto matrix = test::fractal_nz({20, 30}, 16);
  container.inputs = {{test::kTypeFloat, test::kFormatFractalNz, matrix.shape, std::vector<int64_t>{20, 30},
                       test::device_bytes(matrix, values, NAN)}};
  put("Conv2D.Default_Conv2D-op1.12.7.1700000000000000", container);
  auto session = open_all();
  EXPECT_EQ(elements(*session, "Default_Conv2D-op1:output:0", 3), std::vector<double>(values.begin(), values.end()));
  EXPECT_EQ(elements(*session, "Default_Conv2D-op1:input:0", 3), std::vector<double>(values.begin(), values.end()));
  const Result<TensorInfo> info = session->describe(id_of(*session, "Default_Conv2D-op1:output:0", 3));
  EXPECT_EQ(info->shape, (Shape{2, 20, 3, 5}));
  EXPECT_EQ(info->format, "NCHW");
  EXPECT_EQ(session->stats(id_of(*session, "Default_Conv2D-op1:input:0", 3))->nan_count, 0u);
}

TEST_F(Containers, EveryTypeIsReadOrNamed) {
  const auto type_of = [&](uint64_t type, size_t bytes) {
    return value_of({type, test::kFormatNd, {4}, std::vector<int64_t>{4}, std::string(bytes, '\x21')}).content;
  };
  const std::map<uint64_t, std::pair<DType, size_t>> types = {
      {1, {DType::kFloat32, 4}}, {2, {DType::kFloat16, 2}}, {3, {DType::kInt8, 1}},   {4, {DType::kUInt8, 1}},    {5, {DType::kInt16, 2}},
      {6, {DType::kUInt16, 2}},  {7, {DType::kInt32, 4}},   {8, {DType::kInt64, 8}},  {9, {DType::kUInt32, 4}},   {10, {DType::kUInt64, 8}},
      {11, {DType::kBool, 1}},   {12, {DType::kFloat64, 8}}, {27, {DType::kBFloat16, 2}}};
  for (const auto& [number, type] : types) {
    const FileContent content = type_of(number, 4 * type.second);
    EXPECT_TRUE(content.problem.ok()) << number << content.problem.message();
    EXPECT_EQ(content.dtype, type.first) << number;
    EXPECT_EQ(content.bytes, 4 * type.second);
  }
  EXPECT_EQ(type_of(16, 32).problem.message(), "complex64 elements are not evaluated");
  EXPECT_EQ(type_of(18, 4).problem.message(), "QINT8 elements are not evaluated");
  EXPECT_EQ(type_of(99, 4).problem.message(), "type 99 elements are not evaluated");
}

TEST_F(Containers, FourBitIntegersAreUnpacked) {
  auto value = value_of({test::kTypeInt4, test::kFormatNd, {5}, std::vector<int64_t>{5}, "\x21\xF8\x07"});
  EXPECT_EQ(value.content.dtype, DType::kInt8);
  EXPECT_EQ(read<int8_t>(value), (std::vector<int8_t>{1, 2, -8, -1, 7}));
  // Read from the middle of a byte.
  std::vector<int8_t> part(3);
  ASSERT_TRUE(value.elements->read(1, std::as_writable_bytes(std::span(part))).ok());
  EXPECT_EQ(part, (std::vector<int8_t>{2, -8, -1}));
}

TEST_F(Containers, ComplexElementsAreConvertedForFiles) {
  const auto memory = test::fractal_nz({3, 5}, 16);
  std::vector<uint64_t> values(15);
  std::iota(values.begin(), values.end(), 100);
  auto value = value_of({test::kTypeComplex64, test::kFormatFractalNz, memory.shape, std::vector<int64_t>{3, 5},
                         test::device_bytes(memory, values, uint64_t{7})});
  EXPECT_EQ(value.content.problem.code(), Code::kUnsupported);
  EXPECT_EQ(read<uint64_t>(value), values);
}

TEST_F(Containers, GroupsOfAConvolutionComeFromTheSubFormat) {
  const test::HostShape host{8, 3, 1, 2, 2, false};
  auto memory = test::grouped_weights(host, 4, 16);
  memory.shape = {memory.shape[0] * memory.shape[1] * 4, memory.shape[4] / 16, 16, 16};
  auto value = value_of({test::kTypeFloat, test::kFormatFractalZ, memory.shape, host.list(),
                         test::device_bytes(memory, counting(96), -1.0f), 4});
  EXPECT_EQ(read<float>(value), counting(96));
}

TEST_F(Containers, AnUnknownFormatIsShownInTheOrderOfTheDevice) {
  auto lstm = value_of({test::kTypeFloat, test::kFormatZnLstm, {1, 1, 4}, std::vector<int64_t>{3}, test::plain_bytes(counting(4))});
  EXPECT_EQ(lstm.content.shape, (Shape{1, 1, 4}));
  EXPECT_EQ(lstm.format, "FRACTAL_ZN_LSTM");
  EXPECT_TRUE(lstm.device_order);
  EXPECT_EQ(lstm.content.note, "in the order of the device: format FRACTAL_ZN_LSTM cannot be converted");
  EXPECT_EQ(read<float>(lstm), counting(4));
  auto number = value_of({test::kTypeFloat, 77, {4}, std::vector<int64_t>{4}, test::plain_bytes(counting(4))});
  EXPECT_EQ(number.format, "format 77");
  EXPECT_TRUE(number.device_order);
}

TEST_F(Containers, InTheOrderOfTheDeviceOnlyNanAndInfAreJudged) {
  StoredContainer container;
  container.outputs = {{test::kTypeFloat, test::kFormatZnLstm, {1, 1, 4}, std::vector<int64_t>{3},
                        test::plain_bytes(std::vector<float>{1, INFINITY, 3, 0})}};
  put("LSTM.Default_LSTM-op1.12.7.100", container);
  auto session = open_all();
  const auto verdict = [&](const char* condition, std::map<std::string, double, std::less<>> params) {
    Watchpoint watch;
    watch.id = 1;
    watch.on = *Selector::parse("*");
    watch.condition = *make_condition(condition, params);
    return *check(*session, std::span(&watch, 1), {});
  };
  EXPECT_EQ(verdict("tensor_overflow", {}).hits.size(), 1u);
  const CheckResult zeros = verdict("tensor_all_zero", {{"zero_percentage_ge", 20}});
  EXPECT_TRUE(zeros.hits.empty());
  ASSERT_EQ(zeros.not_checked.size(), 1u);
  EXPECT_TRUE(reports(*session, "", "judged for NaN, Inf and overflow only: 1 of the tensors, the first is Default_LSTM-op1:output:0"));
  EXPECT_EQ(zeros.not_checked[0].reason, "the elements are in the order of the device, with its padding: format FRACTAL_ZN_LSTM");
}

TEST_F(Containers, AShapeThatIsNotKnownLeavesTheDevices) {
  auto value = value_of({test::kTypeFloat, test::kFormatNc1hwc0, {1, 1, 1, 1, 16}, std::nullopt, test::plain_bytes(counting(16))});
  EXPECT_EQ(value.content.shape, (Shape{1, 1, 1, 1, 16}));
  EXPECT_TRUE(value.device_order);
  // The runtime marks it by numbers beyond those of a length.
  auto marked = value_of({test::kTypeFloat, test::kFormatNd, {16}, std::vector<int64_t>{-2}, test::plain_bytes(counting(16))});
  EXPECT_EQ(marked.content.shape, Shape{16});
  EXPECT_FALSE(marked.device_order);
}

TEST_F(Containers, SizesThatDisagreeAreNamed) {
  const auto short_one = value_of({test::kTypeFloat, test::kFormatNd, {4}, std::vector<int64_t>{4}, test::plain_bytes(counting(3))});
  EXPECT_EQ(short_one.content.problem.message(), "the container has 12 bytes for output 0, its shape [4] needs 16");
  const auto long_one = value_of({test::kTypeFloat, test::kFormatNd, {4}, std::vector<int64_t>{4}, test::plain_bytes(counting(5))});
  EXPECT_TRUE(long_one.content.problem.ok());
  EXPECT_EQ(long_one.content.note, "the container holds 4 bytes more than the shape needs");
  const auto cut = value_of({test::kTypeFloat, test::kFormatNd, {4}, std::vector<int64_t>{4}, test::plain_bytes(counting(3)), 0, 16});
  EXPECT_EQ(cut.content.problem.message(), "file is cut off: output 0 should have 16 bytes, 12 are there");
  const auto wrapped = value_of({test::kTypeFloat, test::kFormatNd, {INT64_MAX}, std::vector<int64_t>{INT64_MAX}, "", 0, UINT64_MAX});
  EXPECT_EQ(wrapped.content.problem.code(), Code::kCorrupt);
}

TEST_F(Containers, BytesInsideTheDescriptionCount) {
  StoredTensor inside = plain_floats({4}, {1, 2, 3, 4});
  inside.inside = true;
  StoredContainer container;
  container.inputs = {inside};
  container.outputs = {plain_floats({2}, {5, 6})};
  dir_.text("one", container.bytes());
  auto input = dump::open_container_value(dir_.at("one"), {Io::kInput, 0});
  EXPECT_EQ(read<float>(input), (std::vector<float>{1, 2, 3, 4}));
  auto output = dump::open_container_value(dir_.at("one"), {Io::kOutput, 0});
  EXPECT_EQ(read<float>(output), (std::vector<float>{5, 6}));
}

TEST_F(Containers, DamagedOnesAreListedWithTheReason) {
  StoredContainer container;
  container.outputs = {plain_floats({2}, {5, 6})};
  std::string bytes = container.bytes();
  dir_.text(step_ + "Add.Default_Add-op1.1.0.100", std::string("\x10\x27\0\0\0\0\0\0", 8) + bytes);
  dir_.text(step_ + "Sub.Default_Sub-op2.2.0.101", "four");
  bytes[9] = '\xff';
  dir_.text(step_ + "Mul.Default_Mul-op3.3.0.102", bytes);
  auto session = open_all();
  EXPECT_NE(problem_of(*session, id_of(*session, "Default_Add-op1", 3)).message().find("cut off or no container: its description should have 10000"), std::string::npos);
  EXPECT_EQ(problem_of(*session, id_of(*session, "Default_Sub-op2", 3)).message(), "the container is cut off: the file has 4 bytes");
  EXPECT_EQ(problem_of(*session, id_of(*session, "Default_Mul-op3", 3)).message(), "the container has a damaged description");
  EXPECT_EQ(session->inspect().device_files, 3u);
}

TEST_F(Containers, EveryCutIsAProblemAndNoFault) {
  StoredContainer container;
  container.inputs = {plain_floats({2}, {5, 6})};
  container.outputs = {plain_floats({3}, {5, 6, 7})};
  const std::string whole = container.bytes();
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
    dir_.text("one", whole.substr(0, bytes));
    ASSERT_EQ(dump::open_container_value(dir_.at("one"), {Io::kOutput, 0}).content.problem.code(), Code::kCorrupt) << bytes;
  }
}

TEST_F(Containers, AnotherProcessOpensATensorByItsPlace) {
  StoredContainer container;
  container.inputs = {plain_floats({2}, {1, 2})};
  container.outputs = {plain_floats({2}, {3, 4})};
  put("Add.Default_Add-op1.1.0.100", container);
  auto session = open_all();
  for (const char* slot : {"input", "output"}) {
    const TensorId id = id_of(*session, std::string("Default_Add-op1:") + slot + ":0", 3);
    const std::string place = dynamic_cast<SharedFiles&>(*session).location(id);
    Result<OpenTensor> opened = open_located(id, place);
    ASSERT_TRUE(opened.ok() && opened->reader);
    std::vector<float> values(2);
    ASSERT_TRUE(opened->reader->read(0, std::as_writable_bytes(std::span(values))).ok());
    EXPECT_EQ(values[0], slot == std::string("input") ? 1 : 3);
  }
}

TEST_F(Containers, TheIndexKeepsEachTensorOfAContainer) {
  StoredContainer container;
  container.inputs = {plain_floats({2}, {1, 2})};
  container.outputs = {plain_floats({2}, {3, 4}), plain_floats({2}, {5, 6})};
  put("Add.Default_Add-op1.1.0.100", container);
  DumpOptions options;
  options.index = true;
  options.settled = std::chrono::milliseconds(-1000);
  for (int run = 0; run < 2; ++run) {
    auto session = open(dir_.path(), options);
    EXPECT_EQ(session->stats(id_of(*session, "Default_Add-op1:input:0", 3))->max, 2);
    EXPECT_EQ(session->stats(id_of(*session, "Default_Add-op1:output:0", 3))->max, 4);
    EXPECT_EQ(session->stats(id_of(*session, "Default_Add-op1:output:1", 3))->max, 6);
    session.reset();
    EXPECT_TRUE(std::filesystem::exists(dir_.at(".msdbg-index.sqlite")));
  }
}

TEST_F(Containers, ExecutionsOfALoopAreTakenByTheirTime) {
  for (const char* time : {"100", "300", "200"}) {
    StoredContainer container;
    container.outputs = {plain_floats({1}, {std::stof(time)})};
    put(std::string("Add.Default_Add-op1.1.0.") + time, container);
  }
  auto session = open_all();
  EXPECT_EQ(elements(*session, "Default_Add-op1", 3, 1), (std::vector<double>{200}));
  EXPECT_EQ(elements(*session, "Default_Add-op1", 3, 2), (std::vector<double>{300}));
}

TEST_F(Containers, TheFirstReleasesHaveNoStreamInTheName) {
  StoredContainer container;
  container.outputs = {plain_floats({2}, {1, 2})};
  dir_.text("device_0/Net_graph_2/0/5/ReLU.Default_ReLU-op1.12.1700000000000000", container.bytes());
  auto session = open_all();
  ASSERT_EQ(session->info().layout, "V-async");
  EXPECT_EQ(elements(*session, "Default_ReLU-op1", 5), (std::vector<double>{1, 2}));
}

TEST_F(Containers, NodesOfTheGraphGetTheirTensors) {
  dir_.text("rank_0/graphs/ms_output_trace_code_graph_0.pb",
            graph_pb("g", "0", {"x"}, {{"Default/net/MatMul-op1", "MatMul", {"x"}, 43, {2}},
                                       {"Default/net/ReLU-op2", "ReLU", {"Default/net/MatMul-op1"}, 43, {2}}}));
  StoredContainer matmul, relu;
  matmul.outputs = {plain_floats({2}, {1, -2})};
  relu.inputs = {plain_floats({2}, {1, -2})};
  relu.outputs = {plain_floats({2}, {1, 0})};
  put("MatMul.Default_net_MatMul-op1.1.0.100", matmul);
  put("ReLU.Default_net_ReLU-op2.2.0.101", relu);
  auto session = open_all();
  EXPECT_EQ(elements(*session, "Default/net/ReLU-op2:output:0", 3), (std::vector<double>{1, 0}));
  EXPECT_EQ(elements(*session, "Default/net/ReLU-op2:input:0", 3), (std::vector<double>{1, -2}));
}

TEST_F(Containers, CollectiveOperatorsHaveNoInputs) {
  dir_.text("rank_0/graphs/ms_output_trace_code_graph_0.pb",
            graph_pb("g", "0", {"x"}, {{"Default/Mul-op1", "Mul", {"x"}, 43, {2}},
                                       {"Default/AllReduce-op2", "AllReduce", {"Default/Mul-op1"}, 43, {2}}}));
  StoredContainer reduce;
  reduce.outputs = {plain_floats({2}, {1, 0})};
  put("HcomAllReduce.Default_AllReduce-op2.2.0.101", reduce);
  put("Mul.Default_Mul-op1.1.0.100", reduce);
  auto session = open_all();
  TensorId input = id_of(*session, "Default/AllReduce-op2:output:0", 3);
  input.slot = {Io::kInput, 0};
  EXPECT_EQ(session->open(input).status().message(),
            "not dumped: Default/AllReduce-op2:input:0 has no file in step 3 (there are output:0); the Ascend runtime does not record the "
            "inputs of collective operators, it was made by Default/Mul-op1:output:0");
}

class Converted : public Containers {
 protected:
  void SetUp() override {
    container_.outputs = {plain_floats({2, 3}, counting(6)), plain_floats({1}, {7})};
    put("Conv2D.Default_net_Conv2D-op1.12.7.100", container_);
  }
  StoredContainer container_;
};

TEST_F(Converted, FilesOfTheConverterTakeTheContainersPlace) {
  dir_.npy(step_ + "Conv2D.Default_net_Conv2D-op1.12.7.100.output.0.2x3.npy", f32({1, 2, 3, 4, 5, 6}));
  auto session = open_all();
  EXPECT_EQ(names(*session, 3), (std::vector<std::string>{"Default_net_Conv2D-op1:output:0", "Default_net_Conv2D-op1:output:1"}));
  const Result<TensorInfo> info = session->describe(id_of(*session, "Default_net_Conv2D-op1:output:0", 3));
  EXPECT_TRUE(info->source.ends_with("2x3.npy"));
  EXPECT_EQ(info->format, "ND");
}

TEST_F(Converted, NamesThatMindInsightCutAreFound) {
  dir_.text("rank_0/graphs/ms_output_trace_code_graph_0.pb",
            graph_pb("g", "0", {"x"}, {{"Default/conv_bn-op3", "BNTrain", {"x"}, 43, {2}},
                                       {"Default/last_bn-op4", "BNInfer", {"x"}, 43, {2}}}));
  dir_.npy(step_ + "BNTrain.bn-op3.1.2.200.output.0.NCHW.npy", {5});
  auto session = open_all();
  EXPECT_EQ(elements(*session, "Default/conv_bn-op3", 3), (std::vector<double>{5}));
}

TEST_F(Converted, NamesThatBecameEqualAreUncertain) {
  dir_.text("rank_0/graphs/ms_output_trace_code_graph_0.pb",
            graph_pb("g", "0", {"x"}, {{"Default/a_bn-op3", "BN", {"x"}, 43, {2}}, {"Default/b_bn-op3", "BN", {"x"}, 43, {2}}}));
  dir_.npy(step_ + "BN.bn-op3.1.2.200.output.0.NCHW.npy", {5});
  auto session = open_all();
  const Result<TensorInfo> info = session->describe(id_of(*session, "Default/a_bn-op3", 3));
  EXPECT_NE(info->note.find("uncertain pairing: several nodes"), std::string::npos);
}

TEST_F(Converted, WhatTheConverterCouldNotDoIsReported) {
  const std::string list = step_ + "convert_failed_file_list.txt";
  dir_.text(list, "/data/3/Conv2D.Default_net_Conv2D-op1.12.7.100\n\n");
  EXPECT_TRUE(reports(*open_all(), "convert_failed_file_list.txt", "could not convert 1 files; their containers are here and are read"));
  dir_.text(list, "Conv2D.Default_net_Conv2D-op1.12.7.100\nAdd.Default_Add-op9.1.2.3\n");
  EXPECT_TRUE(reports(*open_all(), "convert_failed_file_list.txt", "2 files, and 1 of these containers are not here: Add.Default_Add-op9.1.2.3"));
}

}  // namespace
}  // namespace msdbg::testing
