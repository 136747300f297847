// The real program in a pseudo-terminal, driven like a user would.
#pragma once

#include <gtest/gtest.h>

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace msdbg::testing {

// One run of the program; `screen` collects everything it writes. Without colours and without a pager unless a test enables them.
class Terminal {
 public:
  using Environment = std::vector<std::pair<const char*, std::string>>;

  explicit Terminal(const std::vector<std::string>& words, const std::string& directory = MSDBG_TEST_DATA,
                    const char* kind = "xterm", const Environment& environment = {{"NO_COLOR", "1"}, {"MSDBG_PAGER", ""}}) {
    const std::string state = home();
    std::filesystem::create_directories(state);
    struct winsize size = {40, 120, 0, 0};
    pid_ = ::forkpty(&fd_, nullptr, nullptr, &size);
    // Text typed while a command runs is edited by the terminal itself: a real one knows multi-byte characters.
    if (struct termios modes; pid_ > 0 && ::tcgetattr(fd_, &modes) == 0) {
      modes.c_iflag |= IUTF8;
      ::tcsetattr(fd_, TCSANOW, &modes);
    }
    if (pid_ == 0) {
      ::setenv("TERM", kind, 1);
      ::setenv("XDG_STATE_HOME", state.c_str(), 1);
      ::setenv("XDG_CONFIG_HOME", (state + "/config").c_str(), 1);
      ::setenv("HOME", state.c_str(), 1);
      ::setenv("LC_ALL", "C.UTF-8", 1);
      for (const char* name : {"NO_COLOR", "MSDBG_PAGER", "PAGER", "LESS"}) ::unsetenv(name);
      for (const auto& [name, value] : environment) ::setenv(name, value.c_str(), 1);
      // libedit never frees the names passed to EL_ADDFN; the leak checker of the sanitizer build would report them.
      ::setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
      if (::chdir(directory.c_str()) != 0) ::_exit(99);
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

  /// The directory of history and configuration for the programs of this test process.
  static std::string home() { return ::testing::TempDir() + "msdbg-terminal-" + std::to_string(::getpid()); }

  void resize(unsigned short rows, unsigned short columns) {
    const struct winsize size = {rows, columns, 0, 0};
    ::ioctl(fd_, TIOCSWINSZ, &size);
    ::kill(pid_, SIGWINCH);
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

  // Waits until `text` appears after the output at the time of the last type().
  bool see(const std::string& text, int seconds = 20) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
    while (screen_.find(text, mark_) == std::string::npos) {
      if (std::chrono::steady_clock::now() > until || !pump(100)) return screen_.find(text, mark_) != std::string::npos;
    }
    return true;
  }

  // 255 if it does not end by itself.
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

  /// The text after the last `before` up to the end of its line, or "".
  std::string after(const std::string& before) const {
    const size_t at = screen_.rfind(before);
    if (at == std::string::npos) return "";
    const size_t begin = at + before.size();
    return screen_.substr(begin, screen_.find_first_of("\r\n", begin) - begin);
  }
  const std::string& screen() const { return screen_; }
  /// Whether the terminal echoes input, as a shell would find it.
  bool echoes() const {
    struct termios modes = {};
    return ::tcgetattr(fd_, &modes) == 0 && (modes.c_lflag & ECHO) != 0;
  }

 private:
  // False when the other side has closed.
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

}  // namespace msdbg::testing
