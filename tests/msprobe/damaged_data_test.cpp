// What broken runs, several runs and hostile files leave behind.
#include <set>

#include "msprobe/expected.h"

namespace msdbg::testing {
namespace {

std::unique_ptr<Session> open_case(const std::string& name) { return open_real("synthetic-json/" + name); }

uint64_t tensors_of(Session& session) {
  TensorQuery query;
  query.inputs = true;
  return session.tensors(query).size();
}

std::string problems_of(Session& session) {
  std::string text;
  for (const Problem& problem : session.inspect().problems) text += problem.path + ": " + problem.message + "\n";
  return text;
}

TEST(DamagedDump, OfWhichNothingCanBeReadIsAnError) {
  for (const auto& [name, why] : {std::pair("empty", "file is empty (0 bytes)"), std::pair("no-data", "lists no call"),
                                  std::pair("list", "no dump.json of msprobe"), std::pair("deep", "nested more than 64 deep")}) {
    EXPECT_TRUE(is_msprobe_dump(real_dump(std::string("synthetic-json/") + name)));
    const Status status = open_msprobe(real_dump(std::string("synthetic-json/") + name), {}).status();
    EXPECT_EQ(status.code(), Code::kCorrupt) << name;
    EXPECT_NE(status.message().find(why), std::string::npos) << status.message();
  }
}

TEST(DamagedDump, ACutTableServesWhatPrecedesTheCut) {
  const auto session = open_case("cut");
  const Graph& graph = *session->graphs()[0];
  EXPECT_NE(graph.find("Tensor.__rmul__.0.forward"), nullptr);
  EXPECT_EQ(graph.find("Tensor.__sub__.0.forward"), nullptr);
  const std::string problems = problems_of(*session);
  EXPECT_NE(problems.find("cut off after 2616 bytes, behind 'Tensor.__rmul__.0.forward'"), std::string::npos) << problems;
  const Node* lost = graph.find("(calls that were lost)");
  ASSERT_NE(lost, nullptr);
  const StatsRow row = session->stats_row({0, 0, 0, 0, lost->id, {}});
  EXPECT_FALSE(row.stats);
  EXPECT_EQ(row.info.problem.code(), Code::kCorrupt);
}

TEST(DamagedDump, AKilledRunHasOneWholeStep) {
  const auto session = open_real("26.2-torch-lenet-killed");
  EXPECT_EQ(session->steps(), (std::vector<int64_t>{0, 1}));
  EXPECT_NE(problems_of(*session).find("17 tensor files have no entry"), std::string::npos) << problems_of(*session);
  TensorQuery query;
  query.steps = IntSet::of(1);
  ASSERT_EQ(session->tensors(query).size(), 1u);
  EXPECT_FALSE(session->stats_row(session->tensors(query)[0]).stats);
}

TEST(DamagedDump, ACutStackCostsLinesOnly) {
  const auto session = open_case("cut-stack");
  EXPECT_EQ(tensors_of(*session), tensors_of(*open_case("whole")));
  EXPECT_NE(problems_of(*session).find("stack.json"), std::string::npos);
}

TEST(DamagedDump, NumbersAreThoseOfPython) {
  const auto session = open_case("numbers");
  const auto floats = session->given_statistics({0, 0, 0, 0, 0, {Io::kOutput, 0}});
  ASSERT_TRUE(floats);
  EXPECT_EQ(floats->pos_inf_count, 1u);
  EXPECT_EQ(floats->neg_inf_count, 1u);
  EXPECT_TRUE(floats->knows(kStatNan));
  const auto integers = session->given_statistics({0, 0, 0, 0, 0, {Io::kOutput, 1}});
  ASSERT_TRUE(integers);
  EXPECT_EQ(integers->nan_count + integers->inf_count(), 0u);
}

TEST(DamagedDump, ImpossibleShapesAreUnreadable) {
  const auto session = open_case("shape");
  for (NodeId node = 0; node < 5; ++node) {
    const StatsRow row = session->stats_row({0, 0, 0, 0, node, {}});
    EXPECT_EQ(row.stats.has_value(), node == 4) << node;
    if (node < 4) { EXPECT_EQ(row.info.problem.code(), Code::kCorrupt); }
  }
}

TEST(DamagedDump, NamesOfFilesStayInTheirFolder) {
  const auto session = open_case("path");
  for (uint32_t slot = 0; slot < 3; ++slot) {
    const auto opened = session->open({0, 0, 0, 0, 0, {Io::kOutput, slot}});
    ASSERT_TRUE(opened.ok());
    EXPECT_EQ(opened->reader, nullptr);
    EXPECT_EQ(opened->info.availability, Availability::kStatisticsOnly);
    EXPECT_NE(opened->info.note.find(slot < 2 ? "outside of its folder" : "missing.pt"), std::string::npos) << opened->info.note;
    EXPECT_EQ(session->identify({0, 0, 0, 0, 0, {Io::kOutput, slot}}).source.find("passwd"), std::string::npos);
  }
  EXPECT_NE(problems_of(*session).find("not there"), std::string::npos);
}

TEST(DamagedDump, UnknownThingsAreShownAsFarAsTheyGo) {
  const auto session = open_case("unknown");
  const Graph& graph = *session->graphs()[0];
  EXPECT_EQ(graph.nodes()[0].name, "Triton.kernel.0");
  const StatsRow row = session->stats_row({0, 0, 0, 0, 0, {}});
  EXPECT_EQ(row.info.shape, Shape{2});
  EXPECT_TRUE(session->operator_overflow({0, 0, 0, 0, graph.find("Aten.x.forward")->id, {}}).status().code() == Code::kNotFound);
}

TEST(DamagedDump, MicroStepsAndCyclesHaveScopes) {
  for (const char* name : {"micro", "cycle"}) {
    const auto session = open_case(name);
    EXPECT_EQ(session->graphs()[0]->find("Torch.log.0.forward")->scope, "a") << name;
  }
}

TEST(DamagedDump, StructureAloneIsAGraphWithoutValues) {
  const auto session = open_real("26.2-torch-lenet-structure");
  const Node* log = session->graphs()[0]->find("Torch.log.0.forward");
  ASSERT_NE(log, nullptr);
  EXPECT_EQ(log->scope, "net");
  EXPECT_FALSE(log->stack.empty());
  EXPECT_EQ(tensors_of(*session), 0u);
}

TEST(DamagedDump, SavedValuesHaveTheirNames) {
  const auto session = open_real("26.2-torch-lenet-debug");
  const Node* images = session->graphs()[0]->find("inputs.0.debug");
  ASSERT_NE(images, nullptr);
  EXPECT_EQ(session->open({0, 0, 1, 0, images->id, {}})->info.shape, (Shape{4, 1, 16, 16}));
}

}  // namespace
}  // namespace msdbg::testing
