// Steps in which a rank stopped.
#include "msdbg/unfinished.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/fake_session.h"

namespace msdbg {
namespace {

using testing::f32;
using testing::fake_graph;
using testing::FakeNode;
using testing::FakeSession;

using Texts = std::vector<std::string>;

const std::vector<std::string> kOperators = {"D/a", "D/b", "D/c", "D/d", "D/e", "D/f", "D/g", "D/h"};

std::vector<GraphPtr> graphs(int ranks, const std::string& exchange = "") {
  std::vector<FakeNode> nodes = {{"w", "Parameter"}};
  for (const std::string& name : kOperators) {
    nodes.push_back({name, name == exchange ? "AllReduce" : "MatMul", {"w"}});
    nodes.back().stack = std::vector<StackFrame>{{"/home/user/net.py", name.back() - 'a' + 1, ""}};
  }
  nodes.push_back({"D/never", "Depend", {"D/h"}});
  std::vector<GraphPtr> made;
  for (int rank = 0; rank < ranks; ++rank) made.push_back(fake_graph(nodes, rank));
  return made;
}

/// The first `count` operators of the step, and the parameter if it is over.
void run(FakeSession& session, int rank, int64_t step, size_t count, bool over) {
  for (size_t i = 0; i < count; ++i) session.put(session.id(kOperators[i], step, {}, 0, rank), f32({1}));
  if (over) session.put(session.id("w", step, {}, 0, rank), f32({1}));
}

Texts texts(FakeSession& session) { return unfinished_texts(session, IntSet::all(), IntSet::all()); }

TEST(Unfinished, TheStepBeforeTellsWhatIsMissing) {
  FakeSession session(graphs(1));
  run(session, 0, 0, 8, true);
  run(session, 0, 1, 8, true);
  EXPECT_EQ(texts(session), Texts{});
  run(session, 0, 2, 7, false);
  EXPECT_EQ(texts(session), Texts{"step 2 is unfinished: it ends before h (net.py:8), after 7 of 8 operators"});
  EXPECT_EQ(unfinished_texts(session, IntSet::of(1), IntSet::all()), Texts{});
  EXPECT_EQ(unfinished_texts(session, IntSet::all(), IntSet::of(1)), Texts{});
}

TEST(Unfinished, AStepWithItsParametersIsOver) {
  FakeSession session(graphs(1));
  run(session, 0, 0, 8, true);
  run(session, 0, 1, 3, true);  // a branch that was not taken
  EXPECT_EQ(texts(session), Texts{});
}

TEST(Unfinished, WithoutParametersGapsSpeakForABranch) {
  FakeSession session(graphs(1));
  run(session, 0, 0, 8, false);
  run(session, 0, 1, 3, false);
  EXPECT_EQ(texts(session), Texts{"step 1 is unfinished: it ends before d (net.py:4), after 3 of 8 operators"});
  session.put(session.id("D/g", 1), f32({1}));
  EXPECT_EQ(texts(session), Texts{});
}

TEST(Unfinished, AnotherRankTellsInTheFirstStep) {
  FakeSession session(graphs(3));
  run(session, 0, 0, 8, true);
  run(session, 1, 0, 7, false);
  run(session, 2, 0, 2, false);
  EXPECT_EQ(texts(session), Texts{"step 0 is unfinished: rank 2 ends before c (net.py:3), after 2 of 8 operators; rank 1 before h "
                                  "(net.py:8), after 7"});
  EXPECT_EQ(unfinished_texts(session, IntSet::all(), IntSet::of(1)),
            Texts{"step 0 is unfinished: rank 1 ends before h (net.py:8), after 7 of 8 operators"});
}

TEST(Unfinished, RanksThatStopAtTheSamePlaceShareALine) {
  FakeSession session(graphs(4));
  for (int rank = 0; rank < 4; ++rank) {
    run(session, rank, 0, 8, true);
    run(session, rank, 1, rank == 1 ? 3 : 6, false);
  }
  EXPECT_EQ(texts(session), Texts{"step 1 is unfinished: rank 1 ends before d (net.py:4), after 3 of 8 operators; ranks 0, 2-3 before g "
                                  "(net.py:7), after 6"});
}

TEST(Unfinished, RanksWaitInAnExchangeThatAnotherOneNeverCameTo) {
  for (const size_t came : {0, 2, 4}) {
    FakeSession session(graphs(3, "D/c"));
    for (const int rank : {0, 1, 2}) run(session, rank, 0, 8, true);
    for (const int rank : {0, 2}) run(session, rank, 1, 3, false);
    if (came > 0) run(session, 1, 1, came, false);
    const Texts found = texts(session);
    ASSERT_EQ(found.size(), 1U) << came;
    const bool waits = found[0].find("ranks 0, 2 end before c (net.py:3), after 2 of 8 operators") != std::string::npos ||
                       found[0].find("ranks 0-2 end before c (net.py:3), after 2 of 8 operators") != std::string::npos;
    EXPECT_EQ(waits, came < 3) << found[0];
  }
}

TEST(Unfinished, TheGraphTellsInTheFirstStepOfAll) {
  FakeSession session(graphs(1));
  session.all_operators();
  run(session, 0, 0, 6, false);
  EXPECT_EQ(texts(session), Texts{}) << "two operators may be of no interest to the dump";
  FakeSession chosen(graphs(1)), shorter(graphs(1));
  run(chosen, 0, 0, 5, false);
  EXPECT_EQ(texts(chosen), Texts{}) << "the first five may be those that the user wanted";
  shorter.all_operators();
  run(shorter, 0, 0, 5, false);
  EXPECT_EQ(texts(shorter), Texts{"step 0 is unfinished: it ends before f (net.py:6), after 5 of 8 operators"});
}

TEST(Unfinished, ADumpOfSomeOperatorsIsNotUnfinished) {
  FakeSession session(graphs(1));
  session.all_operators();
  for (const char* name : {"D/a", "D/c", "D/e"}) session.put(session.id(name, 0), f32({1}));
  EXPECT_EQ(texts(session), Texts{});
}

TEST(Unfinished, OnlyTheLastStepOfARankIsLookedAt) {
  FakeSession session(graphs(1));
  run(session, 0, 0, 8, true);
  run(session, 0, 1, 3, false);
  run(session, 0, 2, 8, true);
  EXPECT_EQ(texts(session), Texts{});
}

}  // namespace
}  // namespace msdbg
