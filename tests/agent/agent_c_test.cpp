// The plain C interface, from a C program and at its limits.
#include "msdbg/agent_c.h"

#include <gtest/gtest.h>

#include <cstdlib>

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
  msdbg_agent_node_done(nullptr, 0);
  msdbg_agent_finish(nullptr);
  msdbg_agent_free(nullptr);
  EXPECT_EQ(msdbg_agent_problem(nullptr, nullptr, 0), 0u);
}

}  // namespace
}  // namespace msdbg::test
