// A Team whose other processes are threads of the test: serve_team() on the far ends of sockets, without MPI.
#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "msdbg/team.h"

namespace msdbg::test {

class ThreadLink : public TeamLink {
 public:
  using Handlers = std::map<std::string, SharedHandler, std::less<>>;

  ThreadLink(unsigned size, Handlers handlers) : handlers_(std::move(handlers)), buffers_(size) {
    for (unsigned process = 1; process < size; ++process) {
      int ends[2];
      if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) throw std::runtime_error("no socket pair");
      sockets_.push_back(ends[0]);
      threads_.emplace_back([this, end = ends[1]] {
        (void)serve_team(end, handlers_);
        ::close(end);
      });
    }
  }
  ~ThreadLink() override { hang_up(); }

  unsigned size() const override { return static_cast<unsigned>(buffers_.size()); }
  bool send(unsigned to, std::string bytes) override {
    sent += bytes.size();
    ++messages;
    std::string framed;
    for (size_t i = 0; i < 8; ++i) framed += static_cast<char>(uint64_t{bytes.size()} >> (8 * i) & 0xff);
    framed += bytes;
    return ::send(sockets_[to - 1], framed.data(), framed.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(framed.size());
  }
  std::optional<Message> receive() override {
    if (!forged.empty()) {
      Message message = std::move(forged.front());
      forged.pop_front();
      return message;
    }
    for (unsigned process = 1; process < size(); ++process) {
      char block[4096];
      for (ssize_t n; (n = ::recv(sockets_[process - 1], block, sizeof block, MSG_DONTWAIT)) > 0;)
        buffers_[process].append(block, static_cast<size_t>(n));
      std::string& buffer = buffers_[process];
      if (buffer.size() < 8) continue;
      uint64_t length = 0;
      for (size_t i = 0; i < 8; ++i) length |= uint64_t{static_cast<unsigned char>(buffer[i])} << (8 * i);
      if (buffer.size() - 8 < length) continue;
      Message message{process, buffer.substr(8, length)};
      received += length;
      buffer.erase(0, 8 + length);
      return message;
    }
    return std::nullopt;
  }
  void close(bool) override { hang_up(); }

  std::deque<Message> forged;  ///< received before anything else
  uint64_t sent = 0, received = 0, messages = 0;

 private:
  void hang_up() {
    for (const int socket : sockets_) ::shutdown(socket, SHUT_RDWR);
    threads_.clear();
    for (const int socket : sockets_) ::close(socket);
    sockets_.clear();
  }

  const Handlers handlers_;
  std::vector<std::string> buffers_;  // by process, what arrived
  std::vector<int> sockets_;
  std::vector<std::jthread> threads_;
};

/// A team in this test. `link` stays valid as long as the team.
struct TeamOfThreads {
  TeamOfThreads(unsigned size, ThreadLink::Handlers handlers) : TeamOfThreads(std::make_unique<ThreadLink>(size, std::move(handlers))) {}
  ~TeamOfThreads() { clear_interrupt(); }

  ThreadLink& link;
  Team team;

 private:
  explicit TeamOfThreads(std::unique_ptr<ThreadLink> made) : link(*made), team(std::move(made)) {}
};

}  // namespace msdbg::test
