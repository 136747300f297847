// The simulation behind docs/scale.md: it obeys its own assumptions, and the tables of the page are what it prints.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "scale/model.h"

namespace msdbg::scale {
namespace {

std::string read(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// 1 GB/s a thread, no latency, and a process 0 that costs nothing.
Recording ideal() {
  Recording recording;
  for (int i = 0; i < 10; ++i) {
    recording.warm.push_back({100'000'000, 0.1});
    recording.cold.push_back({100'000'000, 1});
    recording.cold.push_back({4096, 0.001});
  }
  return recording;
}

Cluster without_limits() {
  Cluster cluster;
  cluster.file_system_rate = cluster.node_rate = 1e18;
  cluster.opens_per_second = 1e18;
  cluster.open_latency = cluster.message_latency = 0;
  return cluster;
}

TEST(Scale, WithoutLimitsTwiceTheProcessesNeedHalfTheTime) {
  const std::vector<uint64_t> bytes = step_of(1e12);
  double before = simulate(ideal(), without_limits(), bytes, 1).total;
  EXPECT_NEAR(before, 1e12 / 8e9, 2) << "8 threads of 1 GB/s";
  for (unsigned processes = 2; processes <= 64; processes *= 2) {
    const Outcome outcome = simulate(ideal(), without_limits(), bytes, processes);
    // Less than 2, because at the end of a parcel its threads wait for the last one; smaller parcels have fewer tensors for each.
    EXPECT_GT(before / outcome.total, 1.7) << processes;
    EXPECT_LT(before / outcome.total, 2.01) << processes;
    EXPECT_EQ(outcome.limit, "processors");
    before = outcome.total;
  }
}

TEST(Scale, TheFileSystemBoundsTheRate) {
  Cluster cluster = without_limits();
  cluster.file_system_rate = 100e9;
  const Outcome outcome = simulate(ideal(), cluster, step_of(1e12), 128);
  EXPECT_GE(outcome.total, 10);
  EXPECT_LT(outcome.total, 12);
  EXPECT_EQ(outcome.limit, "file system");
}

TEST(Scale, Process0BoundsTheTensorsPerSecond) {
  Recording slow = ideal();
  slow.check_per_tensor = 1e-3;
  const std::vector<uint64_t> bytes = step_of(1e12);
  const Outcome outcome = simulate(slow, without_limits(), bytes, 64);
  EXPECT_GE(outcome.total, 1e-3 * static_cast<double>(bytes.size()));
  EXPECT_EQ(outcome.limit, "process 0");
}

TEST(Scale, OpeningIsNotShared) {
  Recording slow = ideal();
  slow.open_per_tensor = 1e-3;
  const std::vector<uint64_t> bytes = step_of(1e12);
  const Outcome outcome = simulate(slow, without_limits(), bytes, 64);
  EXPECT_GE(outcome.total, outcome.open);
  EXPECT_DOUBLE_EQ(outcome.open, 1e-3 * static_cast<double>(bytes.size()));
}

TEST(Scale, ARecordingIsReadAgain) {
  Recording recording = ideal();
  recording.machine = "a machine";
  recording.check_per_tensor = 12e-6;
  const auto again = Recording::parse(recording.text());
  ASSERT_TRUE(again) << again.status().message();
  EXPECT_EQ(again->text(), recording.text());
  EXPECT_FALSE(Recording::parse("warm many 3"));
  EXPECT_FALSE(Recording::parse("warm 3"));
  EXPECT_FALSE(Recording::parse("hot 3 4"));
  EXPECT_FALSE(Recording::parse(""));
}

TEST(Scale, ThePageShowsWhatTheSimulationPrints) {
  const auto recording = Recording::parse(read(MSDBG_ROOT "/tests/scale/recording.txt"));
  ASSERT_TRUE(recording) << recording.status().message();
  const std::string expected = report(*recording), page = read(MSDBG_ROOT "/docs/scale.md");
  EXPECT_NE(page.find(expected), std::string::npos) << "tools/scale writes the tables of docs/scale.md again:\n" << expected;
}

}  // namespace
}  // namespace msdbg::scale
