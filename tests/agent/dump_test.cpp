// MindSpore's own dump as description and values, from dumps of real trainings.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "agent/chain_net.h"
#include "msdbg/agent_c.h"
#include "msdbg/dump.h"
#include "msdbg/dump_step.h"
#include "support/temp_dir.h"

namespace msdbg::test {
namespace {

using agent::GraphDescription;
using agent::graph_from_dump;

std::string rank_of(const std::string& dump) { return std::string(MSDBG_TEST_DATA) + "/dumps/" + dump + "/rank_0"; }

/// "1 name:slot file" of each output of an operator that a session on the dump finds, and those that a StepReader lists.
std::set<std::string> by_session(Session& session, int graph, int64_t step) {
  std::set<std::string> found;
  TensorQuery query;
  query.steps = IntSet::of(step);
  for (const TensorId& id : session.tensors(query)) {
    const Node& node = session.graph(id.rank, id.graph)->node(id.node);
    if (id.graph != graph || id.slot.io != Io::kOutput || node.kind != NodeKind::kOperator || session.identify(id).source.empty()) continue;
    if (id.execution + 1 < session.executions(id.rank, id.graph, id.step, id.node)) continue;
    found.insert(node.name + ":" + std::to_string(id.slot.index) + " " + session.identify(id).source);
  }
  return found;
}

TEST(DumpSteps, ReaderPairsFilesAsASessionDoes) {
  for (const std::string dump :
       {"lenet-2.7.1-ok", "lenet-2.7.1-lognan", "two-2.7.1", "types-2.7.1", "lenet-2.0.0-ok", "long-2.7.1", "control-2.7.1"}) {
    SCOPED_TRACE(dump);
    auto session = open_dump(rank_of(dump));
    ASSERT_TRUE(session.ok()) << session.status().message();
    size_t compared = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(rank_of(dump))) {
      const auto step = parse_int(entry.path().filename().string());
      const auto graph = parse_int(entry.path().parent_path().filename().string());
      if (!entry.is_directory() || !step || !graph) continue;
      auto reader = StepReader::open(rank_of(dump), static_cast<int>(*graph));
      if (!reader) continue;
      std::set<std::string> listed;
      const auto values = (*reader)->list(entry.path().string());
      ASSERT_TRUE(values.ok());
      for (const StepValue& value : *values) {
        listed.insert((*reader)->graph().node(value.node).name + ":" + std::to_string(value.slot) + " " + value.path);
      }
      EXPECT_EQ(listed, by_session(**session, static_cast<int>(*graph), *step)) << entry.path();
      compared += listed.size();
    }
    EXPECT_GT(compared, 0u);
  }
}

TEST(DumpSteps, MissingGraphAndDirectoryAreNamed) {
  const auto reader = StepReader::open(rank_of("lenet-2.7.1-ok"), 99);
  EXPECT_NE(reader.status().message().find("ms_output_trace_code_graph_99.pb"), std::string::npos) << reader.status().message();
  auto known = StepReader::open(rank_of("two-2.7.1"), 0);
  ASSERT_TRUE(known.ok()) << known.status().message();
  EXPECT_EQ((*known)->list(rank_of("two-2.7.1") + "/nowhere").status().code(), Code::kNotFound);
}

/// The first directory `<net>/<graph>/<step>` of a dump.
std::string first_step(const std::string& dump, int graph) {
  std::set<std::string> found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(rank_of(dump))) {
    const std::filesystem::path& path = entry.path();
    const bool numbered = entry.is_directory() && parse_int(path.filename().string());
    if (numbered && path.parent_path().filename() == std::to_string(graph)) found.insert(path);
  }
  return found.empty() ? "" : *found.begin();
}

/// The number of a graph that the dump has.
int first_graph(const std::string& dump) {
  for (int graph = 0; graph < 100; ++graph) {
    if (!first_step(dump, graph).empty() && StepReader::open(rank_of(dump), graph).ok()) return graph;
  }
  return -1;
}

TEST(DumpDescription, HasEveryKernelWithItsInputsAndLines) {
  const int number = first_graph("lenet-2.7.1-ok");
  const auto graph = graph_from_dump(rank_of("lenet-2.7.1-ok"), number, 7);
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(graph->id, 7);
  std::map<std::string, const agent::NodeDescription*> nodes;
  size_t inputs = 0, lines = 0;
  for (const auto& node : graph->nodes) {
    nodes[node.full_name] = &node;
    inputs += node.inputs.size();
    lines += node.stack.empty() ? 0 : 1;
    EXPECT_FALSE(is_structural(node.op)) << node.full_name;
  }
  EXPECT_EQ(nodes.size(), graph->nodes.size());
  EXPECT_GT(graph->nodes.size(), 30u);
  EXPECT_GT(inputs, graph->nodes.size());
  EXPECT_GT(lines, 10u);
  std::set<std::string> parameters;
  for (const auto& parameter : graph->parameters) parameters.insert(parameter.name);
  EXPECT_TRUE(parameters.contains("conv1.weight"));
  // An agent takes it as it is.
  agent::Options options;
  options.enabled = true;
  agent::Agent agent(options);
  EXPECT_TRUE(agent.add_graph(*graph).ok());
}

TEST(DumpDescription, MakesAGraphOfEveryDump) {
  for (const std::string dump :
       {"control-2.7.1", "two-2.7.1", "types-2.7.1", "long-2.7.1", "lenet-2.7.1-eval", "lenet-2.0.0-ok", "control-2.0.0"}) {
    for (const auto& file : std::filesystem::directory_iterator(rank_of(dump) + "/graphs")) {
      int number = -1;
      if (std::sscanf(file.path().filename().c_str(), "ms_output_trace_code_graph_%d.pb", &number) != 1) continue;
      auto graph = graph_from_dump(rank_of(dump), number);
      ASSERT_TRUE(graph.ok()) << graph.status().message();
      agent::Options options;
      options.enabled = true;
      agent::Agent agent(options);
      const Status added = agent.add_graph(std::move(*graph));
      EXPECT_TRUE(added.ok()) << file.path() << ": " << added.message();
    }
  }
}

TEST(DumpDescription, HoldsAllGraphsOfANetwork) {
  const std::string rank = rank_of("control-2.7.1");
  auto all = graph_from_dump(rank, 0);
  ASSERT_TRUE(all.ok()) << all.status().message();
  size_t nodes = all->nodes.size();
  std::vector<std::string> names;
  for (const auto& node : all->nodes) names.push_back(node.full_name);
  for (const int graph : {1, 3, 4, 5}) {
    ASSERT_TRUE(agent::add_dumped_graph(*all, rank, graph).ok());
    const auto alone = graph_from_dump(rank, graph);
    ASSERT_TRUE(alone.ok());
    nodes += alone->nodes.size();
    for (const auto& node : alone->nodes) names.push_back(node.full_name);
  }
  ASSERT_EQ(all->nodes.size(), nodes);
  for (size_t i = 0; i < nodes; ++i) EXPECT_EQ(all->nodes[i].full_name, names[i]);
  std::set<std::string> once;
  for (const auto& each : all->parameters) EXPECT_TRUE(once.insert(each.name).second) << each.name;
  for (const auto& each : all->constants) EXPECT_TRUE(once.insert(each.name).second) << each.name;
  EXPECT_EQ(agent::add_dumped_graph(*all, rank, 77).code(), Code::kNotFound);
  EXPECT_EQ(all->nodes.size(), nodes);
  agent::Options options;
  options.enabled = true;
  agent::Agent agent(options);
  EXPECT_TRUE(agent.add_graph(std::move(*all)).ok());
}

/// An agent that publishes a dumped step to a scripted debugger.
struct Publishing : testing::Test {
  ScriptedServer server;
  std::string dump = "lenet-2.7.1-lognan";
  int number = first_graph(dump);
  std::string step = first_step(dump, number);
  std::unique_ptr<agent::Agent> agent;

  void begin(std::vector<Answer> script, const std::string& backend) {
    server.script(std::move(script));
    server.then_always(Answer::run());
    agent::Options options = options_for(server);
    options.backend = backend;
    agent = std::make_unique<agent::Agent>(options);
    auto graph = graph_from_dump(rank_of(dump), number);
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    ASSERT_TRUE(agent->add_graph(std::move(*graph)).ok());
    ASSERT_EQ(agent->begin_step(), agent::Control::kGo);
  }
};

TEST_F(Publishing, EveryValueArrivesAsItWasDumped) {
  auto session = open_dump(rank_of(dump));
  ASSERT_TRUE(session.ok());
  auto reader = StepReader::open(rank_of(dump), number);
  ASSERT_TRUE(reader.ok());
  const auto values = (*reader)->list(step);
  ASSERT_TRUE(values.ok());
  View view(debugger::ViewCMD::value);
  for (const StepValue& value : *values) view.tensor((*reader)->graph().node(value.node).name, std::to_string(value.slot));
  begin({Answer::run(), view.answer()}, "Ascend");
  const auto published = agent->publish_dump(step);
  ASSERT_TRUE(published.ok()) << published.status().message();
  EXPECT_EQ(*published, values->size());
  agent->end_step();
  EXPECT_EQ(agent->problem(), "");
  const Call sent = server.calls("SendTensors").at(0);
  ASSERT_EQ(sent.messages.size(), values->size());
  for (size_t i = 0; i < values->size(); ++i) {
    const auto tensor = sent.as<debugger::TensorProto>(i);
    std::ifstream file((*values)[i].path, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), {});
    ASSERT_GE(bytes.size(), tensor.tensor_content().size()) << (*values)[i].path;
    EXPECT_EQ(bytes.substr(bytes.size() - tensor.tensor_content().size()), tensor.tensor_content()) << tensor.node_name();
    EXPECT_FALSE(tensor.tensor_content().empty()) << tensor.node_name();
  }
}

TEST_F(Publishing, EachGraphOfANetworkHasItsDirectory) {
  const std::string rank = rank_of("control-2.7.1");
  server.script({});
  server.then_always(Answer::run());
  agent::Agent all(options_for(server));
  auto graph = graph_from_dump(rank, 0);
  ASSERT_TRUE(graph.ok());
  for (const int each : {1, 3, 4, 5}) ASSERT_TRUE(agent::add_dumped_graph(*graph, rank, each).ok());
  ASSERT_TRUE(all.add_graph(std::move(*graph)).ok());
  ASSERT_EQ(all.begin_step(), agent::Control::kGo);
  for (const int each : {0, 1, 3, 4}) {  // the branch that was taken
    const auto published = all.publish_dump(rank + "/LeNet/" + std::to_string(each) + "/1");
    EXPECT_TRUE(published.ok()) << published.status().message();
  }
  const auto foreign = all.publish_dump(rank + "/LeNet/99/1");
  ASSERT_TRUE(foreign.ok());
  EXPECT_EQ(*foreign, 0u);
  EXPECT_EQ(all.publish_dump(rank + "/LeNet/5/77").status().code(), Code::kNotFound);
  all.end_step();
}

TEST_F(Publishing, NanIsFoundInTheDumpedStep) {
  Watch watch(1, debugger::WatchCondition::tensor_general_overflow);
  const auto graph = graph_from_dump(rank_of(dump), number);
  for (const auto& node : graph->nodes) watch.leaf(node.full_name);
  begin({watch.answer(), Answer::run()}, "Ascend");
  ASSERT_TRUE(agent->publish_dump(step).ok());
  agent->end_step();
  const std::vector<Call> hits = server.calls("SendWatchpointHits");
  ASSERT_FALSE(hits.empty());
  EXPECT_EQ(hits[0].as<debugger::WatchpointHit>().tensor().node_name(), "Default/network-WithLossCell/_backbone-LeNet5/Log-op0");
}

TEST_F(Publishing, FilesThatNobodyWantsStayClosed) {
  begin({}, "GPU");
  const auto published = agent->publish_dump(step);
  ASSERT_TRUE(published.ok()) << published.status().message();
  EXPECT_EQ(*published, 0u);
}

TEST_F(Publishing, DamagedFilesAreLeftOutAndTold) {
  TempDir temp;
  const std::string copy = temp.file("0");
  std::filesystem::copy(step, copy, std::filesystem::copy_options::recursive);
  size_t files = 0;
  std::string cut, gone;
  for (const auto& file : std::filesystem::directory_iterator(copy)) {
    if (file.path().extension() != ".npy" || file.path().filename().string().starts_with("Parameter")) continue;
    if (file.path().string().find(".output.") == std::string::npos) continue;
    if (++files == 1) cut = file.path();
    else if (files == 2) gone = file.path();
  }
  std::filesystem::permissions(cut, std::filesystem::perms::owner_all);
  std::filesystem::resize_file(cut, 5);
  begin({}, "Ascend");
  const auto published = agent->publish_dump(copy);
  ASSERT_TRUE(published.ok()) << published.status().message();
  EXPECT_GT(*published, 10u);
  EXPECT_NE(agent->problem().find("1 of "), std::string::npos) << agent->problem();
  EXPECT_NE(agent->problem().find(cut), std::string::npos) << agent->problem();
  agent->end_step();
}

TEST_F(Publishing, FileThatVanishesIsNeitherCleanNorThere) {
  TempDir temp;
  const std::string copy = temp.file("0");
  std::filesystem::copy(step, copy, std::filesystem::copy_options::recursive);
  begin({Watch(1, debugger::WatchCondition::tensor_general_overflow).scope("*").answer(), Answer::run()}, "Ascend");
  ASSERT_TRUE(agent->publish_dump(copy).ok());
  std::filesystem::remove_all(copy);
  agent->end_step();
  const Call hits = server.calls("SendWatchpointHits").at(0);
  ASSERT_FALSE(hits.messages.empty());
  for (size_t i = 0; i < hits.messages.size(); ++i) EXPECT_NE(hits.as<debugger::WatchpointHit>(i).error_code(), 0);
  EXPECT_NE(agent->problem().find("could not be fetched"), std::string::npos);
}

TEST_F(Publishing, WrongCallsSayWhy) {
  begin({}, "Ascend");
  EXPECT_EQ(agent->publish_dump("/nowhere").status().code(), Code::kNotFound);
  agent->end_step();
  EXPECT_EQ(agent->publish_dump(step).status().message(), "publish_dump: no step has begun");
  ScriptedServer other;
  other.then_always(Answer::run());
  SmallNet net;
  agent::Agent plain(options_for(other));
  ASSERT_TRUE(plain.add_graph(net.describe()).ok());
  plain.begin_step();
  EXPECT_EQ(plain.publish_dump(step).status().message(), "publish_dump: graph 1 was not described by graph_from_dump");
}

TEST_F(Publishing, InC) {
  char problem[300] = "";
  EXPECT_EQ(msdbg_agent_graph_from_dump(1, "/nowhere", 0, problem, sizeof problem), nullptr);
  EXPECT_NE(std::string(problem).find("/nowhere"), std::string::npos);
  EXPECT_EQ(msdbg_agent_graph_from_dump(1, nullptr, -1, nullptr, 0), nullptr);
  EXPECT_EQ(msdbg_agent_graph_add_dump(nullptr, "/nowhere", 0, nullptr, 0), -1);
  server.then_always(Answer::run());
  msdbg_agent_options options{};
  options.enabled = 1;
  options.port = server.port();
  options.backend = "Ascend";
  msdbg_agent* c = msdbg_agent_new(&options);
  msdbg_agent_graph* graph = msdbg_agent_graph_from_dump(1, rank_of(dump).c_str(), number, problem, sizeof problem);
  ASSERT_NE(graph, nullptr) << problem;
  EXPECT_EQ(msdbg_agent_graph_add_dump(graph, "/nowhere", 0, problem, sizeof problem), -1);
  EXPECT_NE(std::string(problem).find("/nowhere"), std::string::npos);
  EXPECT_EQ(msdbg_agent_add_graph(c, graph), MSDBG_AGENT_OK);
  EXPECT_EQ(msdbg_agent_publish_dump(c, step.c_str()), -1);
  EXPECT_EQ(msdbg_agent_begin_step(c, 0), MSDBG_AGENT_GO);
  EXPECT_GT(msdbg_agent_publish_dump(c, step.c_str()), 30);
  EXPECT_EQ(msdbg_agent_publish_dump(c, nullptr), -1);
  EXPECT_EQ(msdbg_agent_publish_dump(nullptr, step.c_str()), -1);
  EXPECT_EQ(msdbg_agent_end_step(c), MSDBG_AGENT_GO);
  msdbg_agent_free(c);
}

}  // namespace
}  // namespace msdbg::test
