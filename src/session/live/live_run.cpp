// Commands of a live session. Each hands over one RunCMD per suspension and looks at what comes back.
#include <fmt/format.h>

#include <algorithm>

#include "session/live/live_session.h"

namespace msdbg::live {
namespace {

/// After Ctrl-C the training is usually held by the end of its step; longer ones are not waited for.
constexpr std::chrono::milliseconds kGrace{500};

constexpr uint32_t kErrorBad = kErrorNan | kErrorInf;

bool broken(const CheckResult& check) {
  return std::any_of(check.not_checked.begin(), check.not_checked.end(),
                     [](const NotChecked& entry) { return (entry.error_code & kErrorBad) != 0; });
}

/// Steps behind so many suspensions at the end of one. The training's own count decides: some are held once per graph of a step.
int64_t steps_between(int64_t before, int64_t completed, int64_t suspensions) {
  return completed < before ? suspensions : std::min(completed - before, suspensions);  // a new handshake counts from 0
}

}  // namespace

RunResult LiveSessionImpl::snapshot(StopReason reason) const {
  RunResult result;
  result.state = talk_.state();
  result.reason = reason;
  result.step = step_;
  result.completed_steps = completed_;
  result.node = suspension_.cur_node;
  result.held = result.state == LiveState::kHeld;
  result.check.steps = {step_};
  return result;
}

bool LiveSessionImpl::await_hold(std::optional<Clock::time_point> deadline, StopReason* reason) {
  const bool settled = talk_.wait_settled(deadline.value_or(Clock::time_point::max()), true);
  if (!settled) {
    talk_.stop_ahead();
    *reason = interrupt_requested() ? StopReason::kInterrupted : StopReason::kPaused;
    if (*reason == StopReason::kInterrupted) (void)talk_.wait_settled(Clock::now() + kGrace, false);
  }
  absorb();
  const LiveState now = talk_.state();
  if (now == LiveState::kEnded) *reason = StopReason::kEnded;
  else if (now == LiveState::kLost) *reason = StopReason::kLost;
  else return settled;
  return false;
}

// How many suspensions need nobody here: nothing is judged on this side after a step, and nobody is called.
uint64_t LiveSessionImpl::unseen(const RunRequest& request, int64_t steps_run) const {
  if (request.kind != RunKind::kStep && request.kind != RunKind::kContinue) return 0;
  if (request.on_step || stale_ || std::any_of(wanted_.begin(), wanted_.end(), [](const Wanted& w) { return w.local; })) return 0;
  return request.kind == RunKind::kStep ? static_cast<uint64_t>(request.count - steps_run - 1) : UINT64_MAX;
}

Status LiveSessionImpl::check_initial(RunResult& result) {
  const bool pending = std::any_of(wanted_.begin(), wanted_.end(), [](const Wanted& w) { return w.initial_pending && !w.local; });
  if (!pending || hold_ != HoldKind::kInitial || !profile_.recheck) return {};
  (void)talk_.take_hits();
  if (Status status = talk_.tell(make_run("recheck"), "judging initial weights"); !status.ok()) return status;
  raw_hits_ = talk_.take_hits();
  collect_hits(result.check);
  for (Wanted& wanted : wanted_) wanted.initial_pending = false;
  return {};
}

Result<RunResult> LiveSessionImpl::run(const RunRequest& request) {
  absorb();
  if (detached_) return Status(Code::kUnsupported, "the session is detached: the training runs on its own");
  if (request.count < 1) return Status(Code::kInvalidArgument, fmt::format("step {}: give a number of steps from 1 on", request.count));
  const bool node_level = request.kind == RunKind::kNextNode || request.kind == RunKind::kToNode;
  if (node_level && profile_.ascend && talk_.state() == LiveState::kHeld) {
    return Status(Code::kUnsupported, "an Ascend training is held at the end of steps only: use step");
  }
  std::string node;
  if (request.kind == RunKind::kToNode) {
    Result<NodeRef> found = find_node(graphs_, request.node);
    if (!found) return found.status();
    const Node& named = found->graph->node(found->node);
    if (named.kind != NodeKind::kOperator || is_structural(named.op)) {
      return Status(Code::kInvalidArgument, fmt::format("{} is a {} and never runs: name an operator", named.name,
                                                        named.kind == NodeKind::kOperator ? named.op : node_kind_name(named.kind)));
    }
    node = named.name;
  }
  if (talk_.state() == LiveState::kHeld) {
    if (Status status = flush(); !status.ok()) return status;
  }
  std::optional<Clock::time_point> deadline;
  if (request.timeout) deadline = Clock::now() + *request.timeout;

  RunResult result = snapshot(StopReason::kDone);
  // It came to a hit while nobody waited, behind an interrupt or a timeout: that is told first.
  if (talk_.state() == LiveState::kHeld && !raw_hits_.empty()) {
    collect_hits(result.check);
    result.reason = StopReason::kHit;
    if (!result.check.hits.empty()) return result;
  }
  if (Status status = check_initial(result); !status.ok()) return status;
  const bool initial_hits = !result.check.hits.empty();
  const debugger::EventReply command = make_run(node_level ? "node" : "step", node);
  const char* what = node_level ? "node step" : "step";
  const std::string address = profile_.peer.address;
  int64_t steps_run = 0;
  StopReason reason = StopReason::kDone;
  for (bool first = true;; first = false) {
    // Older releases shake hands again for every new graph and have forgotten all watchpoints then.
    if (!first) {
      if (Status status = flush(); !status.ok()) report(Severity::kWarning, status.message());
    }
    const int64_t completed = completed_;
    if (Status status = talk_.release(command, what, unseen(request, steps_run)); !status.ok()) {
      if (first) return status;
      reason = talk_.state() == LiveState::kEnded ? StopReason::kEnded : StopReason::kLost;
      break;
    }
    const bool held = await_hold(deadline, &reason);
    int64_t suspensions = static_cast<int64_t>(talk_.take_passed());
    if (!held) steps_run += steps_between(completed, completed_, suspensions);
    if (!held && (reason == StopReason::kEnded || reason == StopReason::kLost)) {
      const size_t before = result.check.hits.size();
      collect_last_hits(result.check);
      if (result.check.hits.size() > before) reason = StopReason::kHit;
    } else if (!held) {
      collect_hits(result.check);  // interrupted at a hit
    }
    if (!held) break;
    if (profile_.peer.address != address) {  // it is gone, and another one is held already
      reason = StopReason::kLost;
      break;
    }
    const bool step_end = hold_ == HoldKind::kStepEnd;
    if (step_end) ++suspensions;
    steps_run += steps_between(completed, completed_, suspensions);
    if (suspension_.late_graph) {  // nothing of the step has run yet
      if (Status status = flush(); !status.ok()) return status;
      continue;
    }
    CheckResult& check = result.check;
    const size_t hits_before = initial_hits && first ? check.hits.size() : 0;
    collect_hits(check);
    if (step_end) judge_locally(check);
    if (check.hits.size() > hits_before) reason = StopReason::kHit;
    else if (broken(check)) reason = StopReason::kNotChecked;
    else if (check.interrupted || interrupt_requested()) reason = StopReason::kInterrupted;
    else if (request.kind == RunKind::kToNode && suspension_.cur_node != node) reason = StopReason::kNodeNotMet;
    else if (!node_level && !(request.kind == RunKind::kStep && steps_run >= request.count)) {
      if (deadline && Clock::now() >= *deadline) reason = StopReason::kPaused;
      else if (step_end && request.on_step && !request.on_step(step_)) reason = StopReason::kPaused;
      else continue;
    }
    break;
  }
  RunResult end = snapshot(reason);
  end.steps_run = steps_run;
  end.check = std::move(result.check);
  end.check.steps = {step_};
  return end;
}

Result<RunResult> LiveSessionImpl::recheck() {
  absorb();
  if (detached_) return Status(Code::kUnsupported, "the session is detached: the training runs on its own");
  if (talk_.state() == LiveState::kHeld) {
    if (Status status = flush(); !status.ok()) return status;
  }
  const bool on_peer = std::any_of(wanted_.begin(), wanted_.end(), [](const Wanted& w) { return !w.local; });
  RunResult result = snapshot(StopReason::kDone);
  if (profile_.recheck) {
    (void)talk_.take_hits();
    // Also with nothing to judge over there: the answer proves that the training is held.
    if (Status status = talk_.tell(make_run("recheck"), "recheck"); !status.ok()) return status;
    raw_hits_ = talk_.take_hits();
    collect_hits(result.check);
    for (Wanted& wanted : wanted_) wanted.initial_pending = false;
  } else if (on_peer) {
    if (talk_.state() != LiveState::kHeld) return Status(Code::kPeerLost, "recheck: the training is not held");
    // A 1.0 client would run a step instead.
    for (Wanted& wanted : wanted_) wanted.local = true;
  }
  judge_locally(result.check);
  if (!profile_.recheck) {
    for (Wanted& wanted : wanted_) wanted.local = judged_here(wanted.watch);
  }
  result.reason = !result.check.hits.empty() ? StopReason::kHit : StopReason::kDone;
  return result;
}

Result<RunResult> LiveSessionImpl::pause(std::chrono::milliseconds timeout) {
  absorb();
  if (detached_) return Status(Code::kUnsupported, "the session is detached: the training cannot be held again");
  StopReason reason = StopReason::kPaused;
  if (talk_.state() == LiveState::kWaiting) return Status(Code::kPeerLost, "pause: no training has connected yet");
  const bool held = await_hold(Clock::now() + timeout, &reason);
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
  absorb();
  const Clock::time_point deadline = Clock::now() + timeout;
  if (detached_) return Status(Code::kUnsupported, "the session is detached: the training runs to its own end");
  StopReason reason = StopReason::kEnded;
  if (!await_hold(deadline, &reason)) {
    if (reason == StopReason::kEnded || reason == StopReason::kLost) return snapshot(reason);
    return Status(Code::kPeerLost, "terminate: the training is not held yet; the command was not delivered. Try again, or pause()");
  }
  if (Status status = talk_.release(make_exit(), "terminate"); !status.ok()) return status;
  // The step that is under way still finishes; older releases run one more.
  while (talk_.wait_settled(deadline, true)) {
    absorb();
    const LiveState now = talk_.state();
    if (now == LiveState::kEnded || now == LiveState::kLost) return snapshot(StopReason::kEnded);
    if (Status status = talk_.release(make_exit(), "terminate"); !status.ok()) return status;
  }
  return snapshot(interrupt_requested() ? StopReason::kInterrupted : StopReason::kPaused);
}

Status LiveSessionImpl::detach() {
  absorb();
  std::vector<debugger::EventReply> deletes;
  for (const Wanted& wanted : wanted_) {
    for (const int id : wanted.peer_ids) deletes.push_back(make_delete(id));
  }
  for (const int id : delete_ids_) deletes.push_back(make_delete(id));
  if (Status status = talk_.let_go(std::move(deletes)); !status.ok()) return status;
  detached_ = true;
  wanted_.clear();
  delete_ids_.clear();
  return {};
}

}  // namespace msdbg::live
