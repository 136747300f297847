// The plain C interface, from a C program and at its limits.
#include "msdbg/agent_c.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <cstring>

#include "agent/c_program.h"
#include "agent/small_net.h"

namespace msdbg::test {
namespace {

TEST(AgentC, ProgramInCIsHeldAndViewed) {
  ScriptedServer server;
  server.script({Answer::run_node(), View(debugger::ViewCMD::value).tensor("Default/net-Net/Mul-op1").answer()});
  server.then_always(Answer::run());
  char problem[200] = "";
  EXPECT_EQ(train_in_c(server.port(), problem, sizeof problem), 2);
  EXPECT_STREQ(problem, "");
  EXPECT_EQ(server.order(), "SendMetadata SendGraph WaitCMD WaitCMD SendTensors WaitCMD WaitCMD WaitCMD SendMetadata");
  const auto tensor = server.calls("SendTensors").at(0).as<debugger::TensorProto>();
  EXPECT_EQ(tensor.dims_size(), 2);
  EXPECT_EQ(hex(tensor.tensor_content()), "00000040000080400000c04000000041");
}

TEST(AgentC, ExitReachesTheProgram) {
  ScriptedServer server;
  server.script({Answer::exit()});
  char problem[200] = "";
  EXPECT_EQ(train_in_c(server.port(), problem, sizeof problem), 101);
}

TEST(AgentC, WrongDescriptionIsExplained) {
  msdbg_agent* agent = msdbg_agent_new(nullptr);
  msdbg_agent_graph* graph = msdbg_agent_graph_new(1);
  msdbg_agent_graph_input(graph, msdbg_agent_graph_node(graph, "Default/Add-op1", "Add"), "nowhere", 0);
  msdbg_agent_graph_input(graph, 7, "ignored", 0);
  EXPECT_EQ(msdbg_agent_add_graph(agent, graph), MSDBG_AGENT_ERROR);
  char problem[200] = "";
  const size_t length = msdbg_agent_problem(agent, problem, sizeof problem);
  EXPECT_NE(std::string(problem).find("'nowhere'"), std::string::npos);
  EXPECT_EQ(length, std::string(problem).size());
  char cut[6] = "";
  EXPECT_EQ(msdbg_agent_problem(agent, cut, sizeof cut), length);
  EXPECT_EQ(std::string(cut), std::string(problem).substr(0, 5));
  msdbg_agent_free(agent);
}

TEST(AgentC, WrongEnvironmentIsExplained) {
  setenv("ENABLE_MS_DEBUGGER", "1", 1);
  setenv("MS_DEBUGGER_PORT", "0", 1);
  char problem[24] = "";
  EXPECT_EQ(msdbg_agent_from_environment(problem, sizeof problem), nullptr);
  EXPECT_STREQ(problem, "MS_DEBUGGER_PORT is '0'");
  unsetenv("MS_DEBUGGER_PORT");
  unsetenv("ENABLE_MS_DEBUGGER");
  msdbg_agent* off = msdbg_agent_from_environment(problem, sizeof problem);
  ASSERT_NE(off, nullptr);
  EXPECT_EQ(msdbg_agent_attached(off), 0);
  msdbg_agent_free(off);
}

TEST(AgentC, NothingHappensToNull) {
  EXPECT_EQ(msdbg_agent_begin_step(nullptr, 0), MSDBG_AGENT_GO);
  EXPECT_EQ(msdbg_agent_end_step(nullptr), MSDBG_AGENT_GO);
  EXPECT_EQ(msdbg_agent_add_graph(nullptr, msdbg_agent_graph_new(1)), MSDBG_AGENT_ERROR);
  EXPECT_EQ(msdbg_agent_graph_node(nullptr, "a", "b"), UINT32_MAX);
  msdbg_agent_publish(nullptr, 0, 0, nullptr, 0);
  msdbg_agent_overflowed(nullptr, 0);
  msdbg_agent_skipped(nullptr, nullptr, 1);
  msdbg_agent_cut_short(nullptr, "no memory");
  msdbg_agent_step_computed(nullptr);
  msdbg_agent_node_done(nullptr, 0);
  EXPECT_EQ(msdbg_agent_wants(nullptr), MSDBG_AGENT_WANTS_NOTHING);
  EXPECT_EQ(msdbg_agent_wants_node(nullptr, 0), 0);
  EXPECT_EQ(msdbg_agent_wants_any(nullptr, nullptr, 1), 0);
  EXPECT_EQ(msdbg_agent_passes(nullptr), 0);
  EXPECT_EQ(msdbg_agent_replace_graph(nullptr, 0, msdbg_agent_graph_new(1)), MSDBG_AGENT_ERROR);
  EXPECT_EQ(msdbg_agent_publish_copy(nullptr, 0, 0, nullptr, nullptr, nullptr, nullptr, 0), 0);
  msdbg_agent_publish_remote(nullptr, 0, 0, nullptr, nullptr, 0, 0, nullptr, nullptr);
  EXPECT_EQ(msdbg_agent_set_parameter(nullptr, 0, "w", nullptr, nullptr, 0, nullptr), MSDBG_AGENT_ERROR);
  EXPECT_EQ(msdbg_agent_set_parameter_remote(nullptr, 0, "w", nullptr, nullptr, 0, nullptr, nullptr, nullptr), MSDBG_AGENT_ERROR);
  EXPECT_EQ(msdbg_agent_set_option(nullptr, "program", "x"), MSDBG_AGENT_ERROR);
  msdbg_agent_finish(nullptr);
  msdbg_agent_free(nullptr);
  EXPECT_EQ(msdbg_agent_problem(nullptr, nullptr, 0), 0u);
}

/// A training in C that is held after its first operator, so that everything is wanted.
struct WrongArguments : testing::Test {
  ScriptedServer server;
  std::array<float, 4> w{1, 2, 3, 4};
  const int64_t shape[2] = {2, 2};
  msdbg_agent* agent = nullptr;

  WrongArguments() {
    server.script({Answer::run_node()});
    server.then_always(Answer::run_node());
    msdbg_agent_options options{};
    options.enabled = 1;
    options.port = server.port();
    agent = msdbg_agent_new(&options);
    EXPECT_EQ(msdbg_agent_add_graph(agent, describe()), MSDBG_AGENT_OK);
    EXPECT_EQ(msdbg_agent_begin_step(agent, 0), MSDBG_AGENT_GO);
  }
  ~WrongArguments() override { msdbg_agent_free(agent); }

  msdbg_agent_graph* describe() const {
    msdbg_agent_graph* graph = msdbg_agent_graph_new(1);
    msdbg_agent_graph_parameter(graph, "w", "float32", shape, 2, w.data(), 1);
    const uint32_t mul = msdbg_agent_graph_node(graph, "Default/net-Net/Mul-op1", "Mul");
    msdbg_agent_graph_input(graph, mul, "w", 0);
    msdbg_agent_graph_output(graph, mul, "float32", shape, 2);
    return graph;
  }
  std::string problem() const {
    char text[300] = "";
    msdbg_agent_problem(agent, text, sizeof text);
    return text;
  }
};

TEST_F(WrongArguments, CopiesChangeNothingAndAreNamed) {
  EXPECT_EQ(msdbg_agent_wants(agent), MSDBG_AGENT_WANTS_ALL);
  EXPECT_EQ(msdbg_agent_wants_node(agent, 0), 1);
  EXPECT_EQ(msdbg_agent_wants_node(agent, UINT32_MAX), 0);
  const uint32_t nodes[] = {UINT32_MAX, 0};
  EXPECT_EQ(msdbg_agent_wants_any(agent, nodes, 1), 0);
  EXPECT_EQ(msdbg_agent_wants_any(agent, nodes, 2), 1);
  EXPECT_EQ(msdbg_agent_wants_any(agent, nullptr, 2), 0);
  EXPECT_EQ(msdbg_agent_publish_copy(agent, 0, 0, nullptr, w.data(), shape, nullptr, static_cast<size_t>(-1)), 0);
  EXPECT_NE(problem().find("dimensions; at most 64"), std::string::npos) << problem();
  EXPECT_EQ(msdbg_agent_publish_copy(agent, 0, 0, nullptr, w.data(), nullptr, nullptr, 2), 0);
  EXPECT_NE(problem().find("the pointer is NULL"), std::string::npos) << problem();
  EXPECT_EQ(msdbg_agent_publish_copy(agent, 0, 0, "float33", w.data(), shape, nullptr, 2), 0);
  EXPECT_NE(problem().find("type 'float33' is not known"), std::string::npos) << problem();
  EXPECT_EQ(msdbg_agent_publish_copy(agent, UINT32_MAX, UINT32_MAX, nullptr, w.data(), shape, nullptr, 2), 0);
  EXPECT_EQ(msdbg_agent_publish_copy(agent, 0, 0, nullptr, nullptr, shape, nullptr, 2), 0);
  EXPECT_EQ(msdbg_agent_publish_copy(agent, 0, 0, nullptr, w.data(), shape, nullptr, 2), 1);
  msdbg_agent_publish_strided(agent, 0, 0, "float34", w.data(), shape, nullptr, 2);
  EXPECT_NE(problem().find("type 'float34' is not known"), std::string::npos) << problem();
  msdbg_agent_publish_strided(agent, 0, 0, nullptr, w.data(), shape, shape, 2000);
  EXPECT_NE(problem().find("2000 dimensions"), std::string::npos) << problem();
  msdbg_agent_publish_strided(nullptr, 0, 0, nullptr, w.data(), shape, nullptr, 2);
  msdbg_agent_publish_view(agent, 0, 0, 0, 0, "float35", w.data(), shape, nullptr, 2);
  EXPECT_NE(problem().find("type 'float35' is not known"), std::string::npos) << problem();
  msdbg_agent_publish_view(nullptr, 0, 0, 0, 0, nullptr, w.data(), shape, nullptr, 2);
  msdbg_agent_publish_shaped(agent, 0, 0, w.data(), sizeof w, shape, 1000);
  EXPECT_NE(problem().find("1000 dimensions"), std::string::npos) << problem();
}

TEST_F(WrongArguments, RemotesChangeNothingAndAreNamed) {
  const msdbg_agent_fetch fetch = [](void*, uint32_t, uint32_t, void*, size_t) { return 1; };
  msdbg_agent_publish_remote(agent, 0, 0, nullptr, shape, 2, -1, fetch, nullptr);
  EXPECT_NE(problem().find("state -1"), std::string::npos) << problem();
  msdbg_agent_publish_remote(agent, 0, 0, nullptr, shape, 65, 1, fetch, nullptr);
  EXPECT_NE(problem().find("65 dimensions"), std::string::npos) << problem();
  msdbg_agent_publish_remote(agent, 0, 0, "", shape, 2, 1, fetch, nullptr);
  EXPECT_NE(problem().find("type ''"), std::string::npos) << problem();
  msdbg_agent_publish_remote(agent, 0, 0, nullptr, shape, 2, 256, nullptr, nullptr);
  msdbg_agent_publish_remote(agent, 9, 0, nullptr, shape, 2, 1, fetch, nullptr);
  server.script({View(debugger::ViewCMD::value).tensor("Default/net-Net/Mul-op1").answer()});
  msdbg_agent_publish_remote(agent, 0, 0, nullptr, shape, 2, 0, fetch, nullptr);  // which gives nothing
  msdbg_agent_node_done(agent, 0);
  EXPECT_FALSE(server.calls("SendTensors").at(0).as<debugger::TensorProto>().has_tensor_content());
}

TEST_F(WrongArguments, FetchReceivesWhatWasPublished) {
  struct Asked {
    uint32_t node = 9, slot = 9;
    size_t bytes = 0;
  } asked;
  const msdbg_agent_fetch fetch = [](void* user, uint32_t node, uint32_t slot, void* into, size_t bytes) {
    *static_cast<Asked*>(user) = {node, slot, bytes};
    std::memset(into, 0x40, bytes);
    return 0;
  };
  server.script({View(debugger::ViewCMD::value).tensor("Default/net-Net/Mul-op1").answer()});
  msdbg_agent_publish_remote(agent, 0, 0, "int16", shape, 2, MSDBG_AGENT_STATE_FINITE, fetch, &asked);
  msdbg_agent_node_done(agent, 0);
  EXPECT_EQ(hex(server.calls("SendTensors").at(0).as<debugger::TensorProto>().tensor_content()), "4040404040404040");
  EXPECT_EQ(asked.node, 0u);
  EXPECT_EQ(asked.slot, 0u);
  EXPECT_EQ(asked.bytes, 8u);
}

TEST_F(WrongArguments, ParametersElsewhere) {
  struct Asked {
    int states = 0;
    size_t bytes = 0;
  } asked;
  const msdbg_agent_state state = [](void* user) { return ++static_cast<Asked*>(user)->states, 9; };  // which is no state
  const msdbg_agent_fetch fetch = [](void* user, uint32_t node, uint32_t slot, void* into, size_t bytes) {
    static_cast<Asked*>(user)->bytes = bytes;
    std::memset(into, 0x41, bytes);
    return static_cast<int>(node + slot);
  };
  EXPECT_EQ(msdbg_agent_set_parameter_remote(agent, 0, "w", nullptr, shape, 2, state, nullptr, nullptr), MSDBG_AGENT_ERROR);
  EXPECT_NE(problem().find("no function"), std::string::npos) << problem();
  EXPECT_EQ(msdbg_agent_set_parameter_remote(agent, 0, "w", "real", shape, 2, state, fetch, nullptr), MSDBG_AGENT_ERROR);
  EXPECT_EQ(msdbg_agent_set_parameter_remote(agent, 0, "w", nullptr, nullptr, 2, state, fetch, nullptr), MSDBG_AGENT_ERROR);
  EXPECT_EQ(msdbg_agent_set_parameter_remote(agent, 0, "v", nullptr, shape, 2, state, fetch, nullptr), MSDBG_AGENT_ERROR);
  EXPECT_EQ(msdbg_agent_set_parameter_remote(agent, 3, "w", nullptr, shape, 2, state, fetch, nullptr), MSDBG_AGENT_ERROR);
  ASSERT_EQ(msdbg_agent_set_parameter_remote(agent, 0, "w", nullptr, shape, 2, state, fetch, &asked), MSDBG_AGENT_OK);
  server.script({Watch(1, debugger::WatchCondition::tensor_general_overflow).leaf("w").answer(), View(debugger::ViewCMD::value).tensor("w").answer()});
  msdbg_agent_node_done(agent, 0);
  msdbg_agent_end_step(agent);
  EXPECT_EQ(hex(server.calls("SendTensors").at(0).as<debugger::TensorProto>().tensor_content()).substr(0, 8), "41414141");
  EXPECT_EQ(asked.bytes, sizeof w);
  EXPECT_EQ(asked.states, 1);  // the elements decide then
}

TEST_F(WrongArguments, DescriptionsAndParametersAndOptions) {
  EXPECT_EQ(msdbg_agent_replace_graph(agent, 0, nullptr), MSDBG_AGENT_ERROR);
  EXPECT_EQ(msdbg_agent_replace_graph(agent, -1, describe()), MSDBG_AGENT_ERROR);
  EXPECT_NE(problem().find("graph -1"), std::string::npos) << problem();
  msdbg_agent_graph* wrong = describe();
  msdbg_agent_graph_output(wrong, 0, "float32", shape, static_cast<size_t>(-3));
  EXPECT_EQ(msdbg_agent_replace_graph(agent, 0, wrong), MSDBG_AGENT_ERROR);
  EXPECT_NE(problem().find("Mul-op1"), std::string::npos) << problem();
  EXPECT_EQ(msdbg_agent_replace_graph(agent, 0, describe()), MSDBG_AGENT_OK);
  EXPECT_EQ(problem(), "");
  EXPECT_EQ(msdbg_agent_set_parameter(agent, 0, nullptr, nullptr, shape, 2, w.data()), MSDBG_AGENT_ERROR);
  EXPECT_EQ(msdbg_agent_set_parameter(agent, 7, "w", nullptr, shape, 2, w.data()), MSDBG_AGENT_ERROR);
  EXPECT_EQ(msdbg_agent_set_parameter(agent, 0, "w", "real", shape, 2, w.data()), MSDBG_AGENT_ERROR);
  EXPECT_EQ(msdbg_agent_set_parameter(agent, 0, "w", nullptr, nullptr, 2, w.data()), MSDBG_AGENT_ERROR);
  EXPECT_EQ(msdbg_agent_set_parameter(agent, 0, "w", nullptr, nullptr, 0, nullptr), MSDBG_AGENT_OK);
  EXPECT_EQ(msdbg_agent_set_parameter(agent, 0, "w", nullptr, shape, 2, w.data()), MSDBG_AGENT_OK);
  EXPECT_EQ(msdbg_agent_set_option(agent, nullptr, nullptr), MSDBG_AGENT_ERROR);
  EXPECT_EQ(msdbg_agent_set_option(agent, "program", "late"), MSDBG_AGENT_ERROR);
  msdbg_agent_graph* undescribed = msdbg_agent_graph_new(2);
  msdbg_agent_graph_parameter(undescribed, "v", "float32", nullptr, 3, w.data(), 1);
  EXPECT_EQ(msdbg_agent_add_graph(agent, undescribed), MSDBG_AGENT_ERROR);
  EXPECT_NE(problem().find("v: a shape without its sizes"), std::string::npos) << problem();
}

}  // namespace
}  // namespace msdbg::test
