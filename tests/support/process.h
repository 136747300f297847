// A program that a test starts and controls: its output line by line with a deadline, and its end.
//
// The destructor kills it: a failing test leaves nothing running. One thread owns the object.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace msdbg::test {

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

class Process {
 public:
  using Duration = std::chrono::milliseconds;
  static constexpr Duration kPatience{60000};  ///< a loaded machine with sanitizers needs long

  /// Standard output and error arrive together, standard input is empty. `environment` holds "NAME=value".
  explicit Process(std::vector<std::string> arguments, std::vector<std::string> environment = {}) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return;
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    const pid_t parent = getpid();
    pid_ = fork();
    if (pid_ == 0) {
      // If a test is killed, its children end too.
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(127);
      sigset_t none;
      sigemptyset(&none);
      sigprocmask(SIG_SETMASK, &none, nullptr);
      const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
      dup2(nothing, STDIN_FILENO);
      dup2(ends[1], STDOUT_FILENO);
      dup2(ends[1], STDERR_FILENO);
      for (std::string& variable : environment) putenv(variable.data());
      execvp(argv[0], argv.data());
      _exit(127);
    }
    close(ends[1]);
    output_ = ends[0];
  }
  ~Process() {
    if (!status_ && pid_ > 0) {
      ::kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    if (output_ >= 0) close(output_);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  /// The next line without its end; nullopt at the end of the output or at the deadline.
  std::optional<std::string> read_line(Duration patience = kPatience) {
    const auto deadline = Clock::now() + patience;
    while (true) {
      const size_t end = buffer_.find('\n', line_begin_);
      if (end != std::string::npos) {
        std::string line = buffer_.substr(line_begin_, end - line_begin_);
        line_begin_ = end + 1;
        return line;
      }
      if (!receive(deadline)) return std::nullopt;
    }
  }
  /// Skips to the first line that contains `part`.
  std::optional<std::string> wait_for(const std::string& part, Duration patience = kPatience) {
    const auto deadline = Clock::now() + patience;
    while (auto line = read_line(remaining(deadline))) {
      if (line->find(part) != std::string::npos) return line;
    }
    return std::nullopt;
  }

  void send_signal(int number) const {
    if (pid_ > 0 && !status_) ::kill(pid_, number);
  }

  /// The exit status, or 128 + signal; nullopt if it still runs after `patience`. Collects the output meanwhile.
  std::optional<int> wait(Duration patience = kPatience) {
    const auto deadline = Clock::now() + patience;
    while (receive(deadline)) {
    }
    while (!status_ && pid_ > 0) {
      int raw = 0;
      const pid_t got = waitpid(pid_, &raw, WNOHANG);
      if (got == pid_) status_ = WIFEXITED(raw) ? WEXITSTATUS(raw) : 128 + WTERMSIG(raw);
      if (status_ || Clock::now() >= deadline) break;
      std::this_thread::sleep_for(Duration(2));
    }
    return status_;
  }

  /// Everything that has arrived so far, including lines that were read.
  const std::string& output() const { return buffer_; }
  pid_t pid() const { return pid_; }

 private:
  using Clock = std::chrono::steady_clock;

  static Duration remaining(Clock::time_point deadline) {
    return std::max(Duration(0), std::chrono::ceil<Duration>(deadline - Clock::now()));
  }

  /// False at the end of the output or at the deadline.
  bool receive(Clock::time_point deadline) {
    if (output_ < 0) return false;
    pollfd waited{output_, POLLIN, 0};
    const int ready = poll(&waited, 1, static_cast<int>(remaining(deadline).count()));
    if (ready < 0) return errno == EINTR;
    if (ready == 0) return false;
    char chunk[4096];
    const ssize_t size = read(output_, chunk, sizeof(chunk));
    if (size <= 0) return size < 0 && errno == EINTR;
    buffer_.append(chunk, static_cast<size_t>(size));
    return true;
  }

  pid_t pid_ = -1;
  int output_ = -1;
  std::optional<int> status_;
  std::string buffer_;
  size_t line_begin_ = 0;
};

}  // namespace msdbg::test
