// Opening: links, listing once, metadata, queries.
#include <gtest/gtest.h>

#include "dump/dump_support.h"

namespace msdbg::testing {
namespace {

std::string file(const std::string& type, int number, int time, const std::string& slot = "output.0") {
  return type + ".Default_" + type + "-op" + std::to_string(number) + ".0.0." + std::to_string(time) + "." + slot +
         ".DefaultFormat.Float32.npy";
}

TEST(Opening, AStepBehindALinkIsReadOnce) {
  TempDir dir;
  dir.npy("elsewhere/" + file("Add", 0, 1), {1});
  dir.npy("rank_0/Net/0/0/" + file("Add", 0, 2), {0});
  dir.link("rank_0/Net/0/1", dir.at("elsewhere"));
  dir.link("rank_0/Net/0/2", dir.at("elsewhere"));
  dir.link("rank_0/Net/0/3", dir.at("rank_0"));
  dir.link("rank_0/Net/0/4", "4");
  dir.link("rank_0/Net/0/5", dir.at("nowhere"));
  auto session = open(dir.path());
  EXPECT_EQ(session->steps(), (std::vector<int64_t>{0, 1}));
  EXPECT_TRUE(reports(*session, "/0/2", "listed already"));
  EXPECT_TRUE(reports(*session, "/0/3", "listed already"));
  EXPECT_TRUE(reports(*session, "/0/4", "leads nowhere"));
  EXPECT_TRUE(reports(*session, "/0/5", "leads nowhere"));
}

TEST(Opening, ALinkInsteadOfATensorIsFollowed) {
  TempDir dir;
  dir.npy("elsewhere.npy", {4});
  dir.link("rank_0/Net/0/0/" + file("Add", 0, 1), dir.at("elsewhere.npy"));
  dir.link("rank_0/Net/0/0/" + file("Mul", 0, 1), "nothing");
  auto session = open(dir.path());
  EXPECT_EQ(elements(*session, "Default_Add-op0", 0), (std::vector<double>{4}));
  EXPECT_EQ(problem_of(*session, id_of(*session, "Default_Mul-op0", 0)).code(), Code::kIoError);
}

TEST(Opening, NodesWithoutAGraphAreTheSameInStepsWithOtherFiles) {
  TempDir dir;
  const std::vector<std::vector<std::string>> steps = {{"Add", "Mul", "ReLU", "Sub"}, {"Add", "ReLU", "Tanh"}, {"Tanh", "Sub"}, {"Mul"}};
  for (size_t step = 0; step < steps.size(); ++step) {
    for (size_t i = 0; i < steps[step].size(); ++i) {
      const std::string name = file(steps[step][i], 0, static_cast<int>(10 * step + i));
      dir.npy("rank_0/Net/0/" + std::to_string(step) + "/" + name, {static_cast<double>(name.size())});
    }
  }
  auto session = open(dir.path());
  EXPECT_EQ(session->graphs().front()->nodes().size(), 5u);
  for (size_t step = 0; step < steps.size(); ++step) {
    TensorQuery query;
    query.steps = IntSet::of(static_cast<int64_t>(step));
    EXPECT_EQ(session->tensors(query).size(), steps[step].size());
    for (size_t i = 0; i < steps[step].size(); ++i) {
      const auto size = static_cast<double>(file(steps[step][i], 0, static_cast<int>(10 * step + i)).size());
      const std::string node = "Default_" + steps[step][i] + "-op0";
      EXPECT_EQ(elements(*session, node, static_cast<int64_t>(step)), (std::vector<double>{size})) << node << " in step " << step;
    }
  }
}

TEST(Opening, QueriesChooseSlotsStepsNodesAndGraphs) {
  TempDir dir;
  for (int step : {0, 1}) {
    for (int graph : {0, 1}) {
      const std::string folder = "rank_0/Net/" + std::to_string(graph) + "/" + std::to_string(step) + "/";
      dir.npy(folder + file("Add", 0, 1, "input.0"), {1});
      dir.npy(folder + file("Add", 0, 2, "input.1"), {1});
      dir.npy(folder + file("Add", 0, 3), {1});
      dir.npy(folder + file("Mul", 0, 4), {1});
    }
  }
  auto session = open(dir.path());
  const auto count = [&](const TensorQuery& query) { return session->tensors(query).size(); };
  TensorQuery query;
  EXPECT_EQ(count(query), 8u);
  query.inputs = true;
  EXPECT_EQ(count(query), 16u);
  query.outputs = false;
  EXPECT_EQ(count(query), 8u);
  query.slot = 1;
  EXPECT_EQ(count(query), 4u);
  query.steps = IntSet::of(1);
  EXPECT_EQ(count(query), 2u);
  query.graph = 1;
  EXPECT_EQ(count(query), 1u);
  query.ranks = IntSet::of(3);
  EXPECT_EQ(count(query), 0u);

  const Graph* graph = session->graph(0, 1);
  const std::vector<NodeRef> nodes = {{graph, graph->find("Default_Mul-op0")->id}};
  TensorQuery one;
  one.nodes = &nodes;
  const std::vector<TensorId> found = session->tensors(one);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].graph, 1);
  EXPECT_EQ(session->tensor_name(found[0]), "Default_Mul-op0:output:0");
  EXPECT_LT(found[0].step, found[1].step);
}

TEST(Opening, NodesWithoutAGraphRunInTheOrderOfTheirTimeStamps) {
  TempDir dir;
  dir.npy("rank_0/Net/0/0/" + file("Add", 0, 30), {1});
  dir.npy("rank_0/Net/0/0/" + file("Mul", 0, 10), {1});
  dir.npy("rank_0/Net/0/0/" + file("Sub", 0, 20), {1});
  dir.npy("rank_0/Net/0/0/Parameter.w.0.0.40.output.0.DefaultFormat.Float32.npy", {1});
  auto session = open(dir.path());
  EXPECT_EQ(names(*session, 0), (std::vector<std::string>{"w:output:0", "Default_Mul-op0:output:0",
                                                          "Default_Sub-op0:output:0", "Default_Add-op0:output:0"}));
}

TEST(Opening, MappedNamesStandForTheirFiles) {
  TempDir dir;
  const std::string folder = "rank_0/Net/0/0/";
  dir.npy(folder + "123.npy", {1});
  dir.npy(folder + "456.npy", {2});
  dir.text(folder + "mapping.csv", "123.npy," + file("Add", 0, 1) + "\n456.npy," + file("Mul", 0, 9) +
                                       "\nnonsense\n456.npy," + file("Mul", 0, 2) + "\n789.npy," + file("Sub", 0, 3));
  auto session = open(dir.path());
  EXPECT_EQ(elements(*session, "Default_Add-op0", 0), (std::vector<double>{1}));
  EXPECT_EQ(elements(*session, "Default_Mul-op0", 0), (std::vector<double>{2}));
  EXPECT_TRUE(session->describe(id_of(*session, "Default_Add-op0", 0))->source.ends_with("/123.npy"));
  EXPECT_TRUE(reports(*session, "mapping.csv", "1 lines are no `file,name`"));
  EXPECT_TRUE(reports(*session, "mapping.csv", "789.npy"));
}

TEST(Opening, NothingIsOpenedButDirectoriesAndTables) {
  TempDir dir;
  dir.text("rank_0/Net/0/0/" + file("Add", 0, 1), "garbage");
  auto session = open(dir.path());  // contents are read on request
  EXPECT_EQ(all_tensors(*session, 0).size(), 1u);
  EXPECT_FALSE(problem_of(*session, all_tensors(*session, 0)[0]).ok());
}

TEST(Opening, BrokenMetadataIsReportedAndTheRestGoesOn) {
  TempDir dir;
  dir.text("rank_0/.dump_metadata/config.json", "{\"ms_version\": ");
  dir.text("rank_0/.dump_metadata/data_dump.json", "[1, 2]");
  dir.npy("rank_0/Net/0/0/" + file("Add", 0, 1), {1});
  auto session = open(dir.path());
  EXPECT_EQ(session->info().framework_version, "");
  EXPECT_TRUE(reports(*session, "config.json", "is not JSON"));
  EXPECT_EQ(all_tensors(*session, 0).size(), 1u);
}

TEST(Opening, AVersionOfHugeNumbersCountsAsANewOne) {
  TempDir dir;
  dir.text("rank_0/.dump_metadata/config.json", R"({"ms_version": "9223372036854775807.1"})");
  dir.npy("rank_0/Net/0/0/Add.Default_Add-op0.0.0.5.output.0.DefaultFormat.npy", {1});
  auto session = open(dir.path());
  EXPECT_EQ(session->info().framework_version, "9223372036854775807.1");
  EXPECT_EQ(session->info().epoch, "E");
}

TEST(Opening, WhatIsNotThereIsExplained) {
  TempDir dir;
  dir.npy("rank_0/Net/0/0/" + file("Add", 0, 1), {1});
  dir.npy("rank_0/Net/0/2/" + file("Mul", 0, 2), {1});
  auto session = open(dir.path());
  const Graph& graph = *session->graphs()[0];
  const auto message = [&](const TensorId& id) { return session->describe(id).status().message(); };
  const NodeId add = graph.find("Default_Add-op0")->id;
  EXPECT_EQ(message({0, 0, 7, 0, add, {}}), "not dumped: graph 0 has no data of step 7 (have steps 0, 2)");
  EXPECT_EQ(message({0, 0, 2, 0, add, {}}), "not dumped: Default_Add-op0 has no file in step 2 (have steps 0)");
  EXPECT_EQ(message({0, 0, 0, 0, add, {Io::kInput, 1}}),
            "not dumped: Default_Add-op0:input:1 has no file in step 0 (there are output:0)");
  EXPECT_EQ(message({0, 5, 0, 0, add, {}}), "not dumped: there is no graph 5 of rank 0");
  EXPECT_EQ(message({0, 0, 0, 0, 99, {}}), "not dumped: graph 0 has no such node");
}

}  // namespace
}  // namespace msdbg::testing
