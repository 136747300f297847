// The listening socket. It accepts connections itself instead of leaving that to gRPC: it notices the end of a connection at once,
// even without an open call.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "msdbg/base.h"

struct addrinfo;
struct pollfd;

namespace msdbg::live {

class Acceptor {
 public:
  struct Callbacks {
    /// A connection to take over; calls on it have `key` as their peer.
    std::function<void(int descriptor, const std::string& key, const std::string& address)> opened;
    std::function<void(const std::string& key)> closed;
    /// True for a connection that must stay open: above the limit, the oldest of the others is closed.
    std::function<bool(const std::string& key)> keep;
  };

  /// Listens on every address of `bind` ("localhost" may have two), on one port.
  /// Error: kInvalidArgument for anything but an address, kIoError with the address and the reason.
  static Result<std::unique_ptr<Acceptor>> open(const std::string& bind, int port);
  /// Takes over sockets that are already listening. Error: kInvalidArgument for other descriptors.
  static Result<std::unique_ptr<Acceptor>> take_over(std::span<const int> sockets);
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  /// Starts accepting up to `most` connections at once. The callbacks run on a thread of the acceptor. Error: kInternal if the thread
  /// cannot be started.
  Status start(Callbacks callbacks, size_t most);
  void stop();

  /// For take_over() in another process. The caller closes the descriptors.
  Result<std::vector<int>> copy_sockets() const;
  const std::string& host() const { return host_; }
  int port() const { return port_; }

 private:
  struct Connection {
    std::string key;
    uint64_t number = 0;
  };
  Acceptor() = default;
  Status listen_at(const addrinfo& address, int port);
  void run();
  void serve(std::span<const pollfd> polled);
  void accept_one(int socket);
  void make_room();
  void drop(std::map<int, Connection>::iterator connection);

  std::vector<int> sockets_;
  int wake_ = -1;
  std::string host_;
  int port_ = 0;
  Callbacks callbacks_;
  size_t most_ = 0;
  std::map<int, Connection> watched_;  // by our copy of the descriptor
  uint64_t next_number_ = 0;
  std::thread thread_;
};

}  // namespace msdbg::live
