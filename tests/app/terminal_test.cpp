// Drives the real program in a pseudo-terminal, the way a person does.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace msdbg {
namespace {

// One run of the program; everything it writes is gathered in `screen`.
class Terminal {
 public:
  explicit Terminal(const std::vector<std::string>& words) {
    const std::string state = testing::TempDir() + "msdbg-terminal-" + std::to_string(::getpid());
    std::filesystem::create_directories(state);
    struct winsize size = {40, 120, 0, 0};
    pid_ = ::forkpty(&fd_, nullptr, nullptr, &size);
    if (pid_ == 0) {
      ::setenv("TERM", "xterm", 1);
      ::setenv("XDG_STATE_HOME", state.c_str(), 1);
      ::setenv("HOME", state.c_str(), 1);
      ::setenv("LC_ALL", "C.UTF-8", 1);
      // libedit never frees the names that EL_ADDFN is given; the leak checker of the sanitizer build would object.
      ::setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
      if (::chdir(MSDBG_TEST_DATA) != 0) ::_exit(99);
      std::vector<char*> argv{const_cast<char*>(MSDBG_PROGRAM)};
      for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
      argv.push_back(nullptr);
      ::execv(MSDBG_PROGRAM, argv.data());
      ::_exit(98);
    }
  }
  ~Terminal() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    ::close(fd_);
  }

  void type(const std::string& text) {
    mark_ = screen_.size();
    for (size_t done = 0; done < text.size();) {
      const ssize_t n = ::write(fd_, text.data() + done, text.size() - done);
      if (n <= 0) return;
      done += static_cast<size_t>(n);
      wait_briefly();  // a full pseudo-terminal would block both sides
    }
  }

  // Waits until `text` appears behind what was there when type() was called last.
  bool see(const std::string& text, int seconds = 20) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
    while (screen_.find(text, mark_) == std::string::npos) {
      if (std::chrono::steady_clock::now() > until || !pump(100)) return screen_.find(text, mark_) != std::string::npos;
    }
    return true;
  }

  // 255 when it does not end by itself.
  int wait_for_exit(int seconds = 30) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
    while (pump(100)) {
      if (std::chrono::steady_clock::now() > until) return 255;
    }
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  const std::string& screen() const { return screen_; }

 private:
  // False when the other side is gone.
  bool pump(int timeout_ms) {
    struct pollfd p = {fd_, POLLIN, 0};
    if (::poll(&p, 1, timeout_ms) <= 0) return true;
    char block[4096];
    const ssize_t n = ::read(fd_, block, sizeof block);
    if (n <= 0) return false;
    screen_.append(block, static_cast<size_t>(n));
    return true;
  }
  void wait_briefly() { pump(0); }

  pid_t pid_ = -1;
  int fd_ = -1;
  std::string screen_;
  size_t mark_ = 0;
};

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
  t.type("s.curr\t\r");  // the terminal shows only what Tab adds, so the answer is the proof
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
