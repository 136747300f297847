// Overflow records of an Ascend run.
#include <gtest/gtest.h>

#include "dump/dump_support.h"

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

TEST_F(Overflow, RecordsMayLieInDebugFiles) {
  dir_.text("rank_0/debug_files/3/Opdebug.Node_OpDebug.1.1.300.output.0.json", kRecord);
  auto session = open(dir_.path());
  EXPECT_TRUE(flag(*session, "Default_MatMul-op1").value());
  EXPECT_FALSE(flag(*session, "Default_Add-op2").value());
}

TEST_F(Overflow, ContainersAreNotRead) {
  dir_.text(step_ + "Opdebug.Node_OpDebug.1.1.300", "container");
  auto session = open(dir_.path());
  EXPECT_EQ(flag(*session, "Default_MatMul-op1").status().code(), Code::kUnsupported);
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
