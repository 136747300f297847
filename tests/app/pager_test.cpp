// How long outputs, errors and progress appear to a user, in a pseudo-terminal of 40 rows.
#include "app/terminal.h"

#include <algorithm>

#include "support/temp_dir.h"

namespace msdbg {
namespace {

using testing::Terminal;

const std::string kDump = "dumps/lenet-2.7.1-lognan";
constexpr const char* kTerminal = "xterm";

std::string screen_of(const std::vector<std::string>& words, const Terminal::Environment& environment) {
  Terminal t(words, MSDBG_TEST_DATA, kTerminal, environment);
  EXPECT_EQ(t.wait_for_exit(), 0) << t.screen();
  return t.screen();
}

size_t lines(const std::string& text) { return static_cast<size_t>(std::count(text.begin(), text.end(), '\n')); }

TEST(Pager, LongOutputGoesThroughIt) {
  const std::string screen = screen_of({"nodes", kDump}, {{"MSDBG_PAGER", "sed 's/^/paged: /'"}, {"PAGER", "false"}});
  EXPECT_NE(screen.find("paged: "), std::string::npos) << screen;
  EXPECT_GT(lines(screen), 40u);
}

TEST(Pager, OneThatReadsOnlyTheBeginningIsNoError) {
  EXPECT_EQ(lines(screen_of({"nodes", kDump}, {{"PAGER", "head"}})), 10u);  // without a shell, and from PAGER
}

TEST(Pager, TheUsualOneIsLess) {
  Terminal t({"nodes", kDump}, MSDBG_TEST_DATA, kTerminal, {});
  ASSERT_TRUE(t.see("\n:\033[K")) << t.screen();
  t.type("q");
  EXPECT_EQ(t.wait_for_exit(), 0) << t.screen();
}

TEST(Pager, WithoutOneEverythingIsShownAtOnce) {
  const std::string whole = screen_of({"nodes", kDump}, {{"MSDBG_PAGER", ""}});
  EXPECT_GT(lines(whole), 40u);
  for (const char* none : {"cat", "msdbg-no-such-pager"}) EXPECT_EQ(screen_of({"nodes", kDump}, {{"MSDBG_PAGER", none}}), whole) << none;
  EXPECT_EQ(screen_of({"nodes", kDump, "--no-pager"}, {{"MSDBG_PAGER", "head"}}), whole);
  EXPECT_NE(screen_of({"nodes", kDump}, {{"MSDBG_PAGER", "msdbg-no-such-pager --option"}}).find(whole), std::string::npos);
}

TEST(Pager, ShortOutputAndFilesDoNotNeedIt) {
  EXPECT_EQ(screen_of({"nodes", kDump, "fc2-Dense/MatMul"}, {{"MSDBG_PAGER", "sed s/^/paged/"}}).find("paged"), std::string::npos);
  const test::TempDir dir;
  EXPECT_EQ(screen_of({"nodes", kDump, "-o", dir.file("out")}, {{"MSDBG_PAGER", "sed s/^/paged/"}}), "");
}

TEST(Pager, HelpGoesThroughIt) {
  EXPECT_NE(screen_of({"check", "--help"}, {{"MSDBG_PAGER", "sed s/^/paged/"}}).find("paged"), std::string::npos);
}

TEST(Pager, ItIsTheSameAtThePromptAndCanBeTurnedOff) {
  Terminal t({kDump}, MSDBG_TEST_DATA, kTerminal, {{"MSDBG_PAGER", "sed s/^/paged:/"}});
  ASSERT_TRUE(t.see("> ")) << t.screen();
  t.type("nodes\r");
  EXPECT_TRUE(t.see("paged:")) << t.screen();
  t.type("set pager off\r'still ' .. 'here'\r");
  ASSERT_TRUE(t.see("still here")) << t.screen();
  t.type("nodes\r'and ' .. 'here'\r");
  ASSERT_TRUE(t.see("and here")) << t.screen();
  EXPECT_EQ(t.screen().find("paged:", t.screen().find("still here")), std::string::npos) << t.screen();
}

TEST(Pager, ControlCEndsItAndKeepsThePrompt) {
  const std::string pager = "cat > /dev/null; trap exit INT; echo 'in the' pager; while true; do sleep 0.1; done";
  Terminal t({kDump}, MSDBG_TEST_DATA, kTerminal, {{"MSDBG_PAGER", pager}});
  ASSERT_TRUE(t.see("> ")) << t.screen();
  t.type("nodes\r");
  ASSERT_TRUE(t.see("in the pager")) << t.screen();
  t.type("\x03");
  t.type("6 * 7\r");
  EXPECT_TRUE(t.see("42")) << t.screen();
}

TEST(Pager, TheTerminalIsRestoredAfterOneThatWasKilled) {
  Terminal t({"nodes", kDump}, MSDBG_TEST_DATA, kTerminal, {{"MSDBG_PAGER", "stty -echo; echo 'no ' echo; kill -9 $$"}});
  ASSERT_TRUE(t.see("no  echo")) << t.screen();
  t.wait_for_exit();
  EXPECT_TRUE(t.echoes());
}

TEST(Colour, OfPromptAndErrors) {
  Terminal t({kDump}, MSDBG_TEST_DATA, kTerminal, {});
  ASSERT_TRUE(t.see("\033[0;1mlenet")) << t.screen();
  t.type("nodes no-such-node\r");
  EXPECT_TRUE(t.see("\033[1;31merror:\033[0m")) << t.screen();
  t.type("goto 1\r");
  EXPECT_TRUE(t.see("\033[0;1;33m1/1")) << t.screen();
}

TEST(Colour, NoneWhereItIsNotWanted) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{kDump, "--color", "never"}, {kDump}}) {
    Terminal t(words, MSDBG_TEST_DATA, words.size() > 1 ? kTerminal : "dumb", {});
    ASSERT_TRUE(t.see("> ")) << t.screen();
    t.type("nodes no-such-node\r");
    ASSERT_TRUE(t.see("error: ")) << t.screen();
    EXPECT_EQ(t.screen().find("1;31m"), std::string::npos);
    EXPECT_EQ(t.screen().find("0;1m"), std::string::npos);
  }
}

// The first tensor takes longer than the half second after which progress is shown.
TEST(Progress, OfACheckAtThePromptIsShownAndWiped) {
  Terminal t({kDump});
  ASSERT_TRUE(t.see("> ")) << t.screen();
  t.type("began = false\rfunction slow() if not began then began = os.clock() repeat until os.clock() > began + 1.5 end end\r");
  t.type("s:watch { on = '**', when = slow }; result = s:check()\r'it is ' .. 'over'\r");
  ASSERT_TRUE(t.see("it is over", 60)) << t.screen();
  const size_t shown = t.screen().find("checking ");
  ASSERT_NE(shown, std::string::npos) << t.screen();
  EXPECT_NE(t.screen().find("tensors (", shown), std::string::npos) << t.screen();
  EXPECT_NE(t.screen().find("\r\033[K", shown), std::string::npos) << t.screen();
}

}  // namespace
}  // namespace msdbg
