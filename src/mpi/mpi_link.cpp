// The plugin of `mpirun msdbg`: carries the messages of a Team over MPI. The program loads it only under mpirun.
//
// Process 0 uses MPI itself. Each other process is two: the one that mpirun started is the relay, which only passes messages on, and
// its child reads the dump. When the child is killed or crashes, the job can still end in good order.
#include <mpi.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstring>
#include <list>
#include <optional>
#include <string>
#include <thread>

#include "msdbg/base.h"
#include "msdbg/team_link.h"

namespace {

using msdbg::TeamLink;
using msdbg::TeamMessage;

constexpr int kTag = 1;
constexpr size_t kLengthBytes = 8;
constexpr std::chrono::milliseconds kIdle{1}, kLastWords{300};
constexpr std::chrono::seconds kAliveEvery{1};

/// Starts MPI; false with the reason.
bool start(const char* version, char* error, size_t error_size) {
  if (std::string(msdbg::kVersion) != version) {
    std::snprintf(error, error_size, "is of version %s, msdbg of version %s", std::string(msdbg::kVersion).c_str(), version);
    return false;
  }
  int provided = 0;
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS) {
    std::snprintf(error, error_size, "MPI cannot be started");
    return false;
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  return true;
}

/// Messages over MPI_COMM_WORLD that nobody waits for.
class Mail {
 public:
  bool send(int to, std::string bytes) {
    if (bytes.size() > INT_MAX) return false;
    sent_.push_back({std::move(bytes), MPI_REQUEST_NULL});
    Sent& last = sent_.back();
    const int size = static_cast<int>(last.bytes.size());
    const bool sent = MPI_Isend(last.bytes.data(), size, MPI_BYTE, to, kTag, MPI_COMM_WORLD, &last.request) == MPI_SUCCESS;
    if (!sent) sent_.pop_back();
    return sent;
  }

  std::optional<TeamLink::Message> receive() {
    drop_sent();
    int there = 0, size = 0;
    MPI_Status status;
    if (MPI_Iprobe(MPI_ANY_SOURCE, kTag, MPI_COMM_WORLD, &there, &status) != MPI_SUCCESS || there == 0) return std::nullopt;
    if (MPI_Get_count(&status, MPI_BYTE, &size) != MPI_SUCCESS || size < 0) return std::nullopt;
    TeamLink::Message message{static_cast<unsigned>(status.MPI_SOURCE), std::string(static_cast<size_t>(size), '\0')};
    if (MPI_Recv(message.bytes.data(), size, MPI_BYTE, status.MPI_SOURCE, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE) != MPI_SUCCESS)
      return std::nullopt;
    return message;
  }

  /// Gives what was sent some time to leave; all the time it needs if no process was lost.
  void close(bool clean) {
    const auto end = std::chrono::steady_clock::now() + kLastWords;
    while (!sent_.empty() && (clean || std::chrono::steady_clock::now() < end)) {
      drop_sent();
      std::this_thread::sleep_for(kIdle);
    }
    if (clean) MPI_Finalize();
  }

 private:
  struct Sent {
    std::string bytes;
    MPI_Request request;
  };

  void drop_sent() {
    sent_.remove_if([](Sent& each) {
      int done = 0;
      return MPI_Test(&each.request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done != 0;
    });
  }

  std::list<Sent> sent_;  // MPI reads from it: nothing may move
};

class MpiLink final : public TeamLink {
 public:
  MpiLink() {
    int size = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    size_ = static_cast<unsigned>(size);
  }
  unsigned size() const override { return size_; }
  bool send(unsigned to, std::string bytes) override { return mail_.send(static_cast<int>(to), std::move(bytes)); }
  std::optional<Message> receive() override { return mail_.receive(); }
  void close(bool clean) override { mail_.close(clean); }

 private:
  unsigned size_ = 1;
  Mail mail_;
};

class Relay {
 public:
  Relay(int socket, pid_t child) : socket_(socket), child_(child) {
    char name[MPI_MAX_PROCESSOR_NAME] = {};
    int length = 0;
    MPI_Get_processor_name(name, &length);
    host_.assign(name, static_cast<size_t>(length));
  }

  int run() {
    for (;;) {
      bool idle = true;
      while (std::optional<TeamLink::Message> message = mail_.receive()) {
        idle = false;
        if (message->from != 0 || message->bytes.empty()) continue;
        if (static_cast<TeamMessage>(message->bytes.front()) == TeamMessage::kStop) {
          ::kill(child_, SIGKILL);
          mail_.close(message->bytes.back() != 0);
          return 0;
        }
        for (size_t i = 0; i < kLengthBytes; ++i) to_child_ += static_cast<char>(uint64_t{message->bytes.size()} >> (8 * i) & 0xff);
        to_child_ += message->bytes;
      }
      if (lost_) std::this_thread::sleep_for(kIdle);
      else pass_on(idle);
      if (const auto now = std::chrono::steady_clock::now(); now - told_ >= kAliveEvery) {
        told_ = now;
        tell(TeamMessage::kAlive, host_);
      }
    }
  }

 private:
  void tell(TeamMessage type, const std::string& text) {
    std::string bytes(1, static_cast<char>(type));
    const size_t size = std::min<size_t>(text.size(), 127);  // a length of one byte, as ByteReader reads it
    bytes += static_cast<char>(size);
    mail_.send(0, bytes + text.substr(0, size));
  }

  void pass_on(bool idle) {
    pollfd ready{socket_, static_cast<short>(POLLIN | (to_child_.empty() ? 0 : POLLOUT)), 0};
    if (::poll(&ready, 1, idle ? static_cast<int>(kIdle.count()) : 0) <= 0) return;
    if ((ready.revents & POLLOUT) != 0) {
      const ssize_t n = ::send(socket_, to_child_.data(), to_child_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n > 0) to_child_.erase(0, static_cast<size_t>(n));
    }
    if ((ready.revents & (POLLIN | POLLHUP | POLLERR)) == 0) return;
    char block[65536];
    const ssize_t n = ::recv(socket_, block, sizeof block, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) return lose();
    from_child_.append(block, static_cast<size_t>(n));
    send_messages();
  }

  void send_messages() {
    size_t at = 0;
    while (from_child_.size() - at >= kLengthBytes) {
      uint64_t size = 0;
      for (size_t i = 0; i < kLengthBytes; ++i) size |= uint64_t{static_cast<unsigned char>(from_child_[at + i])} << (8 * i);
      if (from_child_.size() - at - kLengthBytes < size) break;
      mail_.send(0, from_child_.substr(at + kLengthBytes, size));
      at += kLengthBytes + size;
    }
    from_child_.erase(0, at);
  }

  void lose() {
    lost_ = true;
    int status = 0;
    ::waitpid(child_, &status, 0);
    char how[64];
    if (WIFSIGNALED(status)) std::snprintf(how, sizeof how, "ended by signal %d", WTERMSIG(status));
    else std::snprintf(how, sizeof how, "ended with status %d", WEXITSTATUS(status));
    tell(TeamMessage::kLost, how);
  }

  const int socket_;
  const pid_t child_;
  Mail mail_;
  std::string host_, to_child_, from_child_;
  std::chrono::steady_clock::time_point told_{};
  bool lost_ = false;
};

}  // namespace

extern "C" __attribute__((visibility("default"))) TeamLink* msdbg_team_open(const char* version, char* error, size_t error_size) {
  return start(version, error, error_size) ? new MpiLink : nullptr;
}

extern "C" __attribute__((visibility("default"))) int msdbg_team_relay(const char* version, int socket, int child) {
  char error[256] = {};
  if (start(version, error, sizeof error)) return Relay(socket, child).run();
  ::kill(child, SIGKILL);
  return 1;
}
