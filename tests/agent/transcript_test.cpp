// The worked example of the protocol, byte for byte (docs/live-protocol.md).
#include <gtest/gtest.h>

#include "agent/small_net.h"

namespace msdbg::test {
namespace {

std::vector<std::string> payloads(const std::vector<Call>& calls) {
  std::vector<std::string> lines;
  for (const Call& call : calls) {
    std::string line = call.rpc;
    for (const std::string& message : call.messages) line += " " + hex(message);
    lines.push_back(line);
  }
  return lines;
}

const std::string kGraph =
    "0a4e0a050a017810000a050a017710001201311a03416464220f44656661756c742f6e65742d4e6574320c080e1208080b12040a0208024217"
    "44"
    "656661756c742f6e65742d4e65742f4164642d6f7031120e6b65726e656c5f67726170685f311a110a0178120c080e1208080b12040a020802"
    "1a"
    "110a0177120c080e1208080b12040a02080222110a0131120c080e1208080b12040a020802320131";
const std::string kHit =
    "0a1e0a1744656661756c742f6e65742d4e65742f4164642d6f70311201303001124a080f220f0a0b6162735f6d65616e5f67741001221c0a06"
    "6d"
    "61785f677419000000000000f03f2001290000000000000840220a0a066d696e5f67741001220b0a076d65616e5f677410011801";
const std::string kInitialWait = "WaitCMD 0a03303a311a03475055";
const std::string kAddWait = "WaitCMD 0a03303a311a03475055221744656661756c742f6e65742d4e65742f4164642d6f7031";

TEST(Transcript, WorkedExampleHasTheseBytes) {
  ScriptedServer server;
  SmallNet net;
  const Answer step = Answer::run();
  server.script({Watch(1, debugger::WatchCondition::tensor_too_large)
                     .node(kAdd, "Add")
                     .unused("abs_mean_gt")
                     .param("max_gt", 1.0)
                     .unused("min_gt")
                     .unused("mean_gt")
                     .answer(),
                 step, View(debugger::ViewCMD::base).tensor("Default/net-Net/w", "0", "", true).answer(),
                 View(debugger::ViewCMD::value).tensor(kAdd).tensor("Default/net-Net/w", "0", "prev", true).answer(),
                 View(debugger::ViewCMD::statistics).tensor(kAdd).answer(), step, step, Answer::exit()});
  {
    agent::Agent agent(options_for(server));
    ASSERT_TRUE(agent.add_graph(net.describe()).ok());
    EXPECT_EQ(train(agent, net, 10), 2);
  }
  const std::vector<std::string> expected = {
      "SendMetadata 0a03303a311a0347505530013a05322e322e30f03e01",  // with a field of our own
      "SendGraph 0a9c01" + kGraph,
      kInitialWait,
      kInitialWait,
      "SendWatchpointHits " + kHit,
      kAddWait,
      "SendTensorBase 080b1201021808",
      kAddWait,
      "SendTensors 0a1744656661756c742f6e65742d4e65742f4164642d6f70311201301a080000803f000040402002280b30013a004000 "
      "0a1144656661756c742f6e65742d4e65742f7712013030013a04707265764001",
      kAddWait,
      "SendTensorStats 0a07080b1201021808121315000040401d0000803f250000004028023802",
      kAddWait,
      kAddWait,
      "SendWatchpointHits " + kHit,
      "WaitCMD 0a03303a3110011a03475055221744656661756c742f6e65742d4e65742f4164642d6f7031",
      "SendMetadata 0a03303a3110021a03475055221744656661756c742f6e65742d4e65742f4164642d6f7031280130013a05322e322e30",
  };
  EXPECT_EQ(payloads(server.calls()), expected);
}

TEST(Transcript, AbsentTensorsHaveTheseBytes) {
  ScriptedServer server;
  SmallNet net;
  server.script({View(debugger::ViewCMD::base).tensor("nothing").answer(),
                 View(debugger::ViewCMD::statistics).tensor("nothing").answer(), Answer::run()});
  server.then_always(Answer::run());
  agent::Agent agent(options_for(server));
  ASSERT_TRUE(agent.add_graph(net.describe()).ok());
  train(agent, net, 1);
  EXPECT_EQ(payloads(server.calls("SendTensorBase")), std::vector<std::string>{"SendTensorBase 120100"});
  EXPECT_EQ(payloads(server.calls("SendTensorStats")),
            std::vector<std::string>{"SendTensorStats 0a00120a15000080ff1d0000807f"});
}

TEST(Transcript, TwoGraphsEndWithAFinishedChunkEach) {
  ScriptedServer server;
  SmallNet net;
  server.then_always(Answer::run());
  agent::Agent agent(options_for(server));
  ASSERT_TRUE(agent.add_graph(net.describe(1)).ok());
  ASSERT_TRUE(agent.add_graph(net.describe(2)).ok());
  train(agent, net, 1);
  const std::vector<Call> graphs = server.calls("SendMultiGraphs");
  ASSERT_EQ(graphs.size(), 1u);
  ASSERT_EQ(graphs[0].messages.size(), 2u);
  EXPECT_EQ(hex(graphs[0].messages[0]), "0a9c01" + kGraph + "1001");
  EXPECT_EQ(server.calls("SendMetadata")[0].metadata().device_name(), "0:2");  // the last one loaded
  EXPECT_EQ(server.calls("WaitCMD")[0].metadata().device_name(), "0:1");       // the one that runs
  EXPECT_EQ(server.calls("SendMetadata")[0].metadata().graph_num(), 2);
}

}  // namespace
}  // namespace msdbg::test
