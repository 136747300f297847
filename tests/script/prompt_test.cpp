// The prompt: expressions, statements, incomplete input, and where commands and Lua meet.
#include <fstream>

#include "script/support.h"

namespace msdbg::testing {
namespace {

using EvalState = Script::EvalState;

using Prompt = ScriptTest;

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

TEST_F(Prompt, KeptResultsMoveBackWhenNewOnesCome) {
  type("'first'");
  type("'second', 'third'");
  EXPECT_EQ(type("_1"), "second");
  EXPECT_EQ(type("_2"), "third");
  EXPECT_EQ(type("_3"), "first");  // reading one does not move them
  EXPECT_EQ(type("_3 .. '!'"), "first!");
  EXPECT_EQ(type("_4"), "first");
}

TEST_F(Prompt, TablesPrintNestedAndCutOff) {
  EXPECT_EQ(type("{ a = { b = { c = { d = { e = 1 } } } } }"), "{ a = { b = { c = { d = {...} } } } }");
  EXPECT_EQ(type("t = { 1 }; t.me = t"), "");
  EXPECT_EQ(type("t"), "{ 1, me = {... itself} }");
  const std::string list = type("(function() local l = {} for i = 1, 50 do l[i] = i * 1000000 end return l end)()");
  EXPECT_TRUE(contains(list, "20000000,\n  ... 30 more\n}"));
  EXPECT_EQ(type("{ ['a b'] = 0/0, [2.5] = 1/0 }"), "{ [2.5] = Inf, [\"a b\"] = NaN }");
  EXPECT_TRUE(contains(type("{ ('x'):rep(500) }"), "... 500 bytes"));
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

TEST_F(Prompt, WhatStandsBeforeAMemberIsCalledOnce) {
  type("calls = 0; function f() calls = calls + 1; return { x = 7, t = s:tensor 'Log-op0' } end");
  EXPECT_TRUE(contains(type("?f().x"), "number  7"));
  EXPECT_EQ(type("calls"), "1");
  EXPECT_TRUE(contains(type("?f().t.shape"), "now: "));
  EXPECT_EQ(type("calls"), "2");
  EXPECT_TRUE(contains(type("?f():nothing"), "error: "));
  EXPECT_TRUE(contains(type("?f().t.nothing"), "error: tensor has no field 'nothing'"));
  type("calls = 0");
  EXPECT_TRUE(contains(type("?f().x + f().x"), "number  14"));
  EXPECT_EQ(type("calls"), "2");
}

TEST_F(Prompt, AResultThatAScriptPrintsNamesNoOptionsOfTheProgram) {
  ::testing::internal::CaptureStdout();
  run("s:watch { on = '@all', when = 'TO' }; print(s:check())");
  const std::string text = ::testing::internal::GetCapturedStdout();
  EXPECT_TRUE(contains(text, "hit")) << text;
  EXPECT_FALSE(contains(text, "--")) << text;
  EXPECT_TRUE(contains(type("check"), "--format json"));
}

TEST_F(Prompt, CommandsInsideEachOtherEnd) {
  std::string entry = "1";
  for (int i = 0; i < 10; ++i) entry = "p " + entry;
  EXPECT_EQ(type(entry), "1");
  for (int i = 0; i < 20000; ++i) entry = "p " + entry;
  EXPECT_EQ(type(entry), "error: more than 20 commands inside each other");
  EXPECT_EQ(type("p 1"), "1");
}

TEST_F(Prompt, AChoiceOfRulesOfAnyLengthIsRead) {
  std::string choice = "not default";
  for (int i = 0; i < 20000; ++i) choice = "not " + choice;
  EXPECT_TRUE(contains(type("check --rules '" + choice + "'"), "error: "));
}

TEST_F(Prompt, LongTextsAreCutBetweenCharacters) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += "\xe4\xb8\xad";
  const std::string shown = type("{ 'x" + text + "' }");
  EXPECT_EQ(shown.find('?'), std::string::npos) << shown;
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
  type("i = 20");
  EXPECT_EQ(type("i + 1"), "21");
  EXPECT_EQ(type("i steps"), "0 1");
  EXPECT_EQ(type("p \"a\" .. 1"), "a1");
}

TEST_F(Prompt, BeginningsOfCommandsAreEnough) {
  EXPECT_EQ(type("exp mean(x) > 1"), type("explain mean(x) > 1"));
  EXPECT_EQ(type("rech"), type("recheck"));
  EXPECT_TRUE(contains(type("wat"), "'wat' is the beginning of several commands: watch, watches"));
  EXPECT_EQ(type("wat = 7"), "");
  EXPECT_EQ(type("wat"), "7");
}

TEST_F(Prompt, ShortFormsOfTfdbgAnswer) {
  EXPECT_TRUE(contains(type("lt Log"), "Log-op0"));
  EXPECT_TRUE(contains(type("pt Log-op0"), "-Inf"));
  EXPECT_TRUE(contains(type("pt Log-op0[0:1,0:2]"), "[1,2]"));
  EXPECT_TRUE(contains(type("ni Log-op0"), "Default/net/relu-ReLU/ReLU-op0"));
  EXPECT_TRUE(contains(type("li Log-op0"), "input:0 <- Default/net/relu-ReLU/ReLU-op0"));
  EXPECT_TRUE(contains(type("li Log-op0 --depth 9"), "fc.weight"));
  EXPECT_TRUE(contains(type("lo Log-op0"), "-> Gradients/Default/net/ReluGrad-op0"));
  EXPECT_TRUE(contains(type("lo Gradients/Default/net/ReluGrad-op0"), "nothing uses its output"));
}

TEST_F(Prompt, BacktraceLeadsToTheOrigin) {
  EXPECT_TRUE(contains(type("bt Log-op0"), "began here: the inputs of Log are finite"));
  EXPECT_TRUE(contains(type("bt MatMul-op0"), "is finite in step 0: nothing to trace"));
  EXPECT_TRUE(contains(type("bt"), "#0"));
}

TEST_F(Prompt, OptionsOfCommandsAreChecked) {
  EXPECT_TRUE(contains(type("lt --stepss 0"), "unknown option '--stepss' (did you mean '--steps'?)"));
  EXPECT_TRUE(contains(type("lt --steps"), "--steps wants a value: --steps STEPS"));
  EXPECT_TRUE(contains(type("li Log-op0 --depth many"), "a number of levels is expected, not 'many'"));
  EXPECT_TRUE(contains(type("lt op:Log --steps 0:1"), "   1"));
}

TEST_F(Prompt, InfoAnswersToBeginnings) {
  EXPECT_EQ(type("info b"), "no watchpoint; add one, e.g.: watch ** TO");
  EXPECT_TRUE(contains(type("check"), "Log-op0"));  // hits of the default rules belong to no watchpoint
  type("b op:Log TO");
  EXPECT_EQ(type("info b"), "watch 1: tensor_overflow on op:Log (1 node)");
  type("check");
  EXPECT_EQ(type("info b"), "watch 1: tensor_overflow on op:Log (1 node); 2 hits in the last check");
  EXPECT_EQ(type("i steps"), "0 1");
  EXPECT_EQ(type("print \"x\""), "x");
  EXPECT_TRUE(contains(type("info stepz"), "did you mean 'steps'?"));
  EXPECT_EQ(type("disable 1"), "watch 1 disabled");
  EXPECT_TRUE(contains(type("info watches"), "disabled"));
  EXPECT_EQ(type("enable all"), "1 enabled");
  EXPECT_EQ(type("d 1"), "watch 1 removed");
}

TEST_F(Prompt, DisplaysFollowEachStep) {
  EXPECT_EQ(type("display s.current_step * 2"), "1: s.current_step * 2 = 0");
  EXPECT_EQ(type("goto 1"), "1: s.current_step * 2 = 2");
  EXPECT_EQ(type("40 + 2"), "42");  // no step, no display
  EXPECT_EQ(type("s:goto_step(0)"), "1: s.current_step * 2 = 0");
  EXPECT_TRUE(contains(type("display nonsense +"), "error: "));
  EXPECT_EQ(type("display"), "1: s.current_step * 2 = 0");
  EXPECT_TRUE(contains(type("undisplay 7"), "no display 7 (have 1)"));
  EXPECT_EQ(type("undisplay 1"), "display 1 removed");
  EXPECT_EQ(type("goto 1"), "");
  for (const char* command : {"step", "continue 3", "n", "pause"}) {
    EXPECT_TRUE(contains(type(std::string("display ") + command), "would move the session each time it is shown")) << command;
  }
}

TEST_F(Prompt, SavedWatchpointsComeBack) {
  const std::string file = ::testing::TempDir() + "saved.msdbg";
  type("watch op:ReLU TZ 33.3");
  type("watch ** mean(abs(x)) > 10 * mean(abs(prev))");
  type("s:watch { on = 'op:Log', name = 'mine', when = function() end }");
  type("display s.current_step");
  EXPECT_EQ(type("save " + file), "2 watchpoints and 1 display written to " + file + "; 1 left out: a function cannot be saved");
  type("unwatch all");
  type("undisplay all");
  type("source " + file);
  EXPECT_EQ(type("#s:watches()"), "2");
  EXPECT_EQ(type("s:watches()[1].params.zero_percentage_ge"), "33.3");
  EXPECT_EQ(type("s:watches()[2].when"), "mean(abs(x)) > 10 * mean(abs(prev))");
  EXPECT_EQ(type("goto 1"), "2: s.current_step = 1");
  type("unwatch all");
  EXPECT_EQ(type("s:save_watches '" + file + "'"), "0  0");
  EXPECT_EQ(type("#s:load_watches '" + file + "'"), "0");
}

TEST_F(Prompt, SavedEntriesAreEnteredAgain) {
  const std::string file = ::testing::TempDir() + "entries.msdbg";
  type("watch op:Log TO");
  type("for i = 1, 2 do\n  x = i * 21\nend");
  type("nonsense here");
  EXPECT_EQ(type("save " + file + " --entries"), "2 entries written to " + file);
  type("unwatch all");
  type("x = nil");
  type("source " + file);
  EXPECT_EQ(type("x"), "42");
  EXPECT_EQ(type("#s:watches()"), "1");
}

TEST_F(Prompt, SourceStopsAtTheFirstMistakeAndNamesItsLine) {
  const std::string file = ::testing::TempDir() + "broken.msdbg";
  run("local f = io.open('" + file + "', 'w'); f:write('x = 1\\nnodes relu9\\nx = 2\\n'); f:close()");
  EXPECT_TRUE(contains(type("source " + file), "broken.msdbg:2: selector 'relu9' matches no node"));
  EXPECT_EQ(type("x"), "1");
  run("local f = io.open('" + file + "', 'w'); f:write('source " + file + "\\n'); f:close()");
  EXPECT_EQ(type("source " + file), "error: " + file + ":1: source: " + file + " would enter itself without end");
  run("local f = io.open('" + file + "', 'w'); f:write('for i = 1, 2 do\\n'); f:close()");
  EXPECT_TRUE(contains(type("source " + file), "broken.msdbg:1: an open block"));
  EXPECT_TRUE(contains(type("source /no/such/file"), "cannot read /no/such/file"));
}

// However many files are between the prompt and the mistake, one place is named: the wrong line.
TEST_F(Prompt, FilesThatSourceEachOtherAreReportedInOneLine) {
  const std::string folder = ::testing::TempDir();
  const auto write = [&](const std::string& name, const std::string& text) {
    std::ofstream(folder + name) << text;
    return folder + name;
  };
  const std::string b = folder + "ring_b.msdbg", a = write("ring_a.msdbg", "x = 1\nsource " + b + "\n");
  write("ring_b.msdbg", "source " + a + "\n");
  EXPECT_EQ(type("source " + a), "error: " + b + ":1: source: " + a + " is being entered already: " + a + " sources " + b);
  for (int i = 0; i < 30; ++i) {
    const std::string next = folder + "chain" + std::to_string(i + 1) + ".msdbg";
    write("chain" + std::to_string(i) + ".msdbg", "source " + next + "\n");
  }
  EXPECT_EQ(type("source " + folder + "chain0.msdbg"), "error: " + folder + "chain19.msdbg:1: source: " + folder +
                                                           "chain20.msdbg: not entered, 20 files source each other");
  write("ring_b.msdbg", "nodes relu9\n");
  const std::string text = type("source " + a);
  EXPECT_TRUE(contains(text, "error: " + b + ":1: selector 'relu9'"));
  EXPECT_FALSE(contains(text, "ring_a"));
}

TEST_F(Prompt, NothingThatSteersTerminalsIsPrinted) {
  EXPECT_EQ(type("'a\\27[31mb'"), "a\\x1b[31mb");
  EXPECT_EQ(type("'one\\ntwo\\tthree'"), "one\ntwo\tthree");
  EXPECT_EQ(type("error('\\27]0;title\\7', 0)"), "error: \\x1b]0;title\\x07");
  EXPECT_EQ(type("msdbg.fail '\\27[2J'"), "error: \\x1b[2J");
  const std::string unknown = type("show \x1b[31mLog");
  EXPECT_FALSE(contains(unknown, "\x1b"));
  EXPECT_TRUE(contains(unknown, "[31mLog"));
  ::testing::internal::CaptureStdout();
  type("print('\\27[31m', 1, nil)");
  std::fflush(stdout);
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "\\x1b[31m\t1\tnil\n");
}

TEST_F(Prompt, OnlyColoursPassWhereColoursAreWanted) {
  ScriptOptions options = small_options();
  options.colour = true;
  auto coloured = Script::create(std::move(options));
  ASSERT_TRUE(coloured.ok());
  EXPECT_EQ((*coloured)->eval("'\\27[1;31mred\\27[0m\\27[2J'").output, "\x1b[1;31mred\x1b[0m\\x1b[2J");
}

TEST_F(Prompt, TablesMadeInLuaHaveTheColoursOfTheOthers) {
  ScriptOptions options = small_options();
  options.colour = true;
  auto coloured = Script::create(std::move(options));
  ASSERT_TRUE(coloured);
  (*coloured)->set_session(small_session());
  for (const char* entry : {"watch op:Log TO", "check --steps 0:1"}) (*coloured)->eval(entry);
  const std::string hits = (*coloured)->eval("hits").output;
  EXPECT_TRUE(contains(hits, "\x1b[31merror\x1b[0m")) << hits;
  EXPECT_TRUE(contains(hits, "\x1b[1m1\x1b[0m")) << hits;  // the first hit of step 1
  EXPECT_FALSE(contains((*coloured)->eval("hits | cat").output, "\x1b"));
  type("watch op:Log TO");
  type("check --steps 0:1");
  EXPECT_FALSE(contains(type("hits"), "\x1b"));
}

TEST_F(Prompt, QuestionsAreAnsweredFromTheStubs) {
  EXPECT_TRUE(contains(type("?s"), "session:check(options?) -> msdbg.Result"));
  EXPECT_TRUE(contains(type("?s.watch"), "session:watch(options) -> msdbg.Watch"));
  EXPECT_TRUE(contains(type("?s.current_step"), "now: 0"));
  EXPECT_TRUE(contains(type("? s:tensor('Log-op0')"), "tensor:quantile(q) -> number?"));
  EXPECT_TRUE(contains(type("?msdbg.origin"), "msdbg.origin(session, options?) -> msdbg.Origins"));
  EXPECT_TRUE(contains(type("?check"), "rules and conditions over all steps"));
  EXPECT_TRUE(contains(type("?no_such_thing"), "no help on 'no_such_thing'"));
  EXPECT_EQ(type("?{ 1 }"), "table  { 1 }");
}

TEST_F(Prompt, AproposSearchesCommandsConditionsAndLibrary) {
  const std::string text = type("apropos nan");
  EXPECT_TRUE(contains(text, "tensor_overflow"));
  EXPECT_TRUE(contains(text, "worst"));
  EXPECT_TRUE(contains(text, "Stats.nan_count"));
  EXPECT_EQ(type("apropos zebra"), "nothing speaks of 'zebra'");
}

}  // namespace
}  // namespace msdbg::testing
