// The commands of the prompt: what they print, and what they say of mistakes.
#include <fstream>
#include <sstream>

#include "script/support.h"

namespace msdbg::testing {
namespace {

using Prompt = ScriptTest;

TEST_F(Prompt, WatchAndCheckSpeakInTables) {
  EXPECT_EQ(type("watch @activation TZ 50"), "watch 1: tensor_all_zero zero_percentage_ge 50 on @activation (1 node)");
  const std::string report = type("check");
  EXPECT_TRUE(contains(report, "ReLU-op0")) << report;
  EXPECT_TRUE(contains(report, "2 hits")) << report;
  EXPECT_TRUE(contains(type("hits"), "warning   TZ    Default/net/relu-ReLU/ReLU-op0  "));
  EXPECT_EQ(type("unwatch 1"), "watch 1 removed");
  EXPECT_TRUE(contains(type("unwatch 1"), "no watchpoint 1 (have none)"));
}

TEST_F(Prompt, SelectorsOfSeveralWordsAreUnderstood) {
  EXPECT_EQ(type("watch op:ReLU or op:Log TO"), "watch 1: tensor_overflow on op:ReLU or op:Log (2 nodes)");
}

TEST_F(Prompt, WatchWithoutConditionExplains) {
  EXPECT_TRUE(contains(type("watch **"), "usage: watch SELECTOR CONDITION"));
  EXPECT_TRUE(contains(type("watch"), "watch: on which nodes?"));
  EXPECT_TRUE(contains(type("watch op:Log and"), "the selector 'op:Log and' is not finished"));
  EXPECT_TRUE(contains(type("watch ** tensor_overflo"),
                       "no condition 'tensor_overflo'; the nearest:\n  TO  tensor_overflow    the tensor holds NaN or Inf\n"));
  // No condition resembles that: list those made for such nodes.
  EXPECT_TRUE(contains(type("watch ** ZZZZ 3"), "no condition 'ZZZZ'; the nearest:\n  TO  tensor_overflow"));
  EXPECT_TRUE(contains(type("watch @gradient ZZZZ"), "no condition 'ZZZZ'; the nearest:\n  GE  gradient_exploding"));
  EXPECT_TRUE(contains(type("bisect fc.weight --when ZZZZ"), "ZZZZ"));
  EXPECT_EQ(type("#s:watches()"), "0");
}

TEST_F(Prompt, ConditionsOfWatchNeedNoFunctionInFront) {
  EXPECT_EQ(type("watch op:Log not all(x > 3)"), "watch 1: not all(x > 3) on op:Log (1 node)");
  EXPECT_EQ(type("watch (op:Log or op:ReLU) and not fc.weight 3 < max(x)"),
            "watch 2: 3 < max(x) on (op:Log or op:ReLU) and not fc.weight (2 nodes)");
  EXPECT_TRUE(contains(type("watch ** x > 3"), "this is a truth value for each element"));
  EXPECT_EQ(type("watch \"op:Log\" \"tensor_overflow\""), "watch 3: tensor_overflow on op:Log (1 node)");
}

TEST_F(Prompt, SelectorWithoutMatchNamesNearNodes) {
  EXPECT_TRUE(contains(type("watch relu9 TO"), "selector 'relu9' matches no node; nearest: ReLU-op0"));
}

TEST_F(Prompt, TensorsPrintWithTheirStatistics) {
  EXPECT_EQ(type("s:tensor 'Log-op0'").substr(0, 64),
            "<tensor Log-op0:output:0 float32[2,3] step 0>  6 elements, 3 fin");
}

TEST_F(Prompt, GotoMovesThePrompt) {
  EXPECT_EQ(script->prompt(), "fake step 0/1 rank 0 > ");
  EXPECT_EQ(type("goto 1"), "");
  EXPECT_EQ(script->prompt(), "fake step 1/1 rank 0 > ");
  EXPECT_TRUE(contains(type("goto 9"), "no step 9 (have 0-1)"));
  EXPECT_TRUE(contains(type("goto x"), "a step is expected, not 'x'"));
}

TEST_F(Prompt, NodesStatsShowInfoOriginAnswer) {
  EXPECT_TRUE(contains(type("nodes MatMul"), "Default/net/MatMul-op0"));
  EXPECT_TRUE(contains(type("stats op:Log"), "Log-op0"));
  EXPECT_TRUE(contains(type("show Log-op0:0"), "-Inf"));
  EXPECT_TRUE(contains(type("show MatMul-op0"), "train.py:12"));
  EXPECT_FALSE(type("info").empty());
  EXPECT_TRUE(contains(type("origin"), "Log-op0"));
}

TEST_F(Prompt, QuitCarriesItsStatus) {
  const auto plain = script->eval("quit");
  EXPECT_EQ(plain.state, Script::EvalState::kExit);
  EXPECT_EQ(plain.exit_status, 0);
  EXPECT_EQ(script->eval("exit 3").exit_status, 3);
  const auto lua = script->eval("os.exit(4)");
  EXPECT_EQ(lua.state, Script::EvalState::kExit);
  EXPECT_EQ(lua.exit_status, 4);
}

TEST_F(Prompt, HelpListsCommandsAndTopics) {
  EXPECT_TRUE(contains(type("help"), "recheck"));
  EXPECT_TRUE(contains(type("help selectors"), "@weight"));
  EXPECT_TRUE(contains(type("help goto"), "goto STEP"));
  EXPECT_TRUE(contains(type("help selektors"), "did you mean 'selectors'?"));
}

TEST_F(Prompt, WithoutSessionCommandsSayWhatToDo) {
  auto empty = Script::create(small_options());
  ASSERT_TRUE(empty.ok());
  EXPECT_EQ((*empty)->prompt(), "msdbg > ");
  EXPECT_TRUE(contains((*empty)->eval("check").output, "no session is open; open one with: open PATH"));
  EXPECT_EQ((*empty)->eval("s = msdbg.open 'fake'").output, "");
  EXPECT_EQ((*empty)->prompt(), "fake step 0/1 rank 0 > ");
}

TEST_F(Prompt, MistakesNameWhatThereIs) {
  EXPECT_EQ(type("tensors relu --steps 7"), "no step 7 (have 0-1)");
  EXPECT_TRUE(contains(type("stats relu --steps 7:9"), "no data for step 7:9; have steps 0"));
  EXPECT_TRUE(contains(type("show Log-op0[0:2"), "show: the slice of 'Log-op0[0:2' has no ']'"));
  EXPECT_TRUE(contains(type("trend l2norm fc.weight"), "l2_norm"));
  EXPECT_EQ(type("step"), "error: step: a dump cannot be driven, all its steps are there; goto STEP chooses one, check looks through them");
  EXPECT_TRUE(contains(type("terminate"), "terminate: a dump cannot be driven"));
  EXPECT_TRUE(contains(type("?_"), "nil"));
}

TEST_F(Prompt, RulesAreCheckedAgainByRecheck) {
  const std::string first = type("check --rules TO");
  EXPECT_TRUE(contains(first, "Log-op0"));
  EXPECT_EQ(type("recheck"), first);
  type("watch op:ReLU TZ 33.3");
  EXPECT_FALSE(contains(type("recheck"), "Log-op0"));
}

TEST_F(Prompt, ReportsNameTheNextCommandAsItIsTypedHere) {
  EXPECT_TRUE(contains(type("origin"), "next: show "));
  EXPECT_TRUE(contains(type("msdbg.origin(s)"), "next: show "));
  ::testing::internal::CaptureStdout();
  run("print(msdbg.origin(msdbg.open 'fake'))");
  EXPECT_TRUE(contains(::testing::internal::GetCapturedStdout(), "next: msdbg show "));
}

TEST_F(Prompt, CheckInLuaIsTheCommand) {
  const std::string rules = type("check");
  EXPECT_TRUE(contains(rules, "Log-op0"));
  EXPECT_EQ(type("s:check()"), rules);  // without a watchpoint: the default rules
  EXPECT_EQ(type("s.last_result"), rules);
  type("watch op:Log TO");
  EXPECT_EQ(type("s:check()"), type("check"));
  EXPECT_EQ(type("s:check { steps = 0 }"), type("check --steps 0"));
  EXPECT_TRUE(contains(type("hits"), "Log-op0"));
  type("unwatch all");
  EXPECT_EQ(type("s:check { rules = 'TZ' }"), type("check --rules TZ"));
  type("watch fc.weight TO");
  EXPECT_TRUE(contains(type("check"), "clean: "));
  EXPECT_EQ(type("s:check()"), type("check"));
}

TEST_F(Prompt, FunctionsOfWatchpointsRunInTheCommand) {
  type("calls = 0; s:watch { on = 'op:Log', name = 'mine', when = function(t) calls = calls + 1; return t.stats.count == 6 end }");
  EXPECT_TRUE(contains(type("check"), "mine"));
  EXPECT_EQ(type("calls"), "2");
  type("s:watch { on = 'op:Log', when = function() s:check() end }");
  EXPECT_TRUE(contains(type("check"), "a check runs on this session already"));
  EXPECT_EQ(type("1 + 1"), "2");
}

TEST_F(Prompt, WordsAreReadAsAShellReadsThem) {
  EXPECT_EQ(type("nodes 'op:ReLU or op:Log'"), type("nodes op:ReLU or op:Log"));
  EXPECT_EQ(type("nodes \"op:ReLU or op:Log\""), type("nodes op:ReLU or op:Log"));
  EXPECT_TRUE(contains(type("nodes 'op:ReLU"), "the quote at 'op:ReLU is not closed"));
  EXPECT_TRUE(contains(type("check --stepz 0"), "check: no option '--stepz'; did you mean '--steps'?"));
  EXPECT_TRUE(contains(type("show"), "show: TENSOR is required"));
}

TEST_F(Prompt, AVariableStandsForItsTensor) {
  type("t = s:tensor('Log-op0', { step = 1 })");
  EXPECT_EQ(type("show t"), type("show Log-op0 --step 1"));
  EXPECT_NE(type("show t"), type("show Log-op0"));
}

TEST_F(Prompt, ListAndReportAreAboutTheLastCheck) {
  type("check --rules TZ --param TZ.zero_percentage_ge=30");
  EXPECT_TRUE(contains(type("list"), "train.py"));
  const std::string file = ::testing::TempDir() + "prompt-report.md";
  EXPECT_TRUE(contains(type("report -o " + file), file));
  std::stringstream page;
  page << std::ifstream(file).rdbuf();
  EXPECT_TRUE(contains(page.str(), "by the last check"));
  EXPECT_TRUE(contains(page.str(), "**TZ**"));
}

TEST_F(Prompt, SessionsAreOpenedAndClosed) {
  EXPECT_EQ(type("close"), "");
  EXPECT_EQ(script->prompt(), "msdbg > ");
  EXPECT_TRUE(contains(type("check"), "no session is open; open one with: open PATH"));
  EXPECT_TRUE(contains(type("open fake"), "<session dump"));
  EXPECT_TRUE(contains(type("check"), "Log-op0"));
  EXPECT_TRUE(contains(type("open nowhere"), "nowhere: no dump here"));
  EXPECT_TRUE(contains(type("open"), "open: which file or directory?"));
  EXPECT_TRUE(contains(type("nodes op:Log"), "Log-op0"));
}

TEST_F(Prompt, ACommandGoesBeforeFunctionsOfItsName) {
  const std::string text = type("help list");
  EXPECT_EQ(text.rfind("list [OPTIONS] [FILE]\n", 0), 0u) << text;
  EXPECT_TRUE(contains(text, "the same name in Lua:\n  help rules.list  rules.list(options?) -> msdbg.Rule[]"));
  EXPECT_TRUE(contains(type("help watch"), "  help Watch "));
  EXPECT_TRUE(contains(type("help watch"), "  help session.watch  session:watch(options) -> msdbg.Watch"));
  EXPECT_TRUE(contains(type("help check"), "  help options.check "));
  EXPECT_TRUE(contains(type("help options.check"), "Raises an error for unknown fields"));
  EXPECT_TRUE(contains(type("help markdown"), "several functions have that name:\n"));
  EXPECT_TRUE(contains(type("help quantile"), "tensor:quantile(q) -> number?"));
}

}  // namespace
}  // namespace msdbg::testing
