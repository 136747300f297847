// The prompt: commands, expressions, statements, incomplete input, completion.
#include <algorithm>

#include "script/support.h"

namespace msdbg::testing {
namespace {

using EvalState = Script::EvalState;

class Prompt : public ScriptTest {
 protected:
  bool offers(const std::string& line, const std::string& candidate) {
    const auto found = script->complete(line, line.size());
    return std::find(found.begin(), found.end(), candidate) != found.end();
  }
};

TEST_F(Prompt, ExpressionsArePrinted) {
  EXPECT_EQ(type("40 + 2"), "42");
  EXPECT_EQ(type("'a' .. 1, nil, true"), "a1  nil  true");
  EXPECT_EQ(type("{ 1, 2, x = { 3 } }"), "{ 1, 2, x = { 3 } }");
}

TEST_F(Prompt, StatementsPrintNothing) {
  EXPECT_EQ(type("x = 5"), "");
  EXPECT_EQ(type("x * 2"), "10");
}

TEST_F(Prompt, ResultsAreKept) {
  type("6 * 7, 'b'");
  EXPECT_EQ(type("_2"), "b");
  type("6 * 7, 'b'");
  EXPECT_EQ(type("_ + 1"), "43");
}

TEST_F(Prompt, UnfinishedInputAsksForMore) {
  EXPECT_EQ(script->eval("for i = 1, 2 do").state, EvalState::kIncomplete);
  EXPECT_EQ(script->eval("f(").state, EvalState::kIncomplete);
  EXPECT_EQ(script->eval("x = 1 +").state, EvalState::kIncomplete);
  EXPECT_EQ(script->eval("x = [[").state, EvalState::kIncomplete);
  EXPECT_EQ(script->eval("x = 1 +\n2").state, EvalState::kDone);
  EXPECT_EQ(type("x"), "3");
}

TEST_F(Prompt, SyntaxErrorsDoNotAskForMore) {
  const auto result = script->eval("x = = 1");
  EXPECT_EQ(result.state, EvalState::kError);
  EXPECT_TRUE(contains(result.output, "error: "));
}

TEST_F(Prompt, ErrorsHaveNoPromptPlace) {
  EXPECT_EQ(type("s:wach {}"), "error: session has no field 'wach' (did you mean 'watch'?)");
  EXPECT_EQ(type("error 'x'"), "error: x");
}

TEST_F(Prompt, UnknownWordGetsTheNearestCommand) {
  EXPECT_EQ(type("nodse"), "error: unknown command or name 'nodse' (did you mean 'nodes'?)");
  EXPECT_EQ(type("wach relu TO"), "error: unknown command or name 'wach' (did you mean 'watch'?)");
  EXPECT_EQ(type("undefined_name"), "error: unknown command or name 'undefined_name'; type help");
}

TEST_F(Prompt, CommandsGiveWayToLua) {
  EXPECT_EQ(type("check = 3"), "");
  EXPECT_EQ(type("check"), "3");
  EXPECT_EQ(type("hits = { 5 }"), "");
  EXPECT_EQ(type("hits[1]"), "5");
}

TEST_F(Prompt, WatchAndCheckSpeakInTables) {
  EXPECT_EQ(type("watch @activation TZ 50"), "watch 1: tensor_all_zero zero_percentage_ge 50 on @activation (1 node)");
  const std::string report = type("check");
  EXPECT_TRUE(contains(report, "ReLU-op0")) << report;
  EXPECT_TRUE(contains(report, "2 hits")) << report;
  EXPECT_TRUE(contains(type("hits"), "relu-ReLU/ReLU-op0:output:0"));
  EXPECT_EQ(type("unwatch 1"), "watch 1 removed");
  EXPECT_TRUE(contains(type("unwatch 1"), "no watchpoint 1 (have none)"));
}

TEST_F(Prompt, SelectorsOfSeveralWordsAreUnderstood) {
  EXPECT_EQ(type("watch op:ReLU or op:Log TO"), "watch 1: tensor_overflow on op:ReLU or op:Log (2 nodes)");
}

TEST_F(Prompt, WatchWithoutConditionExplains) {
  EXPECT_TRUE(contains(type("watch **"), "usage: watch SELECTOR CONDITION"));
  EXPECT_TRUE(contains(type("watch ** tensor_overflo"), "did you mean 'tensor_overflow'?"));
}

TEST_F(Prompt, SelectorWithoutMatchNamesNearNodes) {
  EXPECT_TRUE(contains(type("watch relu9 TO"), "selector 'relu9' matches no node; nearest: ReLU-op0"));
}

TEST_F(Prompt, TensorsPrintWithTheirStatistics) {
  EXPECT_EQ(type("s:tensor 'Log-op0'").substr(0, 64),
            "<tensor Log-op0:output:0 float32[2,3] step 0>  6 elements, 3 fin");
}

TEST_F(Prompt, GotoMovesThePrompt) {
  EXPECT_EQ(script->prompt(), "fake step 0 > ");
  EXPECT_EQ(type("goto 1"), "");
  EXPECT_EQ(script->prompt(), "fake step 1 > ");
  EXPECT_TRUE(contains(type("goto 9"), "no step 9 (have 0,1)"));
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
  EXPECT_EQ(plain.state, EvalState::kExit);
  EXPECT_EQ(plain.exit_status, 0);
  EXPECT_EQ(script->eval("exit 3").exit_status, 3);
  const auto lua = script->eval("os.exit(4)");
  EXPECT_EQ(lua.state, EvalState::kExit);
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
  EXPECT_TRUE(contains((*empty)->eval("check").output, "msdbg.open"));
  EXPECT_EQ((*empty)->eval("s = msdbg.open 'fake'").output, "");
  EXPECT_EQ((*empty)->prompt(), "fake step 0 > ");
}

TEST_F(Prompt, CompletionKnowsCommandsFieldsAndNodes) {
  EXPECT_TRUE(offers("reche", "recheck"));
  EXPECT_TRUE(offers("s:wat", "s:watch"));
  EXPECT_TRUE(offers("x = s.cur", "s.current_step"));
  EXPECT_TRUE(offers("msdbg.o", "msdbg.open"));
  EXPECT_TRUE(offers("nodes @gr", "@gradient"));
  EXPECT_TRUE(offers("show Log", "Log-op0"));
  EXPECT_TRUE(offers("show Default/net/L", "Default/net/Log-op0"));
  EXPECT_TRUE(offers("s:tensor \"Log", "Log-op0"));
  EXPECT_TRUE(offers("watch @weight tensor_o", "tensor_overflow"));
  EXPECT_TRUE(offers("goto ", "1"));
  EXPECT_TRUE(offers("help sel", "selectors"));
  EXPECT_TRUE(script->complete("zzz", 3).empty());
}

}  // namespace
}  // namespace msdbg::testing
