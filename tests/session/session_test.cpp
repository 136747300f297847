#include <gtest/gtest.h>

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

// ---- what kept statistics answer -----------------------------------------------------------------------------------

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

TEST(KeptStatsTable, DropsTheOldestEntryWhenFull) {
  KeptStatsTable table;
  auto entry = [](int64_t step) {
    KeptStats kept;
    kept.info.id.step = step;
    return std::make_shared<const KeptStats>(std::move(kept));
  };
  const auto many = static_cast<int64_t>(KeptStatsTable::kMaxEntries);
  for (int64_t step = 0; step <= many; ++step) table.put(entry(step));
  TensorId id;
  EXPECT_EQ(table.find(id), nullptr);
  id.step = 1;
  EXPECT_NE(table.find(id), nullptr);
  id.step = many;
  EXPECT_NE(table.find(id), nullptr);
}

}  // namespace
}  // namespace msdbg
