// Steps in which ranks stopped: real dumps without what was written after some file.
#include "msdbg/unfinished.h"

#include <gtest/gtest.h>

#include "dump/dump_support.h"
#include "support/rank_dumps.h"

namespace msdbg::testing {
namespace {

using Texts = std::vector<std::string>;

TEST(UnfinishedData, NoStepOfARealDumpIs) {
  size_t dumps = 0;
  for (const auto& entry : std::filesystem::directory_iterator(MSDBG_TEST_DATA "/dumps")) {
    auto session = open_dump(entry.path());
    if (!session.ok()) continue;
    ++dumps;
    EXPECT_EQ(unfinished_texts(**session, IntSet::all(), IntSet::all()), Texts{}) << entry.path();
  }
  EXPECT_GT(dumps, 20u);
}

TEST(UnfinishedData, NamesTheOperatorOfTheRankThatDiedAndWhereTheOthersWaited) {
  test::RankDump dump("ranks-2.7.1-ok");
  dump.copy_ranks(4);
  for (const int rank : {0, 1, 2, 3}) dump.remove_from(rank, 1, rank == 2 ? "MatMul.Default_network-WithLossCell__backbone-LeNet5_fc2" : "AllReduce.");
  auto session = open_dump(dump.path());
  ASSERT_TRUE(session.ok());
  EXPECT_EQ(unfinished_texts(**session, IntSet::all(), IntSet::all()),
            Texts{"step 1 is unfinished: rank 2 ends before fc2-Dense/MatMul-op0 (ranks.py:74), after 10 of 61 operators; ranks 0-1, 3 before "
                  "AllReduce-op2 (grad_reducer.py:390), after 19"});
  const SessionReport report = (*session)->inspect();
  EXPECT_TRUE(std::ranges::any_of(report.problems, [](const Problem& problem) {
    return problem.severity == Severity::kWarning && problem.message.find("the training ended there, or the dump is still being written") != std::string::npos;
  }));
}

}  // namespace
}  // namespace msdbg::testing
