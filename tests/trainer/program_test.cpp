// The program from outside, without a debugger.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "support/process.h"

namespace msdbg::test {
namespace {

struct Outcome {
  int status = -1;
  std::string output;
};

Outcome run(std::vector<std::string> arguments, std::vector<std::string> environment = {"ENABLE_MS_DEBUGGER=0"}) {
  arguments.insert(arguments.begin(), MSDBG_TRAINER);
  Process process(std::move(arguments), std::move(environment));
  const auto status = process.wait();
  return {status.value_or(-1), process.output()};
}

TEST(Program, PrintsEachStepAndThatItIsDone) {
  const Outcome outcome = run({"--steps", "3", "--print-loss"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_TRUE(contains(outcome.output, "step 0 loss ")) << outcome.output;
  EXPECT_TRUE(contains(outcome.output, "\nstep 2 loss ")) << outcome.output;
  EXPECT_FALSE(contains(outcome.output, "step 3")) << outcome.output;
  EXPECT_TRUE(contains(outcome.output, "\ndone: 3 steps, loss ")) << outcome.output;
}

TEST(Program, TrainsTheSameWithAndWithoutAgent) {
  const std::string with = run({"--steps", "6", "--print-loss"}).output;
  const std::string without = run({"--steps", "6", "--print-loss", "--no-agent"}).output;
  EXPECT_FALSE(with.empty());
  EXPECT_EQ(with.substr(0, with.find("done")), without.substr(0, without.find("done")));
}

TEST(Program, PlantsTheFaultInTheStepThatWasNamed) {
  const Outcome outcome = run({"--steps", "5", "--print-loss", "--no-agent", "--fault", "log-of-zero", "--fault-step", "3"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_FALSE(contains(outcome.output, "step 2 loss NaN")) << outcome.output;
  EXPECT_TRUE(contains(outcome.output, "step 3 loss NaN")) << outcome.output;
}

TEST(Program, RefusesWrongOptionsAndSaysWhatItTakes) {
  for (const auto& [arguments, message] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"--fault", "typo"}, "--fault takes none, exploding-rate"},
           {{"--port", "70000"}, "--port takes a whole number from 1 to 65535, not '70000'"},
           {{"--steps", "3x"}, "--steps takes a whole number from 0 on, not '3x'"},
           {{"--backend", "CPU"}, "--backend takes GPU or Ascend"},
           {{"--learning-rate", "nan"}, "--learning-rate takes a positive number"},
           {{"leftover"}, "unknown argument 'leftover'"},
           {{"--no-such-option"}, "no-such-option"}}) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, 2) << arguments[0];
    EXPECT_TRUE(contains(outcome.output, message)) << outcome.output;
  }
}

TEST(Program, RefusesAWrongEnvironmentUnlessItNeedsNone) {
  const std::vector<std::string> wrong = {"ENABLE_MS_DEBUGGER=1", "MS_DEBUGGER_PORT=seven"};
  const Outcome outcome = run({"--steps", "1"}, wrong);
  EXPECT_EQ(outcome.status, 2);
  EXPECT_TRUE(contains(outcome.output, "MS_DEBUGGER_PORT")) << outcome.output;
  EXPECT_EQ(run({"--steps", "1", "--no-agent"}, wrong).status, 0);
}

/// A port on which nothing listens: it was free a moment ago.
std::string free_port() {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  const bool known = bind(listener, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                     getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  close(listener);
  return known ? std::to_string(ntohs(address.sin_port)) : "";
}

TEST(Program, GivesUpWhenTheDebuggerThatWasAskedForIsNotThere) {
  const std::string port = free_port();
  ASSERT_FALSE(port.empty());
  const Outcome outcome = run({"--steps", "5", "--port", port, "--retry-unit-ms", "1"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_TRUE(contains(outcome.output, "given up after 1 step: ")) << outcome.output;
  EXPECT_TRUE(contains(outcome.output, port)) << outcome.output;
}

TEST(Program, HelpListsOptionsAndExitStatuses) {
  const Outcome outcome = run({"--help"});
  EXPECT_EQ(outcome.status, 0);
  for (const char* part : {"--fault-step K", "--release V", "--extra-tensor MB", "exit status\n  0"}) {
    EXPECT_TRUE(contains(outcome.output, part)) << part;
  }
}

}  // namespace
}  // namespace msdbg::test
