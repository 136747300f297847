// Tables of steps and ranks fit the page however many there are.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <sstream>

#include "msdbg/rank_report.h"
#include "msdbg/terminal.h"
#include "support/fake_session.h"

namespace msdbg {
namespace {

using testing::f32;
using testing::fake_graph;
using testing::FakeSession;

RankGrid grid_of(int ranks, int steps, const std::function<RankGrid::Cell(int step, int rank)>& cell) {
  RankGrid grid;
  grid.words = {"hits in step", "hits", "not_checked", "not checked"};
  for (int rank = 0; rank < ranks; ++rank) grid.ranks.push_back(rank);
  for (int step = 0; step < steps; ++step) grid.steps.push_back(step);
  for (int step = 0; step < steps; ++step) {
    for (int rank = 0; rank < ranks; ++rank) grid.cells.push_back(cell(step, rank));
  }
  return grid;
}

RankGrid::Cell hits(uint64_t n, uint64_t not_checked = 0) { return {true, n, not_checked}; }

std::string text_of(const RankGrid& grid, size_t width = 80) {
  ReportStyle style;
  style.width = width;
  const std::string text = rank_table_text(grid, style);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), width) << line;
  return text;
}

TEST(RankTable, FewRanksHaveAColumnEach) {
  const RankGrid grid =
      grid_of(3, 2, [](int step, int rank) { return step == 0 ? hits(0) : hits(rank == 1 ? 77 : 40, rank == 1 ? 4 : 0); });
  EXPECT_EQ(text_of(grid),
            "hits in step  rank 0  rank 1  rank 2\n"
            "           1      40  77 (4)      40\n"
            "  in brackets: not checked\n");
}

TEST(RankTable, NothingCountedIsNothingSaid) {
  EXPECT_EQ(text_of(grid_of(4, 3, [](int, int) { return hits(0); })), "");
  EXPECT_EQ(rank_table_text(RankGrid{}, {}), "");
}

TEST(RankTable, AMissingStepIsNoZero) {
  const RankGrid grid =
      grid_of(3, 4, [](int step, int rank) { return rank == 1 && step >= 2 ? RankGrid::Cell{} : hits(step == 0 ? 5 : 0); });
  EXPECT_EQ(text_of(grid),
            "hits in step  rank 0  rank 1  rank 2\n"
            "           0       5       5       5\n"
            "           2       0       -       0\n"
            "           3       0       -       0\n"
            "  rank 1 has no steps 2-3\n");
  const Answer answer = by_rank_answer(grid);
  ASSERT_EQ(answer.size(), 3u);
  EXPECT_EQ(answer[1].dump(), R"({"rank":1,"steps":[0,1],"missing_steps":[2,3],"hits":[5,0],"not_checked":[0,0]})");
  EXPECT_EQ(answer[2]["missing_steps"].size(), 0u);
}

TEST(RankTable, ManyEqualRanksAreOneColumn) {
  const RankGrid grid = grid_of(512, 2, [](int, int rank) { return hits(rank == 300 ? 9 : 1); });
  EXPECT_EQ(text_of(grid),
            "hits in step  ranks 0-299, 301-511  rank 300\n"
            "           0                     1         9\n"
            "           1                     1         9\n");
}

TEST(RankTable, RanksThatAllDifferAreSummedUpAndTheWorstStays) {
  const RankGrid grid = grid_of(512, 3, [](int step, int rank) { return hits(static_cast<uint64_t>(rank == 77 ? 9000 : rank + step)); });
  const std::string text = text_of(grid);
  EXPECT_NE(text.find("rank 77"), std::string::npos) << text;
  EXPECT_NE(text.find("others"), std::string::npos) << text;
  EXPECT_NE(text.find("9000"), std::string::npos) << text;
}

TEST(RankTable, ALongSetOfRanksIsCountedAndListedBelow) {
  const RankGrid grid = grid_of(64, 1, [](int, int rank) { return hits(rank % 5 < 2 || rank % 7 == 0 ? 1 : 2); });
  const std::string text = text_of(grid);
  EXPECT_NE(text.find("32 ranks"), std::string::npos) << text;
  EXPECT_NE(text.find("32 ranks: 0-1, 5-7, 10-11 and 25 more"), std::string::npos) << text;
}

TEST(RankTable, EverySecondRankFitsTheTitle) {
  const RankGrid grid = grid_of(64, 1, [](int, int rank) { return hits(rank % 2 == 0 ? 1 : 2); });
  EXPECT_EQ(text_of(grid), "hits in step  ranks 0, 2, ..., 62  ranks 1, 3, ..., 63\n           0                    1                    2\n");
}

TEST(RankTable, ManyEqualStepsAreOneRow) {
  const RankGrid grid = grid_of(2, 1000, [](int step, int rank) { return step == 500 && rank == 1 ? hits(7) : hits(1); });
  EXPECT_EQ(text_of(grid),
            "hits in step  rank 0  rank 1\n"
            "       0-499       1       1\n"
            "         500       1       7\n"
            "     501-999       1       1\n");
}

TEST(RankTable, ManyDifferentStepsAreCutOffAndCounted) {
  const RankGrid grid = grid_of(2, 50, [](int step, int) { return hits(static_cast<uint64_t>(step + 1)); });
  EXPECT_NE(text_of(grid).find("  ... 30 steps more\n"), std::string::npos) << text_of(grid);
  ReportStyle all;
  all.all = true;
  EXPECT_EQ(rank_table_text(grid, all).find("more"), std::string::npos);
}

TEST(RankTable, ManySetsOfMissingStepsAreCutOff) {
  const RankGrid grid = grid_of(40, 40, [](int step, int rank) { return step == rank ? RankGrid::Cell{} : hits(0); });
  EXPECT_NE(text_of(grid).find("  rank 0 has no step 0\n"), std::string::npos);
  EXPECT_NE(text_of(grid).find("  ... 32 more sets of ranks that lack other steps\n"), std::string::npos) << text_of(grid);
}

/// Three ranks; rank 1 lacks step 1.
FakeSession three_ranks() {
  std::vector<GraphPtr> graphs;
  for (int rank = 0; rank < 3; ++rank) graphs.push_back(fake_graph({{"w", "Parameter"}, {"Default/Mul-op0", "Mul", {"w"}}}, rank));
  return FakeSession(graphs);
}
void fill(FakeSession& s) {
  for (int rank = 0; rank < 3; ++rank) {
    for (int step = 0; step < 2; ++step) {
      if (rank == 1 && step == 1) continue;
      s.put(s.id("w", step, {}, 0, rank), f32({1, 2}));
      s.put(s.id("Default/Mul-op0", step, {}, 0, rank), f32({rank == 2 ? NAN : rank + 1.0, 0}));
    }
  }
}

std::vector<StatsRow> rows_of(FakeSession& s) {
  std::vector<StatsRow> rows;
  for (const TensorId& id : s.tensors({})) rows.push_back({s.describe(id).value(), s.stats(id).value()});
  return rows;
}

TEST(RankTable, OfADumpCountsTensors) {
  FakeSession s = three_ranks();
  fill(s);
  EXPECT_EQ(missing_steps(s), std::vector<std::string>{"rank 1 has no step 1"});
  EXPECT_EQ(by_rank_answer(tensors_grid(s))[0].dump(), R"({"rank":0,"steps":[0,1],"missing_steps":[],"tensors":[2,2]})");
  EXPECT_NE(doctor_report(s, s.inspect(), {}).find("tensors in step  rank 0  rank 1  rank 2\n"
                                                   "              0       2       2       2\n"
                                                   "              1       2       -       2\n"
                                                   "  rank 1 has no step 1\n"),
            std::string::npos)
      << doctor_report(s, s.inspect(), {});
}

TEST(RankTable, StatsJoinsWhatRanksShare) {
  FakeSession s = three_ranks();
  fill(s);
  const std::vector<StatsRow> rows = rows_of(s);
  const TensorQuery all;
  EXPECT_EQ(stats_report(s, rows, {}, &all),
            "rank  step  tensor           type        min  max  mean     std  not finite\n"
            " 0-2     0  w                float32[2]    1    2   1.5  0.7071\n"
            "   0     0  Default/Mul-op0  float32[2]    0    1   0.5  0.7071\n"
            "   1     0  Default/Mul-op0  float32[2]    0    2     1   1.414\n"
            "   2     0  Default/Mul-op0  float32[2]    0    0     0       0  1 of 2 NaN\n"
            "0, 2     1  w                float32[2]    1    2   1.5  0.7071\n"
            "   0     1  Default/Mul-op0  float32[2]    0    1   0.5  0.7071\n"
            "   2     1  Default/Mul-op0  float32[2]    0    0     0       0  1 of 2 NaN\n"
            "not finite in step  rank 0  rank 1  rank 2\n"
            "                 0       0       0       1\n"
            "                 1       0       -       1\n"
            "  rank 1 has no step 1\n");
  EXPECT_EQ(stats_rows(s, rows, {}).size(), 7u);
  ReportStyle json;
  json.format = Format::kJson;
  const auto answer = nlohmann::json::parse(stats_report(s, rows, json, &all));
  EXPECT_EQ(answer["tensors"].size(), rows.size());
  EXPECT_EQ(answer["by_rank"][2]["not_finite"].dump(), "[1,1]");
}

TEST(RankTable, StatsOfManyRanksAreARange) {
  std::vector<GraphPtr> graphs;
  for (int rank = 0; rank < 8; ++rank) graphs.push_back(fake_graph({{"w", "Parameter"}}, rank));
  FakeSession s(graphs);
  for (int rank = 0; rank < 8; ++rank) s.put(s.id("w", 0, {}, 0, rank), f32({rank == 5 ? INFINITY : rank + 1.0, 0}));
  EXPECT_EQ(stats_report(s, rows_of(s), {}),
            "    rank  step  tensor  type        min  max      mean              std  not finite\n"
            "0-4, 6-7     0  w       float32[2]    0    8  0.5 .. 4  0.7071 .. 5.657\n"
            "       5     0  w       float32[2]    0    0         0                0  1 of 2 +Inf\n"
            "on many ranks: the least min, the greatest max, mean and std from .. to (each rank: --wide)\n");
  ReportStyle wide;
  wide.wide = true;
  EXPECT_EQ(stats_rows(s, rows_of(s), wide).size(), 8u);
}

}  // namespace
}  // namespace msdbg
