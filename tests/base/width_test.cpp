#include <gtest/gtest.h>

#include <cstdlib>

#include "msdbg/base.h"
#include "msdbg/terminal.h"

namespace msdbg {
namespace {

TEST(DisplayWidth, CountsWhatATerminalShows) {
  EXPECT_EQ(display_width("MatMul-op0"), 10u);
  EXPECT_EQ(display_width("фф"), 2u);
  EXPECT_EQ(display_width("训练"), 4u);
  EXPECT_EQ(display_width("e\xcc\x81"), 1u);  // a combining accent
  EXPECT_EQ(display_width("\x1b[31mTO\x1b[0m"), 2u);
  EXPECT_EQ(display_width("\xe8\xae"), 1u);  // a truncated character
}

TEST(Head, CutsBetweenCharacters) {
  EXPECT_EQ(head("训练 x", 3), "训");
  EXPECT_EQ(head("训练 x", 4), "训练");
  EXPECT_EQ(head("abc", 9), "abc");
  EXPECT_EQ(head("\x1b[31mTO\x1b[0m", 1), "\x1b[31mT");
}

TEST(Wrapped, LinesThatFitStay) {
  EXPECT_EQ(wrapped("one two\nthree\n", 9), "one two\nthree\n");
  EXPECT_EQ(wrapped("", 9), "");
}

TEST(Wrapped, ContinuesBelowTheTextBehindALabel) {
  EXPECT_EQ(wrapped("  inputs     aaaa bbbb cccc dddd eeee ffff gggg hhhh iiii jjjj kkkk\n", 60),
            "  inputs     aaaa bbbb cccc dddd eeee ffff gggg hhhh iiii\n"
            "             jjjj kkkk\n");
  EXPECT_EQ(wrapped("aaaa bbbb cccc dddd", 12), "aaaa bbbb\n  cccc dddd");
}

TEST(Wrapped, ACommandCanBePasted) {
  EXPECT_EQ(wrapped("next: msdbg show dumps/lenet 'a b' --step 3", 30), "next: msdbg show dumps/lenet \\\n      'a b' --step 3");
}

TEST(Wrapped, AWordThatIsTooLongForTheIndentationStaysWhole) {
  const std::string name(50, 'x');
  EXPECT_EQ(wrapped("  first bad  " + name + " end", 60), "  first bad\n          " + name + "\n             end");
  EXPECT_EQ(wrapped(std::string(70, 'x'), 60), std::string(70, 'x'));
}

TEST(LayoutWidth, IsAskedForOrNothingWithoutATerminal) {
  ::unsetenv("MSDBG_WIDTH");
  ::setenv("COLUMNS", "90", 1);
  testing::internal::CaptureStdout();  // not a terminal, however the tests are run
  EXPECT_EQ(layout_width(), std::nullopt);
  testing::internal::GetCapturedStdout();
  ::setenv("MSDBG_WIDTH", "120", 1);
  EXPECT_EQ(layout_width(), 120u);
  ::setenv("MSDBG_WIDTH", "20", 1);
  EXPECT_EQ(layout_width(), 60u);
  ::unsetenv("MSDBG_WIDTH");
  ::unsetenv("COLUMNS");
}

}  // namespace
}  // namespace msdbg
