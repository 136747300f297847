// Commands to a training process.
#include <fmt/format.h>

#include <algorithm>

#include "session/live/conversation.h"

namespace msdbg::live {

Status Conversation::not_held(std::string_view what) const {
  switch (state_) {
    case LiveState::kWaiting:
      return {Code::kPeerLost, fmt::format("{}: no training has connected yet", what)};
    case LiveState::kEnded:
      return {Code::kUnsupported, fmt::format("{}: the training has ended; the command was not delivered", what)};
    case LiveState::kLost:
      return {Code::kPeerLost, fmt::format("{}: the connection to the training is lost; the command was not delivered", what)};
    default:
      return {Code::kPeerLost, fmt::format("{}: the training is not held; the command was not delivered. pause() waits "
                                           "for its next suspension", what)};
  }
}

Status Conversation::ensure_held(std::string_view what) {
  WireEvent event;
  const Clock::time_point deadline = Clock::now() + view_deadline_;
  while (state_ == LiveState::kHeld && busy_ && transport_->next(&event, deadline, true)) handle(std::exchange(event, {}));
  while (transport_->next(&event, Clock::time_point::min(), false)) handle(std::exchange(event, {}));
  if (state_ != LiveState::kHeld || busy_) return not_held(what);
  if (!pinned_ || *pinned_ == suspension_.number) return {};
  return {Code::kPeerLost, fmt::format("{}: the training went away and is held again; look at its new suspension", what)};
}

void Conversation::pin(std::optional<uint64_t> suspension) {
  std::lock_guard lock(mutex_);
  pinned_ = suspension;
}

Status Conversation::await_answer(std::string_view what, bool stop_on_interrupt) {
  WireEvent event;
  uint64_t seen = 0;
  Clock::time_point deadline = Clock::now() + view_deadline_;
  while (state_ == LiveState::kHeld && busy_) {
    if (const uint64_t received = transport_->received_bytes(); received != seen) {
      seen = received;
      deadline = Clock::now() + view_deadline_;
    }
    const Clock::time_point soon = std::min(deadline, Clock::now() + std::chrono::milliseconds(100));
    if (transport_->next(&event, soon, stop_on_interrupt)) {
      handle(std::exchange(event, {}));
    } else if (stop_on_interrupt && interrupt_requested()) {
      return {Code::kInterrupted, fmt::format("interrupted: {}", what)};
    } else if (Clock::now() >= deadline) {
      add_event(Severity::kError, fmt::format("the training did not answer within {} s: {}", view_deadline_.count() / 1000.0, what));
      return {Code::kPeerLost, fmt::format("{}: delivered, but the training did not answer within {} s; pause() waits for it",
                                           what, view_deadline_.count() / 1000.0)};
    }
  }
  if (state_ == LiveState::kHeld) return {};
  return {Code::kPeerLost, fmt::format("{}: delivered, but the training went away before it answered", what)};
}

Status Conversation::send(const debugger::EventReply& reply, std::string_view what) {
  std::lock_guard lock(mutex_);
  if (Status status = ensure_held(what); !status.ok()) return status;
  if (Status status = transport_->answer(reply); !status.ok()) return status;
  busy_ = true;
  return await_answer(what, false);
}

void Conversation::stop_ahead() {
  std::lock_guard lock(mutex_);
  note_passed();
}

uint64_t Conversation::take_passed() {
  std::lock_guard lock(mutex_);
  return std::exchange(passed_, 0);
}

std::vector<debugger::EndedStep> Conversation::take_ended() {
  std::lock_guard lock(mutex_);
  return std::exchange(ended_, {});
}

uint64_t Conversation::passed(int64_t* step) {
  std::lock_guard lock(mutex_);
  const Passed ahead = transport_->passed_ahead();
  *step = ahead.count > 0 ? ahead.last.cur_step() : suspension_.cur_step;
  return passed_ + ahead.count;
}

size_t Conversation::detached_left() const {
  std::lock_guard lock(mutex_);
  return transport_->unattended_left();
}

bool Conversation::recalled() const {
  std::lock_guard lock(mutex_);
  return recalled_;
}

size_t Conversation::stop_detached() {
  std::lock_guard lock(mutex_);
  return transport_->stop_unattended();
}

Status Conversation::release(const debugger::EventReply& reply, std::string_view what, uint64_t ahead) {
  std::lock_guard lock(mutex_);
  if (Status status = ensure_held(what); !status.ok()) return status;
  hits_.clear();
  hit_charges_.clear();
  report_ = reply.run_cmd().report();
  ended_.clear();
  // Before the answer: the training may ask again before this thread continues.
  if (ahead > 0) transport_->answer_ahead(reply, ahead);
  if (Status status = transport_->answer(reply); !status.ok()) {
    note_passed();
    return status;
  }
  state_ = LiveState::kRunning;
  awaiting_ = ran_ = true;
  suspension_.node_level = reply.run_cmd().run_level() == "node";
  suspension_.asked_node = suspension_.node_level ? reply.run_cmd().node_name() : "";
  return {};
}

Status Conversation::run_detached(std::vector<debugger::EventReply> first) {
  std::lock_guard lock(mutex_);
  WireEvent event;
  while (transport_->next(&event, Clock::time_point::min(), false)) handle(std::exchange(event, {}));
  if (state_ == LiveState::kWaiting || state_ == LiveState::kEnded || state_ == LiveState::kLost) return not_held("detach");
  transport_->answer_unattended(std::move(first));  // also answers an open WaitCMD
  while (transport_->next(&event, Clock::time_point::min(), false)) handle(std::exchange(event, {}));
  if (state_ == LiveState::kEnded || state_ == LiveState::kLost) return {};
  state_ = LiveState::kRunning;
  busy_ = false;
  awaiting_ = ran_ = true;
  return {};
}

}  // namespace msdbg::live
