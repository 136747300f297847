// The training side of the protocol as bare bytes over a real connection: what it sends is what a test says, right or
// wrong. It reconnects by itself never: one RawClient is one TCP connection, as long as it lives.
//
// Any thread; calls of one client may overlap. Nothing waits longer than its deadline.
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

  /// Null when nobody listens at 127.0.0.1:`port`.
  static std::unique_ptr<RawClient> connect(int port);
  ~RawClient();
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  RawReply unary(live::Rpc rpc, const std::string& message, milliseconds deadline = kPatience);
  RawReply stream(live::Rpc rpc, std::span<const std::string> messages, milliseconds deadline = kPatience);
  /// One message again and again, up to `times`; ends at the first one that is not taken.
  RawReply repeat(live::Rpc rpc, const std::string& message, size_t times, milliseconds deadline = kPatience);
  /// Of the first messages of a stream that is never finished; returns when they are written.
  bool begin_stream(live::Rpc rpc, std::span<const std::string> messages, milliseconds deadline = kPatience);

  /// Gives up the streams that were begun; the connection stays.
  void cancel_streams();

  /// A WaitCMD that is on its way or held.
  class Wait {
   public:
    ~Wait();
    /// The reply, or nothing within `deadline`; the call stays open then.
    std::optional<RawReply> get(milliseconds deadline = kPatience);
    /// The client gives the call up; the connection stays.
    void cancel();

   private:
    friend class RawClient;
    Wait();
    struct State;
    std::unique_ptr<State> state_;
  };
  std::unique_ptr<Wait> wait_cmd(const std::string& metadata);

  /// The process is gone: its socket is closed without a word.
  void drop();

  /// One thread that beats until stop_heartbeats() or the first refusal.
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
