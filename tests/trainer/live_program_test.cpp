// The effects of the training program's options on a session.
#include <gtest/gtest.h>

#include <fstream>
#include <optional>
#include <string>

#include "trainer/live_pair.h"

namespace msdbg::test {
namespace {

/// A session whose script is `lua`.
struct Live {
  Live(const std::string& lua, const Words& trainer_arguments) {
    const std::string script = directory.file("script.lua");
    std::ofstream(script) << lua;
    pair.emplace(script, Words{}, trainer_arguments);
  }

  ScratchDirectory directory;
  std::optional<LivePair> pair;
};

TEST(LiveProgram, ExtraTensorArrivesWhole) {
  Live live(R"(
local t = s:node("extra.weight"):value()
print("size " .. t.size, "largest " .. t.stats.max, "element " .. t:at(3500999))
s:watch { on = "**/Identity*", when = "TO" }
s:step(2)
local later = s:tensor("Default/extra-Identity/Identity-op43:output:0")
print("later " .. later:at(999))
s:terminate()
)",
            {"--extra-tensor", "16"});
  ASSERT_TRUE(live.pair->finish());
  EXPECT_TRUE(contains(live.pair->script_text, "size 4194304\tlargest 999\telement 999\n")) << live.pair->script_text;
  EXPECT_TRUE(contains(live.pair->script_text, "later 999\n")) << live.pair->script_text;
  EXPECT_EQ(live.pair->script_status, 0);
  EXPECT_EQ(live.pair->training_status, 0);
}

TEST(LiveProgram, PaddingIsDescribedAndNeverRuns) {
  Live live(R"(
print("padding " .. #s:nodes "scope:Default/padding")
local r = s:run_to(s:nodes("scope:Default/padding")[1])
print("reason " .. r.reason)
s:detach()
)",
            {"--graph-nodes", "40000", "--steps", "4"});
  ASSERT_TRUE(live.pair->finish());
  EXPECT_TRUE(contains(live.pair->script_text, "padding 40000\n")) << live.pair->script_text;
  EXPECT_TRUE(contains(live.pair->script_text, "reason node not met\n")) << live.pair->script_text;
  EXPECT_EQ(live.pair->script_status, 0);
  EXPECT_TRUE(contains(live.pair->training_text, "done: 4 steps")) << live.pair->training_text;
}

// More than one view can carry, from an agent.
TEST(LiveProgram, FunctionSeesEveryOneOfManySmallValues) {
  Live live(R"(
local right, wrong = 0, 0
s:watch { name = "small", on = "scope:Default/small", when = function(t)
  local block, cell = t.node.name:match 'block(%d+)/cell(%d+)'
  local first = (block * 100 + cell) * 16 % 1000
  local expected = first + 15 < 1000 and first or 0
  if t.stats.min == expected then right = right + 1 else wrong = wrong + 1 end
end }
s:step(2)
print("right " .. right .. " wrong " .. wrong)
s:terminate()
)",
            {"--small-nodes", "1000", "--steps", "4"});
  ASSERT_TRUE(live.pair->finish());
  EXPECT_TRUE(contains(live.pair->script_text, "right 2000 wrong 0\n")) << live.pair->script_text;
  EXPECT_EQ(live.pair->script_status, 0);
}

// The processor raises its flags where the logarithm of zero is computed and where its result is a divisor; later results are only
// NaN.
TEST(LiveProgram, OverflowThatTheDeviceFlagsIsAHitOnAnAscend) {
  const Words options = {"--steps", "9", "--fault", "log-of-zero", "--fault-step", "5", "--backend", "Ascend"};
  Live live(R"(
s:watch { on = "op:*", when = "operator_overflow" }
local r = s:continue()
print(r.reason, r.step, #r.hits)
for _, hit in ipairs(r.hits) do print("flagged " .. hit.node) end
s:terminate()
)",
            options);
  ASSERT_TRUE(live.pair->finish());
  const std::string& text = live.pair->script_text;
  EXPECT_TRUE(contains(text, "hit\t5\t2\n")) << text;
  const std::string loss = "Default/network-WithLossCell/_loss_fn-MaskedLogLikelihood/log-Log/";
  EXPECT_TRUE(contains(text, "flagged " + loss + "Log-op15\nflagged Gradients/" + loss + "gradLog-expand/Div-op20\n")) << text;
}

TEST(LiveProgram, ValuesAreThoseOfTheTraining) {
  Live live(R"(
s:watch { on = "@loss", when = "TO" }
s:step(3)
local losses = s:nodes "@loss"
print(("loss %.6g"):format(losses[#losses]:output(0).stats.mean))
s:terminate()
)",
            {"--print-loss"});
  ASSERT_TRUE(live.pair->finish());
  const std::string& text = live.pair->script_text;
  const size_t line = text.find("\nloss ");
  ASSERT_NE(line, std::string::npos) << text;
  const size_t place = line + 1;
  const std::string loss = text.substr(place, text.find('\n', place) - place);
  EXPECT_TRUE(contains(live.pair->training_text, "step 2 " + loss + "\n")) << text << live.pair->training_text;
}

TEST(LiveProgram, EveryReleaseIsHeldAndRunsToItsEnd) {
  for (const std::string& backend : Words{"GPU", "Ascend"}) {
    for (const std::string& release : Words{"1.0.1", "1.1.1", "1.3.0", "1.5.0", "1.6.1", "1.10.0", "2.2.0", "2.3.0"}) {
      Live live(R"(
local steps = 0
for _ in s:each_step() do steps = steps + 1 end
print("stepped " .. steps, s.info.peer.version, s.info.peer.backend, s.state)
)",
                {"--steps", "5", "--release", release, "--backend", backend});
      ASSERT_TRUE(live.pair->finish()) << release << " " << backend;
      const std::string& text = live.pair->script_text;
      // 1.3 and 1.5 on a GPU are held when the next step starts, so the last one ends unseen; 2.3 on an Ascend is held only before
      // the first step.
      const bool unseen = backend == "GPU" && (release == "1.3.0" || release == "1.5.0");
      const bool never = backend == "Ascend" && release == "2.3.0";
      const std::string steps = never ? "stepped 0\t" : unseen ? "stepped 4\t" : "stepped 5\t";
      EXPECT_TRUE(contains(text, steps + (release == "1.0.1" ? "1.0.x" : release))) << release << " " << backend << "\n" << text;
      EXPECT_TRUE(contains(text, "\t" + backend + "\tended\n")) << text;
      EXPECT_EQ(live.pair->script_status, 0) << text;
      EXPECT_TRUE(contains(live.pair->training_text, "done: 5 steps")) << live.pair->training_text;
      EXPECT_EQ(live.pair->training_status, 0);
    }
  }
}

// The last operator of the step reads learning_rate, which is reported at its end; the first MatMul holds the training in the
// middle of each step.
TEST(LiveProgram, HitOfEachStepHidesNoOtherWatchpoint) {
  for (const std::string& release : Words{"1.5.0", "1.6.1", "1.10.0", "2.2.0"}) {
    for (const char* on : {"learning_rate", "**/MatMul-op1"}) {
      Live live(std::string("s:watch { on = '") + on + R"(', when = "TL", max_gt = -1e30 }
s:watch { on = "fc2.weight", when = "weight_not_changed" }
local frozen, steps = 0, 0
s:on("hit", function(hit) frozen = frozen + (hit.node == "fc2.weight" and 1 or 0) end)
for step, r in s:each_step() do steps = steps + 1 end
print(("frozen %d of %d, completed %d"):format(frozen, steps, s.completed_steps))
)",
                {"--fault", "frozen-layer", "--fault-step", "5", "--steps", "30", "--release", release});
      ASSERT_TRUE(live.pair->finish());
      EXPECT_TRUE(contains(live.pair->script_text, "frozen 25 of 30, completed 30")) << release << "\n" << live.pair->script_text;
    }
  }
}

TEST(LiveProgram, OperatorStepsJudgeEveryStepThatTheyPass) {
  Live live(R"(
local calls = 0
s:watch { on = "=fc2.weight", when = function(t) calls = calls + 1; return false end }
local function steps(n, command)
  local first = s.completed_steps
  while s.completed_steps < first + n do command() end
end
local before = calls
steps(3, function() s:next_node() end)
print("next", calls - before)
before = calls
local nodes = s:nodes "op:MatMul"
steps(3, function() s:run_to(nodes[1]); s:run_to(nodes[#nodes]); s:run_to(nodes[1]) end)
print("run_to", calls - before, s.completed_steps)
local last = s:run_to(nodes[#nodes])
local r = s:run_to(nodes[1])
print(r.reason, r.step == last.step)
s:terminate()
)",
            {"--steps", "20"});
  ASSERT_TRUE(live.pair->finish());
  const std::string& text = live.pair->script_text;
  EXPECT_TRUE(contains(text, "next\t3\n")) << text;
  EXPECT_TRUE(contains(text, "run_to\t3\t6\n")) << text;
  EXPECT_TRUE(contains(text, "node not met\ttrue\n")) << text;
}

// The next debugger starts before the training gives up, and ends it.
TEST(LiveProgram, EndsWellThoughTheDebuggerWasRestarted) {
  // A busy machine may take seconds to start the second debugger: the attempts last 15 s.
  Live live("print 'held'; io.stdout:flush(); while true do end", {"--retry-unit-ms", "1000", "--steps", "5"});
  ASSERT_TRUE(live.pair->listen().wait_for("held"));
  const std::string port = live.pair->port();
  live.pair->listen().send_signal(SIGKILL);
  ASSERT_TRUE(live.pair->listen().wait());
  const std::string script = live.directory.file("again.lua");
  std::ofstream(script) << "print(s.completed_steps .. ' completed'); s:terminate()";
  Process again({MSDBG_PROGRAM, "listen", "--port", port, "--script", script});
  EXPECT_EQ(live.pair->trainer().wait().value_or(-1), 0) << live.pair->trainer().output() << again.output();
  EXPECT_TRUE(contains(live.pair->trainer().output(), "stopped by the debugger")) << live.pair->trainer().output();
  EXPECT_EQ(again.wait().value_or(-1), 0) << again.output();
  EXPECT_TRUE(contains(again.output(), "0 completed")) << again.output();
}

TEST(LiveProgram, GivesUpWhenTheDebuggerIsKilledWhileItHoldsTheTraining) {
  Live live("print 'held'; io.stdout:flush(); while true do end",
            {"--retry-unit-ms", "1", "--steps", "5"});
  ASSERT_TRUE(live.pair->listen().wait_for("held"));
  live.pair->listen().send_signal(SIGKILL);
  ASSERT_TRUE(live.pair->finish());
  EXPECT_EQ(live.pair->script_status, 128 + SIGKILL);
  EXPECT_EQ(live.pair->training_status, 1);
  EXPECT_TRUE(contains(live.pair->training_text, "given up after ")) << live.pair->training_text;
}

}  // namespace
}  // namespace msdbg::test
