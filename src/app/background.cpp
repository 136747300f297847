#include "app/background.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>
#include <utility>

#include "app/live.h"
#include "app/output.h"
#include "app/program.h"

extern char** environ;

namespace msdbg::app {
namespace {

constexpr auto kFirst = std::chrono::hours(1);     ///< a training step may take a long time
constexpr auto kReturn = std::chrono::minutes(1);  ///< a client that lost its connection reconnects within 15 s
constexpr int kReadyMs = 20000;
// Descriptors of the new process start at the first value. Descriptors are first moved above the second to avoid collisions.
constexpr int kFirstDescriptor = 3, kAboveAll = 512;

class Descriptors {
 public:
  explicit Descriptors(std::vector<int> list) : list_(std::move(list)) {}
  ~Descriptors() {
    for (const int each : list_) ::close(each);
  }
  Descriptors(const Descriptors&) = delete;
  Descriptors& operator=(const Descriptors&) = delete;
  void add(int descriptor) { list_.push_back(descriptor); }
  const std::vector<int>& list() const { return list_; }

 private:
  std::vector<int> list_;
};

struct Spawn {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  Spawn() {
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawnattr_init(&attributes);
  }
  ~Spawn() {
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
  }
  Spawn(const Spawn&) = delete;
  Spawn& operator=(const Spawn&) = delete;
};

/// Starts a process whose only descriptors are `inherited` (from 3 on) and /dev/null. It gets its own session and survives the end
/// of the terminal.
Result<pid_t> spawn(const std::vector<std::string>& words, const std::vector<int>& inherited) {
  Spawn spawn;
  for (const int standard : {0, 1, 2}) ::posix_spawn_file_actions_addopen(&spawn.actions, standard, "/dev/null", O_RDWR, 0);
  const int count = static_cast<int>(inherited.size());
  for (int i = 0; i < count; ++i) ::posix_spawn_file_actions_adddup2(&spawn.actions, inherited[static_cast<size_t>(i)], kAboveAll + i);
  for (int i = 0; i < count; ++i) ::posix_spawn_file_actions_adddup2(&spawn.actions, kAboveAll + i, kFirstDescriptor + i);
  ::posix_spawn_file_actions_addclosefrom_np(&spawn.actions, kFirstDescriptor + count);
  ::posix_spawn_file_actions_addchdir_np(&spawn.actions, "/");
  sigset_t none, usual;
  ::sigemptyset(&none);
  ::sigemptyset(&usual);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) ::sigaddset(&usual, signal);
  ::posix_spawnattr_setsigmask(&spawn.attributes, &none);
  ::posix_spawnattr_setsigdefault(&spawn.attributes, &usual);
  ::posix_spawnattr_setflags(&spawn.attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::vector<std::string> copies = words;
  std::vector<char*> arguments;
  for (std::string& word : copies) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t process = 0;
  const int error = ::posix_spawn(&process, program_file().start.c_str(), &spawn.actions, &spawn.attributes, arguments.data(), environ);
  if (error != 0) return Status(Code::kIoError, fmt::format("msdbg cannot be started in the background: {}", std::strerror(error)));
  return process;
}

/// Whether the other end of `descriptor` sends a byte in time.
bool is_ready(int descriptor) {
  pollfd polled{descriptor, POLLIN, 0};
  char byte = 0;
  return ::poll(&polled, 1, kReadyMs) == 1 && ::read(descriptor, &byte, 1) == 1;
}

}  // namespace

Result<pid_t> answer_in_background(LiveSession& session) {
  Result<std::vector<int>> sockets = session.copy_sockets();
  if (!sockets) return sockets.status();
  auto passed = std::make_unique<Descriptors>(std::move(*sockets));
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) != 0) return Status(Code::kIoError, fmt::format("a pipe: {}", std::strerror(errno)));
  const Descriptors reading({pipe[0]});
  std::string numbers;
  int number = kFirstDescriptor;
  for (size_t i = 0; i < passed->list().size(); ++i) numbers += fmt::format("{}{}", i == 0 ? "" : ",", number++);
  passed->add(pipe[1]);
  const Result<pid_t> process = spawn({"msdbg", "listen", "--answer-only", "--ranks", std::to_string(session.ranks().size()),
                                       "--sockets", numbers, "--ready", std::to_string(number)},
                                      passed->list());
  if (!process) return process.status();
  passed.reset();  // from here on, the end of that process ends the wait
  if (is_ready(pipe[0])) return *process;
  ::kill(*process, SIGTERM);
  return Status(Code::kIoError, "msdbg was started in the background and did not listen");
}

int run_answer_only(const Options& options) {
  if (!options.script.empty() || !options.eval.empty() || !options.files.empty())
    return report_failure(Status(Code::kInvalidArgument, "--answer-only lets the training run: leave out --script, -e and -x"));
  Result<std::unique_ptr<LiveSession>> made = live_factories().listen(listen_options(options));
  if (!made) return report_failure(made.status());
  LiveSession& session = **made;
  if (options.sockets.empty()) print(stdout, listening_text(session, options.bind) + "\n");
  if (options.ready >= 0) {
    (void)!::write(options.ready, "1", 1);
    ::close(options.ready);
  }
  // A training that was detached asks for commands from time to time. One that ends before says goodbye and nothing else.
  std::optional<std::chrono::milliseconds> patience = kFirst;
  for (;;) {
    const Status ended = session.wait_until_ended(patience);
    if (ended.ok()) return kExitClean;
    if (ended.code() == Code::kInterrupted) return exit_status_for(ended);
    (void)session.take_events();
    const LiveState state = session.state();
    if (state == LiveState::kWaiting) return exit_status_for(ended);
    if (state == LiveState::kLost) {
      // The connection broke; the training may reconnect.
      (void)session.attach(std::chrono::milliseconds(0));
      if (const Status held = session.wait_until_held(kReturn); !held.ok()) return exit_status_for(held);
    }
    if (session.state() == LiveState::kHeld) {
      if (const Status detached = session.detach(); !detached.ok()) return exit_status_for(detached);
    }
    patience.reset();
  }
}

}  // namespace msdbg::app
