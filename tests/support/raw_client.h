// The training side of the protocol as raw bytes over a real connection: it sends what a test specifies, right or wrong. It never
// reconnects: one RawClient is one TCP connection, for its lifetime.
//
// Any thread; calls of one client may overlap. Every wait has a deadline.
#pragma once

#include <grpcpp/generic/generic_stub.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "debug_grpc.pb.h"
#include "session/live/exchange.h"

namespace msdbg::test {

using std::chrono::milliseconds;

struct RawReply {
  int code = 0;       ///< grpc::StatusCode; 0 is OK
  std::string text;   ///< of the status
  std::string bytes;  ///< serialized EventReply
  bool timed_out = false;

  bool ok() const { return code == 0 && !timed_out; }
  debugger::EventReply parsed() const;
  std::string describe() const;  ///< for failure messages
};

class RawClient {
 public:
  static constexpr milliseconds kPatience{30000};

  /// Null if nothing listens at 127.0.0.1:`port`.
  static std::unique_ptr<RawClient> connect(int port);
  ~RawClient();
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  RawReply unary(live::Rpc rpc, const std::string& message, milliseconds deadline = kPatience);
  RawReply stream(live::Rpc rpc, std::span<const std::string> messages, milliseconds deadline = kPatience);
  /// Sends one message repeatedly, up to `times`; ends at the first one that is refused.
  RawReply repeat(live::Rpc rpc, const std::string& message, size_t times, milliseconds deadline = kPatience);
  /// Sends the first messages of a stream that is never finished; returns when they are written.
  bool begin_stream(live::Rpc rpc, std::span<const std::string> messages, milliseconds deadline = kPatience);

  /// Cancels the open streams; the connection stays.
  void cancel_streams();

  /// A WaitCMD that was sent or is held.
  class Wait {
   public:
    ~Wait();
    /// The reply, or nullopt after `deadline`; the call stays open then.
    std::optional<RawReply> get(milliseconds deadline = kPatience);
    /// Cancels the call; the connection stays.
    void cancel();

   private:
    friend class RawClient;
    Wait();
    struct State;
    std::unique_ptr<State> state_;
  };
  std::unique_ptr<Wait> wait_cmd(const std::string& metadata);

  /// Simulates the death of the process: closes its socket without a farewell.
  void drop();

  /// Starts a thread that sends heartbeats until stop_heartbeats() or the first refusal.
  void start_heartbeats(const std::string& message, milliseconds period);
  void stop_heartbeats();
  int heartbeats() const { return heartbeats_; }  ///< answered OK

 private:
  RawClient(std::unique_ptr<grpc::GenericStub> stub, int descriptor);

  RawReply stream(live::Rpc rpc, size_t count, const std::function<const std::string&(size_t)>& message, milliseconds deadline);

  struct Unfinished;
  std::unique_ptr<grpc::GenericStub> stub_;
  std::vector<std::unique_ptr<Unfinished>> unfinished_;
  int descriptor_;  // a second handle of the connection's socket
  std::thread beater_;
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopping_ = false;
  std::atomic<int> heartbeats_{0};
};

}  // namespace msdbg::test
