// Every real dump, step and rank: as many tensors, bad tensors and lines as Python finds.
#include "msprobe/expected.h"

namespace msdbg::testing {
namespace {

class ValuesData : public ::testing::TestWithParam<const char*> {};

struct Seen {
  uint64_t tensors = 0, bad = 0, unknown = 0;
};

Seen look_at(Session& session, int rank, int64_t step) {
  TensorQuery query;
  query.ranks = IntSet::of(rank);
  query.steps = IntSet::of(step);
  query.inputs = true;
  Seen seen;
  for (const TensorId& id : session.tensors(query)) {
    // A table names the parameters of a module once for each of its calls.
    const Graph& graph = *session.graph(id.rank, id.graph);
    uint64_t copies = 1;
    if (graph.node(id.node).kind == NodeKind::kParameter) {
      copies = 0;
      for (const Use& use : graph.users(id.node)) {
        const bool module = graph.node(use.node).role == CallRole::kModule;
        if (module && session.executions(rank, id.graph, step, use.node) > 0) ++copies;
      }
    }
    seen.tensors += copies;
    // The tables have what a rank gives once more among the outputs.
    if (graph.node(id.node).op == "all_gather" && id.slot == Slot{Io::kInput, 0}) ++seen.tensors;
    const StatsRow row = session.stats_row(id);
    const bool bad = row.stats && row.stats->nan_count + row.stats->inf_count() > 0;
    const bool known = row.stats && row.stats->knows(kStatNan | kStatPosInf | kStatNegInf);
    if (bad) seen.bad += copies;
    if (!bad && !known) seen.unknown += copies;
  }
  return seen;
}

TEST_P(ValuesData, HasTheTensorsThatPythonFinds) {
  const std::unique_ptr<Session> session = open_real(GetParam());
  ASSERT_NE(session, nullptr);
  const nlohmann::json expected = expected_of(GetParam());
  std::vector<int64_t> steps;
  for (const auto& [folder, ranks] : expected["steps"].items()) {
    const int64_t step = step_number(folder);
    steps.push_back(step);
    for (const auto& [rank, wanted] : ranks.items()) {
      SCOPED_TRACE(folder + " " + rank);
      const Seen seen = look_at(*session, rank_number(rank), step);
      EXPECT_EQ(seen.tensors, wanted["tensors"].get<uint64_t>());
      EXPECT_EQ(seen.bad, wanted["bad_tensors"].get<uint64_t>());
      // Where there is a file, elements tell what the table does not.
      EXPECT_LE(seen.unknown, wanted["not_judged"].get<uint64_t>());
      if (wanted["tensor_files"] == 0) { EXPECT_EQ(seen.unknown, wanted["not_judged"].get<uint64_t>()); }
    }
  }
  std::sort(steps.begin(), steps.end());
  EXPECT_EQ(session->steps(), steps);
}

TEST_P(ValuesData, TellsTheRelease) {
  const std::unique_ptr<Session> session = open_real(GetParam());
  ASSERT_NE(session, nullptr);
  EXPECT_EQ(session->info().layout, "P");
  const std::string name = GetParam();
  const std::string release = name.substr(0, name.find('-'));
  EXPECT_EQ(session->info().epoch, release == "1.3" ? "1.x" : release);
}

TEST_P(ValuesData, EveryNodeIsFoundByItsName) {
  const std::unique_ptr<Session> session = open_real(GetParam());
  ASSERT_NE(session, nullptr);
  for (const GraphPtr& graph : session->graphs()) {
    EXPECT_TRUE(graph->recorded_calls());
    for (const Node& node : graph->nodes()) EXPECT_EQ(graph->find(node.name), &node) << node.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Real, ValuesData, ::testing::ValuesIn(kExpectedDumps), test_name);

}  // namespace
}  // namespace msdbg::testing
