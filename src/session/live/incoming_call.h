// One call of a client, for any method: passes on its messages as they arrive, and sends its reply once.
#pragma once

#include <grpcpp/generic/async_generic_service.h>

#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <string>

#include "msdbg/sanitizers.h"
#include "session/live/exchange.h"
#include "session/live/graph_assembly.h"

namespace msdbg::live {

class IncomingCall;
struct Line;

/// Runs on gRPC's threads. The functions of one call run one after the other, except that on_cancelled() may come between them.
class CallHandler {
 public:
  virtual ~CallHandler() = default;
  virtual void on_message(IncomingCall& call, grpc::ByteBuffer& message) = 0;
  virtual void on_complete(IncomingCall& call) = 0;   ///< the client has sent everything
  virtual void on_cancelled(IncomingCall& call) = 0;  ///< the client disconnected; replies have no effect
  virtual void on_closed(IncomingCall&) noexcept {}   ///< the last event of this call
  /// One of the others threw, which is a defect of msdbg; the call is over.
  virtual void on_exception(IncomingCall& call, const char* what) noexcept = 0;
};

class IncomingCall final : public grpc::ServerGenericBidiReactor {
 public:
  IncomingCall(CallHandler& handler, Rpc method, uint64_t call_number, std::string from)
      : rpc(method), number(call_number), peer(std::move(from)), handler_(handler) {
    handed_over(this);
    StartRead(&incoming_);
  }

  /// Calls exactly one of these, once; drops later ones (a reply may race with the end of the connection).
  void reply(const std::string& payload) {
    if (answered_) return;
    const std::shared_ptr<std::mutex> order = order_;  // this object may be deleted before the lock is released
    const std::lock_guard lock(*order);
    if (answered_.exchange(true)) return;
    outgoing_ = buffer_of(payload);
    handed_over(this);
    StartWriteAndFinish(&outgoing_, {}, grpc::Status::OK);
  }
  void fail(grpc::StatusCode code, const std::string& text) {
    if (answered_) return;
    const std::shared_ptr<std::mutex> order = order_;
    const std::lock_guard lock(*order);
    if (answered_.exchange(true)) return;
    handed_over(this);
    Finish(grpc::Status(code, text));
  }

  bool cancelled() const { return cancelled_; }

  void OnReadDone(bool ok) override {
    const Ordered reaction(this);
    if (!ok) return finish_reading();
    ++messages;
    guarded([this] { handler_.on_message(*this, incoming_); });
    if (answered_) return;
    incoming_.Clear();
    handed_over(this);
    StartRead(&incoming_);
  }
  void OnSendInitialMetadataDone(bool ok) override {
    const Ordered reaction(this);
    if (ok && !cancelled_ && !answered_) guarded([this] { handler_.on_complete(*this); });
  }
  void OnCancel() override {
    const Ordered reaction(this);
    cancelled_ = true;
    if (!answered_) guarded([this] { handler_.on_cancelled(*this); });
    fail(grpc::StatusCode::CANCELLED, "");
  }
  void OnDone() override {
    taken_over(this);
    handler_.on_closed(*this);
    handed_over(&handler_);  // the server waits for this before its handler ends
    delete this;
  }

  static grpc::ByteBuffer buffer_of(const std::string& payload) {
    const grpc::Slice slice(payload);
    return grpc::ByteBuffer(&slice, 1);
  }

  const Rpc rpc;
  const uint64_t number;
  const std::string peer;  ///< key of the connection
  std::atomic<uint32_t> messages{0};
  uint64_t bytes = 0;
  Line* line = nullptr;    ///< of its connection, from the first message on; set under the listener's mutex
  WireEvent event;         ///< what has been decoded so far
  std::unique_ptr<GraphAssembly> assembly;

 private:
  /// gRPC runs OnDone(), which deletes this object, after every other reaction has returned.
  class Ordered {
   public:
    explicit Ordered(IncomingCall* call) : call_(call) { taken_over(call); }
    ~Ordered() { handed_over(call_); }
    Ordered(const Ordered&) = delete;
    Ordered& operator=(const Ordered&) = delete;

   private:
    IncomingCall* call_;
  };

  // To the reader a broken stream looks like a finished one, and OnCancel() may come later. The initial metadata can only be sent
  // to a client that is still connected.
  void finish_reading() {
    if (cancelled_ || answered_) return;
    if (!is_streaming(rpc)) return guarded([this] { handler_.on_complete(*this); });
    // Ending a call also sends the initial metadata if it was not sent; sending it twice aborts the process.
    const std::lock_guard lock(*order_);
    if (answered_) return;
    handed_over(this);
    StartSendInitialMetadata();
  }

  template <typename Reaction>
  void guarded(Reaction reaction) noexcept {
    try {
      return reaction();
    } catch (const std::exception& error) {
      handler_.on_exception(*this, error.what());
    } catch (...) {
      handler_.on_exception(*this, "an unknown exception");
    }
  }

  CallHandler& handler_;
  grpc::ByteBuffer incoming_, outgoing_;
  std::atomic<bool> answered_{false}, cancelled_{false};
  const std::shared_ptr<std::mutex> order_ = std::make_shared<std::mutex>();
};

/// Answers a call with a status, without reading its messages.
class RefusedCall final : public grpc::ServerGenericBidiReactor {
 public:
  explicit RefusedCall(const grpc::Status& status) {
    handed_over(this);
    Finish(status);
  }
  void OnDone() override {
    taken_over(this);
    delete this;
  }
};

}  // namespace msdbg::live
