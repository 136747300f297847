// Commands of a live session, active watchpoints, callbacks, and values that change between suspensions.
#include "script/live_support.h"
#include "script/run_status.h"

namespace msdbg::testing {
namespace {

using Live = LiveScriptTest;
using Calls = std::vector<std::string>;

TEST_F(Live, FieldsShowWhereTheTrainingIs) {
  run(R"(assert(s.kind == "live" and s.state == "held")
         assert(s.current_step == 0 and s.completed_steps == 0 and s.current_node == nil)
         assert(s.address == "127.0.0.1:50051")
         assert(s.info.peer.version == "2.2.0" and s.info.peer.backend == "GPU" and #s.info.peer.notes == 1)
         assert(s.can.step and s.can.pause and s.can.run_to and s.can.recheck and s.can.goto_step))");
  EXPECT_EQ(type("tostring(s)"), "<session live trainer step 0 held>");
}

TEST_F(Live, DumpsHaveNoneOfIt) {
  run("local d = msdbg.open 'fake'; assert(d.completed_steps == nil and d.address == nil and not d.can.step)");
  EXPECT_TRUE(contains(failure("msdbg.open('fake'):step()"), "step: a dump cannot be driven"));
  EXPECT_TRUE(contains(failure("msdbg.open('fake'):step()"), "s:goto_step(n)"));
  EXPECT_TRUE(contains(failure("msdbg.open('fake'):on('hit', print)"), "a dump cannot be driven"));
}

TEST_F(Live, StepsAreCounted) {
  run(R"(local r = s:step()
         assert(r.reason == "done" and r.state == "held" and r.held and r.step == 0 and r.completed_steps == 1)
         r = s:step(2)
         assert(r.step == 2 and r.steps_run == 2 and s.completed_steps == 3 and s.current_step == 2)
         assert(r.node == "Gradients/Default/net/ReluGrad-op0")
         r = s:step()
         assert(r.reason == "ended" and r.state == "ended" and not r.held and s.state == "ended"))");
}

TEST_F(Live, WrongNumbersOfStepsAreRefused) {
  EXPECT_TRUE(contains(failure("s:step(0)"), "1 or more is expected, not 0"));
  EXPECT_TRUE(contains(failure("s:step(1.5)"), "step: number of steps"));
  EXPECT_TRUE(contains(failure("s:step { timeou = 1 }"), "did you mean 'timeout'"));
  EXPECT_TRUE(contains(failure("s:continue { timeout = -1 }"), "continue: option 'timeout'"));
  EXPECT_TRUE(training->calls.empty() || training->calls == Calls{"watch 0"});
}

TEST_F(Live, NodesAreSteppedAndReached) {
  run(R"(local r = s:next_node()
         assert(r.reason == "done" and r.node == "Default/net/MatMul-op0" and s.current_node == r.node)
         r = s:run_to "ReluGrad-op0"
         assert(r.reason == "done" and r.node == "Gradients/Default/net/ReluGrad-op0" and r.completed_steps == 0)
         r = s:run_to(s:node "MatMul-op0")
         assert(r.reason == "node not met" and r.completed_steps == 1)
         r = s:step { node = "ReLU-op0" }
         assert(r.node == "Default/net/relu-ReLU/ReLU-op0" and r.step == 1))");
  EXPECT_TRUE(contains(failure("s:run_to 'ReLU-op9'"), "ReLU-op0"));
  EXPECT_TRUE(contains(failure("s:run_to {}"), "a node or its name is expected"));
}

TEST_F(Live, ContinueStopsAtAHit) {
  run(R"(s:watch { on = "@gradient", when = "TO" }
         local r = s:continue()
         assert(r.reason == "hit" and r.step == 2 and #r.hits == 1)
         assert(r.hits[1].node == "Gradients/Default/net/ReluGrad-op0" and r.hits[1].step == 2)
         assert(r.hits == r.hits and r.check.total_hits == 1 and #r.not_checked == 0)
         assert(s.last_result.total_hits == 1)
         assert(s:continue().reason == "ended"))");
}

TEST_F(Live, ContinueHasABudgetOfSteps) {
  run("local r = s:continue { steps = 2 }; assert(r.reason == 'done' and r.completed_steps == 2)");
}

TEST_F(Live, ResultsPrintThemselves) {
  EXPECT_EQ(type("s:step()"), "step 0 is done; training is held");
  EXPECT_EQ(type("s:next_node()"), "step 1, after Default/net/MatMul-op0; training is held");
  type("watch @gradient TO");
  EXPECT_EQ(type("s:continue()"),
            "step 2  HIT  1 hit, after Gradients/Default/net/ReluGrad-op0; training is held\n  ReluGrad-op0:output:0  TO  1 of 2 NaN");
  EXPECT_EQ(type("s:continue()"), "training has ended after 3 steps");
}

TEST_F(Live, WatchpointsGoToTheTrainingWhenTheyChanged) {
  run(R"(s:step()
         local w = s:watch { on = "@gradient", when = "TO" }
         s:step())");
  EXPECT_EQ(training->calls, (Calls{"watch 0", "run step", "watch 1", "run step"}));
  training->calls.clear();
  run("s:watches()[1]:disable(); s:recheck(); s:recheck()");
  EXPECT_EQ(training->calls, (Calls{"watch 0", "recheck", "recheck"}));
  training->calls.clear();
  run("s:watches()[1]:enable():set { slots = 'all' }; s:recheck(); s:watches()[1]:remove(); s:recheck()");
  EXPECT_EQ(training->calls, (Calls{"watch 1", "recheck", "watch 0", "recheck"}));
}

TEST_F(Live, FunctionsOfWatchpointsAreJudgedHere) {
  run(R"(local seen = {}
         s:watch { name = "mine", on = "op:MatMul", when = function(t, ctx)
           seen[#seen + 1] = ctx.step
           return t.stats.max > 3 and { actual = t.stats.max, note = "high" }
         end }
         local co = coroutine.wrap(function() return s:step() end)
         co()  -- the thread that was running then is gone in the next call
         collectgarbage()
         local r = s:continue()
         assert(r.reason == "ended" or r.hits[1].watch_name == "mine")
         assert(#seen == 3 and seen[3] == 2))");
}

TEST_F(Live, RecheckJudgesTheValuesAtHand) {
  run(R"(s:step()
         local w = s:watch { on = "op:MatMul", when = "TL", max_gt = 100 }
         assert(s:recheck().reason == "done")
         w:set { max_gt = 2 }
         local r = s:recheck()
         assert(r.reason == "hit" and #r.hits == 1 and r.completed_steps == 1 and r.steps_run == 0))");
  EXPECT_TRUE(contains(failure("s:recheck {}"), "takes no options"));
  training->mutable_peer().has_recheck = false;
  EXPECT_TRUE(contains(failure("s:recheck()"), "cannot recheck"));
  run("assert(not s.can.recheck)");
}

TEST_F(Live, CheckLooksAtTheCurrentStepOnly) {
  run(R"(s:step(3)
         s:watch { on = "op:MatMul", when = "TL", max_gt = 0 }
         local r = s:check()
         assert(#r.hits == 1 and r.hits[1].step == 2)
         assert(#s:check { steps = "all" }.hits == 3))");
}

TEST_F(Live, ValuesOfAnEarlierSuspensionAreNotShown) {
  run(R"(local t = s:tensor "fc.weight"
         assert(t.stats.max == 1 and t:at(0) == 1)
         s:step()  -- still step 0 to this peer, but the weight was updated
         local now = s:tensor "fc.weight"
         assert(math.abs(now:at(0) - 1.1) < 1e-6 and math.abs(now.stats.max - 1.1) < 1e-6)
         assert(math.abs(t.stats.max - 1.1) < 1e-6))");
}

TEST_F(Live, EarlierStepsKeepTheirStatistics) {
  run(R"(s:step(3)
         assert(s.current_step == 2)
         s:goto_step(-1)
         assert(s.current_step == 1 and s:tensor("MatMul-op0").stats.max == 3)
         s:goto_step(-2)
         assert(s.current_step == 0)
         s:goto_step()
         assert(s.current_step == 2)
         s:goto_step(1)
         assert(s.current_step == 1 and not pcall(function() return s:tensor("MatMul-op0"):at(0) end)))");
  EXPECT_TRUE(contains(failure("s:goto_step(-3)"), "no step 3 before step 2 (have 0-2)"));
}

TEST_F(Live, RunningComesBackToTheStepOfTheTraining) {
  run("s:step(2); s:goto_step(-1); s:step(); assert(s.current_step == 2)");
}

TEST_F(Live, EachStepDrivesTheTraining) {
  run(R"(local seen = {}
         for step, r in s:each_step() do
           seen[#seen + 1] = step
           assert(r.step == step and s.current_step == step)
         end
         assert(table.concat(seen, " ") == "0 1 2" and s.state == "ended"))");
}

TEST_F(Live, EachStepGoesOnAfterAHitInTheMiddleOfAStep) {
  auto made = small_training();
  made->stops_behind_operators();
  use(std::move(made));
  run(R"(local hits, seen = 0, {}
         s:on("hit", function() hits = hits + 1 end)
         s:watch { on = "op:MatMul", when = "TL", max_gt = 0 }
         for step in s:each_step() do seen[#seen + 1] = step end
         assert(hits == 3 and table.concat(seen, " ") == "0 1 2"))");
}

TEST_F(Live, CallbacksRunForStepsHitsAndTheEnd) {
  run(R"(local log = {}
         s:on("step", function(step) log[#log + 1] = "step " .. step end)
         s:on("hit", function(hit, r) log[#log + 1] = "hit " .. hit.op .. " " .. r.reason end)
         s:on("end", function(r) log[#log + 1] = r.state end)
         s:watch { on = "@gradient", when = "TO" }
         s:continue() s:continue()
         assert(table.concat(log, ", ") == "step 0, step 1, step 2, hit ReluGrad hit, ended", table.concat(log, ", ")))");
}

TEST_F(Live, AStepCallbackMayStop) {
  run(R"(s:on("step", function(step) return step < 1 end)
         local r = s:continue()
         assert(r.reason == "paused" and r.completed_steps == 2)
         s:on("step", false)
         assert(s:continue().reason == "ended"))");
}

TEST_F(Live, AStepCallbackSeesTheValuesOfThatStep) {
  run(R"(local seen = {}
         s:on("step", function(step) seen[#seen + 1] = s:tensor("MatMul-op0"):at(0); assert(s.current_step == step) end)
         s:continue()
         assert(table.concat(seen, " ") == "1 2 3", table.concat(seen, " ")))");
}

TEST_F(Live, AnErrorInACallbackKeepsTheTrainingHeld) {
  type("s:on('step', function(step) local x = nil; return x.y end)");
  const std::string text = type("s:continue()");
  EXPECT_TRUE(contains(text, "attempt to index local 'x'")) << text;
  run("assert(s.state == 'held' and s.completed_steps == 1)");
  run("s:on('step', false); s:on('hit', function() error 'in hit' end); s:watch { on = '@gradient', when = 'TO' }");
  EXPECT_TRUE(contains(failure("local function go()\n  s:continue()\n  return 1\nend\ngo()"), "in hit"));
  run("assert(s.state == 'held' and s.completed_steps == 3); s:on('hit', false); assert(#s:recheck().hits == 1)");
}

TEST_F(Live, CallbackErrorsCarryATraceback) {
  const std::string text = failure(R"(local function deep() error "oops" end
s:on("step", function() deep() return true end)
s:step(2))");
  EXPECT_TRUE(contains(text, "oops"));
  EXPECT_TRUE(contains(text, "test.lua:2")) << text;
}

TEST_F(Live, CallbacksCannotRunTheTrainingThemselves) {
  run(R"(local why
         s:on("step", function() why = select(2, pcall(s.step, s)) end)
         s:step()
         assert(tostring(why):find("step: step runs on this session already", 1, true), tostring(why))
         assert(s.completed_steps == 1))");
}

TEST_F(Live, UnknownEventsAreNamed) {
  EXPECT_TRUE(contains(failure("s:on('hits', print)"), "did you mean 'hit'?"));
  EXPECT_TRUE(contains(failure("s:on('hit')"), "a function (or false, to forget) is expected, not nothing"));
}

TEST_F(Live, ASelectorWithoutNodesIsReportedBeforeRunning) {
  run("s:watch { on = 'op:Nothing', when = 'TO', optional = true }; s:step()");
  EXPECT_TRUE(contains(failure("s:watch { on = 'op:Nothing', when = 'TO' }"), "matches no node"));
}

TEST_F(Live, ALostTrainingIsAResult) {
  auto made = small_training();
  made->breaks_in_step(1);
  use(std::move(made));
  run(R"(local ended
         s:on("end", function(r) ended = r.state end)
         local r = s:continue()
         assert(r.reason == "lost" and r.state == "lost" and ended == "lost" and r.completed_steps == 1)
         assert(tostring(r) == "the connection to the training broke in step 1, after 1 step", tostring(r)))");
  EXPECT_TRUE(contains(type("s:step()"), "the command was not delivered"));
  EXPECT_EQ(script->run_text("s:step()", "@test.lua").exit_status, 6);
}

TEST_F(Live, AnotherProcessIsToldTheWatchpointsAnew) {
  auto made = small_training();
  made->breaks_in_step(1);
  use(std::move(made));
  type("watch @gradient TO");
  type("ends = 0");
  type("s:on('end', function() ends = ends + 1 end)");
  EXPECT_EQ(type("s:continue().reason"), "lost");
  EXPECT_EQ(script->prompt(), "trainer step 1 lost [1 watch] > ");
  training->calls.clear();
  training->breaks_in_step(0).restart();  // the prompt may be the first to notice
  EXPECT_EQ(script->prompt(), "trainer step 0 held [1 watch] > ");
  EXPECT_EQ(type("s:continue().reason, ends"), "lost  2");
  EXPECT_EQ(training->calls, (Calls{"watch 1", "run continue"}));
}

TEST_F(Live, TimeoutsPause) {
  auto made = small_training();
  made->stays_in_step(1);
  use(std::move(made));
  run("local r = s:continue { timeout = 0.01 }; assert(r.reason == 'paused' and r.held and r.completed_steps == 2)");
}

TEST_F(Live, InterruptedContinueIsAResultAtThePrompt) {
  auto made = small_training();
  made->is_interrupted_in_step(1);
  use(std::move(made));
  const auto result = script->eval("r = s:continue(); return r.reason, s.state");
  EXPECT_EQ(result.state, Script::EvalState::kDone) << result.output;
  EXPECT_EQ(result.output, "interrupted  running");
  EXPECT_FALSE(interrupt_requested());
  EXPECT_EQ(type("r"), "interrupted in step 1; the training will be held when that step is over (pause waits for it)");
  EXPECT_EQ(type("s:pause()"), "paused in step 1, 2 steps completed; training is held");
  EXPECT_EQ(type("s:step()"), "step 2 is done; training is held");
}

TEST_F(Live, InterruptEndsAScript) {
  auto made = small_training();
  made->is_interrupted_in_step(0);
  use(std::move(made));
  EXPECT_EQ(script->run_text("pcall(s.continue, s) while true do end", "@test.lua").exit_status, 130);
  EXPECT_EQ(training->state(), LiveState::kRunning);
}

TEST_F(Live, TerminateAndDetachLetGo) {
  EXPECT_EQ(script->trainings().size(), 1u);
  EXPECT_FALSE(script->trainings()[0].detached);
  EXPECT_TRUE(contains(failure("s:close()"), "s:terminate() ends it, s:detach() lets it run on"));
  run("s:detach(); assert(s.state == 'running')");
  ASSERT_EQ(script->trainings().size(), 1u);
  EXPECT_TRUE(script->trainings()[0].detached);
  run("assert(s:wait() == 'ended' and s.completed_steps == 3); s:close(); assert(s.state == 'closed')");
  EXPECT_TRUE(script->trainings().empty());
  use(small_training());
  run("local r = s:terminate(); assert(r.reason == 'ended' and s.state == 'ended'); s:close()");
  EXPECT_TRUE(script->trainings().empty());
  EXPECT_TRUE(contains(failure("s:step()"), "session is closed"));
}

TEST_F(Live, EventsAreReportedAfterEachCommand) {
  training->post(Severity::kWarning, "an unknown watchpoint id");
  EXPECT_TRUE(told.empty());
  type("s:step()");
  EXPECT_EQ(told, std::vector<std::string>{"an unknown watchpoint id"});
  training->post(Severity::kInfo, "a second client was refused");
  script->report_events();
  EXPECT_EQ(told.size(), 2u);
  EXPECT_EQ(script->event_descriptors(), std::vector<int>{training->event_descriptor()});
}

TEST_F(Live, OriginWorksOnTheStepAtHand) {
  run("s:step(3); local o = msdbg.origin(s); assert(#o.origins == 1 and o.origins[1].node == 'Gradients/Default/net/ReluGrad-op0')");
}

TEST(RunStatus, ShowsStepsRateAndShare) {
  using namespace std::chrono_literals;
  EXPECT_EQ(script::status_text({1234, 100, 2s, 60ms, ""}), "step 1234: 100 steps, 50 a second, 3 % of the time in msdbg");
  EXPECT_EQ(script::status_text({0, 1, 4s, 0s, ""}), "step 0: 1 step, 0.25 a second, 0 % of the time in msdbg");
  EXPECT_EQ(script::status_text({3, 1, 4s, 0s, "rank 1 since 3 s"}),
            "step 3: 1 step, 0.25 a second, 0 % of the time in msdbg, waiting for rank 1 since 3 s");
  EXPECT_EQ(script::status_text({}), "step 0: 0 steps, 0 a second, 0 % of the time in msdbg");
}

}  // namespace
}  // namespace msdbg::testing
