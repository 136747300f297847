#include "msdbg/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "base/disk.h"

extern char** environ;

namespace msdbg {
namespace {

/// Ctrl-C is for the child, and a child that stops reading must not end this process.
class SignalsIgnored {
 public:
  SignalsIgnored() {
    struct sigaction ignore = {};
    ignore.sa_handler = SIG_IGN;
    sigemptyset(&ignore.sa_mask);
    for (size_t i = 0; i < std::size(kSignals); ++i) ::sigaction(kSignals[i], &ignore, &before_[i]);
  }
  ~SignalsIgnored() {
    for (size_t i = 0; i < std::size(kSignals); ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
  }
  SignalsIgnored(const SignalsIgnored&) = delete;
  SignalsIgnored& operator=(const SignalsIgnored&) = delete;

  static constexpr int kSignals[] = {SIGINT, SIGQUIT, SIGPIPE};

 private:
  struct sigaction before_[std::size(kSignals)] = {};
};

/// Restores the terminal settings after a killed child.
class TerminalKept {
 public:
  TerminalKept() : kept_(::tcgetattr(STDIN_FILENO, &modes_) == 0 && ::tcgetpgrp(STDIN_FILENO) == ::getpgrp()) {}
  ~TerminalKept() {
    if (kept_) ::tcsetattr(STDIN_FILENO, TCSADRAIN, &modes_);
  }
  TerminalKept(const TerminalKept&) = delete;
  TerminalKept& operator=(const TerminalKept&) = delete;

 private:
  struct termios modes_ = {};
  bool kept_;
};

/// Returns 0, or the reason why the program could not be started.
int start(const std::vector<std::string>& words, int input, pid_t* pid) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  sigset_t defaults, none;
  sigemptyset(&none);
  sigemptyset(&defaults);
  for (const int signal : SignalsIgnored::kSignals) sigaddset(&defaults, signal);
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_t actions;
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  ::posix_spawnattr_setsigdefault(&attributes, &defaults);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  const int problem = ::posix_spawnp(pid, argv[0], &actions, &attributes, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  return problem;
}

void write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(descriptor, text.data(), text.size());
    if (count < 0 && errno != EINTR) return;  // the reader has seen enough
    if (count > 0) text.remove_prefix(static_cast<size_t>(count));
  }
}

}  // namespace

Result<int> feed_program(const std::vector<std::string>& words, std::string_view text) {
  MSDBG_CHECK(!words.empty());
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return Status(Code::kIoError, fmt::format("{}: cannot be started: no pipe can be made: {}", words[0], system_text(errno)));
  }
  const SignalsIgnored ignored;
  const TerminalKept kept;
  pid_t pid = -1;
  const int problem = start(words, ends[0], &pid);
  ::close(ends[0]);
  if (problem == 0) write_all(ends[1], text);
  ::close(ends[1]);
  if (problem != 0) return Status(Code::kNotFound, fmt::format("{}: cannot be started: {}", words[0], system_text(problem)));
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0) {
    if (errno == ECHILD) return 0;  // our parent ignores SIGCHLD, so the child's exit status is unknown
    if (errno != EINTR) return Status(Code::kIoError, fmt::format("{}: cannot be waited for: {}", words[0], system_text(errno)));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

Result<int> feed_shell(const std::string& command, std::string_view text) { return feed_program({"/bin/sh", "-c", command}, text); }

}  // namespace msdbg
