// The current rank of the prompt: what commands and the Lua library look at without --ranks.
#include "script/support.h"

namespace msdbg::testing {
namespace {

/// Three ranks, three steps; rank 2 has NaN, and rank 1 lacks the last step.
std::unique_ptr<FakeSession> ranks() {
  std::vector<GraphPtr> graphs;
  for (int rank = 0; rank < 3; ++rank) {
    graphs.push_back(
        fake_graph({{"learning_rate", "Parameter"}, {"fc.weight", "Parameter"}, {"Default/Mul-op0", "Mul", {"fc.weight"}}}, rank));
  }
  auto session = std::make_unique<FakeSession>(graphs);
  for (int rank = 0; rank < 3; ++rank) {
    for (int step = 0; step < 3; ++step) {
      if (rank == 1 && step == 2) continue;
      const auto id = [&](const char* name) { return session->id(name, step, {}, 0, rank); };
      session->put(id("learning_rate"), f32(Shape{}, std::vector<double>{0.5}));
      session->put(id("fc.weight"), f32({1.0, 2.0 + rank + step}));
      session->put(id("Default/Mul-op0"), f32({rank == 2 ? NAN : rank + 1.0, 1}));
    }
  }
  return session;
}

class RankPrompt : public ScriptTest {
 protected:
  void SetUp() override {
    ScriptTest::SetUp();
    script->set_session(ranks());
  }
};

TEST_F(RankPrompt, ThePromptShowsIt) {
  EXPECT_EQ(script->prompt(), "fake step 0/2 3 ranks > ");
  EXPECT_EQ(type("rank 2"), "");
  EXPECT_EQ(script->prompt(), "fake step 0/2 rank 2 > ");
  EXPECT_EQ(type("s.current_rank"), "2");
  EXPECT_EQ(type("rank all"), "");
  EXPECT_EQ(script->prompt(), "fake step 0/2 3 ranks > ");
  EXPECT_EQ(type("s.current_rank"), "nil");
}

TEST_F(RankPrompt, WrongNumbersNameWhatThereIs) {
  EXPECT_EQ(type("rank 7"), "error: no rank 7 (have 0-2)");
  EXPECT_TRUE(contains(type("rank two"), "a rank or 'all' is expected, not 'two'"));
  EXPECT_TRUE(contains(type("s:goto_rank('two')"), "goto_rank: rank"));
  EXPECT_EQ(type("stats --ranks 7"), "error: --ranks 7: no such rank (have 0-2)");
  EXPECT_EQ(type("trend max --rank 3:5"), "error: --ranks 3:5: no such rank (have 0-2)");
  EXPECT_EQ(script->prompt(), "fake step 0/2 3 ranks > ");
}

TEST_F(RankPrompt, AloneItListsThem) {
  EXPECT_EQ(type("rank"),
            "rank  steps    hits  not checked\n"
            "0, 2  3 (0-2)     -            -\n"
            "   1  2 (0-1)     -            -\n"
            "  rank 1 has no step 2\n"
            "  nothing was checked yet: check\n"
            "current: all of them (rank N: one)");
  type("rank 2");
  type("check --rules TO --ranks all");
  EXPECT_EQ(type("rank"),
            "rank  steps    hits  not checked\n"
            "   0  3 (0-2)     0            0\n"
            "   1  2 (0-1)     0            0\n"
            "   2  3 (0-2)     3            0\n"
            "  rank 1 has no step 2\n"
            "current: rank 2 (rank all: every rank)");
}

TEST_F(RankPrompt, CommandsLookAtItUnlessOthersAreNamed) {
  type("rank 0");
  EXPECT_TRUE(contains(type("check --rules TO"), "clean"));
  EXPECT_EQ(type("s.last_result.by_rank[1].rank, #s.last_result.by_rank"), "0  1");
  EXPECT_TRUE(contains(type("check --rules TO --ranks all"), "3 hits"));
  EXPECT_TRUE(contains(type("check --rules TO --rank 2"), "3 hits"));
  EXPECT_EQ(script->prompt(), "fake step 0/2 rank 0 > ");
  EXPECT_FALSE(contains(type("stats Mul-op0"), "NaN"));
  EXPECT_TRUE(contains(type("stats Mul-op0 --ranks all"), "NaN"));
  EXPECT_TRUE(contains(type("origin"), "healthy"));
  type("rank 2");
  EXPECT_TRUE(contains(type("show Mul-op0"), "rank 2"));
  EXPECT_TRUE(contains(type("show Mul-op0 --rank 1"), "rank 1"));
  EXPECT_FALSE(contains(type("nodes Mul-op0"), "\n2 "));
  EXPECT_TRUE(contains(type("node Mul-op0"), "rank 2"));
  EXPECT_TRUE(contains(type("tensors Mul-op0"), "Mul-op0"));
  EXPECT_TRUE(contains(type("bt Mul-op0"), "NaN"));
  EXPECT_TRUE(contains(type("trend max fc.weight"), "fc.weight rank 2"));
  EXPECT_TRUE(contains(type("why Mul-op0 --step 0"), "rank 2"));
}

TEST_F(RankPrompt, ReplicasComparesAllRanks) {
  type("rank 1");
  EXPECT_TRUE(contains(type("replicas"), "ranks 0-2"));
  EXPECT_EQ(type("#s:replicas().ranks"), "3");
}

TEST_F(RankPrompt, TheRuleThatComparesRanksSaysWhenItHasOne) {
  type("rank 1");
  EXPECT_TRUE(contains(type("check --rules replica-differs"), "only rank 1 was checked; it compares ranks"));
}

TEST_F(RankPrompt, FunctionsOfLuaLookAtItUnlessOthersAreNamed) {
  type("rank 2");
  EXPECT_EQ(type("s:tensor('Mul-op0').rank, s:node('Mul-op0').rank, #s:tensors { on = 'Mul-op0' }"), "2  2  1");
  EXPECT_EQ(type("s:tensor('Mul-op0', { rank = 1 }).rank, #s:tensors { on = 'Mul-op0', ranks = 'all' }"), "1  3");
  EXPECT_EQ(type("#s:check { rules = 'TO' }.hits, #s:check { rules = 'TO', ranks = 0 }.hits"), "3  0");
  EXPECT_EQ(type("#s:trend('max', 'fc.weight').tensors, #msdbg.origin(s).origins"), "1  3");
  EXPECT_EQ(type("#s:settings().ranks, #s:settings { ranks = 'all' }.ranks"), "1  3");
  type("s:goto_rank()");
  EXPECT_EQ(type("s:tensor('Mul-op0').rank, #s:tensors { on = 'Mul-op0' }"), "0  3");
}

TEST_F(RankPrompt, RecheckGoesToIt) {
  type("watch Mul-op0 TO");
  EXPECT_TRUE(contains(type("check"), "3 hits"));
  type("rank 0");
  EXPECT_TRUE(contains(type("recheck"), "clean"));
  type("rank all");
  EXPECT_TRUE(contains(type("recheck"), "3 hits"));
}

TEST_F(RankPrompt, NumberedRowsAreThoseOfTheTable) {
  type("stats fc.weight --steps all");
  EXPECT_EQ(type("#_, _[1].rank, _[2].rank, _[3].rank"), "8  0  1  2");
  type("stats learning_rate --steps all");
  EXPECT_EQ(type("#_, _[3].step, _[3].rank"), "3  2  0");
  type("nodes Mul-op0 --ranks 1:2");
  EXPECT_EQ(type("#_, _[1].rank"), "1  1");
}

TEST_F(RankPrompt, TensorsThatRanksShareAreOneRow) {
  const std::string text = type("tensors fc.weight --steps all");
  EXPECT_TRUE(contains(text, "1     0  0-2    fc.weight"));
  EXPECT_TRUE(contains(text, "3     2  0, 2   fc.weight"));
  EXPECT_EQ(type("#_, _[3].step, _[3].rank"), "3  2  0");
  EXPECT_TRUE(contains(type("tensors fc.weight --ranks 1:3"), "1     0  1-2    fc.weight"));
}

TEST_F(RankPrompt, ANumberAloneShowsATensorOrNode) {
  type("tensors fc.weight --ranks 1");
  EXPECT_TRUE(contains(type("#1"), "fc.weight:output:0  float32[2]  step 0  rank 1"));
  type("nodes Mul-op0");
  EXPECT_TRUE(contains(type("#1"), "node     Default/Mul-op0"));
}

TEST_F(RankPrompt, WordsAreCompleted) {
  const auto complete = [&](const std::string& line) { return script->complete(line, line.size()); };
  EXPECT_EQ(complete("rank "), (std::vector<std::string>{"all", "0", "1", "2"}));
  EXPECT_EQ(complete("rank a"), std::vector<std::string>{"all"});
}

TEST_F(RankPrompt, InfoCountsTheHitsOfTheLastCheck) {
  EXPECT_TRUE(contains(type("info"), "tensors in step  rank 0  rank 1  rank 2"));
  type("check --rules TO");
  const std::string info = type("info");
  EXPECT_TRUE(contains(info, "hits in step  rank 0  rank 1  rank 2\n"));
  EXPECT_TRUE(contains(info, "rank 1 has no step 2"));
}

}  // namespace
}  // namespace msdbg::testing
