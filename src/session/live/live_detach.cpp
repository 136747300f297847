// Attaching to a running training, detaching from it, and ending it.
#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "session/live/live_session.h"

namespace msdbg::live {

Result<RunResult> LiveSessionImpl::pause(std::chrono::milliseconds timeout) {
  process_events();
  if (detached_) return attach(timeout);
  StopReason reason = StopReason::kPaused;
  if (talk_.state() == LiveState::kWaiting) return Status(Code::kPeerLost, "pause: no training has connected yet");
  const bool held = await_hold(Clock::now() + timeout, &reason);
  return held_again(held, reason);
}

RunResult LiveSessionImpl::held_again(bool held, StopReason reason) {
  RunResult result = snapshot(reason);
  if (held) {
    collect_hits(result.check);
    result.reason = StopReason::kPaused;
  } else if (reason == StopReason::kEnded || reason == StopReason::kLost) {
    collect_last_hits(result.check);
  }
  if (!result.check.hits.empty()) result.reason = StopReason::kHit;
  return result;
}

Result<RunResult> LiveSessionImpl::terminate(std::chrono::milliseconds timeout) {
  process_events();
  const Clock::time_point deadline = Clock::now() + timeout;
  if (detached_) return Status(Code::kUnsupported, "the session is detached: the training runs to its own end; attach holds it again");
  StopReason reason = StopReason::kEnded;
  if (!await_hold(deadline, &reason)) {
    if (reason == StopReason::kEnded || reason == StopReason::kLost) return snapshot(reason);
    return Status(Code::kPeerLost, "terminate: the training is not held yet; the command was not delivered. Try again, or pause()");
  }
  if (Status status = talk_.release(make_exit(), "terminate"); !status.ok()) return status;
  // The current step still finishes; older releases run one more.
  while (talk_.wait_settled(deadline, true)) {
    process_events();
    const LiveState now = talk_.state();
    if (now == LiveState::kEnded || now == LiveState::kLost) return snapshot(StopReason::kEnded);
    if (Status status = talk_.release(make_exit(), "terminate"); !status.ok()) return status;
  }
  return snapshot(interrupt_requested() ? StopReason::kInterrupted : StopReason::kPaused);
}

Status LiveSessionImpl::detach() {
  process_events();
  std::vector<debugger::EventReply> deletes;
  std::vector<int> ids;
  for (const Wanted& wanted : wanted_) ids.insert(ids.end(), wanted.peer_ids.begin(), wanted.peer_ids.end());
  ids.insert(ids.end(), keeper_.peer_ids.begin(), keeper_.peer_ids.end());
  ids.insert(ids.end(), delete_ids_.begin(), delete_ids_.end());
  for (const int id : ids) deletes.push_back(make_delete(id));
  if (Status status = talk_.run_detached(std::move(deletes)); !status.ok()) return status;
  detached_ = true;
  wanted_.clear();
  keeper_.sent.clear();
  keeper_.peer_ids.clear();
  delete_ids_.clear();
  detach_ids_ = std::move(ids);
  return {};
}

Status LiveSessionImpl::wait_until_detached(std::chrono::milliseconds timeout) {
  const Clock::time_point deadline = Clock::now() + timeout;
  while (detached_ && talk_.detached_left() > 0) {
    process_events();
    const LiveState now = talk_.state();
    if (now == LiveState::kEnded || now == LiveState::kLost) return {};
    if (Clock::now() >= deadline || interrupt_requested())
      return {Code::kPeerLost, "the training is not held yet, so its watchpoints are still in force"};
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return {};
}

Result<RunResult> LiveSessionImpl::attach(std::chrono::milliseconds timeout) {
  process_events();
  if (!detached_) return Status(Code::kUnsupported, "attach: the session is not detached; pause waits until the training is held");
  if (talk_.state() == LiveState::kEnded) return Status(Code::kUnsupported, "attach: the training has ended");
  const size_t left = talk_.stop_detached();
  delete_ids_.assign(detach_ids_.end() - static_cast<std::ptrdiff_t>(std::min(left, detach_ids_.size())), detach_ids_.end());
  detach_ids_.clear();
  ignored_ids_.insert(delete_ids_.begin(), delete_ids_.end());
  stale_ = true;
  detached_ = false;
  StopReason reason = StopReason::kPaused;
  const bool held = await_hold(Clock::now() + timeout, &reason);
  return held_again(held, reason);
}

}  // namespace msdbg::live
