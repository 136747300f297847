#include "session/live/acceptor.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <set>

#include "msdbg/threads.h"

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

void set_port(sockaddr_storage& address, int port) {
  // The port is at the same offset in both.
  static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
  const in_port_t value = htons(static_cast<uint16_t>(port));
  std::memcpy(reinterpret_cast<std::byte*>(&address) + offsetof(sockaddr_in, sin_port), &value, sizeof value);
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
  acceptor->wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (acceptor->wake_ < 0)
    return Status(Code::kIoError, fmt::format("cannot listen on {}:{}: eventfd: {}", bind, port, std::strerror(errno)));
  // A training uses a numeric IPv4 address for the debugger: these come first, and are the address that is shown.
  std::set<std::string> tried;
  Status unavailable;
  for (const bool v4 : {true, false}) {
    for (const addrinfo* at = found.list; at != nullptr; at = at->ai_next) {
      if ((at->ai_family == AF_INET) != v4 || !tried.emplace(reinterpret_cast<const char*>(at->ai_addr), at->ai_addrlen).second) continue;
      // If any port will do, the later addresses use the port of the first.
      Status status = acceptor->listen_at(*at, acceptor->port_);
      if (status.ok()) continue;
      status = Status(status.code(), fmt::format("cannot listen on {}:{}: {}", bind, port, status.message()));
      if (status.code() != Code::kUnsupported) return status;
      if (unavailable.ok()) unavailable = status;  // a name may resolve to an address family that this machine lacks
    }
  }
  if (acceptor->sockets_.empty()) return Status(Code::kIoError, unavailable.message());
  return acceptor;
}

Result<std::unique_ptr<Acceptor>> Acceptor::take_over(std::span<const int> sockets) {
  std::unique_ptr<Acceptor> acceptor(new Acceptor());
  acceptor->wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (acceptor->wake_ < 0) return Status(Code::kIoError, fmt::format("cannot listen: eventfd: {}", std::strerror(errno)));
  for (const int socket : sockets) {
    sockaddr_storage address = {};
    socklen_t length = sizeof address;
    int listens = 0;
    socklen_t size = sizeof listens;
    if (::getsockopt(socket, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0 ||
        ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0 ||
        ::fcntl(socket, F_SETFD, FD_CLOEXEC) != 0)
      return Status(Code::kInvalidArgument, fmt::format("descriptor {} is no socket that listens", socket));
    int port = 0;
    const std::string host = address_text(address, &port);
    if (acceptor->sockets_.empty()) {
      acceptor->host_ = host;
      acceptor->port_ = port;
    }
    acceptor->sockets_.push_back(socket);
  }
  return acceptor;
}

Result<std::vector<int>> Acceptor::copy_sockets() const {
  std::vector<int> copies;
  for (const int socket : sockets_) {
    const int copy = ::fcntl(socket, F_DUPFD_CLOEXEC, 0);
    if (copy >= 0) {
      copies.push_back(copy);
      continue;
    }
    const int error = errno;
    for (const int made : copies) ::close(made);
    return Status(Code::kIoError, fmt::format("cannot pass on the port: dup: {}", std::strerror(error)));
  }
  return copies;
}

Status Acceptor::listen_at(const addrinfo& at, int port) {
  sockaddr_storage address = {};
  std::memcpy(&address, at.ai_addr, at.ai_addrlen);
  if (port != 0) set_port(address, port);
  const int descriptor = ::socket(at.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int yes = 1;
  socklen_t length = sizeof address;
  // Without V6ONLY, [::] would also take the port of 0.0.0.0.
  const bool v6 = at.ai_family == AF_INET6;
  if (descriptor < 0 || ::setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
      (v6 && !sockets_.empty() && ::setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes) != 0) ||
      ::bind(descriptor, reinterpret_cast<sockaddr*>(&address), at.ai_addrlen) != 0 || ::listen(descriptor, 64) != 0 ||
      ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    const int error = errno;
    if (descriptor >= 0) ::close(descriptor);
    const bool unavailable = error == EADDRNOTAVAIL || error == EAFNOSUPPORT;
    const char* hint = error == EADDRINUSE ? "; another debugger may run there: choose another --port, or 0 for any" : "";
    return {unavailable ? Code::kUnsupported : Code::kIoError, fmt::format("{}{}", std::strerror(error), hint)};
  }
  const std::string host = address_text(address, &port);
  if (sockets_.empty()) {
    host_ = host;
    port_ = port;
  }
  sockets_.push_back(descriptor);
  return {};
}

Acceptor::~Acceptor() {
  stop();
  for (const auto& [descriptor, connection] : watched_) ::close(descriptor);
  for (const int socket : sockets_) ::close(socket);
  if (wake_ >= 0) ::close(wake_);
}

Status Acceptor::start(Callbacks callbacks, size_t most) {
  callbacks_ = std::move(callbacks);
  most_ = most;
  return start_thread(thread_, "listener", [this] { run(); });
}

void Acceptor::stop() {
  if (!thread_.joinable()) return;
  ::eventfd_write(wake_, 1);
  thread_.join();
}

void Acceptor::run() {
  std::vector<pollfd> polled;
  for (;;) {
    try {
      polled.assign({{wake_, POLLIN, 0}});
      for (const int socket : sockets_) polled.push_back({socket, POLLIN, 0});
      // There is nothing for us to read: only the end of the connection matters.
      for (const auto& [descriptor, connection] : watched_) polled.push_back({descriptor, POLLRDHUP, 0});
      if (::poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) {
        log(LogLevel::kError, fmt::format("live: no new connections are accepted: poll: {}", std::strerror(errno)));
        return;
      }
      if (polled[0].revents != 0) return;
      serve(polled);
    } catch (const std::exception& error) {
      log(LogLevel::kError, fmt::format("live: a connection was lost: {}", error.what()));
    }
  }
}

void Acceptor::serve(std::span<const pollfd> polled) {
  for (const pollfd& entry : polled.subspan(1 + sockets_.size())) {
    if (entry.revents == 0) continue;
    if (const auto it = watched_.find(entry.fd); it != watched_.end()) drop(it);
  }
  for (const pollfd& entry : polled.subspan(1, sockets_.size())) {
    if (entry.revents != 0) accept_one(entry.fd);
  }
}

void Acceptor::drop(std::map<int, Connection>::iterator connection) {
  const std::string key = connection->second.key;
  ::close(connection->first);
  watched_.erase(connection);
  callbacks_.closed(key);
}

/// A client that keeps opening connections must not lock others out: close the oldest one that is not the training's.
void Acceptor::make_room() {
  if (watched_.size() < most_) return;
  auto oldest = watched_.end();
  for (auto it = watched_.begin(); it != watched_.end(); ++it) {
    if (oldest != watched_.end() && oldest->second.number < it->second.number) continue;
    if (!callbacks_.keep(it->second.key)) oldest = it;
  }
  if (oldest == watched_.end()) return;
  ::shutdown(oldest->first, SHUT_RDWR);  // gRPC closes its own handle when it sees the end
  drop(oldest);
}

void Acceptor::accept_one(int socket) {
  sockaddr_storage address = {};
  socklen_t length = sizeof address;
  const int descriptor = ::accept4(socket, reinterpret_cast<sockaddr*>(&address), &length, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (descriptor < 0) {
    // Out of descriptors: the connection stays in the queue, and retrying at once would only waste CPU time.
    if (errno == EMFILE || errno == ENFILE) ::usleep(100000);
    return;
  }
  // Without a copy of the descriptor, the end of the connection would go unnoticed.
  const int copy = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) {
    log(LogLevel::kWarning, fmt::format("live: a connection was refused: dup: {}", std::strerror(errno)));
    ::close(descriptor);
    return;
  }
  const int yes = 1;
  ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  int port = 0;
  const std::string host = address_text(address, &port);
  const std::string key = fmt::format("fd:{}", descriptor);
  // gRPC may just have closed a connection with this number, and its end may not be processed yet.
  const auto stale = std::find_if(watched_.begin(), watched_.end(), [&](const auto& entry) { return entry.second.key == key; });
  if (stale != watched_.end()) drop(stale);
  make_room();
  watched_[copy] = {key, next_number_++};
  callbacks_.opened(descriptor, key, fmt::format("{}:{}", host, port));
}

}  // namespace msdbg::live
