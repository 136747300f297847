#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numeric>

#include "session/stats_cache.h"
#include "support/fake_session.h"

namespace msdbg {
namespace {

using testing::f32;
using testing::fake_graph;
using testing::FakeSession;

struct Small : FakeSession {
  Small() : FakeSession(fake_graph({{"Default/w", "Parameter"}, {"Default/relu", "ReLU", {"Default/w"}}})) {}
};

// ---- description and reader belong together ------------------------------------------------------------------------

/// Claims elements of a type and count that its tensor need not have.
class Reader : public ElementReader {
 public:
  Reader(DType dtype, uint64_t count) : ElementReader(dtype, count) {}

 private:
  Status fill(uint64_t, std::span<std::byte>) override { return {}; }
};

TensorInfo described(DType dtype, Shape shape) {
  TensorInfo info;
  info.dtype = dtype;
  info.count = element_count(shape).value();
  info.shape = std::move(shape);
  return info;
}

TEST(OpenTensor, OfAnotherTypeCountOrShapeCannotBeMade) {
  const auto open = [](DType dtype, Shape shape, DType read_as, uint64_t count) {
    return OpenTensor(described(dtype, std::move(shape)), std::make_unique<Reader>(read_as, count)).info.count;
  };
  EXPECT_EQ(open(DType::kFloat32, {2, 3}, DType::kFloat32, 6), 6u);
  EXPECT_THROW(open(DType::kFloat64, {6}, DType::kFloat16, 6), InternalError);
  EXPECT_THROW(open(DType::kFloat32, {6}, DType::kFloat32, 7), InternalError);
  TensorInfo info = described(DType::kFloat32, {6});
  info.shape = {5};
  EXPECT_THROW(OpenTensor(info, std::make_unique<Reader>(DType::kFloat32, 6)), InternalError);
}

TEST(OpenTensor, HasAReaderExactlyWhenThereAreElements) {
  TensorInfo info = described(DType::kFloat32, {1});
  EXPECT_THROW(OpenTensor(info, nullptr), InternalError);
  info.problem = Status(Code::kCorrupt, "cut off");
  EXPECT_EQ(OpenTensor(info, nullptr).info.elements().message(), "cut off");
  EXPECT_THROW(OpenTensor(info, std::make_unique<Reader>(DType::kFloat32, 1)), InternalError);
  info = described(DType::kFloat32, {1});
  info.availability = Availability::kStatisticsOnly;
  EXPECT_EQ(OpenTensor(info, nullptr).info.elements().code(), Code::kNoData);
  EXPECT_THROW(OpenTensor(info, std::make_unique<Reader>(DType::kFloat32, 1)), InternalError);
}

TEST(OpenTensor, TypesWithoutNumbersHaveNoReader) {
  for (const DType dtype : {DType::kUnknown, DType::kComplex64, DType::kComplex128, DType::kString, DType::kInt4, DType::kFloat8}) {
    EXPECT_THROW(Reader(dtype, 1), InternalError);
    const auto bytes = std::vector<std::byte>(item_size(dtype) > 0 ? item_size(dtype) : 3);
    const OpenTensor opened = OpenTensor::in_memory({}, TensorBuffer::create(dtype, {1}, bytes).value());
    EXPECT_EQ(opened.reader, nullptr);
    EXPECT_EQ(opened.info.problem.code(), Code::kUnsupported) << dtype_name(dtype);
    EXPECT_NE(opened.info.problem.message().find(dtype_name(dtype)), std::string::npos) << opened.info.problem.message();
  }
}

TEST(OpenTensor, InMemoryIsDescribedByWhatItIs) {
  TensorInfo info = described(DType::kFloat64, {2, 3});
  const OpenTensor opened = OpenTensor::in_memory(info, testing::make_tensor(DType::kFloat16, {2}, std::array{1.5, -2.0}));
  EXPECT_EQ(opened.info.dtype, DType::kFloat16);
  EXPECT_EQ(opened.info.shape, (Shape{2}));
  EXPECT_EQ(opened.info.bytes, 4u);
  EXPECT_EQ(opened.reader->in_memory()->view().at(1), -2);
}

TEST(ElementReader, NeverReadsBeyondItsElements) {
  Small session;
  const TensorId id = session.put("Default/relu", 0, f32({1, 2, 3}));
  const auto opened = session.open(id);
  ASSERT_TRUE(opened.ok());
  std::array<float, 4> room{};
  const auto bytes = std::as_writable_bytes(std::span(room));
  EXPECT_TRUE(opened->reader->read(1, bytes.first(8)).ok());
  EXPECT_EQ(room[1], 3);
  EXPECT_TRUE(opened->reader->read(3, bytes.first(0)).ok());
  EXPECT_THROW((void)opened->reader->read(0, bytes), InternalError);
  EXPECT_THROW((void)opened->reader->read(UINT64_MAX, bytes.first(4)), InternalError);
  EXPECT_THROW((void)opened->reader->read(0, bytes.first(3)), InternalError);
}

TEST(SessionKind, HasANameForEach) {
  for (const SessionKind kind : {SessionKind::kDump, SessionKind::kCheckpoint, SessionKind::kLive, SessionKind::kRecording}) {
    EXPECT_EQ(session_kind_from_name(session_kind_name(kind)), kind);
  }
  EXPECT_EQ(session_kind_from_name("case"), std::nullopt);
}

// ---- all elements --------------------------------------------------------------------------------------------------

TEST(SessionLoad, GivesAllElementsAcrossBlocks) {
  Small session;
  std::vector<double> values(200'000);
  std::iota(values.begin(), values.end(), 0.0);
  const TensorId id = session.put("Default/relu", 0, f32({400, 500}, values));
  const auto loaded = session.load(id);
  ASSERT_TRUE(loaded.ok());
  EXPECT_EQ((*loaded)->shape(), (Shape{400, 500}));
  EXPECT_EQ((*loaded)->view().at(0), 0);
  EXPECT_EQ((*loaded)->view().at(199'999), 199'999);
}

TEST(SessionLoad, RefusesMoreThanTheMemoryLimit) {
  Small session;
  const TensorId id = session.put("Default/relu", 0, f32({1, 2, 3}));
  const auto loaded = session.load(id, 11);
  ASSERT_FALSE(loaded.ok());
  EXPECT_EQ(loaded.status().code(), Code::kOutOfMemory);
  EXPECT_NE(loaded.status().message().find("--mem-limit"), std::string::npos);
  EXPECT_TRUE(session.load(id, 12).ok());
}

TEST(SessionLoad, PassesOnWhyATensorCannotBeRead) {
  Small session;
  const TensorId id = session.put("Default/relu", 0, f32({1}));
  EXPECT_EQ(session.load(session.id("Default/w", 0)).status().code(), Code::kNotFound);
  session.set_read_error(id, Status(Code::kIoError, "the file shrank"));
  EXPECT_EQ(session.load(id).status().message(), "the file shrank");
  session.set_problem(id, Status(Code::kUnsupported, "device format"));
  EXPECT_EQ(session.load(id).status().message(), "device format");
}

TEST(SessionLoad, StopsAtAnInterrupt) {
  Small session;
  const TensorId id = session.put("Default/relu", 0, f32({1}));
  request_interrupt();
  const auto loaded = session.load(id);
  clear_interrupt();
  EXPECT_EQ(loaded.status().code(), Code::kInterrupted);
}

TEST(SessionStats, AreComputedOnceAndKept) {
  Small session;
  const TensorId id = session.put("Default/relu", 0, f32({1, NAN, 3}));
  EXPECT_EQ(session.stats(id)->nan_count, 1u);
  EXPECT_EQ(session.stats(id)->mean, 2);
  EXPECT_EQ(session.reads(), 1u);
}

TEST(SessionStats, ComeFromTheFileWhenThereAreNoElements) {
  Small session;
  Stats row;
  row.dtype = DType::kFloat32;
  row.known = kStatCount | kStatMax;
  row.count = 4;
  row.max = 7;
  const TensorId id = session.id("Default/relu", 0);
  session.set_statistics_only(id, row, {4});
  EXPECT_EQ(session.stats(id)->max, 7);
  EXPECT_EQ(session.load(id).status().code(), Code::kNoData);
}

TEST(SessionStats, AreNotDefinedForComplex) {
  Small session;
  const TensorId id =
      session.put("Default/relu", 0, TensorBuffer::create(DType::kComplex64, {1}, std::vector<std::byte>(8)).value());
  const auto stats = session.stats(id);
  EXPECT_EQ(stats.status().code(), Code::kUnsupported);
  EXPECT_NE(stats.status().message().find("complex64"), std::string::npos) << stats.status().message();
}

TEST(SessionStats, AgainstAnotherTensorRunOverBoth) {
  Small session;
  const TensorId now = session.put("Default/w", 1, f32({2, 4}));
  const TensorId before = session.put("Default/w", 0, f32({1, 1}));
  StatsRequest request;
  request.change = true;
  const auto stats = session.stats(now, before, request);
  ASSERT_TRUE(stats.ok());
  EXPECT_EQ(stats->diff_abs_mean, 2);
  EXPECT_EQ(stats->prev_abs_mean, 1);
}

TEST(SessionStats, OfAChangeAreKept) {
  Small session;
  const TensorId now = session.put("Default/w", 2, f32({2, 4}));
  const TensorId before = session.put("Default/w", 1, f32({1, 1}));
  const TensorId first = session.put("Default/w", 0, f32({0, 0}));
  StatsRequest request;
  request.change = true;
  EXPECT_EQ(session.stats(now, before, request)->diff_abs_mean, 2);
  session.reset_counters();
  EXPECT_EQ(session.stats(now, before, request)->diff_abs_mean, 2);
  EXPECT_EQ(session.reads(), 0u);
  EXPECT_EQ(session.stats(now, first, request)->diff_abs_mean, 3);  // another one than the previous value
}

TEST(SessionStats, TellWhichCountsAreAboveZero) {
  Small session;
  const TensorId id = session.put("Default/relu", 0, f32({0, 1, std::numeric_limits<float>::quiet_NaN()}));
  EXPECT_EQ(session.counts_above_zero(id).value(), kStatZero | kStatPos | kStatNan);
  EXPECT_EQ(session.counts_above_zero(session.id("Default/relu", 7)).status().code(), Code::kNotFound);
}

TEST(SessionStats, RefuseTensorsOfDifferentSize) {
  Small session;
  const TensorId now = session.put("Default/w", 1, f32({2, 4}));
  const TensorId before = session.put("Default/w", 0, f32({1}));
  StatsRequest request;
  request.change = true;
  EXPECT_EQ(session.stats(now, before, request).status().code(), Code::kInvalidArgument);
}

TEST(SessionName, IsNodeAndSlot) {
  Small session;
  EXPECT_EQ(session.tensor_name(session.id("Default/relu", 3, Slot{Io::kInput, 1})), "Default/relu:input:1");
  EXPECT_EQ(session.node(session.id("Default/w", 0)).op, "Parameter");
  EXPECT_EQ(session.graph(0, 7), nullptr);
}

// ---- reuse of cached statistics --------------------------------------------------------------------------------------

TEST(KeptStats, AnswerARequestTheyCover) {
  KeptStats kept;
  kept.request.ranges = {{0, 1}, {2, 3}};
  EXPECT_TRUE(kept.answers({}));
  EXPECT_TRUE(kept.answers({{{2, 3}}, {}, false}));
  EXPECT_FALSE(kept.answers({{{0, 3}}, {}, false}));
}

TEST(KeptStats, AnswerNothingAboutAPreviousValueThatWasNotLookedFor) {
  KeptStats kept;
  EXPECT_FALSE(kept.answers({{}, {}, true}));
  kept.previous = Previous::kPresent;
  EXPECT_FALSE(kept.answers({{}, {}, true}));
  kept.request.change = true;
  EXPECT_TRUE(kept.answers({{}, {}, true}));
  EXPECT_FALSE(kept.answers({{}, {{1e-5, 0}}, true}));
}

TEST(KeptStats, AMissingPreviousValueStaysMissing) {
  KeptStats kept;
  kept.previous = Previous::kMissing;
  EXPECT_TRUE(kept.answers({{}, {{1e-5, 0}}, true}));
  EXPECT_FALSE(kept.answers({{{0, 1}}, {}, true}));
}

KeptStatsPtr entry_of(int64_t step) {
  KeptStats kept;
  kept.info.id.step = step;
  return std::make_shared<const KeptStats>(std::move(kept));
}

/// Like a check: computes and stores what is missing. Returns how many were found.
int64_t check_steps(KeptStatsTable& table, int64_t first, int64_t end) {
  int64_t found = 0;
  table.begin_check();
  for (TensorId id; first < end; ++first) {
    id.step = first;
    if (table.find(id)) ++found;
    else table.put(entry_of(first));
  }
  return found;
}

TEST(KeptStatsTable, ACheckOverMoreThanItHoldsFindsAsManyAsItHolds) {
  KeptStatsTable table(100);
  EXPECT_EQ(check_steps(table, 0, 150), 0);
  for (int again = 0; again < 3; ++again) EXPECT_EQ(check_steps(table, 0, 150), 100);
  EXPECT_EQ(table.ids().size(), 100u);
}

TEST(KeptStatsTable, OtherTensorsTakeTheRoomOfThoseThatAreNoLongerUsed) {
  KeptStatsTable table(100);
  check_steps(table, 0, 100);
  EXPECT_EQ(check_steps(table, 1000, 1050), 0) << "those of the check before stay";
  EXPECT_EQ(check_steps(table, 0, 100), 100);
  check_steps(table, 1000, 1050);
  check_steps(table, 1000, 1050);
  EXPECT_EQ(check_steps(table, 1000, 1050), 50);
  EXPECT_EQ(table.ids().size(), 100u);
}

TEST(KeptStatsTable, RoomThatWasGivenUpIsUsedAgain) {
  KeptStatsTable table(10);
  check_steps(table, 0, 20);
  table.erase_if([](const TensorId& id) { return id.step < 5; });
  EXPECT_EQ(check_steps(table, 5, 15), 5);
  EXPECT_EQ(check_steps(table, 5, 15), 10);
}

}  // namespace
}  // namespace msdbg
