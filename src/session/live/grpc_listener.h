// The gRPC server: receives every call of `debugger.EventListener` as raw bytes, decodes it, answers what it can answer at once,
// and posts the others to the mailbox of the rank whose connection it came from.
//
// Each rank has a line. The first connection that sends a handshake for it owns the line until the connection ends.
#pragma once

#include <grpcpp/server.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "msdbg/live.h"
#include "session/live/acceptor.h"
#include "session/live/incoming_call.h"
#include "session/live/line.h"
#include "session/live/recorder.h"

namespace msdbg::live {

class GrpcListener final : private CallHandler {
 public:
  static Result<std::shared_ptr<GrpcListener>> open(const ListenOptions& options);
  ~GrpcListener() override;
  /// Connections of clients that do not notice are cut off after `patience`. Until then, new calls on them are refused.
  void close(std::chrono::milliseconds patience);

 private:
  friend class GrpcTransport;   // the session's side of a line
  friend class CallsInProcess;  // in tests/fuzz: calls without a socket
  class Service;
  /// An open connection.
  struct Connection {
    std::string address;
    Line* line = nullptr;      ///< set once it was admitted
    bool turned_away = false;  ///< its refusal was reported
    bool handshake_refused = false;
  };
  GrpcListener(std::unique_ptr<Acceptor> acceptor, std::unique_ptr<Recorder> recorder, int ranks, uint64_t mem_limit_bytes);

  void on_message(IncomingCall& call, grpc::ByteBuffer& message) override;
  void on_complete(IncomingCall& call) override;
  void on_cancelled(IncomingCall& call) override;
  void on_closed(IncomingCall& call) noexcept override;
  void on_exception(IncomingCall& call, const char* what) noexcept override;
  void forget_unknown_call(const IncomingCall& call) noexcept;
  void on_opened(int descriptor, const std::string& key, const std::string& address);
  void on_disconnected(const std::string& key);

  Line* line_of(const std::string& key);  ///< that the connection owns; null for others. Under the mutex
  bool is_current(const std::string& key);
  bool has_free_line() const;
  grpc::Status may_call(Rpc rpc, const std::string& peer, uint64_t number);
  grpc::Status admit(IncomingCall& call);
  Line* choose_line(const debugger::Metadata& metadata, std::string* why);
  std::string all_taken() const;
  grpc::Status refuse_call(Rpc rpc, const std::string& peer, const std::string& why);
  void record(const IncomingCall& call, grpc::ByteBuffer& message);
  bool decode(IncomingCall& call, grpc::ByteBuffer& message, std::string* too_much);
  bool decode_slice(IncomingCall& call, grpc::ByteBuffer& message, std::string* too_much);
  void refuse(IncomingCall& call, const std::string& what);
  void complete_wait(IncomingCall& call);
  void answer_ahead(IncomingCall& call, Line& line);
  void complete_metadata(IncomingCall& call);
  void complete_graphs(IncomingCall& call);
  debugger::EventReply next_unattended_reply(Line& line);
  void post_and_reply(IncomingCall& call, const debugger::EventReply& reply);
  void reply(IncomingCall& call, const debugger::EventReply& message);
  void fail(IncomingCall& call, grpc::StatusCode code, const std::string& text);
  /// About the process of `line`, or about a connection without one.
  void note(Line* line, std::string text);
  std::string address_of(const std::string& key);

  std::unique_ptr<Acceptor> acceptor_;
  std::unique_ptr<Recorder> recorder_;
  std::unique_ptr<Service> service_;
  std::unique_ptr<grpc::Server> server_;
  std::atomic<uint64_t> next_call_{1};

  std::mutex mutex_;
  std::vector<std::unique_ptr<Line>> lines_;         // by rank
  std::map<std::string, Connection> connections_;    // by key
  std::set<uint64_t> unknown_calls_;                 // open calls of connections without a line
};

}  // namespace msdbg::live
