// Files with one tensor in the order of the device, as a synchronous dump without `trans_flag` and a failed conversion leave them.
#include <gtest/gtest.h>

#include <numeric>

#include "dump/dump_support.h"
#include "support/container_file.h"

namespace msdbg::testing {
namespace {

class DeviceFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    dir_.text("rank_0/graphs/ms_output_trace_code_graph_0.pb",
              graph_pb("g", "0", {"x"}, {{"Default/MatMul-op1", "MatMul", {"x"}, 43, {20, 30}},
                                         {"Default/Conv2D-op2", "Conv2D", {"x"}, 43, {2, 3, 4, 5}}}));
  }
  /// The header's shape, and the bytes of another one.
  void put(const std::string& name, const Shape& header, const std::string& bytes) {
    const std::vector<std::byte> head = npy_head(DType::kFloat32, header);
    dir_.text("rank_0/Net/0/3/" + name, std::string(reinterpret_cast<const char*>(head.data()), head.size()) + bytes);
  }
  static std::vector<float> values(size_t count) {
    std::vector<float> out(count);
    std::iota(out.begin(), out.end(), 1.0f);
    return out;
  }
  void expect_counted(const std::string& node, size_t count, const Shape& shape, const std::string& format) {
    auto session = open(dir_.path());
    const std::vector<float> expected = values(count);
    EXPECT_EQ(elements(*session, node, 3), std::vector<double>(expected.begin(), expected.end()));
    const Result<TensorInfo> info = session->describe(id_of(*session, node, 3));
    EXPECT_EQ(info->shape, shape);
    EXPECT_EQ(info->format, format);
    EXPECT_EQ(info->note, "");
    EXPECT_TRUE(session->inspect().problems.empty() || !reports(*session, ".npy", "device format"));
  }

  TempDir dir_;
  const test::DeviceMemory matrix_ = test::fractal_nz({20, 30}, 16);
  const test::DeviceMemory image_ = test::device_memory("NC1HWC0", {2, 3, 1, 4, 5, false}, 16);
};

TEST_F(DeviceFiles, AHeaderWithTheTensorsShapeIsEnough) {
  put("MatMul.Default_MatMul-op1.1.0.100.output.0.FRACTAL_NZ.float32.npy", {20, 30}, test::device_bytes(matrix_, values(600), NAN));
  expect_counted("Default/MatMul-op1", 600, {20, 30}, "ND");
}

TEST_F(DeviceFiles, WithoutAGraphPaddingProvesIt) {
  std::filesystem::remove_all(dir_.at("rank_0/graphs"));
  put("MatMul.Default_MatMul-op1.1.0.100.output.0.FRACTAL_NZ.float32.npy", {20, 30}, test::device_bytes(matrix_, values(600), NAN));
  expect_counted("Default_MatMul-op1", 600, {20, 30}, "ND");
}

TEST_F(DeviceFiles, AHeaderWithTheDevicesShapeNeedsTheGraph) {
  put("Conv2D.Default_Conv2D-op2.1.0.100.output.0.NC1HWC0.float32.npy", image_.shape, test::device_bytes(image_, values(120), NAN));
  expect_counted("Default/Conv2D-op2", 120, {2, 3, 4, 5}, "NCHW");
  std::filesystem::remove_all(dir_.at("rank_0/graphs"));
  auto session = open(dir_.path());
  EXPECT_EQ(problem_of(*session, id_of(*session, "Default_Conv2D-op2", 3)).message(),
            "device format NC1HWC0: its elements are not in the tensor's order");
}

TEST_F(DeviceFiles, BytesThatDoNotFitAreNotConverted) {
  put("MatMul.Default_MatMul-op1.1.0.100.output.0.FRACTAL_NZ.float32.npy", {20, 30},
      test::device_bytes(matrix_, values(600), NAN) + "four");
  put("Conv2D.Default_Conv2D-op2.1.0.100.output.0.FRACTAL_ZN_LSTM.float32.npy", {120}, test::plain_bytes(values(120)));
  auto session = open(dir_.path());
  for (const char* node : {"Default/MatMul-op1", "Default/Conv2D-op2"}) {
    EXPECT_EQ(problem_of(*session, id_of(*session, node, 3)).code(), Code::kUnsupported) << node;
  }
}

TEST_F(DeviceFiles, ACutFileIsDamagedAndNotOnlyUnsupported) {
  const std::string name = "MatMul.Default_MatMul-op1.1.0.100.output.0.FRACTAL_NZ.float32.npy";
  put(name, {20, 30}, "short");
  auto session = open(dir_.path());
  EXPECT_EQ(problem_of(*session, id_of(*session, "Default/MatMul-op1", 3)).code(), Code::kCorrupt);
  EXPECT_TRUE(reports(*session, name, "cut off"));
}

}  // namespace
}  // namespace msdbg::testing
