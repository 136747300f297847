#include "session/live/grpc_transport.h"

#include <fmt/format.h>

namespace msdbg::live {

bool GrpcTransport::next(WireEvent* event, Clock::time_point deadline, bool stop_on_interrupt) {
  return line_.mailbox.take(event, deadline, stop_on_interrupt);
}

Status GrpcTransport::answer(const debugger::EventReply& message) {
  IncomingCall* call = nullptr;
  {
    std::lock_guard lock(listener_->mutex_);
    std::swap(call, line_.held);
    // Reply under the lock: a cancelled call is deleted only after on_cancelled(), which waits for the lock.
    if (call != nullptr) listener_->reply(*call, message);
  }
  if (call == nullptr) return Status(Code::kPeerLost, "the training is no longer held; the command was not delivered");
  return {};
}

void GrpcTransport::answer_ahead(const debugger::EventReply& message, uint64_t times) {
  std::lock_guard lock(listener_->mutex_);
  line_.ahead = message;
  line_.ahead_times = times;
}

Passed GrpcTransport::stop_ahead() {
  std::lock_guard lock(listener_->mutex_);
  line_.ahead_times = 0;
  return std::exchange(line_.passed, {});
}

Passed GrpcTransport::passed_ahead() {
  std::lock_guard lock(listener_->mutex_);
  return line_.passed;
}

void GrpcTransport::expect(std::shared_ptr<ValueUpload> upload) {
  std::lock_guard lock(listener_->mutex_);
  line_.upload = std::move(upload);
  line_.received = 0;
}

void GrpcTransport::answer_unattended(std::vector<debugger::EventReply> replies) {
  std::lock_guard lock(listener_->mutex_);
  line_.unattended = true;
  line_.unattended_key = line_.current;
  line_.unattended_replies.assign(replies.begin(), replies.end());
  if (IncomingCall* call = std::exchange(line_.held, nullptr)) listener_->reply(*call, listener_->next_unattended_reply(line_));
}

size_t GrpcTransport::stop_unattended() {
  std::lock_guard lock(listener_->mutex_);
  line_.unattended = false;
  return std::exchange(line_.unattended_replies, {}).size();
}

size_t GrpcTransport::unattended_left() {
  std::lock_guard lock(listener_->mutex_);
  return line_.unattended_replies.size();
}

std::string GrpcTransport::address() const {
  return fmt::format("{}:{}", listener_->acceptor_->host(), listener_->acceptor_->port());
}

}  // namespace msdbg::live
