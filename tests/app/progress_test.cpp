// The texts of the progress line and of a coloured prompt.
#include "app/progress.h"

#include <gtest/gtest.h>

#include "app/terminal_editor.h"

namespace msdbg::app {
namespace {

TEST(Progress, ShowsTheShareTheRateAndTheTimeLeft) {
  EXPECT_EQ(progress_text("checking", "tensor", 25, 100, 50 << 20, 5, 120),
            "checking 25 of 100 tensors (25 %), 50.0 MiB, 10.0 MiB/s, 15.0 s left");
  EXPECT_EQ(progress_text("drawing", "tensor", 30, 60, 0, 10, 120), "drawing 30 of 60 tensors (50 %), 3/s, 10.0 s left");
  EXPECT_EQ(progress_text("checking", "tensor", 100, 100, 0, 5, 120), "checking 100 of 100 tensors (100 %), 20/s");
}

TEST(Progress, ShowsNoRateBeforeItIsKnown) {
  EXPECT_EQ(progress_text("checking", "tensor", 1, 1, 1024, 0.6, 120), "checking 1 of 1 tensor (100 %), 1.0 KiB");
  EXPECT_EQ(progress_text("bisecting", "step", 3, 0, 0, 0.6, 120), "bisecting 3 steps");
  EXPECT_EQ(progress_text("checking", "tensor", 0, 10, 0, 100, 120), "checking 0 of 10 tensors (0 %)");
}

TEST(Progress, StaysOnOneRow) {
  EXPECT_EQ(progress_text("checking", "tensor", 25, 100, 50 << 20, 5, 20), "checking 25 of 100 ");
}

TEST(ColouredPrompt, MarksWhatHasChanged) {
  std::string last;
  const auto code = [](const std::string& numbers) { return "\1\x1b[" + numbers + "m\1"; };
  EXPECT_EQ(coloured_prompt("lenet step 0 > ", &last),
            code("0;1") + "lenet " + code("0;1") + "step " + code("0;1") + "0" + code("0") + " > ");
  EXPECT_EQ(coloured_prompt("lenet step 1 > ", &last),
            code("0;1") + "lenet " + code("0;1") + "step " + code("0;1;33") + "1" + code("0") + " > ");
  EXPECT_EQ(coloured_prompt("    > ", &last), "    > ");
  EXPECT_EQ(last, "lenet step 1");
  EXPECT_EQ(coloured_prompt("lenet step 1 [1 watch] > ", &last).find("33"), std::string::npos);
}

}  // namespace
}  // namespace msdbg::app
