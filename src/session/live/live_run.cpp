// Commands of a live session. Each sends one RunCMD per suspension and examines the result.
#include <fmt/format.h>

#include <algorithm>

#include "session/live/live_session.h"

namespace msdbg::live {
namespace {

/// After Ctrl-C the training is usually held by the end of its step; do not wait for longer steps.
constexpr std::chrono::milliseconds kGrace{500};
constexpr std::chrono::milliseconds kTick{250};

bool is_node_level(RunKind kind) { return kind == RunKind::kNextNode || kind == RunKind::kToNode; }

const char* word_of(RunKind kind) {
  constexpr const char* kWords[] = {"step", "continue", "next", "run_to", "finish"};
  return kWords[static_cast<size_t>(kind)];
}

constexpr uint32_t kErrorBad = kErrorNan | kErrorInf;

bool broken(const CheckResult& check) {
  return std::any_of(check.not_checked.begin(), check.not_checked.end(),
                     [](const NotChecked& entry) { return (entry.error_code & kErrorBad) != 0; });
}

/// Steps completed after this many suspensions at a step end. The training's own count takes precedence: some are held once per
/// graph of a step.
int64_t steps_passed(int64_t before, int64_t completed, int64_t suspensions) {
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

bool LiveSessionImpl::await_hold(std::optional<Clock::time_point> deadline, StopReason* reason, const std::function<void()>& tick) {
  const Clock::time_point end = deadline.value_or(Clock::time_point::max());
  bool settled = false;
  while (!settled) {
    settled = talk_.wait_settled(tick ? std::min(end, Clock::now() + kTick) : end, true);
    if (settled || interrupt_requested() || Clock::now() >= end) break;
    if (tick) tick();
  }
  if (!settled) {
    talk_.stop_ahead();
    *reason = interrupt_requested() ? StopReason::kInterrupted : StopReason::kPaused;
    if (*reason == StopReason::kInterrupted) (void)talk_.wait_settled(Clock::now() + kGrace, false);
  }
  process_events();
  const LiveState now = talk_.state();
  if (now == LiveState::kEnded) *reason = StopReason::kEnded;
  else if (now == LiveState::kLost) *reason = StopReason::kLost;
  else return settled;
  return false;
}

// How many suspensions need no action here: nothing is judged locally after a step, and no callback runs.
uint64_t LiveSessionImpl::unseen(const RunRequest& request, int64_t steps_run) const {
  if (request.kind != RunKind::kStep && request.kind != RunKind::kContinue) return 0;
  if (request.on_step || stale_ || judges_here() || keeps_history()) return 0;
  return request.kind == RunKind::kStep ? static_cast<uint64_t>(request.count - steps_run - 1) : UINT64_MAX;
}

Status LiveSessionImpl::check_initial(RunResult& result) {
  const bool pending = std::any_of(wanted_.begin(), wanted_.end(), [](const Wanted& w) { return w.initial_pending && !w.local; });
  if (!pending || hold_ != HoldKind::kInitial || !profile_.recheck) return {};
  (void)talk_.take_hits();
  if (Status status = talk_.send(make_run("recheck"), "judging initial weights"); !status.ok()) return status;
  raw_hits_ = talk_.take_hits();
  collect_hits(result.check);
  for (Wanted& wanted : wanted_) wanted.initial_pending = false;
  return {};
}

/// The full name of the node that `request` runs to; "" for the other kinds.
Result<std::string> LiveSessionImpl::node_to_reach(const RunRequest& request) const {
  if (request.kind == RunKind::kFinish && talk_.state() == LiveState::kHeld && hold_ != HoldKind::kNode) {
    return Status(Code::kInvalidArgument, hold_ == HoldKind::kInitial
        ? "finish: no step has begun yet; step runs the first one"
        : fmt::format("finish: step {} has ended already; step runs the next one", step_));
  }
  if (request.count < 1) return Status(Code::kInvalidArgument, fmt::format("step {}: give a number of steps from 1 on", request.count));
  if (!is_node_level(request.kind)) return std::string();
  if (profile_.ascend && talk_.state() == LiveState::kHeld)
    return Status(Code::kUnsupported, "an Ascend training is held at the end of steps only: use step");
  if (request.kind == RunKind::kNextNode) return std::string();
  Result<NodeRef> found = find_node(graphs_, request.node);
  if (!found) return found.status();
  const Node& named = found->graph->node(found->node);
  if (named.kind == NodeKind::kOperator && !is_structural(named.op)) return named.name;
  return Status(Code::kInvalidArgument, fmt::format("{} is a {} and never runs: name an operator", named.name,
                                                    named.kind == NodeKind::kOperator ? named.op : node_kind_name(named.kind)));
}

/// The operators that need a stop by watchpoint because a stop at level "node" might run past the end of the step: a training that
/// stopped at an operator is not held at the end of that step, where watchpoints are judged.
std::vector<WatchedName> LiveSessionImpl::stops_for(const RunRequest& request, const std::string& node) const {
  const bool stopped_here = hold_ == HoldKind::kNode && node_stop_step_ == step_;
  const auto current = names_.find(suspension_.cur_node);
  if (request.kind == RunKind::kToNode) {
    if (profile_.node_level_holds && !stopped_here) return {};
  } else {
    if (request.kind != RunKind::kNextNode || wanted_.empty() || hold_ != HoldKind::kNode || !current) return {};
    // A user of its outputs must run before the step ends.
    const auto runs = [&](const Use& use) { return current->graph->node(use.node).kind == NodeKind::kOperator; };
    if (std::ranges::any_of(current->graph->effective_users(current->node), runs)) return {};
  }
  std::vector<WatchedName> names;
  for (const GraphPtr& graph : graphs_) {
    for (const Node& each : graph->nodes()) {
      if (each.kind != NodeKind::kOperator || (node.empty() ? each.name == suspension_.cur_node : each.name != node)) continue;
      if (auto name = watch_name(*graph, each)) names.push_back({std::move(*name), each.op});
    }
  }
  return names;
}

bool LiveSessionImpl::judges_here() const {
  return std::any_of(wanted_.begin(), wanted_.end(), [](const Wanted& wanted) { return wanted.local; });
}

/// Reports steps that ended without a suspension: watchpoints judged locally had no values of them.
void LiveSessionImpl::report_unjudged(int64_t steps) {
  if (steps <= 0 || !judges_here()) return;
  report(Severity::kWarning,
         fmt::format("{} ended without holding the training: functions and conditions that msdbg judges itself are not checked there",
                     steps == 1 ? fmt::format("step {}", completed_ - 1) : fmt::format("{} steps", steps)));
}

Result<RunResult> LiveSessionImpl::run(const RunRequest& request) {
  process_events();
  if (detached_) return Status(Code::kUnsupported, "the session is detached: the training runs on its own; attach holds it again");
  const Result<std::string> target = node_to_reach(request);
  if (!target) return target.status();
  const std::string& node = *target;
  std::optional<Clock::time_point> deadline;
  if (request.timeout) deadline = Clock::now() + *request.timeout;

  RunResult result = snapshot(StopReason::kDone);
  size_t looked_at = 0;  // hits already passed to on_hits
  const auto sift = [&] {
    if (request.on_hits && result.check.hits.size() > looked_at) request.on_hits(result.check, looked_at);
    looked_at = result.check.hits.size();
  };
  // The training reached a hit while no command waited, after an interrupt or a timeout: report that first.
  if (!raw_hits_.empty()) {
    collect_hits(result.check);
    sift();
    result.reason = StopReason::kHit;
    if (!result.check.hits.empty()) return result;
  }
  const bool by_steps = request.kind == RunKind::kStep || request.kind == RunKind::kFinish;
  int64_t steps_run = 0;
  const Clock::time_point began = Clock::now();
  Clock::time_point shown = began, released = began;
  Clock::duration ran{};
  const auto show = [&](bool running) {
    const Clock::time_point now = Clock::now();
    if (!request.on_progress || now - shown < kTick) return;
    shown = now;
    int64_t step = step_;
    const auto passed = running ? static_cast<int64_t>(talk_.passed(&step)) : 0;
    request.on_progress({step, steps_run + passed, now - began, now - began - ran - (running ? now - released : Clock::duration{})});
  };
  const std::function<void()> tick = request.on_progress ? std::function<void()>([&] { show(true); }) : nullptr;
  StopReason reason = StopReason::kDone;
  const auto finish = [&] {
    RunResult end = snapshot(reason);
    end.steps_run = steps_run;
    end.check = std::move(result.check);
    end.check.steps = {step_};
    return end;
  };
  // Results found before a command fails are worth more than the failure.
  const auto failed = [&](const Status& status, bool first) -> Result<RunResult> {
    const bool found = !result.check.hits.empty() || !result.check.not_checked.empty();
    if (first && !found) return status;
    const LiveState now = talk_.state();
    report(Severity::kWarning, status.message());
    reason = !result.check.hits.empty() ? StopReason::kHit : now == LiveState::kEnded ? StopReason::kEnded
             : now == LiveState::kLost  ? StopReason::kLost : StopReason::kPaused;
    return finish();
  };
  if (talk_.state() == LiveState::kHeld) {
    if (Status status = flush(); !status.ok()) return failed(status, true);
  }
  if (Status status = check_initial(result); !status.ok()) return failed(status, true);
  sift();
  const bool initial_hits = !result.check.hits.empty();
  const std::string address = profile_.peer.address;
  for (bool first = true;; first = false) {
    // Older releases repeat the handshake for every new graph and have then lost all watchpoints.
    if (!first) {
      if (Status status = flush(); !status.ok()) return failed(status, false);
    }
    const std::vector<WatchedName> stops = stops_for(request, node);
    Status status = arm_stop(stops);
    const bool node_level = is_node_level(request.kind) && stops.empty();
    const int64_t completed = completed_;
    if (status.ok()) status = talk_.release(make_run(node_level ? "node" : "step", node), word_of(request.kind), unseen(request, steps_run));
    if (!status.ok()) {
      disarm_stop();
      return failed(status, first);
    }
    released = Clock::now();
    const bool held = await_hold(deadline, &reason, tick);
    ran += Clock::now() - released;
    disarm_stop();
    int64_t suspensions = static_cast<int64_t>(talk_.take_passed());
    if (!held) steps_run += steps_passed(completed, completed_, suspensions);
    if (!held && (reason == StopReason::kEnded || reason == StopReason::kLost)) {
      if (reason == StopReason::kEnded) report_unjudged(completed_ - completed - suspensions);
      const size_t before = result.check.hits.size();
      collect_last_hits(result.check);
      sift();
      if (result.check.hits.size() > before) reason = StopReason::kHit;
    } else if (!held) {
      collect_hits(result.check);  // interrupted at a hit
      sift();
    }
    if (!held) break;
    if (profile_.peer.address != address) {  // the training ended, and another one is already held
      reason = StopReason::kLost;
      break;
    }
    const bool step_end = hold_ == HoldKind::kStepEnd;
    if (step_end) {
      ++suspensions;
    } else if (hold_ == HoldKind::kNode && completed_ - completed > suspensions) {
      report_unjudged(completed_ - completed - suspensions);
      if (is_node_level(request.kind)) suspensions = completed_ - completed;
    }
    steps_run += steps_passed(completed, completed_, suspensions);
    if (suspension_.late_graph) continue;  // nothing of the step has run yet
    CheckResult& check = result.check;
    const size_t hits_before = initial_hits && first ? check.hits.size() : 0;
    collect_hits(check);
    if (step_end) judge_locally(check);
    if (step_end) keep_step();
    sift();
    show(false);
    const bool late = deadline && Clock::now() >= *deadline;
    if (check.hits.size() > hits_before) reason = StopReason::kHit;
    else if (broken(check)) reason = StopReason::kNotChecked;
    else if (check.interrupted || interrupt_requested()) reason = StopReason::kInterrupted;
    else if (request.kind == RunKind::kToNode && suspension_.cur_node != node) {
      if (!step_end && !late) continue;  // held for a hit that is not ours
      reason = step_end ? StopReason::kNodeNotMet : StopReason::kPaused;
    } else if (request.kind == RunKind::kNextNode && step_end && !stops.empty()) {
      if (!late) continue;  // the next operator is the first of the next step
      reason = StopReason::kPaused;
    } else if (!is_node_level(request.kind) && !(by_steps && steps_run >= request.count)) {
      if (late) reason = StopReason::kPaused;
      else if (step_end && request.on_step && !request.on_step(step_)) reason = StopReason::kPaused;
      else continue;
    }
    break;
  }
  return finish();
}

Result<RunResult> LiveSessionImpl::recheck() {
  process_events();
  if (detached_) return Status(Code::kUnsupported, "the session is detached: the training runs on its own; attach holds it again");
  if (talk_.state() == LiveState::kHeld) {
    if (Status status = flush(); !status.ok()) return status;
  }
  const bool on_peer = std::any_of(wanted_.begin(), wanted_.end(), [](const Wanted& w) { return !w.local; });
  RunResult result = snapshot(StopReason::kDone);
  if (profile_.recheck) {
    (void)talk_.take_hits();
    // Sent even if the training has nothing to judge: the answer proves that it is held.
    if (Status status = talk_.send(make_run("recheck"), "recheck"); !status.ok()) return status;
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

}  // namespace msdbg::live
