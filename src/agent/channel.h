// One thread's way to call the debugger: unary calls and client streams of ready-made messages.
//
// A Caller belongs to one thread, which drives its calls itself: no other thread is woken for an answer. Only cancel()
// may come from another thread. Several Callers may share a channel.
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
/// `reconnect` is the shortest pause between two attempts to connect, 2 seconds at most.
ChannelPtr open_channel(const std::string& target, std::chrono::milliseconds reconnect);

/// What the debugger answered. A call that failed counts like a reply with status FAILED.
struct Reply {
  bool ok = false;      ///< the call succeeded and the status in the message is OK
  std::string problem;  ///< why not
  debugger::EventReply message;
};

grpc::ByteBuffer to_buffer(const google::protobuf::MessageLite& message);

class Caller {
 public:
  explicit Caller(const ChannelPtr& channel);
  ~Caller();
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  /// `method` is the bare name, e.g. "WaitCMD". Without a deadline it may take forever.
  Reply call(const char* method, const grpc::ByteBuffer& request,
             std::optional<std::chrono::milliseconds> deadline = std::nullopt);
  /// Opens the next call of `method` without saying anything yet: what is cold after a step of training (the call's own
  /// objects, its headers, what the debugger makes of them) is done now. call() finishes it. Any problem is left to call().
  void open_ahead(const char* method);
  void drop_opened();
  /// Asks `next` for one message after the other until it gives false, then waits for the answer.
  Reply stream(const char* method, const std::function<bool(grpc::ByteBuffer&)>& next);

  /// Lets the transport work until it holds nothing of `loan` any more; false when `timeout` comes first.
  bool wait_until_released(const BorrowedMemory& borrowed, std::chrono::milliseconds timeout);

  /// Ends the call in progress and, until allow() is called, every later one. Any thread.
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
