// Calls the debugger from one thread: unary calls and client streams of prepared messages.
//
// A Caller belongs to one thread, which drives its calls itself: an answer wakes no other thread. Only cancel() may be called from
// another thread. Several Callers may share a channel.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/byte_buffer.h>

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "agent/messages.h"
#include "debug_grpc.pb.h"

namespace msdbg::agent {

using ChannelPtr = std::shared_ptr<grpc::Channel>;
/// `reconnect` is the shortest pause between two connection attempts, at most 2 seconds.
ChannelPtr open_channel(const std::string& target, std::chrono::milliseconds reconnect);

/// The debugger's answer. A failed call counts like a reply with status FAILED.
struct Reply {
  bool ok = false;      ///< the call succeeded and the status in the message is OK
  bool reached = true;  ///< false: the call found no connection
  bool answered = false;  ///< the debugger has sent `message`
  std::string problem;  ///< the reason if it is not
  debugger::EventReply message;
};

grpc::ByteBuffer to_buffer(const google::protobuf::MessageLite& message);

/// For wait_until_released(): how long the transport may keep memory of the training.
inline constexpr std::chrono::seconds kReturnTimeout(30);

class Caller {
 public:
  explicit Caller(const ChannelPtr& channel);
  ~Caller();
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  /// `method` is the bare name, such as "WaitCMD". Without a deadline the call may take forever.
  Reply call(const char* method, const grpc::ByteBuffer& request,
             std::optional<std::chrono::milliseconds> deadline = std::nullopt);
  /// Starts the next call of `method` without a message. This does the slow first part after a training step in advance: the call's
  /// own objects, its headers, the debugger's preparation. call() finishes it. Problems are left to call().
  void open_ahead(const char* method);
  void drop_opened();
  /// Sends the messages of `next` one by one until it returns false, then waits for the answer.
  Reply stream(const char* method, const std::function<bool(grpc::ByteBuffer&)>& next);

  /// False if there is still no connection after `timeout`.
  bool wait_until_connected(std::chrono::milliseconds timeout);
  /// Runs the transport until it no longer refers to `borrowed`; false if `timeout` comes first.
  bool wait_until_released(const BorrowedMemory& borrowed, std::chrono::milliseconds timeout);

  /// Ends the current call and, until allow() is called, every later one. Any thread.
  void cancel();
  void allow();

 private:
  class Running;
  struct Opened;
  std::optional<Reply> finish_opened(const grpc::ByteBuffer& request);
  bool wait_for_tag();
  Reply finish_reply(const grpc::Status& status, const grpc::ByteBuffer& bytes);

  ChannelPtr channel_;
  grpc::GenericStub stub_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<Opened> opened_;
  std::mutex mutex_;
  grpc::ClientContext* running_ = nullptr;  // under mutex_
  bool cancelled_ = false;                  // under mutex_
};

}  // namespace msdbg::agent
