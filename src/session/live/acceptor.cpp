#include "session/live/acceptor.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

namespace msdbg::live {
namespace {

struct Resolved {
  addrinfo* list = nullptr;
  ~Resolved() {
    if (list != nullptr) ::freeaddrinfo(list);
  }
};

std::string address_text(const sockaddr_storage& address, int* port) {
  char text[INET6_ADDRSTRLEN] = "?";
  if (address.ss_family == AF_INET6) {
    sockaddr_in6 v6;
    std::memcpy(&v6, &address, sizeof v6);
    ::inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
    *port = ntohs(v6.sin6_port);
    return fmt::format("[{}]", text);
  }
  sockaddr_in v4;
  std::memcpy(&v4, &address, sizeof v4);
  ::inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
  *port = ntohs(v4.sin_port);
  return text;
}

}  // namespace

Result<std::unique_ptr<Acceptor>> Acceptor::open(const std::string& bind, int port) {
  if (port < 0 || port > 65535) {
    return Status(Code::kInvalidArgument, fmt::format("port {}: give a number from 1 to 65535, or 0 for any free one", port));
  }
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  Resolved found;
  if (const int error = ::getaddrinfo(bind.c_str(), std::to_string(port).c_str(), &hints, &found.list); error != 0) {
    return Status(Code::kInvalidArgument, fmt::format("cannot listen on '{}': {}; give an address of this machine, such as "
                                                      "127.0.0.1 or 0.0.0.0", bind, ::gai_strerror(error)));
  }
  std::unique_ptr<Acceptor> acceptor(new Acceptor());
  const int descriptor = ::socket(found.list->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  acceptor->socket_ = descriptor;
  const int yes = 1;
  if (descriptor < 0 || ::setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
      ::bind(descriptor, found.list->ai_addr, found.list->ai_addrlen) != 0 || ::listen(descriptor, 64) != 0) {
    const int error = errno;
    return Status(Code::kIoError,
                  fmt::format("cannot listen on {}:{}: {}{}", bind, port, std::strerror(error),
                              error == EADDRINUSE ? "; another debugger may run there: choose another --port, or 0 for any" : ""));
  }
  sockaddr_storage address = {};
  socklen_t length = sizeof address;
  ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &length);
  acceptor->host_ = address_text(address, &acceptor->port_);
  acceptor->wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  return acceptor;
}

Acceptor::~Acceptor() {
  stop();
  for (const auto& [descriptor, connection] : watched_) ::close(descriptor);
  if (socket_ >= 0) ::close(socket_);
  if (wake_ >= 0) ::close(wake_);
}

void Acceptor::start(Callbacks callbacks) {
  callbacks_ = std::move(callbacks);
  // Signals belong to the thread of the prompt.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Acceptor::stop() {
  if (!thread_.joinable()) return;
  ::eventfd_write(wake_, 1);
  thread_.join();
}

void Acceptor::run() {
  std::vector<pollfd> polled;
  for (;;) {
    polled.assign({{socket_, POLLIN, 0}, {wake_, POLLIN, 0}});
    // Nothing to read for us: only the end of the connection is of interest.
    for (const auto& [descriptor, connection] : watched_) polled.push_back({descriptor, POLLRDHUP, 0});
    if (::poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) return;
    if (polled[1].revents != 0) return;
    for (size_t i = 2; i < polled.size(); ++i) {
      if (polled[i].revents == 0) continue;
      const auto it = watched_.find(polled[i].fd);
      const std::string key = it->second.key;
      ::close(it->first);
      watched_.erase(it);
      callbacks_.closed(key);
    }
    if (polled[0].revents != 0) accept_one();
  }
}

void Acceptor::accept_one() {
  sockaddr_storage address = {};
  socklen_t length = sizeof address;
  const int descriptor = ::accept4(socket_, reinterpret_cast<sockaddr*>(&address), &length, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (descriptor < 0) {
    // Out of descriptors: the connection stays in the queue, and trying at once would only burn the processor.
    if (errno == EMFILE || errno == ENFILE) ::usleep(100000);
    return;
  }
  const int yes = 1;
  ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  int port = 0;
  const std::string host = address_text(address, &port);
  const std::string key = fmt::format("fd:{}", descriptor);
  // The number may be that of a connection that gRPC closed a moment ago and whose end has not been looked at yet.
  for (auto it = watched_.begin(); it != watched_.end();) {
    if (it->second.key != key) {
      ++it;
      continue;
    }
    ::close(it->first);
    it = watched_.erase(it);
    callbacks_.closed(key);
  }
  if (const int copy = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0); copy >= 0) watched_[copy] = {key};
  callbacks_.opened(descriptor, key, fmt::format("{}:{}", host, port));
}

}  // namespace msdbg::live
