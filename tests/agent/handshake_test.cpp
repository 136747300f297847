// The start and the end of a conversation, and their failures.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <future>
#include <thread>

#include "agent/small_net.h"

namespace msdbg::test {
namespace {

using agent::Agent;
using agent::Control;
using std::chrono::milliseconds;

/// Whether a socket of this machine still is connected to `port`, or has not noticed yet that the other end closed.
bool is_connected_to(int port) {
  for (const char* table : {"/proc/self/net/tcp", "/proc/self/net/tcp6"}) {
    std::ifstream lines(table);
    std::string line, number, local, remote, state;
    std::getline(lines, line);
    while (lines >> number >> local >> remote >> state && std::getline(lines, line)) {
      const int remote_port = std::stoi(remote.substr(remote.rfind(':') + 1), nullptr, 16);
      if (remote_port == port && (state == "01" || state == "08")) return true;  // ESTABLISHED, CLOSE_WAIT
    }
  }
  return false;
}

struct Handshake : testing::Test {
  ScriptedServer server;
  SmallNet net;
  std::string problem;

  int run(const agent::Options& options, int steps = 2) {
    Agent agent(options);
    EXPECT_TRUE(agent.add_graph(net.describe()).ok());
    const int ran = train(agent, net, steps);
    agent.finish();
    problem = agent.problem();
    return ran;
  }
  debugger::Metadata last() { return server.calls().back().metadata(); }
};

TEST_F(Handshake, GraphThenHoldThenSteps) {
  server.then_always(Answer::run());
  EXPECT_EQ(run(options_for(server)), 2);
  EXPECT_EQ(server.order(), "SendMetadata SendGraph WaitCMD WaitCMD WaitCMD SendMetadata");
  EXPECT_TRUE(last().training_done());
  EXPECT_EQ(last().cur_step(), 2);
  EXPECT_EQ(problem, "");
}

TEST_F(Handshake, DisabledAgentNeverCalls) {
  agent::Options options = options_for(server);
  options.enabled = false;
  EXPECT_EQ(run(options), 2);
  EXPECT_EQ(server.order(), "");
}

TEST_F(Handshake, RefusedClientAsksForCommandsWithoutAGraph) {
  server.always("SendMetadata", Answer::version(false));
  server.script({Answer::exit()});
  EXPECT_EQ(run(options_for(server)), 1);
  EXPECT_EQ(server.order(), "SendMetadata WaitCMD SendMetadata");
  EXPECT_EQ(last().cur_step(), 1);  // the current step still ran
}

TEST_F(Handshake, RefusedClientRunsWhenToldTo) {
  server.always("SendMetadata", Answer::version(false));
  server.then_always(Answer::run());
  EXPECT_EQ(run(options_for(server)), 2);
  EXPECT_EQ(server.order(), "SendMetadata WaitCMD WaitCMD WaitCMD SendMetadata");
}

TEST_F(Handshake, MissingVersionAnswerEndsTheTrainingWithoutASuspension) {
  server.always("SendMetadata", Answer::ok());
  EXPECT_EQ(run(options_for(server)), 1);
  EXPECT_EQ(server.order(), "SendMetadata SendMetadata");
  EXPECT_NE(problem.find("too old"), std::string::npos) << problem;
}

TEST_F(Handshake, FailedHandshakeSkipsGraphAndInitialHold) {
  server.always("SendMetadata", Answer::failed());
  server.then_always(Answer::run());
  EXPECT_EQ(run(options_for(server)), 2);
  EXPECT_EQ(server.order(), "SendMetadata WaitCMD WaitCMD SendMetadata");
  EXPECT_EQ(server.calls("WaitCMD")[0].metadata().cur_node(), kAdd);
}

TEST_F(Handshake, FirstReleaseSendsTheGraphInAnyCase) {
  server.always("SendMetadata", Answer::failed());
  server.then_always(Answer::run());
  EXPECT_EQ(run(options_for(server, "1.0.1"), 1), 1);
  EXPECT_EQ(server.order(), "SendMetadata SendGraph WaitCMD WaitCMD SendMetadata");
  EXPECT_EQ(server.calls()[0].metadata().ms_version(), "");
  EXPECT_EQ(server.calls()[0].metadata().graph_num(), 0);
}

TEST_F(Handshake, FirstReleaseExitsAtOnceAndWithoutAGoodbye) {
  server.script({Answer::exit()});
  EXPECT_EQ(run(options_for(server, "1.0.1")), 0);
  EXPECT_EQ(server.order(), "SendMetadata SendGraph WaitCMD");
}

TEST_F(Handshake, ExitLetsTheStepEndAndSaysGoodbye) {
  server.script({Answer::run(), Answer::exit()});
  EXPECT_EQ(run(options_for(server), 5), 1);
  EXPECT_EQ(server.order(), "SendMetadata SendGraph WaitCMD WaitCMD SendMetadata");
  EXPECT_EQ(last().cur_step(), 1);
}

TEST_F(Handshake, ExitCountsByPresenceOnly) {
  server.script({Answer::exit(false)});
  EXPECT_EQ(run(options_for(server), 5), 1);
  EXPECT_EQ(server.order(), "SendMetadata SendGraph WaitCMD SendMetadata");
}

TEST_F(Handshake, ReleasesThatHoldBeforeAStepRunOneMoreAfterExit) {
  server.script({Answer::run(), Answer::exit()});
  EXPECT_EQ(run(options_for(server, "1.5.0"), 5), 2);
  EXPECT_EQ(last().cur_step(), 2);
}

TEST_F(Handshake, VersionAsAnswerToWaitEndsTheTrainingButStillNeedsACommand) {
  server.script({Answer::version(true), Answer::run()});
  EXPECT_EQ(run(options_for(server), 5), 1);
  EXPECT_EQ(server.order(), "SendMetadata SendGraph WaitCMD WaitCMD SendMetadata");
}

TEST_F(Handshake, FailedGraphTransferIsFollowedByTheHoldAllTheSame) {
  server.always("SendGraph", Answer::broken());
  server.then_always(Answer::run());
  EXPECT_EQ(run(options_for(server), 1), 1);
  EXPECT_EQ(server.order(), "SendMetadata SendGraph WaitCMD WaitCMD SendMetadata");
}

TEST_F(Handshake, EmptyAnswerIsAskedAgainAtOnce) {
  server.script({Answer::ok(), Answer::ok(), Answer::run()});
  server.then_always(Answer::run());
  EXPECT_EQ(run(options_for(server), 1), 1);
  EXPECT_EQ(server.calls("WaitCMD").size(), 4u);
}

TEST_F(Handshake, GivesUpAfterSixFailures) {
  server.script({Answer::failed(), Answer::pending(), Answer::broken(), Answer::failed(), Answer::pending(),
                 Answer::failed(), Answer::run()});
  const agent::Options options = options_for(server);
  EXPECT_EQ(run(options, 5), 1);
  EXPECT_EQ(server.order(), "SendMetadata SendGraph WaitCMD WaitCMD WaitCMD WaitCMD WaitCMD WaitCMD SendMetadata");
  EXPECT_EQ(last().cur_step(), 1);
  EXPECT_TRUE(last().training_done());
  const std::vector<Call> waits = server.calls("WaitCMD");
  for (size_t i = 1; i < waits.size(); ++i) {
    EXPECT_GE(waits[i].begun - waits[i - 1].begun, options.retry_unit * static_cast<int>(i)) << "pause " << i;
    EXPECT_EQ(waits[i].messages, waits[0].messages);
  }
}

TEST_F(Handshake, SuccessDoesNotResetTheCountOfOneSuspension) {
  const Answer bad = Answer::failed(), nothing = Answer::ok();
  server.script({bad, nothing, bad, nothing, bad, nothing, bad, nothing, bad, nothing, bad});
  EXPECT_EQ(run(options_for(server), 5), 1);
  EXPECT_EQ(server.calls("WaitCMD").size(), 11u);
}

TEST_F(Handshake, EverySuspensionHasItsOwnCount) {
  const Answer bad = Answer::failed(), go = Answer::run();
  server.script({bad, bad, bad, bad, bad, go, bad, bad, bad, bad, bad, go});
  EXPECT_EQ(run(options_for(server), 1), 1);
  EXPECT_EQ(server.calls("WaitCMD").size(), 12u);
}

TEST_F(Handshake, WithoutAListenerTheTrainingEndsAfterItsFirstStep) {
  const agent::Options options = options_for(server);
  server.stop();
  EXPECT_EQ(run(options, 5), 1);
  EXPECT_NE(problem.find("127.0.0.1"), std::string::npos) << problem;
}

TEST_F(Handshake, ADebuggerThatStartsALittleLaterIsFound) {
  agent::Options options = options_for(server);
  options.retry_unit = milliseconds(1000);
  const int port = server.port();
  server.stop();
  std::future<int> ran = std::async(std::launch::async, [&] { return run(options, 2); });
  std::this_thread::sleep_for(milliseconds(200));
  ScriptedServer later(port);
  ASSERT_EQ(later.port(), port);
  later.then_always(Answer::run());
  EXPECT_EQ(ran.get(), 2);
  EXPECT_EQ(later.order(), "SendMetadata SendGraph WaitCMD WaitCMD WaitCMD SendMetadata");
  EXPECT_EQ(problem, "");
}

TEST_F(Handshake, RestartedDebuggerGetsTheNextAttempt) {
  agent::Options options = options_for(server);
  options.retry_unit = milliseconds(300);
  std::future<int> ran = std::async(std::launch::async, [&] { return run(options, 2); });
  ASSERT_TRUE(server.wait_for_held());
  const int port = server.port();
  server.stop();
  ScriptedServer again(port);
  ASSERT_EQ(again.port(), port);
  again.then_always(Answer::run());
  EXPECT_EQ(ran.get(), 2);
  EXPECT_EQ(again.order(), "WaitCMD WaitCMD WaitCMD SendMetadata");  // no second handshake
}

TEST_F(Handshake, FailureThatWasOvercomeIsNoProblem) {
  server.script({Answer::failed(), Answer::broken(), Answer::run(), Answer::failed(), Answer::exit()});
  EXPECT_EQ(run(options_for(server), 5), 1);
  EXPECT_EQ(problem, "");
  EXPECT_TRUE(last().training_done());
}

TEST_F(Handshake, EndThatWasAskedForIsNoProblem) {
  server.always("SendMetadata", Answer::version(false));
  server.script({Answer::exit()});
  Agent agent(options_for(server));
  ASSERT_TRUE(agent.add_graph(net.describe()).ok());
  EXPECT_EQ(train(agent, net, 2), 1);
  EXPECT_EQ(agent.problem(), "");
}

TEST_F(Handshake, GivingUpIsAProblem) {
  server.script({Answer::failed(), Answer::failed(), Answer::failed(), Answer::failed(), Answer::failed(), Answer::failed()});
  Agent agent(options_for(server));
  ASSERT_TRUE(agent.add_graph(net.describe()).ok());
  EXPECT_EQ(train(agent, net, 5), 1);
  EXPECT_NE(agent.problem().find("waiting for commands"), std::string::npos) << agent.problem();
}

// A debugger that leaves another one in its place shuts down, perhaps in the middle of the farewell.
TEST_F(Handshake, AFarewellThatIsCutOffIsRepeated) {
  server.then_always(Answer::run());
  Agent agent(options_for(server));
  ASSERT_TRUE(agent.add_graph(net.describe()).ok());
  EXPECT_EQ(train(agent, net, 2), 2);
  server.always("SendMetadata", {{}, grpc::Status(grpc::StatusCode::CANCELLED, "shut down on purpose")});
  agent.finish();
  size_t farewells = 0;
  for (const Call& call : server.calls("SendMetadata")) farewells += call.metadata().training_done() ? 1 : 0;
  EXPECT_EQ(farewells, 2u) << server.order();
  EXPECT_NE(agent.problem().find("farewell"), std::string::npos) << agent.problem();
}

// Whatever the training thread is doing when another thread ends the conversation, nothing follows the farewell. The call that this
// cancels may be on its way: the server may see it late, but cancelled.
TEST(HandshakeEnds, NothingFollowsTheFarewell) {
  SmallNet net;
  int farewells = 0;
  for (int round = 0; round < 60; ++round) {
    ScriptedServer server;
    server.then_always(Answer::run());
    Agent agent(options_for(server));
    ASSERT_TRUE(agent.add_graph(net.describe()).ok());
    std::future<int> ran = std::async(std::launch::async, [&] { return train(agent, net, 20); });
    std::this_thread::sleep_for(std::chrono::microseconds(60 * round));
    agent.finish();
    (void)agent.problem();
    EXPECT_EQ(ran.get(), 20);
    const std::vector<Call> calls = server.calls();
    const auto farewell = std::ranges::find_if(
        calls, [](const Call& call) { return call.rpc == "SendMetadata" && !call.messages.empty() && call.metadata().training_done(); });
    if (farewell == calls.end()) continue;
    ++farewells;
    const auto count = static_cast<size_t>(farewell - calls.begin()) + 1;
    ASSERT_TRUE(server.wait_until([&] { return server.cancelled_behind(count); }, std::chrono::seconds(5))) << "round " << round << ": " << server.order();
  }
  EXPECT_GT(farewells, 0);
}

TEST_F(Handshake, DebuggerReplacedWhileAStepRunsCostsNoAttempt) {
  agent::Options options = options_for(server);
  options.retry_unit = std::chrono::hours(1);  // would follow a failed attempt
  server.script({Answer::run()});
  Agent agent(options);
  ASSERT_TRUE(agent.add_graph(net.describe()).ok());
  ASSERT_EQ(agent.begin_step(), Control::kGo);
  const int port = server.port();
  server.stop();
  // A step lasts long enough for the client to notice.
  for (int tries = 0; is_connected_to(port) && tries < 6000; ++tries) std::this_thread::sleep_for(milliseconds(10));
  ScriptedServer again(port);
  ASSERT_EQ(again.port(), port);
  again.then_always(Answer::run());
  EXPECT_EQ(agent.end_step(), Control::kGo);
  EXPECT_EQ(again.order(), "WaitCMD");
  EXPECT_EQ(again.calls("WaitCMD").at(0).messages.size(), 1u);
  agent.finish();
}

TEST_F(Handshake, FinishFromAnotherThreadEndsAHold) {
  Agent agent(options_for(server));
  ASSERT_TRUE(agent.add_graph(net.describe()).ok());
  std::future<int> ran = std::async(std::launch::async, [&] { return train(agent, net, 2); });
  ASSERT_TRUE(server.wait_for_held());
  agent.finish();
  EXPECT_EQ(ran.get(), 2);
  EXPECT_FALSE(agent.attached());
  EXPECT_EQ(server.order(), "SendMetadata SendGraph WaitCMD SendMetadata");
}

TEST_F(Handshake, FinishEndsThePauseBetweenTwoAttempts) {
  agent::Options options = options_for(server);
  options.retry_unit = std::chrono::hours(1);
  server.script({Answer::failed()});
  Agent agent(options);
  ASSERT_TRUE(agent.add_graph(net.describe()).ok());
  std::future<int> ran = std::async(std::launch::async, [&] { return train(agent, net, 1); });
  ASSERT_TRUE(server.wait_until([&] { return server.answered("WaitCMD") == 1; }));
  agent.finish();
  EXPECT_EQ(ran.get(), 1);
}

TEST_F(Handshake, DestructionSaysGoodbye) {
  server.then_always(Answer::run());
  {
    Agent agent(options_for(server));
    ASSERT_TRUE(agent.add_graph(net.describe()).ok());
    train(agent, net, 1);
  }
  EXPECT_TRUE(last().training_done());
}

TEST_F(Handshake, LaterGraphComesWithoutAnotherHandshake) {
  server.then_always(Answer::run());
  Agent agent(options_for(server));
  ASSERT_TRUE(agent.add_graph(net.describe(1)).ok());
  train(agent, net, 1);
  ASSERT_TRUE(agent.add_graph(net.describe(2)).ok());
  EXPECT_EQ(agent.begin_step(1), Control::kGo);
  EXPECT_EQ(agent.end_step(), Control::kGo);
  agent.finish();
  EXPECT_EQ(server.order(), "SendMetadata SendGraph WaitCMD WaitCMD SendGraph WaitCMD WaitCMD SendMetadata");
  EXPECT_EQ(server.calls("WaitCMD")[2].metadata().device_name(), "0:2");
}

TEST_F(Handshake, OldReleasesRepeatHandshakeAndAllGraphs) {
  server.then_always(Answer::run());
  Agent agent(options_for(server, "1.3.0"));
  ASSERT_TRUE(agent.add_graph(net.describe(1)).ok());
  train(agent, net, 1);
  ASSERT_TRUE(agent.add_graph(net.describe(2)).ok());
  agent.begin_step(1);
  agent.finish();
  EXPECT_EQ(server.order(), "SendMetadata SendGraph WaitCMD WaitCMD SendMetadata SendMultiGraphs WaitCMD SendMetadata");
  EXPECT_EQ(server.calls("SendMultiGraphs")[0].messages.size(), 2u);
}

TEST_F(Handshake, FirstReleaseStartsAnewWhenAnotherGraphRuns) {
  server.then_always(Answer::run());
  Agent agent(options_for(server, "1.0.1"));
  ASSERT_TRUE(agent.add_graph(net.describe(1)).ok());
  ASSERT_TRUE(agent.add_graph(net.describe(2)).ok());
  for (const int graph : {0, 1, 0}) {
    agent.begin_step(graph);
    agent.node_done(0);
    agent.end_step();
  }
  EXPECT_EQ(server.calls("SendMetadata").size(), 3u);
  EXPECT_EQ(server.calls("SendGraph").size(), 3u);
  EXPECT_EQ(server.calls("WaitCMD").back().metadata().cur_step(), 1);  // counting restarted
}

TEST_F(Handshake, WrongDescriptionsAreRefused) {
  Agent agent(options_for(server));
  const auto refused = [&](auto change) {
    agent::GraphDescription graph = net.describe();
    change(graph);
    return agent.add_graph(std::move(graph)).message();
  };
  EXPECT_NE(refused([](auto& graph) { graph.nodes[0].full_name = ""; }).find("no name"), std::string::npos);
  EXPECT_NE(refused([](auto& graph) { graph.nodes[0].full_name = "w"; }).find("twice"), std::string::npos);
  EXPECT_NE(refused([](auto& graph) { graph.nodes[0].inputs[0].name = "y"; }).find("'y'"), std::string::npos);
  EXPECT_NE(refused([](auto& graph) { graph.nodes[0].inputs[0].slot = 3; }).find("output 3"), std::string::npos);
  EXPECT_NE(refused([](auto& graph) { graph.nodes[0].inputs[0].name = kAdd; }).find("execution order"),
            std::string::npos);
  EXPECT_TRUE(agent.add_graph(net.describe(1)).ok());
  EXPECT_NE(agent.add_graph(net.describe(1)).message().find("id 1"), std::string::npos);
}

TEST_F(Handshake, StepOfAnUnknownGraphIsReportedAndRuns) {
  Agent agent(options_for(server));
  ASSERT_TRUE(agent.add_graph(net.describe()).ok());
  EXPECT_EQ(agent.begin_step(7), Control::kGo);
  EXPECT_NE(agent.problem().find("graph 7"), std::string::npos);
  agent.publish(0, 0, net.sum.data(), sizeof net.sum);
  agent.node_done(0);
  EXPECT_EQ(agent.end_step(), Control::kGo);
  EXPECT_EQ(server.order(), "");
}

TEST_F(Handshake, FirstBeatComesWithTheHandshake) {
  Agent agent(options_for(server));
  ASSERT_TRUE(agent.add_graph(net.describe()).ok());
  std::future<int> ran = std::async(std::launch::async, [&] { return train(agent, net, 1); });
  ASSERT_TRUE(server.wait_for_heartbeats(1));
  EXPECT_EQ(hex(server.heartbeats()[0].messages.at(0)), "0a11446562756767657220697320616c697665101e");
  server.then_always(Answer::run());
  EXPECT_EQ(ran.get(), 1);
}

TEST_F(Handshake, BeatsGoOnWhileHeld) {
  agent::Options options = options_for(server);
  options.heartbeat_period = milliseconds(10);
  Agent agent(options);
  ASSERT_TRUE(agent.add_graph(net.describe()).ok());
  std::future<int> ran = std::async(std::launch::async, [&] { return train(agent, net, 1); });
  ASSERT_TRUE(server.wait_for_held());
  EXPECT_TRUE(server.wait_for_heartbeats(server.heartbeats().size() + 3));
  server.then_always(Answer::run());
  EXPECT_EQ(ran.get(), 1);
}

TEST_F(Handshake, BeatsEndAfterFiveFailures) {
  agent::Options options = options_for(server);
  options.heartbeat_period = milliseconds(1);
  options.retry_unit = milliseconds(2);
  server.always("SendHeartbeat", Answer::failed());
  Agent agent(options);
  ASSERT_TRUE(agent.add_graph(net.describe()).ok());
  std::future<int> ran = std::async(std::launch::async, [&] { return train(agent, net, 1); });
  ASSERT_TRUE(server.wait_for_heartbeats(5));
  EXPECT_FALSE(server.wait_for_heartbeats(6, milliseconds(50)));
  server.then_always(Answer::run());
  EXPECT_EQ(ran.get(), 1);
}

TEST_F(Handshake, OldReleasesHaveNoBeats) {
  server.then_always(Answer::run());
  agent::Options options = options_for(server, "1.3.0");
  options.heartbeat_period = milliseconds(1);
  EXPECT_EQ(run(options, 3), 3);
  EXPECT_TRUE(server.heartbeats().empty());
}

}  // namespace
}  // namespace msdbg::test
