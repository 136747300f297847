// The gRPC server: receives every call of `debugger.EventListener` as raw bytes, decodes it, answers what it can answer at once,
// and posts the others to the session's mailbox.
#pragma once

#include <grpcpp/server.h>

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "msdbg/live.h"
#include "session/live/acceptor.h"
#include "session/live/incoming_call.h"
#include "session/live/mailbox.h"
#include "session/live/recorder.h"
#include "session/live/transport.h"

namespace msdbg::live {

class GrpcTransport final : public Transport, private CallHandler {
 public:
  static Result<std::unique_ptr<GrpcTransport>> open(const ListenOptions& options);
  ~GrpcTransport() override;

  bool next(WireEvent* event, Clock::time_point deadline, bool stop_on_interrupt) override;
  Status answer(const debugger::EventReply& reply) override;
  void answer_ahead(const debugger::EventReply& reply, uint64_t times) override;
  Passed stop_ahead() override;
  Passed passed_ahead() override;
  void expect(std::shared_ptr<ValueUpload> upload) override;
  uint64_t received_bytes() const override { return received_; }
  void answer_unattended(std::vector<debugger::EventReply> replies) override;
  size_t stop_unattended() override;
  size_t unattended_left() override;
  Result<std::vector<int>> copy_sockets() override { return acceptor_->copy_sockets(); }
  std::string address() const override;
  int descriptor() const override { return mailbox_.descriptor(); }

 private:
  friend class CallsInProcess;  // in tests/fuzz: calls without a socket
  class Service;
  GrpcTransport(std::unique_ptr<Acceptor> acceptor, std::unique_ptr<Recorder> recorder, uint64_t mem_limit_bytes);

  void on_message(IncomingCall& call, grpc::ByteBuffer& message) override;
  void on_complete(IncomingCall& call) override;
  void on_cancelled(IncomingCall& call) override;
  void on_closed(IncomingCall& call) noexcept override;
  void on_exception(IncomingCall& call, const char* what) noexcept override;
  void forget_unknown_call(const IncomingCall& call) noexcept;
  void on_opened(int descriptor, const std::string& key, const std::string& address);
  void on_disconnected(const std::string& key);

  bool is_current(const std::string& peer);
  grpc::Status may_call(Rpc rpc, const std::string& peer, uint64_t number);
  grpc::Status admit(const IncomingCall& call);
  grpc::Status refuse_call(Rpc rpc, const std::string& peer);
  void record(const IncomingCall& call, grpc::ByteBuffer& message);
  bool decode(IncomingCall& call, grpc::ByteBuffer& message, std::string* too_much);
  bool decode_slice(IncomingCall& call, grpc::ByteBuffer& message, std::string* too_much);
  void refuse(IncomingCall& call, const std::string& what);
  void complete_wait(IncomingCall& call);
  void complete_metadata(IncomingCall& call);
  void complete_graphs(IncomingCall& call);
  debugger::EventReply next_unattended_reply();
  void post_and_reply(IncomingCall& call, const debugger::EventReply& reply);
  void reply(IncomingCall& call, const debugger::EventReply& message);
  void fail(IncomingCall& call, grpc::StatusCode code, const std::string& text);
  void note(WireEvent::Kind kind, std::string text);
  std::string address_of(const std::string& key);

  std::unique_ptr<Acceptor> acceptor_;
  std::unique_ptr<Recorder> recorder_;
  std::unique_ptr<Service> service_;
  std::unique_ptr<grpc::Server> server_;
  Mailbox mailbox_;
  std::atomic<uint64_t> received_{0};
  std::atomic<uint64_t> next_call_{1};
  std::atomic<size_t> notes_{0};                  // number reported about the current training

  std::mutex mutex_;
  std::shared_ptr<WaitingMemory> waiting_;        // for messages of the current training
  std::weak_ptr<WaitingMemory> former_waiting_;   // for messages of the previous one, until the session has processed them
  std::map<std::string, std::string> addresses_;  // of open connections, by key
  std::map<std::string, bool> turned_away_;       // connections whose refusal was reported; true: the refusal of a handshake
  std::string current_;                           // key of the training's connection; "" without one
  bool ended_ = false;                            // it has sent its farewell
  std::set<uint64_t> unknown_calls_;                  // open calls of connections other than the training's
  IncomingCall* held_ = nullptr;                  // the open WaitCMD
  debugger::EventReply ahead_;                    // the answer to the next `ahead_times_` WaitCMDs
  uint64_t ahead_times_ = 0;
  Passed passed_;
  std::shared_ptr<ValueUpload> upload_;
  bool unattended_ = false;                            // the training was detached
  std::string unattended_key_;                         // its connection
  std::deque<debugger::EventReply> unattended_replies_;
};

}  // namespace msdbg::live
