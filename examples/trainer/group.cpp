#include "group.h"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <span>

namespace trainer {
namespace {

bool send_all(int socket, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(sent));
  }
  return true;
}

bool receive_all(int socket, std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = ::recv(socket, bytes.data(), bytes.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(got));
  }
  return true;
}

/// One connection between rank 0 and each other rank: [0] is rank 0's end.
using Pairs = std::vector<std::array<int, 2>>;

void close_all(const Pairs& pairs) {
  for (const auto& pair : pairs) {
    ::close(pair[0]);
    ::close(pair[1]);
  }
}

/// Keeps the ends of `rank` and closes the others.
std::vector<int> ends_of(int rank, const Pairs& pairs) {
  std::vector<int> own;
  for (size_t i = 0; i < pairs.size(); ++i) {
    const bool is_own = rank == 0 || static_cast<size_t>(rank) == i + 1;
    if (is_own) own.push_back(pairs[i][rank == 0 ? 0 : 1]);
    ::close(pairs[i][rank == 0 ? 1 : 0]);
    if (!is_own) ::close(pairs[i][1]);
  }
  return own;
}

int wait_for_all(const std::vector<pid_t>& children, int failed) {
  int worst = 0;
  for (const pid_t child : children) {
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    worst = std::max(worst, WIFEXITED(status) ? WEXITSTATUS(status) : failed);
  }
  return worst;
}

}  // namespace

Group::Group(int rank, int ranks, std::vector<int> sockets) : rank_(rank), ranks_(ranks), sockets_(std::move(sockets)) {}

Group::~Group() {
  for (const int socket : sockets_) ::close(socket);
}

void Group::sum(const Values& in, Values& out) {
  broken_ = broken_ || !exchange(in, out);
}

bool Group::exchange(const Values& in, Values& out) {
  if (rank_ > 0) {
    return send_all(sockets_.front(), std::as_bytes(std::span(in))) &&
           receive_all(sockets_.front(), std::as_writable_bytes(std::span(out)));
  }
  out = in;
  other_.resize(in.size());
  for (const int socket : sockets_) {
    if (!receive_all(socket, std::as_writable_bytes(std::span(other_)))) return false;
    for (size_t i = 0; i < out.size(); ++i) out[i] += other_[i];
  }
  return std::all_of(sockets_.begin(), sockets_.end(),
                     [&](int socket) { return send_all(socket, std::as_bytes(std::span(out))); });
}

Started start_processes(int ranks, int failed) {
  Pairs pairs;
  for (int rank = 1; rank < ranks; ++rank) {
    std::array<int, 2> pair = {};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0) {
      std::perror("msdbg_trainer: socketpair");
      close_all(pairs);
      return {nullptr, failed};
    }
    pairs.push_back(pair);
  }
  std::fflush(stdout);
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGTERM);  // it ends with the process that started it
      return {std::make_unique<Group>(rank, ranks, ends_of(rank, pairs)), 0};
    }
    if (child < 0) {
      std::perror("msdbg_trainer: fork");
      for (const pid_t started : children) ::kill(started, SIGTERM);
      close_all(pairs);
      wait_for_all(children, failed);
      return {nullptr, failed};
    }
    std::printf("rank %d: process %d\n", rank, static_cast<int>(child));
    std::fflush(stdout);
    children.push_back(child);
  }
  close_all(pairs);
  return {nullptr, wait_for_all(children, failed)};
}

}  // namespace trainer
