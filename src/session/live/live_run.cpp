// Commands of a live session. Each sends one RunCMD per suspension and examines the result.
#include <fmt/format.h>

#include <algorithm>

#include "session/live/ended_steps.h"
#include "session/live/live_session.h"

namespace msdbg::live {
namespace {

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

const char* word_of(RunKind kind) {
  constexpr const char* kWords[] = {"step", "continue", "next", "run_to", "finish"};
  return kWords[static_cast<size_t>(kind)];
}

RunResult LiveSessionImpl::snapshot(StopReason reason) const {
  RunResult result;
  result.state = talk_.state();
  result.reason = reason;
  result.step = step_;
  result.completed_steps = completed_;
  result.node = suspension_.cur_node;
  result.at_begin = suspension_.begins;
  result.held = result.state == LiveState::kHeld;
  result.check.steps = {step_};
  return result;
}

bool LiveSessionImpl::is_over(StopReason* reason) {
  const LiveState now = talk_.state();
  if (now == LiveState::kEnded) *reason = StopReason::kEnded;
  else if (now == LiveState::kLost) *reason = StopReason::kLost;
  else return false;
  return true;
}

bool LiveSessionImpl::await_hold(std::optional<Clock::time_point> deadline, StopReason* reason, const std::function<void()>& tick) {
  const Clock::time_point end = deadline.value_or(Clock::time_point::max());
  bool settled = false;
  while (!settled) {
    settled = talk_.wait_settled(tick ? std::min(end, Clock::now() + kProgressTick) : end, true);
    if (settled || interrupt_requested() || Clock::now() >= end) break;
    if (tick) tick();
  }
  if (!settled) {
    talk_.stop_ahead();
    *reason = interrupt_requested() ? StopReason::kInterrupted : StopReason::kPaused;
    if (*reason == StopReason::kInterrupted) (void)talk_.wait_settled(Clock::now() + kInterruptGrace, false);
  }
  process_events();
  return !is_over(reason) && settled;
}

bool LiveSessionImpl::settled(StopReason* reason) {
  process_events();
  return is_over(reason) || talk_.state() == LiveState::kHeld;
}

// How many suspensions need no action here: nothing is judged locally after a step, and no callback runs.
uint64_t LiveSessionImpl::unseen(const RunRequest& request, int64_t steps_run) const {
  if (request.kind != RunKind::kStep && request.kind != RunKind::kContinue) return 0;
  if (request.on_step || stale_ || judges_here() || (keeps_history() && !(is_told() && !searches(false)))) return 0;
  return request.kind == RunKind::kStep ? static_cast<uint64_t>(request.count - steps_run - 1) : UINT64_MAX;
}

/// Whether values may be asked for at the end of the step that runs next, as far as is known now. A program that leaves operators out
/// of steps that nobody looks at is told so.
bool LiveSessionImpl::looks_at_end(const RunInProgress& run) const {
  const RunRequest& request = run.request;
  if (request.on_step || judges_operators_here()) return true;
  if (request.kind == RunKind::kContinue || run.passes) return false;
  return request.kind != RunKind::kStep || run.steps_run + 1 >= request.count;
}

/// Values of parameters are there without being asked for.
bool LiveSessionImpl::judges_operators_here() const {
  const auto is_operator = [](const NodeRef& ref) { return ref.graph->node(ref.node).kind == NodeKind::kOperator; };
  return std::ranges::any_of(wanted_, [&](const Wanted& wanted) {
    return wanted.local && (wanted.nodes.empty() || std::ranges::any_of(wanted.nodes, is_operator));
  });
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
    return Status(Code::kUnsupported, profile_.peer.named ? "this training is held at the end of steps only: use step"
                                                          : "an Ascend training is held at the end of steps only: use step");
  if (request.kind == RunKind::kNextNode) return std::string();
  Result<NodeRef> found = find_node(graphs_, request.node);
  if (!found) return found.status();
  const Node& named = found->graph->node(found->node);
  if (named.kind == NodeKind::kOperator && !is_structural(named.op)) return named.name;
  return Status(Code::kInvalidArgument, fmt::format("{} is a {} and never runs: name an operator", named.name,
                                                    named.kind == NodeKind::kOperator ? std::string_view(named.op) : node_kind_name(named.kind)));
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

/// Passes new hits to the caller, who may remove some.
void LiveSessionImpl::sift(RunInProgress& run) {
  CheckResult& check = run.result.check;
  const bool any = check.hits.size() > run.looked_at || !check.not_checked.empty();
  if (run.request.on_hits && any) run.request.on_hits(check, run.looked_at);
  run.looked_at = check.hits.size();
}

void LiveSessionImpl::show_progress(RunInProgress& run, bool running) {
  const Clock::time_point now = Clock::now();
  if (!run.request.on_progress || now - run.shown < kProgressTick) return;
  run.shown = now;
  int64_t step = step_;
  const auto passed = running ? static_cast<int64_t>(talk_.passed(&step)) : 0;
  const Clock::duration ran = run.ran + (running ? now - run.released : Clock::duration{});
  run.request.on_progress({step, run.steps_run + passed, now - run.began, now - run.began - ran, ""});
}

Result<RunResult> LiveSessionImpl::finish(RunInProgress& run, StopReason reason) const {
  RunResult end = snapshot(reason);
  end.steps_run = run.steps_run;
  end.check = std::move(run.result.check);
  end.check.steps = {step_};
  return end;
}

/// Results found before a command fails are worth more than the failure.
Result<RunResult> LiveSessionImpl::failed(RunInProgress& run, const Status& status) {
  const bool found = !run.result.check.hits.empty() || !run.result.check.not_checked.empty();
  if (run.first && !found) return status;
  report(Severity::kWarning, status.message());
  StopReason reason = StopReason::kPaused;
  (void)is_over(&reason);
  return finish(run, run.result.check.hits.empty() ? reason : StopReason::kHit);
}

Result<RunResult> LiveSessionImpl::run(const RunRequest& request) {
  RunInProgress run(request);
  if (request.timeout) run.deadline = Clock::now() + *request.timeout;
  const std::function<void()> tick = request.on_progress ? std::function<void()>([&] { show_progress(run, true); }) : nullptr;
  RunEnd end = begin(run);
  while (!end) {
    StopReason reason = StopReason::kDone;
    const bool held = await_hold(run.deadline, &reason, tick);
    end = arrived(run, held, reason);
  }
  return std::move(*end);
}

RunEnd LiveSessionImpl::begin(RunInProgress& run) {
  process_events();
  if (detached_) return Status(Code::kUnsupported, "the session is detached: the training runs on its own; attach holds it again");
  Result<std::string> target = node_to_reach(run.request);
  if (!target) return target.status();
  run.node = std::move(*target);
  run.result = snapshot(StopReason::kDone);
  // The training reached a hit while no command waited, after an interrupt or a timeout: report that first.
  if (!raw_hits_.empty()) {
    collect_hits(run.result.check);
    sift(run);
    run.result.reason = StopReason::kHit;
    if (!run.result.check.hits.empty()) return std::move(run.result);
  }
  run.began = run.shown = run.released = Clock::now();
  if (talk_.state() == LiveState::kHeld) {
    if (Status status = flush(); !status.ok()) return failed(run, status);
  }
  if (Status status = check_initial(run.result); !status.ok()) return failed(run, status);
  sift(run);
  run.initial_hits = !run.result.check.hits.empty();
  run.address = profile_.peer.address;
  return release(run);
}

RunEnd LiveSessionImpl::release(RunInProgress& run) {
  // Older releases repeat the handshake for every new graph and have then lost all watchpoints.
  if (!run.first) {
    if (Status status = flush(); !status.ok()) return failed(run, status);
  }
  const std::vector<WatchedName> stops = stops_for(run.request, run.node);
  run.stops_armed = !stops.empty();
  Status status = arm_stop(stops);
  const bool node_level = is_node_level(run.request.kind) && stops.empty();
  run.completed = completed_;
  if (status.ok()) {
    const uint64_t ahead = unseen(run.request, run.steps_run);
    looked_at_ = ahead == 0 ? looks_at_end(run) : ahead != UINT64_MAX;
    debugger::EventReply command = make_run(node_level ? "node" : "step", run.node, ahead == 0 && looked_at_);
    if (is_told()) {
      allow_ahead(*command.mutable_run_cmd(), ahead);
      add_report(*command.mutable_run_cmd());
    }
    status = talk_.release(command, word_of(run.request.kind), ahead);
  }
  if (!status.ok()) {
    disarm_stop();
    return failed(run, status);
  }
  run.released = Clock::now();
  return std::nullopt;
}

RunEnd LiveSessionImpl::arrived(RunInProgress& run, bool held, StopReason reason) {
  const RunRequest& request = run.request;
  CheckResult& check = run.result.check;
  run.ran += Clock::now() - run.released;
  disarm_stop();
  int64_t suspensions = static_cast<int64_t>(talk_.take_passed());
  const auto release_again = [&] {
    run.first = false;
    return release(run);
  };
  if (!held) {
    run.steps_run += steps_passed(run.completed, completed_, suspensions);
    if (reason == StopReason::kEnded || reason == StopReason::kLost) {
      if (reason == StopReason::kEnded) report_unjudged(completed_ - run.completed - suspensions);
      const size_t before = check.hits.size();
      collect_last_hits(check);
      sift(run);
      if (check.hits.size() > before) reason = StopReason::kHit;
    } else {
      collect_hits(check);  // interrupted at a hit
      sift(run);
    }
    return finish(run, reason);
  }
  if (profile_.peer.address != run.address) return finish(run, StopReason::kLost);  // the training ended, and another one is already held
  const bool step_end = hold_ == HoldKind::kStepEnd;
  if (step_end) {
    ++suspensions;
  } else if (hold_ == HoldKind::kNode && completed_ - run.completed > suspensions) {
    report_unjudged(completed_ - run.completed - suspensions);
    if (is_node_level(request.kind)) suspensions = completed_ - run.completed;
  }
  run.steps_run += steps_passed(run.completed, completed_, suspensions);
  if (suspension_.late_graph) return release_again();  // nothing of the step has run yet
  const size_t hits_before = run.initial_hits && run.first ? check.hits.size() : 0;
  collect_hits(check);
  if (step_end) judge_locally(check);
  if (step_end) keep_step();
  sift(run);
  show_progress(run, false);
  const bool late = run.deadline && Clock::now() >= *run.deadline;
  const bool by_steps = request.kind == RunKind::kStep || request.kind == RunKind::kFinish;
  if (check.hits.size() > hits_before) return finish(run, StopReason::kHit);
  if (!suspension_.cut_short.empty()) return finish(run, StopReason::kCutShort);
  if (broken(check)) return finish(run, StopReason::kNotChecked);
  if (check.interrupted || interrupt_requested()) return finish(run, StopReason::kInterrupted);
  if (request.kind == RunKind::kToNode && suspension_.cur_node != run.node) {
    if (step_end || late) return finish(run, step_end ? StopReason::kNodeNotMet : StopReason::kPaused);
    return release_again();  // held for a hit that is not ours
  }
  if (request.kind == RunKind::kNextNode && step_end && run.stops_armed) {
    return late ? finish(run, StopReason::kPaused) : release_again();  // the next operator is the first of the next step
  }
  if (is_node_level(request.kind) || (by_steps && run.steps_run >= request.count)) return finish(run, StopReason::kDone);
  if (late || (step_end && request.on_step && !request.on_step(step_))) return finish(run, StopReason::kPaused);
  return release_again();
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
