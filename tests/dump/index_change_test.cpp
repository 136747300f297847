// The index of a dump that changes: every answer is that of the files as they are now, also if they are looked at while the dump opens.
#include "dump/index_support.h"

namespace msdbg::testing {
namespace {

constexpr int64_t kHour = 3600;

void move_time(const std::string& path, int64_t seconds) {
  struct stat moved = status_of(path);
  moved.st_mtim.tv_sec += seconds;
  restore_time(path, moved);
}

/// The parameter: DumpOptions::asks_at_once.
struct IndexChange : ::testing::TestWithParam<bool> {
  static Answer answer(const std::string& path, DumpOptions options = with_index()) {
    options.asks_at_once = GetParam();
    return testing::answer(path, options);
  }
};

TEST_P(IndexChange, ATensorRewrittenInPlaceIsReadAgain) {
  const IndexedDump dump(5);
  answer(dump.path());
  dump.npy(dump.activation(1), {NAN, 1, 2});
  const Answer want = truth(dump.path());
  const OpenedFiles opened;
  EXPECT_EQ(answer(dump.path()), want);
  // With its own previous value, and with the step that compares with it.
  EXPECT_EQ(opened.steps(), (std::set<std::string>{"0", "1", "2"}));
}

TEST_P(IndexChange, ATimeSetBackDoesNotHideAChange) {
  const IndexedDump dump;
  answer(dump.path());
  const std::string path = dump.at(dump.activation(0));
  const struct stat before = status_of(path);
  dump.npy(dump.activation(0), {NAN, 1, 2});
  restore_time(path, before);
  EXPECT_EQ(answer(dump.path()), truth(dump.path()));
}

TEST_P(IndexChange, AFileReplacedByAnotherOfTheSameAgeIsReadAgain) {
  const IndexedDump dump;
  answer(dump.path());
  const std::string path = dump.at(dump.activation(2));
  const struct stat before = status_of(path);
  dump.npy("new.npy", {9, 9, 9});
  restore_time(dump.at("new.npy"), before);
  std::filesystem::rename(dump.at("new.npy"), path);
  EXPECT_EQ(answer(dump.path()), truth(dump.path()));
}

TEST_P(IndexChange, WhatChangedAMomentBeforeItWasReadIsNotKept) {
  const IndexedDump dump;
  DumpOptions careful = with_index();
  careful.settled = std::chrono::milliseconds(1500);
  // Directories and files are younger than that, but one file would pass by its time of modification alone.
  move_time(dump.at(dump.activation(0)), -kHour);
  answer(dump.path(), careful);
  EXPECT_FALSE(dump.has_index());
  ::usleep(1'600'000);
  answer(dump.path(), careful);
  EXPECT_TRUE(dump.has_index());
  const OpenedFiles opened;
  answer(dump.path(), careful);
  EXPECT_EQ(opened.count(), 0u);
}

TEST_P(IndexChange, AFileFromTheFutureIsNotKept) {
  const IndexedDump dump;
  move_time(dump.at(dump.weight(1)), kHour);
  answer(dump.path());
  const OpenedFiles opened;
  EXPECT_EQ(answer(dump.path()), truth(dump.path()));
  EXPECT_TRUE(opened.steps().count("1") > 0);
}

TEST_P(IndexChange, AGrowingDumpIsFollowed) {
  const IndexedDump dump(2);
  answer(dump.path());
  for (int step = 2; step < 5; ++step) {
    dump.add_step(step);
    const Answer want = truth(dump.path());
    const OpenedFiles opened;
    EXPECT_EQ(answer(dump.path()), want);
    EXPECT_EQ(opened.steps().count("0"), 0u);
  }
  // A file more in a directory that is known, and one less.
  dump.npy("rank_0/net/0/1/Add.Default_Add-op4.0.0.300.output.0.DefaultFormat.npy", {1, 2});
  EXPECT_EQ(answer(dump.path()), truth(dump.path()));
  std::filesystem::remove(dump.at(dump.activation(1)));
  EXPECT_EQ(answer(dump.path()), truth(dump.path()));
  std::filesystem::remove_all(dump.at("rank_0/net/0/0"));
  EXPECT_EQ(answer(dump.path()), truth(dump.path()));
  EXPECT_EQ(answer(dump.path()), truth(dump.path()));
}

TEST_P(IndexChange, AFileThatWasBrokenWhenItWasThePreviousValueIsSeenWhenItIsRepaired) {
  const IndexedDump dump;
  const std::string good = dump.at(dump.weight(1));
  dump.text("kept", "");
  std::filesystem::copy_file(good, dump.at("kept"), std::filesystem::copy_options::overwrite_existing);
  dump.text(dump.weight(1), "broken");
  EXPECT_EQ(answer(dump.path()), truth(dump.path()));
  EXPECT_EQ(answer(dump.path()), truth(dump.path()));
  std::filesystem::copy_file(dump.at("kept"), good, std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(answer(dump.path()), truth(dump.path()));
  dump.npy(dump.weight(1), {1, 2, 3, 4});
  EXPECT_EQ(answer(dump.path()), truth(dump.path()));
  EXPECT_EQ(answer(dump.path()), truth(dump.path()));
}

TEST_P(IndexChange, ACopyIsReadByItself) {
  const IndexedDump dump;
  answer(dump.path());
  const TempDir place;
  const std::string copy = place.at("copy");
  std::filesystem::copy(dump.path(), copy, std::filesystem::copy_options::recursive);
  const std::string changed = copy + "/" + dump.activation(1);
  std::filesystem::remove(changed);
  place.npy("copy/" + dump.activation(1), {NAN, 7, 7});
  for (const auto& entry : std::filesystem::recursive_directory_iterator(dump.path())) {
    const std::string same = copy + entry.path().string().substr(dump.path().size());
    restore_time(same, status_of(entry.path()));
  }
  EXPECT_EQ(answer(copy), truth(copy));
  EXPECT_NE(answer(copy), answer(dump.path()));
  // Its index is its own from now on.
  const OpenedFiles opened;
  answer(copy);
  EXPECT_EQ(opened.count(), 0u);
}

TEST_P(IndexChange, AMovedDumpKeepsItsIndex) {
  const IndexedDump dump;
  const Answer want = answer(dump.path());
  const TempDir place;
  std::filesystem::rename(dump.path(), place.at("moved"));
  const OpenedFiles opened;
  EXPECT_EQ(answer(place.at("moved")), want);
  EXPECT_EQ(opened.count(), 0u);
}

TEST_P(IndexChange, StatisticsOfAnotherInstructionSetAreComputedAgain) {
  const IndexedDump dump;
  const std::string target(simd_target());
  answer(dump.path());
  ASSERT_TRUE(set_simd_target("scalar").ok());
  {
    const OpenedFiles opened;
    answer(dump.path());
    EXPECT_GT(opened.count(), 0u);
  }
  EXPECT_TRUE(set_simd_target(target).ok());
}

TEST_P(IndexChange, ALinkInADirectoryIsFollowedEveryTime) {
  const IndexedDump dump;
  dump.add_step(7);
  std::filesystem::create_directories(dump.at("elsewhere"));
  std::filesystem::rename(dump.at("rank_0/net/0/7"), dump.at("elsewhere/7"));
  dump.link("rank_0/net/0/7", dump.at("elsewhere/7"));
  answer(dump.path());
  EXPECT_EQ(answer(dump.path()), truth(dump.path()));
  std::filesystem::remove_all(dump.at("elsewhere"));
  EXPECT_EQ(answer(dump.path()), truth(dump.path()));
}

TEST_P(IndexChange, AGraphThatComesLaterNamesTheNodes) {
  const IndexedDump dump;
  answer(dump.path());
  dump.text("rank_0/execution_order/ms_execution_order_graph_0.csv", "NodeExecutionOrder-FullNameWithScope\nDefault/relu/ReLU-op1\n");
  EXPECT_EQ(answer(dump.path()), truth(dump.path()));
}

INSTANTIATE_TEST_SUITE_P(WhileOpening, IndexChange, ::testing::Bool());

}  // namespace
}  // namespace msdbg::testing
