// Drives the real program in a pseudo-terminal like a user would.
#include "msdbg/sanitizers.h"
#include "app/terminal.h"

#include <fstream>
#include <iterator>

namespace msdbg {
namespace {

using testing::Terminal;

// The line was entered: what follows is not its echo.
const std::string kAnswer = "\033[?2004l";

TEST(Terminal, GreetsWithTheDumpAndQuits) {
  Terminal t({"dumps/lenet-2.7.1-lognan"});
  ASSERT_TRUE(t.see("MindSpore 2.7.1")) << t.screen();
  ASSERT_TRUE(t.see("> ")) << t.screen();
  t.type("quit\r");
  EXPECT_EQ(t.wait_for_exit(), 0);
}

TEST(Terminal, CommandAndLuaAnswer) {
  Terminal t({"dumps/lenet-2.7.1-lognan"});
  ASSERT_TRUE(t.see("> ")) << t.screen();
  t.type("40 + 2\r");
  EXPECT_TRUE(t.see("42")) << t.screen();
  t.type("nodes fc2\r");
  EXPECT_TRUE(t.see("fc2-Dense/MatMul-op0")) << t.screen();
}

TEST(Terminal, TheSeverityOfARuleHasItsColourOnAScreenOnly) {
  const Terminal::Environment coloured{{"MSDBG_PAGER", ""}};
  Terminal t({"rules", "list", "--rules", "TO"}, MSDBG_TEST_DATA, "xterm", coloured);
  EXPECT_EQ(t.wait_for_exit(), 0);
  EXPECT_NE(t.screen().find("\x1b[31merror\x1b[0m"), std::string::npos) << t.screen();
  const std::string file = Terminal::home() + "/rules.txt";
  Terminal written({"rules", "list", "--rules", "TO", "-o", file}, MSDBG_TEST_DATA, "xterm", coloured);
  EXPECT_EQ(written.wait_for_exit(), 0);
  std::ifstream in(file);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  EXPECT_NE(text.find("error"), std::string::npos) << text;
  EXPECT_EQ(text.find('\x1b'), std::string::npos) << text;
}

TEST(Terminal, BlockContinuesOverLines) {
  Terminal t({"dumps/lenet-2.7.1-lognan"});
  ASSERT_TRUE(t.see("> ")) << t.screen();
  t.type("for i = 1, 3 do\rprint('row ' .. i * 7)\rend\r");
  EXPECT_TRUE(t.see("row 21")) << t.screen();
}

#ifndef MSDBG_TSAN  // that runtime delivers signals at library calls only, and a compiled loop makes none
TEST(Terminal, ControlCStopsACompiledLoopAndKeepsThePrompt) {
  Terminal t({"dumps/lenet-2.7.1-lognan"});
  ASSERT_TRUE(t.see("> ")) << t.screen();
  t.type("while true do end\r");
  ::usleep(500000);  // long enough for the loop to be compiled
  t.type("\x03");
  EXPECT_TRUE(t.see("interrupt")) << t.screen();
  t.type("6 * 7\r");
  EXPECT_TRUE(t.see("42")) << t.screen();
}

#endif

TEST(Terminal, ControlCStopsALongOutputAndKeepsThePrompt) {
  Terminal t({"dumps/lenet-2.7.1-lognan"});
  ASSERT_TRUE(t.see("> ")) << t.screen();
  t.type("('line\\n'):rep(4e6)\r");
  ASSERT_TRUE(t.see("line\r\nline"));
  t.type("\x03");
  ASSERT_TRUE(t.see("the output is not complete")) << t.screen().size();
  EXPECT_LT(t.screen().size(), 20000000u);
  t.type("6 * 7\r");
  EXPECT_TRUE(t.see("42"));
}

TEST(Terminal, ControlCAtThePromptDropsTheLine) {
  Terminal t({"dumps/lenet-2.7.1-lognan"});
  ASSERT_TRUE(t.see("> ")) << t.screen();
  t.type("error('never run this')");
  t.type("\x03");
  ASSERT_TRUE(t.see("^C")) << t.screen();
  t.type("'still ' .. 'here'\r");
  EXPECT_TRUE(t.see("still here")) << t.screen();
}

TEST(Terminal, ControlCInTheMiddleOfAWrappedLineLeavesItBehind) {
  Terminal t({"dumps/lenet-2.7.1-lognan"});
  ASSERT_TRUE(t.see("> ")) << t.screen();
  t.type(std::string(200, 'x'));  // two rows of 120 columns
  ASSERT_TRUE(t.see(std::string(90, 'x'))) << t.screen();
  t.type("\x01");  // back to the first one
  ASSERT_TRUE(t.see("\033[A")) << t.screen();
  t.type("\x03");
  EXPECT_TRUE(t.see("\033[1B\033[")) << t.screen();
  EXPECT_TRUE(t.see("^C")) << t.screen();
}

TEST(Terminal, EndOfInputEndsThePrompt) {
  Terminal t({"dumps/lenet-2.7.1-lognan"});
  ASSERT_TRUE(t.see("> ")) << t.screen();
  t.type("\x04");
  EXPECT_EQ(t.wait_for_exit(), 0) << t.screen();
}

TEST(Terminal, TabCompletesAField) {
  Terminal t({"dumps/lenet-2.7.1-lognan"});
  ASSERT_TRUE(t.see("> ")) << t.screen();
  t.type("s.current_s\t\r");  // the terminal shows only what Tab adds: the answer is the proof
  EXPECT_TRUE(t.see(kAnswer + "0")) << t.screen();
}

TEST(Terminal, TabCompletesNamesLevelByLevel) {
  Terminal t({"dumps/lenet-2.7.1-lognan"});
  ASSERT_TRUE(t.see("> ")) << t.screen();
  t.type("nodes Def\tnet\t_b\tfc2\tMat\t\r");
  EXPECT_TRUE(t.see("1  Default/network-WithLossCell/_backbone-LeNet5/fc2-Dense/MatMul-op0")) << t.screen();
}

TEST(Terminal, TabListsWhatIsPossible) {
  Terminal t({"dumps/lenet-2.7.1-lognan"});
  ASSERT_TRUE(t.see("> ")) << t.screen();
  t.type("show Default/network-WithLossCell/_backbone-LeNet5/\t");
  EXPECT_TRUE(t.see("fc1-Dense/")) << t.screen();
  EXPECT_TRUE(t.see("relu4-ReLU/")) << t.screen();
  t.type("Log-op0:\t");
  EXPECT_TRUE(t.see("input:0")) << t.screen();
}

TEST(Terminal, NonAsciiCharactersAreErasedWhole) {
  Terminal t({"dumps/lenet-2.7.1-lognan"});
  ASSERT_TRUE(t.see("> ")) << t.screen();
  t.type("#'\xd1\x84\xd1\x84'\r");
  EXPECT_TRUE(t.see(kAnswer + "4")) << t.screen();
  // Three characters of two, three and four bytes; two of them are erased: two bytes remain.
  t.type("#'\xd1\x84\xe2\x82\xac\xf0\x9f\x98\x80\x7f\x7f' * 1000\r");
  EXPECT_TRUE(t.see(kAnswer + "2000")) << t.screen();
}

TEST(Terminal, LongLinesSurvive) {
  Terminal t({"dumps/lenet-2.7.1-lognan"});
  ASSERT_TRUE(t.see("> ")) << t.screen();
  t.type("#'" + std::string(10000, 'x') + "'\r");
  EXPECT_TRUE(t.see(kAnswer + "10000", 60)) << t.screen().size();
}

TEST(Terminal, PastedBlockIsEnteredLineByLineAndItsTabsAskNothing) {
  Terminal t({"dumps/lenet-2.7.1-lognan"});
  ASSERT_TRUE(t.see("\033[?2004h")) << t.screen();
  t.type("\033[200~for i = 1, 3 do\n\tprint('row ' .. i * 7)\nend\nnodes fc2-Dense/Mat\033[201~");
  EXPECT_TRUE(t.see("row 21")) << t.screen();
  t.type("\r");  // the last line had no newline: it waits to be edited
  EXPECT_TRUE(t.see("1  Default/network-WithLossCell/_backbone-LeNet5/fc2-Dense/MatMul-op0")) << t.screen();
}

TEST(Terminal, PlainPasteOfManyLinesLosesNothing) {
  Terminal t({"dumps/lenet-2.7.1-lognan"});
  ASSERT_TRUE(t.see("> ")) << t.screen();
  std::string block = "\033[200~total = 0\r";
  for (int i = 1; i <= 200; ++i) block += "total = total + " + std::to_string(i) + " -- " + std::string(60, 'c') + "\r";
  t.type(block + "\033[201~total * 10\r");
  EXPECT_TRUE(t.see(kAnswer + "201000", 60)) << t.screen();
}

TEST(Terminal, ResizeKeepsTheLine) {
  Terminal t({"dumps/lenet-2.7.1-lognan"});
  ASSERT_TRUE(t.see("> ")) << t.screen();
  t.type("11 + 22 +");
  ASSERT_TRUE(t.see("22 +")) << t.screen();
  t.resize(30, 40);
  ::usleep(200000);
  t.type(" " + std::string(60, '1') + " * 0 + 900\r");
  EXPECT_TRUE(t.see(kAnswer + "933")) << t.screen();
  t.resize(24, 200);
  t.type("nodes fc2-Dense\r");
  EXPECT_TRUE(t.see("BiasAdd-op0")) << t.screen();
}

TEST(Terminal, HistoryIsKeptAndFoundAgain) {
  {
    Terminal t({"dumps/lenet-2.7.1-lognan"});
    ASSERT_TRUE(t.see("> ")) << t.screen();
    t.type("for i = 1, 1 do\rprint('remem' .. 'bered \xd1\x84')\rend\r");
    ASSERT_TRUE(t.see("remembered")) << t.screen();
    t.type("'x' .. 1\r");
    ASSERT_TRUE(t.see("x1")) << t.screen();
  }  // killed: entries are kept nevertheless
  Terminal t({"dumps/lenet-2.7.1-lognan"});
  ASSERT_TRUE(t.see("> ")) << t.screen();
  t.type("\x12remem\x1b\r");
  EXPECT_TRUE(t.see("remembered \xd1\x84")) << t.screen();
  const auto mode = std::filesystem::status(Terminal::home() + "/msdbg/history").permissions();
  EXPECT_EQ(mode & std::filesystem::perms::all, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

TEST(Terminal, InitFileIsEnteredFirstUnlessForbidden) {
  const std::string folder = Terminal::home() + "/config/msdbg";
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/init.lua") << "function twice(x)\n  return 2 * x\nend\nwatch ** TO\n";
  {
    Terminal t({"dumps/lenet-2.7.1-lognan"});
    ASSERT_TRUE(t.see("[1 watch] > ")) << t.screen();
    t.type("twice(21)\r");
    EXPECT_TRUE(t.see("42")) << t.screen();
  }
  {
    Terminal t({"open", "--no-init", "dumps/lenet-2.7.1-lognan"});
    ASSERT_TRUE(t.see("> ")) << t.screen();
    t.type("twice(21)\r");
    EXPECT_TRUE(t.see("undefined name 'twice'")) << t.screen();
  }
  std::ofstream(folder + "/init.lua") << "x = = 1\n";
  {
    Terminal t({"dumps/lenet-2.7.1-lognan"});
    EXPECT_TRUE(t.see("init.lua:1:")) << t.screen();  // reported, and the prompt appears nevertheless
    ASSERT_TRUE(t.see("> ")) << t.screen();
    t.type("6 * 7\r");
    EXPECT_TRUE(t.see("42")) << t.screen();
  }
  std::filesystem::remove(folder + "/init.lua");
}

TEST(Terminal, BatchWritesNoEscapeCodesAndNoHistory) {
  std::filesystem::remove(Terminal::home() + "/msdbg/history");
  Terminal t({"open", "--batch", "dumps/lenet-2.7.1-lognan"});
  t.type("nodes fc2-Dense\nhist Log-op0\nhelp\nquit 7\n");
  EXPECT_EQ(t.wait_for_exit(), 7);
  EXPECT_NE(t.screen().find("BiasAdd-op0"), std::string::npos) << t.screen();
  EXPECT_EQ(t.screen().find('\033'), std::string::npos) << t.screen();
  EXPECT_FALSE(std::filesystem::exists(Terminal::home() + "/msdbg/history"));
}

}  // namespace
}  // namespace msdbg
