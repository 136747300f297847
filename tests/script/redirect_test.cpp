// `> FILE`, `>> FILE` and `| COMMAND` after entries of the prompt, and text that only resembles them.
#include <filesystem>

#include "msdbg/atomic_file.h"
#include "msdbg/file.h"
#include "script/support.h"
#include "support/temp_dir.h"

namespace msdbg::testing {
namespace {

class Redirect : public ScriptTest {
 protected:
  std::string content(const std::string& name) {
    const auto text = read_text(dir_.file(name));
    return text ? *text : text.status().message();
  }
  size_t files() { return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(dir_.file("")), {})); }
  std::string path(const std::string& name) { return dir_.file(name); }

  test::TempDir dir_;
};

TEST_F(Redirect, OutputOfACommandGoesToAFile) {
  const std::string nodes = type("nodes op:ReLU");
  EXPECT_EQ(type("nodes op:ReLU > " + path("out")), "");
  EXPECT_EQ(content("out"), nodes + "\n");
  EXPECT_EQ(type("nodes op:Log >" + path("out")), "");
  EXPECT_EQ(content("out"), type("nodes op:Log") + "\n");
  EXPECT_EQ(type("nodes op:ReLU >> '" + path("out") + "'"), "");
  EXPECT_EQ(content("out"), type("nodes op:Log") + "\n" + nodes + "\n");
}

TEST_F(Redirect, OutputOfLuaGoesToAFile) {
  EXPECT_EQ(type("'text' >> " + path("out")), "");
  EXPECT_EQ(type("for i = 1, 2 do print('line', i) end >> " + path("out")), "");
  EXPECT_EQ(content("out"), "text\nline\t1\nline\t2\n");
  EXPECT_EQ(type("1 + 1 > " + path("out")), "");
  EXPECT_EQ(content("out"), "2\n");
  EXPECT_EQ(type("p 3 * 7 > " + path("out")), "");
  EXPECT_EQ(content("out"), "21\n");
  EXPECT_EQ(type("?s.current_step > " + path("out")), "");
  EXPECT_TRUE(contains(content("out"), "now: 0")) << content("out");
}

TEST_F(Redirect, OutputGoesToACommandOfTheShell) {
  EXPECT_EQ(type("nodes | grep -c Log-op0 > " + path("out")), "");
  EXPECT_EQ(content("out"), "1\n");
  EXPECT_EQ(type("('x\\n'):rep(1e6) | head -n 1 > " + path("out")), "");
  EXPECT_EQ(content("out"), "x\n");
  EXPECT_EQ(type("nodes | grep -q nothing-like-that"), "grep -q nothing-like-that: exit status 1");
  EXPECT_EQ(type("nodes | kill -TERM $$"), "kill -TERM $$: ended by signal 15");
}

TEST_F(Redirect, ComparisonsStayWhatTheyAre) {
  std::filesystem::current_path(dir_.file(""));
  type("x = 5");
  type("y = 3");
  EXPECT_EQ(type("x > 3"), "true");
  EXPECT_EQ(type("x > y"), "true");
  EXPECT_EQ(type("p x > 7"), "false");
  EXPECT_EQ(type("=x > 3"), "true");
  EXPECT_EQ(type("'a | b' .. ' > c'"), "a | b > c");
  EXPECT_TRUE(contains(type("watch ** percent(abs(x) > 3*std(x)) > 5"), "watch 1: percent(abs(x) > 3*std(x)) > 5 on **"));
  EXPECT_EQ(type("where MatMul-op0 x > 4"), "[1,1] = 5");
  EXPECT_TRUE(contains(type("bisect fc.weight --when 'max(x) > 1'"), "1"));
  std::filesystem::current_path("/");
  EXPECT_EQ(files(), 0u);
}

TEST_F(Redirect, AfterAnExpressionAFileNeedsASlash) {
  EXPECT_EQ(type("where MatMul-op0 x > 4 > " + path("out")), "");
  EXPECT_EQ(content("out"), "[1,1] = 5\n");
  EXPECT_EQ(type("where MatMul-op0 x > 4 | wc -l > " + path("out")), "");
  EXPECT_EQ(std::stoi(content("out")), 1);
}

TEST_F(Redirect, BarsInRegularExpressionsAndQuotesAreTheirs) {
  EXPECT_EQ(type("nodes /relu|Log/ > " + path("out")), "");
  EXPECT_EQ(content("out"), type("nodes /relu|Log/") + "\n");
  EXPECT_TRUE(contains(content("out"), "Log-op0"));
  EXPECT_TRUE(contains(type("nodes / | /"), "no node"));
  EXPECT_TRUE(contains(type("apropos 'zzz | zzz'"), "nothing speaks of 'zzz | zzz'"));
}

TEST_F(Redirect, AnEntryThatFailsLeavesTheFileAsItWas) {
  ASSERT_TRUE(write_file(path("out"), "old").ok());
  EXPECT_TRUE(contains(type("nodes no_such > " + path("out")), "no_such"));
  EXPECT_TRUE(contains(type("for i = 1, 3 do print(i) error 'stop' end > " + path("out")), "stop"));
  EXPECT_EQ(content("out"), "old");
  EXPECT_EQ(files(), 1u);
  EXPECT_EQ(type("6 * 7"), "42");  // the prompt prints to its old destination
}

TEST_F(Redirect, MistakesNameTheFile) {
  EXPECT_TRUE(contains(type("nodes > " + path("no/such")), path("no/such")));
  EXPECT_TRUE(contains(type("nodes >> " + path("no/such")), path("no/such") + ": cannot be appended to"));
  EXPECT_EQ(type("nodes >"), "error: a file name is missing after '>'");
  EXPECT_EQ(type("nodes > a b"), "error: one file name is expected after '>', not 'a b'; quote a name with blanks");
  EXPECT_EQ(type("nodes |"), "error: a shell command is missing after '|'");
}

TEST_F(Redirect, NothingIsShortenedAndNothingColoured) {
  EXPECT_EQ(type("('line\\n'):rep(500) | wc -l > " + path("out")), "");
  EXPECT_EQ(std::stoi(content("out")), 500);
}

using Prompt = ScriptTest;

TEST_F(Prompt, EqualsSignIsLuaWhateverTheCommands) {
  EXPECT_EQ(type("=1 + 1"), "2");
  EXPECT_EQ(type("= 'a', nil"), "a  nil");
  type("nodes = 7");
  EXPECT_EQ(type("=nodes"), "7");
  EXPECT_EQ(type("_ + 1"), "8");
  EXPECT_EQ(script->eval("=f(").state, Script::EvalState::kIncomplete);
  EXPECT_TRUE(contains(type("=1 2"), "error"));
}

TEST_F(Prompt, LocalsAreExplainedOnce) {
  EXPECT_EQ(type("local x = 1; print(x)"), "");
  EXPECT_EQ(type("local function f() return 1 end"), "locals live for one entry; leave out 'local'");
  EXPECT_EQ(type("local x = 1"), "");
}

TEST_F(Prompt, PagerIsSetAtThePrompt) {
  EXPECT_FALSE(script->eval("1").pager);
  EXPECT_EQ(type("set pager on"), "");
  EXPECT_TRUE(script->eval("1").pager);
  EXPECT_EQ(type("set"), "pager on");
  EXPECT_TRUE(contains(type("set pager perhaps"), "usage: set pager on | off"));
}

}  // namespace
}  // namespace msdbg::testing
