// Overflow records of an Ascend run.
#include <gtest/gtest.h>

#include "dump/dump_support.h"
#include "support/container_file.h"

namespace msdbg::testing {
namespace {

constexpr const char* kRecord = R"({
  "DHA Atomic Add": {"model_id": 0, "stream_id": 0, "task_id": 0, "task_type": 0, "pc_start": "0x0", "para_base": "0x0", "status": 0},
  "L2 Atomic Add": {"model_id": 0, "stream_id": 0, "task_id": 0, "task_type": 0, "pc_start": "0x0", "para_base": "0x0", "status": 0},
  "AI Core": {"model_id": 2, "stream_id": 7, "task_id": 12, "task_type": 0, "pc_start": "0x10", "para_base": "0x20",
              "kernel_code": "0x30", "block_idx": 1, "status": 32}})";

class Overflow : public ::testing::Test {
 protected:
  void SetUp() override {
    dir_.npy(step_ + "MatMul.Default_MatMul-op1.12.7.100.output.0.ND.float32.npy", {1});
    dir_.npy(step_ + "Add.Default_Add-op2.13.7.101.output.0.ND.float32.npy", {1});
    dir_.npy("rank_0/Net/0/4/Add.Default_Add-op2.13.7.201.output.0.ND.float32.npy", {1});
  }
  Result<bool> flag(Session& session, const std::string& node, int64_t step = 3) {
    return session.operator_overflow(id_of(session, node, step));
  }

  TempDir dir_;
  const std::string step_ = "rank_0/Net/0/3/";
};

TEST_F(Overflow, WithoutRecordsItIsNotKnown) {
  auto session = open(dir_.path());
  EXPECT_EQ(flag(*session, "Default_MatMul-op1").status().code(), Code::kUnsupported);
  EXPECT_NE(flag(*session, "Default_MatMul-op1").status().message().find("did not record"), std::string::npos);
}

TEST_F(Overflow, TheNumbersInTheRecordNameTheKernel) {
  // The numbers in the record's own name belong to a pseudo operator and must not be used.
  dir_.text(step_ + "Opdebug.Node_OpDebug.13.7.300.output.0.json", kRecord);
  auto session = open(dir_.path());
  EXPECT_TRUE(flag(*session, "Default_MatMul-op1").value());
  EXPECT_FALSE(flag(*session, "Default_Add-op2").value());
  EXPECT_FALSE(flag(*session, "Default_Add-op2", 4).value());
}

TEST_F(Overflow, TheKernelsAreListedInTheOrderOfExecution) {
  dir_.text(step_ + "Opdebug.Node_OpDebug.1.1.300.output.0.json", R"({"AI Core": {"stream_id": 7, "task_id": 13, "status": 1}})");
  dir_.text(step_ + "Opdebug.Node_OpDebug.1.1.301.output.0.json", kRecord);
  dir_.text(step_ + "Opdebug.Node_OpDebug.1.1.302.output.0.json", R"({"L2 Atomic Add": {"stream_id": 9, "task_id": 99, "status": 1}})");
  auto session = open(dir_.path());
  const Result<std::vector<OverflowRecord>> records = session->overflow_records(0, 3);
  ASSERT_TRUE(records.ok());
  ASSERT_EQ(records->size(), 3u);
  EXPECT_EQ(session->node(*(*records)[0].tensor).name, "Default_MatMul-op1");
  EXPECT_EQ((*records)[0].unit, "AI Core");
  EXPECT_EQ(session->node(*(*records)[1].tensor).name, "Default_Add-op2");
  // No file of the step has these numbers.
  EXPECT_FALSE((*records)[2].tensor);
  EXPECT_EQ((*records)[2].task, 99);
  EXPECT_EQ((*records)[2].unit, "L2 Atomic Add");
  EXPECT_TRUE(session->overflow_records(0, 4)->empty());
  EXPECT_TRUE(session->overflow_records(1, 3)->empty());
}

TEST_F(Overflow, RecordsMayLieInDebugFiles) {
  dir_.text("rank_0/debug_files/3/Opdebug.Node_OpDebug.1.1.300.output.0.json", kRecord);
  auto session = open(dir_.path());
  EXPECT_TRUE(flag(*session, "Default_MatMul-op1").value());
  EXPECT_FALSE(flag(*session, "Default_Add-op2").value());
}

/// The detector's block; a unit that raised no flag has zeros.
std::string record_block(int unit, uint64_t task, uint64_t stream, uint64_t status, size_t bytes = 2048) {
  std::vector<uint64_t> block(bytes / 8);
  const size_t numbers[] = {0, 16, 32}, states[] = {64, 96, 130};
  block[numbers[unit]] = 2;
  block[numbers[unit] + 1] = stream;
  block[numbers[unit] + 2] = task;
  if (states[unit] < block.size()) block[states[unit]] = status;
  return test::plain_bytes(block);
}

std::string record_container(const std::string& block) {
  test::StoredContainer container;
  container.outputs = {{4, test::kFormatNd, {static_cast<int64_t>(block.size())}, std::nullopt, block}};
  container.op_name = "Node_OpDebug";
  return container.bytes();
}

TEST_F(Overflow, ContainersOfEveryUnitNameTheKernel) {
  for (int unit = 0; unit < 3; ++unit) {
    dir_.text(step_ + "Opdebug.Node_OpDebug.13.7.300", record_container(record_block(unit, 12, 7, 32)));
    auto session = open(dir_.path());
    EXPECT_TRUE(flag(*session, "Default_MatMul-op1").value()) << unit;
    EXPECT_FALSE(flag(*session, "Default_Add-op2").value()) << unit;
  }
}

TEST_F(Overflow, ShorterRecordsOfOtherDriversAreEnough) {
  dir_.text("rank_0/debug_files/3/Opdebug.Node_OpDebug.1.1.300", record_container(record_block(2, 12, 7, 0, 512)));
  auto session = open(dir_.path());
  EXPECT_TRUE(flag(*session, "Default_MatMul-op1").value());
  EXPECT_FALSE(flag(*session, "Default_Add-op2").value());
}

TEST_F(Overflow, ADamagedContainerLeavesTheQuestionOpen) {
  for (const std::string& bytes : {std::string("container"), record_container(record_block(0, 12, 7, 1, 256)), record_container("")}) {
    dir_.text(step_ + "Opdebug.Node_OpDebug.1.1.300", bytes);
    auto session = open(dir_.path());
    const Result<bool> answer = flag(*session, "Default_Add-op2");
    ASSERT_FALSE(answer.ok());
    EXPECT_EQ(answer.status().code(), Code::kUnsupported);
    EXPECT_NE(answer.status().message().find("cannot be read"), std::string::npos);
  }
}

TEST_F(Overflow, KernelsOfAnAsynchronousDumpAreFound) {
  test::StoredContainer kernel;
  kernel.outputs = {{test::kTypeFloat, test::kFormatNd, {1}, std::vector<int64_t>{1}, test::plain_bytes(std::vector<float>{1})}};
  dir_.text("rank_0/Net/0/3/Mul.Default_Mul-op3.21.7.100", kernel.bytes());
  dir_.text("rank_0/debug_files/3/Opdebug.Node_OpDebug.1.1.300", record_container(record_block(2, 21, 7, 1)));
  auto session = open(dir_.path());
  EXPECT_TRUE(flag(*session, "Default_Mul-op3").value());
}

TEST_F(Overflow, ADamagedRecordLeavesTheQuestionOpen) {
  dir_.text(step_ + "Opdebug.Node_OpDebug.1.1.300.output.0.json", "{\"AI Core\": {\"task_");
  auto session = open(dir_.path());
  const Result<bool> answer = flag(*session, "Default_Add-op2");
  ASSERT_FALSE(answer.ok());
  EXPECT_NE(answer.status().message().find("cannot be read"), std::string::npos);
}

}  // namespace
}  // namespace msdbg::testing
