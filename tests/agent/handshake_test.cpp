// The beginning of a conversation and its failures.
#include <gtest/gtest.h>

#include "agent/small_net.h"

namespace msdbg::test {
namespace {

using agent::Agent;
using agent::Profile;

struct Handshake : testing::Test {
  ScriptedServer server;
  SmallNet net;

  int run(const agent::Options& options, int steps = 2) {
    Agent agent(options);
    EXPECT_TRUE(agent.add_graph(net.describe()).ok());
    const int ran = train(agent, net, steps);
    agent.finish();
    return ran;
  }
};

TEST_F(Handshake, GraphThenHoldThenSteps) {
  server.then_always(Answer::run());
  EXPECT_EQ(run(options_for(server)), 2);
  EXPECT_EQ(server.order(), "SendMetadata SendGraph WaitCMD WaitCMD WaitCMD SendMetadata");
}

}  // namespace
}  // namespace msdbg::test
