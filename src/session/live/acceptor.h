// The listening socket. It accepts connections itself instead of leaving that to gRPC, so the end of a connection
// is known at once, also while no call is open on it.
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
    /// A connection to take over; `key` is what calls on it will carry as their peer.
    std::function<void(int descriptor, const std::string& key, const std::string& address)> opened;
    std::function<void(const std::string& key)> closed;
    /// True for a connection that must stay when there are too many: the oldest of the others is closed for a new one.
    std::function<bool(const std::string& key)> keep;
  };

  /// Listens on every address that `bind` stands for ("localhost" may be two), on one port.
  /// Error: kInvalidArgument for anything but an address, kIoError naming the address and the reason.
  static Result<std::unique_ptr<Acceptor>> open(const std::string& bind, int port);
  /// Goes on with sockets that listen already. Error: kInvalidArgument for what is no such socket.
  static Result<std::unique_ptr<Acceptor>> take_over(std::span<const int> sockets);
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  /// Starts accepting. The callbacks run on a thread of the acceptor. Error: kInternal when there is no thread for it.
  Status start(Callbacks callbacks);
  void stop();

  /// For take_over() in another process. The caller closes them.
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
  std::map<int, Connection> watched_;  // by our own copy of the descriptor
  uint64_t next_number_ = 0;
  std::thread thread_;
};

}  // namespace msdbg::live
