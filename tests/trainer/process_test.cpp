#include "support/process.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <cerrno>

namespace msdbg::test {
namespace {

using std::chrono::milliseconds;

TEST(Process, GivesLinesAndTheExitStatus) {
  Process shell({"sh", "-c", "echo one; echo $WORD >&2; echo three; exit 3"}, {"WORD=two"});
  EXPECT_EQ(shell.read_line(), "one");
  EXPECT_EQ(shell.wait_for("t"), "two");
  EXPECT_EQ(shell.wait(), 3);
  EXPECT_EQ(shell.output(), "one\ntwo\nthree\n");
  EXPECT_EQ(shell.read_line(), "three");
  EXPECT_EQ(shell.read_line(), std::nullopt);
}

TEST(Process, SaysThatALineDidNotComeInTime) {
  Process shell({"sh", "-c", "exec sleep 100"});
  EXPECT_EQ(shell.read_line(milliseconds(20)), std::nullopt);
  EXPECT_EQ(shell.wait(milliseconds(20)), std::nullopt);
  shell.send_signal(SIGTERM);
  EXPECT_EQ(shell.wait(), 128 + SIGTERM);
}

TEST(Process, IsGoneWhenTheObjectIs) {
  pid_t pid = 0;
  {
    const Process shell({"sh", "-c", "exec sleep 100"});
    pid = shell.pid();
    ASSERT_GT(pid, 0);
  }
  EXPECT_EQ(::kill(pid, 0), -1);
  EXPECT_EQ(errno, ESRCH);
}

TEST(Process, AProgramThatDoesNotExistEndsWith127) {
  Process nothing({"no-such-program-here"});
  EXPECT_EQ(nothing.wait(), 127);
}

}  // namespace
}  // namespace msdbg::test
