// Tensors that cannot be judged: each gets a reason, the others are unaffected.
#include <cmath>
#include <stdexcept>

#include "check_support.h"

namespace msdbg {
namespace {

using testing::checked;
using testing::f32;
using testing::fake_graph;
using testing::FakeSession;
using testing::hits;
using testing::Lines;
using testing::open_questions;
using testing::watch;

/// Two operators, both broken.
struct Two : FakeSession {
  Two() : FakeSession(fake_graph({{"a", "Add"}, {"b", "Add", {"a"}}})) {
    put("a", 0, f32({NAN}));
    put("b", 0, f32({NAN}));
  }
};

TEST(CheckFailure, OfOneReadLeavesTheOthersAlone) {
  Two session;
  session.set_read_error(session.id("a", 0), Status(Code::kIoError, "a.npy shrank"));
  const CheckResult result = checked(session, {watch(1, "**", "TO")});
  EXPECT_EQ(hits(session, result), (Lines{"step 0 b:output:0 tensor_overflow"}));
  EXPECT_EQ(open_questions(session, result), (Lines{"step 0 a:output:0 tensor_overflow: a.npy shrank [0]"}));
  EXPECT_EQ(result.coverage.checked, 1u);
}

TEST(CheckFailure, AProblemOfTheFileIsTheReason) {
  Two session;
  session.set_problem(session.id("a", 0), Status(Code::kUnsupported, "device format NC1HWC0"));
  EXPECT_EQ(open_questions(session, checked(session, {watch(1, "**", "TO")})),
            (Lines{"step 0 a:output:0 tensor_overflow: device format NC1HWC0 [0]"}));
}

TEST(CheckFailure, AFileThatVanishedHasNoValue) {
  Two session;
  session.set_open_error(session.id("a", 0), Status(Code::kNotFound, "a.npy is gone"));
  EXPECT_EQ(open_questions(session, checked(session, {watch(1, "**", "TO")})),
            (Lines{"step 0 a:output:0 tensor_overflow: a.npy is gone [32]"}));
}

TEST(CheckFailure, ComplexTensorsAreNotChecked) {
  Two session;
  session.put("a", 0, TensorBuffer::create(DType::kComplex64, {1}, std::vector<std::byte>(8)).value());
  EXPECT_EQ(open_questions(session, checked(session, {watch(1, "=a", "TO")})),
            (Lines{"step 0 a:output:0 tensor_overflow: complex64 elements are not evaluated [0]"}));
}

TEST(CheckFailure, AnExceptionInAWorkerBecomesAReason) {
  Two session;
  session.set_read_hook([&](const TensorId& id) {
    if (session.node(id).name == "a") throw std::runtime_error("planted");
  });
  const CheckResult result = checked(session, {watch(1, "**", "TO")});
  EXPECT_EQ(open_questions(session, result), (Lines{"step 0 a:output:0 tensor_overflow: planted [0]"}));
  EXPECT_EQ(hits(session, result), (Lines{"step 0 b:output:0 tensor_overflow"}));
}

/// A session with a defect: its description of "a" does not match its elements, and "b" has a node that is in no graph.
struct Broken : Two {
  Result<OpenTensor> open(const TensorId& id) override {
    Result<OpenTensor> opened = Two::open(id);
    if (node(id).name == "a") return OpenTensor(described_as_double(opened->info), std::move(opened->reader));
    return opened;
  }
  Result<bool> operator_overflow(const TensorId& id) override {
    TensorId other = id;
    other.node = 77;
    return node(other).op == "Add";
  }
  static TensorInfo described_as_double(TensorInfo info) {
    info.dtype = DType::kFloat64;
    return info;
  }
};

TEST(CheckFailure, ADefectEndsTheQuestionNotTheSession) {
  Broken session;
  const TensorId a = session.id("a", 0), b = session.id("b", 0);
  // In a worker: the tensor is not checked, the others are.
  const CheckResult result = checked(session, {watch(1, "**", "TO")}, {.threads = 2});
  EXPECT_EQ(hits(session, result), (Lines{"step 0 b:output:0 tensor_overflow"}));
  ASSERT_EQ(result.not_checked.size(), 1u);
  EXPECT_TRUE(result.not_checked[0].reason.starts_with("internal error: ")) << result.not_checked[0].reason;
  EXPECT_TRUE(result.not_checked[0].reason.ends_with("please report it")) << result.not_checked[0].reason;
  // On the owner's thread.
  const std::vector<Watchpoint> flags = {watch(1, "=b", "OO")};
  EXPECT_EQ(check(session, flags, {.threads = 2}).status().code(), Code::kInternal);
  EXPECT_EQ(session.load(a).status().code(), Code::kInternal);
  EXPECT_EQ(session.stats(a).status().code(), Code::kInternal);
  EXPECT_EQ(session.stats(b, a, {}).status().code(), Code::kInternal);
  EXPECT_TRUE(session.stats(b).ok());
}

TEST(CheckFailure, OutOfMemoryHasItsCode) {
  Two session;
  session.set_read_hook([](const TensorId&) { throw std::bad_alloc(); });
  EXPECT_EQ(open_questions(session, checked(session, {watch(1, "=a", "TO")})),
            (Lines{"step 0 a:output:0 tensor_overflow: out of memory [8]"}));
}

// ---- statistics without elements -----------------------------------------------------------------------------------

TEST(CheckStatisticsOnly, KnownFieldsDecideTheOthersAreOpen) {
  Two session;
  Stats row;
  row.dtype = DType::kFloat32;
  row.known = kStatCount | kStatMin | kStatMax | kStatNan | kStatPosInf | kStatNegInf;
  row.count = 3;
  row.min = 0;
  row.max = 9;
  session.set_statistics_only(session.id("a", 0), row, {3});
  const CheckResult result = checked(
      session, {watch(1, "=a", "TL max_gt=8"), watch(2, "=a", "TO"), watch(3, "=a", "TZ"), watch(4, "=a", "WNC")});
  EXPECT_EQ(hits(session, result), (Lines{"step 0 a:output:0 tensor_too_large"}));
  EXPECT_EQ(result.hits[0].shape, (Shape{3}));
  EXPECT_EQ(open_questions(session, result),
            (Lines{"step 0 a:output:0 tensor_all_zero: no tensor data (statistics only) [0]",
                   "step 0 a:output:0 weight_not_changed: no tensor data (statistics only) [0]"}));
}

// ---- values that were not dumped -----------------------------------------------------------------------------------

TEST(CheckMissing, IsReportedOnlyWhenAskedFor) {
  FakeSession session(fake_graph({{"a", "Add"}, {"b", "TopK", {"a"}, 2}}));
  session.put("a", 0, f32({1}));
  session.put("b", 1, f32({1}));
  EXPECT_TRUE(checked(session, {watch(1, "**", "TO")}).not_checked.empty());
  const CheckResult result = checked(session, {watch(1, "**", "TO")}, {.report_missing = true});
  EXPECT_EQ(open_questions(session, result), (Lines{"step 0 b:output:0 tensor_overflow: no stored value [32]",
                                                    "step 0 b:output:1 tensor_overflow: no stored value [32]",
                                                    "step 1 a:output:0 tensor_overflow: no stored value [32]",
                                                    "step 1 b:output:1 tensor_overflow: no stored value [32]"}));
  EXPECT_EQ(result.coverage.tensors, 6u);
  EXPECT_EQ(result.coverage.not_checked, 4u);
}

TEST(CheckMissing, StructuralNodesAreNeverMissing) {
  FakeSession session(fake_graph({{"a", "Add"}, {"d", "Depend", {"a"}}}));
  session.put("a", 0, f32({1}));
  EXPECT_TRUE(checked(session, {watch(1, "**", "TO")}, {.report_missing = true}).not_checked.empty());
}

TEST(CheckMissing, AnEmptyTensorIsOneToo) {
  FakeSession session(fake_graph({{"a", "Add"}}));
  session.put("a", 0, f32({}));
  const CheckResult result = checked(session, {watch(1, "**", "TO")}, {.report_missing = true});
  EXPECT_EQ(open_questions(session, result),
            (Lines{"step 0 a:output:0 tensor_overflow: no stored value (the tensor is empty) [32]"}));
}

// ---- conditions that a dump cannot answer --------------------------------------------------------------------------

TEST(CheckFlags, OperatorOverflowComesFromTheRunNotFromElements) {
  Two session;
  session.set_overflow(session.id("a", 0), true);
  session.put("a", 0, f32({1}));
  const CheckResult result = checked(session, {watch(1, "**", "OO")});
  EXPECT_EQ(hits(session, result), (Lines{"step 0 a:output:0 operator_overflow"}));
  EXPECT_EQ(result.hits[0].stats.count, 1u);
  EXPECT_EQ(open_questions(session, result),
            (Lines{"step 0 b:output:0 operator_overflow: the run did not record overflow flags [0]"}));
  EXPECT_EQ(result.coverage.bytes, 0u);
}

TEST(CheckFlags, InitialWeightsAreNotInADump) {
  FakeSession session(fake_graph({{"Default/w", "Parameter"}}));
  session.put("Default/w", 0, f32({0}));
  const CheckResult result = checked(session, {watch(1, "**", "WI")});
  EXPECT_EQ(open_questions(session, result),
            (Lines{"step 0 Default/w:output:0 weight_initialization: initial values are not in a dump [0]"}));
  EXPECT_EQ(session.reads(), 0u);
}

TEST(CheckFlags, InitialWeightsAreJudgedInATrainingAndInItsRecordingBeforeTheFirstStep) {
  for (const SessionKind kind : {SessionKind::kLive, SessionKind::kRecording}) {
    FakeSession session(fake_graph({{"Default/w", "Parameter"}}));
    session.mutable_info().kind = kind;
    session.put("Default/w", 0, f32({0}));
    session.put("Default/w", 1, f32({0}));
    const CheckResult result = checked(session, {watch(1, "**", "WI")});
    EXPECT_EQ(hits(session, result), (Lines{"step 0 Default/w:output:0 weight_initialization"}));
    EXPECT_EQ(result.not_checked.size(), 1u);
  }
}

}  // namespace
}  // namespace msdbg
