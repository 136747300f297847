// Drives the real program in a pseudo-terminal, the way a person does.
#include "app/terminal.h"

namespace msdbg {
namespace {

using testing::Terminal;

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

TEST(Terminal, BlockContinuesOverLines) {
  Terminal t({"dumps/lenet-2.7.1-lognan"});
  ASSERT_TRUE(t.see("> ")) << t.screen();
  t.type("for i = 1, 3 do\rprint('row ' .. i * 7)\rend\r");
  EXPECT_TRUE(t.see("row 21")) << t.screen();
}

#ifndef __SANITIZE_THREAD__  // that runtime delivers signals at library calls only, and a compiled loop makes none
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

TEST(Terminal, ControlCAtThePromptDropsTheLine) {
  Terminal t({"dumps/lenet-2.7.1-lognan"});
  ASSERT_TRUE(t.see("> ")) << t.screen();
  t.type("error('never run this')");
  t.type("\x03");
  ASSERT_TRUE(t.see("^C")) << t.screen();
  t.type("'still ' .. 'here'\r");
  EXPECT_TRUE(t.see("still here")) << t.screen();
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
  t.type("s.current_s\t\r");  // the terminal shows only what Tab adds, so the answer is the proof
  EXPECT_TRUE(t.see("\n0")) << t.screen();
}

TEST(Terminal, NonAsciiAndLongLinesSurvive) {
  Terminal t({"dumps/lenet-2.7.1-lognan"});
  ASSERT_TRUE(t.see("> ")) << t.screen();
  t.type("#'\xd1\x84\xd1\x84'\r");
  EXPECT_TRUE(t.see("4")) << t.screen();
  t.type("#'" + std::string(900, 'x') + "'\r");
  EXPECT_TRUE(t.see("900")) << t.screen();
}

}  // namespace
}  // namespace msdbg
