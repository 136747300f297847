// One call of a client, of whatever method: its messages are handed over as they arrive, its reply is given once.
#pragma once

#include <grpcpp/generic/async_generic_service.h>

#include <atomic>
#include <memory>
#include <string>

#include "session/live/exchange.h"
#include "session/live/graph_assembly.h"
#include "session/live/thread_order.h"

namespace msdbg::live {

class IncomingCall;

/// All functions are called from gRPC's threads, those of one call one after the other.
class CallHandler {
 public:
  virtual ~CallHandler() = default;
  virtual void on_message(IncomingCall& call, grpc::ByteBuffer& message) = 0;
  virtual void on_complete(IncomingCall& call) = 0;   ///< the client has said everything
  virtual void on_cancelled(IncomingCall& call) = 0;  ///< it went away; a reply has no effect any more
};

class IncomingCall final : public grpc::ServerGenericBidiReactor {
 public:
  IncomingCall(CallHandler& handler, Rpc method, uint64_t call_number, std::string from)
      : rpc(method), number(call_number), peer(std::move(from)), handler_(handler) {
    operation_starts(this);
    StartRead(&incoming_);
  }

  /// Exactly one of these, once; later ones are dropped (a reply may race with the end of the connection).
  void reply(const std::string& payload) {
    if (answered_.exchange(true)) return;
    outgoing_ = buffer_of(payload);
    operation_starts(this);
    StartWriteAndFinish(&outgoing_, {}, grpc::Status::OK);
  }
  void fail(grpc::StatusCode code, const std::string& text) {
    if (answered_.exchange(true)) return;
    operation_starts(this);
    Finish(grpc::Status(code, text));
  }

  bool cancelled() const { return cancelled_; }

  void OnReadDone(bool ok) override {
    reaction_begins(this);
    if (!ok) {
      if (!cancelled_ && !answered_) handler_.on_complete(*this);
      return;
    }
    ++messages;
    handler_.on_message(*this, incoming_);
    if (answered_) return;
    incoming_.Clear();
    operation_starts(this);
    StartRead(&incoming_);
  }
  void OnCancel() override {
    reaction_begins(this);
    cancelled_ = true;
    if (!answered_) handler_.on_cancelled(*this);
    fail(grpc::StatusCode::CANCELLED, "");
  }
  void OnDone() override {
    reaction_begins(this);
    delete this;
  }

  static grpc::ByteBuffer buffer_of(const std::string& payload) {
    const grpc::Slice slice(payload);
    return grpc::ByteBuffer(&slice, 1);
  }

  const Rpc rpc;
  const uint64_t number;
  const std::string peer;  ///< key of the connection
  uint32_t messages = 0;
  uint64_t bytes = 0;
  WireEvent event;         ///< what has been decoded so far
  std::unique_ptr<GraphAssembly> assembly;

 private:
  CallHandler& handler_;
  grpc::ByteBuffer incoming_, outgoing_;
  std::atomic<bool> answered_{false}, cancelled_{false};
};

}  // namespace msdbg::live
