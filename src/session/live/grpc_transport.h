// The session's side of one rank's line at the listener.
#pragma once

#include <memory>

#include "session/live/grpc_listener.h"
#include "session/live/transport.h"

namespace msdbg::live {

class GrpcTransport final : public Transport {
 public:
  GrpcTransport(std::shared_ptr<GrpcListener> listener, int rank)
      : listener_(std::move(listener)), line_(*listener_->lines_.at(static_cast<size_t>(rank))) {}

  bool next(WireEvent* event, Clock::time_point deadline, bool stop_on_interrupt) override;
  Status answer(const debugger::EventReply& reply) override;
  void answer_ahead(const debugger::EventReply& reply, uint64_t times) override;
  Passed stop_ahead() override;
  Passed passed_ahead() override;
  void expect(std::shared_ptr<ValueUpload> upload) override;
  uint64_t received_bytes() const override { return line_.received; }
  void answer_unattended(std::vector<debugger::EventReply> replies) override;
  size_t stop_unattended() override;
  size_t unattended_left() override;
  Result<std::vector<int>> copy_sockets() override { return listener_->acceptor_->copy_sockets(); }
  void hang_up() override { listener_->close(std::chrono::milliseconds(0)); }
  std::string address() const override;
  int descriptor() const override { return line_.mailbox.descriptor(); }
  void acknowledge() override { line_.mailbox.acknowledge(); }

 private:
  const std::shared_ptr<GrpcListener> listener_;
  Line& line_;
};

}  // namespace msdbg::live
