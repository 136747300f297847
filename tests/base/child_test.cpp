// Programs that read our text.
#include "msdbg/child.h"

#include <gtest/gtest.h>

#include <csignal>

#include "msdbg/file.h"
#include "support/temp_dir.h"

namespace msdbg {
namespace {

TEST(Child, ReadsTheTextAndItsStatusIsGiven) {
  const test::TempDir dir;
  const auto status = feed_shell("cat > '" + dir.file("out") + "'; exit 3", "one\ntwo\n");
  ASSERT_TRUE(status) << status.status().message();
  EXPECT_EQ(*status, 3);
  EXPECT_EQ(*read_text(dir.file("out")), "one\ntwo\n");
}

TEST(Child, ThatStopsReadingIsNoError) {
  const std::string text(10 << 20, 'x');  // more than any pipe holds
  const auto status = feed_shell("head -c 1 > /dev/null", text);
  ASSERT_TRUE(status) << status.status().message();
  EXPECT_EQ(*status, 0);
}

TEST(Child, ThatIsKilledGivesTheSignal) {
  const auto status = feed_shell("kill -TERM $$", "");
  ASSERT_TRUE(status) << status.status().message();
  EXPECT_EQ(*status, 128 + SIGTERM);
}

#ifndef MSDBG_EMULATED  // QEMU loses the error of posix_spawn
TEST(Child, ThatIsMissingIsNotFound) {
  const auto status = feed_program({"msdbg-no-such-program"}, "text");
  EXPECT_EQ(status.status().code(), Code::kNotFound);
  EXPECT_EQ(status.status().message(), "msdbg-no-such-program: cannot be started: No such file or directory");
}
#endif

TEST(Child, CtrlCIsForItAlone) {
  struct sigaction before = {}, after = {};
  ::sigaction(SIGINT, nullptr, &before);
  // The shell sends it to this process, which would end, and to itself.
  const auto status = feed_shell("kill -INT $PPID; kill -INT $$", "");
  ASSERT_TRUE(status) << status.status().message();
  EXPECT_EQ(*status, 128 + SIGINT);
  ::sigaction(SIGINT, nullptr, &after);
  EXPECT_EQ(before.sa_handler, after.sa_handler);
}

}  // namespace
}  // namespace msdbg
