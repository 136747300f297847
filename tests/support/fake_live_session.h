// A training process in memory for tests of LiveSession's users: each step is a list of values, in order of appearance; check()
// judges the watchpoints on them. Counts steps like a peer since 1.6: while a step runs and at its end the peer reports its number,
// and the next number comes with the next step.
//
//   FakeLiveSession s(fake_graph({{"w", "Parameter"}, {"Default/MatMul-op0", "MatMul", {"w"}}}));
//   s.start({{"w", f32({1})}}).step({{"Default/MatMul-op0", f32({2})}, {"w", f32({0.9})}});
//
// `calls` records the calls: a test can see what reached the session.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <deque>
#include <thread>

#include "msdbg/live.h"
#include "support/fake_session.h"

namespace msdbg::testing {

using NamedValues = std::vector<std::pair<std::string, TensorPtr>>;

class FakeLiveSession : public LiveSession {
 public:
  explicit FakeLiveSession(GraphPtr graph) : inner_(std::move(graph)) {
    SessionInfo& info = inner_.mutable_info();
    info.kind = SessionKind::kLive;
    info.source = "127.0.0.1:50051";
    info.short_name = "trainer";
    info.framework_version = "2.2.0";
    info.device_target = "GPU";
    peer_.address = "127.0.0.1:41234";
    peer_.version = "2.2.0";
    peer_.backend = "GPU";
    peer_.device = "0";
    peer_.counts_after_hold = peer_.has_levels = peer_.has_recheck = true;
    peer_.notes = {"weights are read once per step"};
    if (::pipe2(pipe_, O_NONBLOCK | O_CLOEXEC) != 0) pipe_[0] = pipe_[1] = -1;
  }
  ~FakeLiveSession() override {
    ::close(pipe_[0]);
    ::close(pipe_[1]);
  }

  // ---- what the training does ----
  /// Values at the initial suspension: parameters.
  FakeLiveSession& start(const NamedValues& values) { return initial_ = values, *this; }
  /// Adds a step: outputs of operators in execution order, then parameters that changed.
  FakeLiveSession& step(const NamedValues& values) { return script_.push_back(values), *this; }
  /// Hits stop after the operator that hit, not at the end of the step.
  FakeLiveSession& stops_behind_operators() { return stops_behind_operators_ = true, *this; }
  /// Step `step` (from 0) never ends by itself: a command stays in it until Ctrl-C or its timeout.
  FakeLiveSession& stays_in_step(int64_t step) { return stays_in_step_ = step, *this; }
  /// The same, with Ctrl-C pressed there.
  FakeLiveSession& is_interrupted_in_step(int64_t step) { return ctrl_c_ = true, stays_in_step(step); }
  /// The connection breaks in step `step` (from 0).
  FakeLiveSession& breaks_in_step(int64_t step) { return breaks_in_step_ = step, *this; }
  /// No training connects; with a status, wait_until_held() returns that refusal.
  FakeLiveSession& nobody_comes(Status refusal = {}) { return nobody_ = true, refusal_ = std::move(refusal), *this; }
  FakeLiveSession& keeps_history(int steps) { return history_ = steps, *this; }
  LivePeer& mutable_peer() { return peer_; }
  SessionInfo& mutable_info() { return inner_.mutable_info(); }
  /// The process ends, and another one connects and is held before its first step.
  void restart() {
    state_ = LiveState::kHeld;
    step_ = completed_ = 0;
    next_ = 0;
    at_end_ = false;
    node_.clear();
    in_force.clear();
    for (const TensorId& id : inner_.tensors(TensorQuery{})) inner_.erase(id);
    put(initial_);
    post(Severity::kInfo, "connected: MindSpore 2.2.0, GPU 0, 1 graph");
  }
  void post(Severity severity, std::string text) {
    events_.push_back({severity, std::move(text)});
    if (::write(pipe_[1], "x", 1) < 0) return;  // full: it is readable anyway
  }

  std::vector<std::string> calls;
  std::vector<Watchpoint> in_force;

  // ---- Session ----
  const SessionInfo& info() const override { return inner_.info(); }
  std::span<const int> ranks() const override { return inner_.ranks(); }
  std::span<const GraphPtr> graphs() const override { return inner_.graphs(); }
  std::vector<int64_t> steps() const override { return inner_.steps(); }
  std::vector<int64_t> steps(int rank, int graph) const override { return inner_.steps(rank, graph); }
  std::vector<TensorId> tensors(const TensorQuery& query) override { return inner_.tensors(query); }
  uint32_t executions(int rank, int graph, int64_t step, NodeId node) override {
    return inner_.executions(rank, graph, step, node);
  }
  Result<OpenTensor> open(const TensorId& id) override { return inner_.open(id); }
  std::optional<Stats> given_statistics(const TensorId& id) override { return inner_.given_statistics(id); }
  Result<TensorId> previous(const TensorId& id, bool* missing) override { return inner_.previous(id, missing); }
  Result<bool> operator_overflow(const TensorId& id) override { return inner_.operator_overflow(id); }
  SessionReport inspect() override { return inner_.inspect(); }

  // ---- LiveSession ----
  LiveState state() override { return state_; }
  const LivePeer& peer() const override { return peer_; }
  std::vector<LiveRank> live_ranks() override { return {{0, state_, step_, completed_, "", peer_}}; }
  std::string address() const override { return info().source; }
  int64_t current_step() const override { return step_; }
  int64_t completed_steps() const override { return completed_; }
  std::string current_node() const override { return node_; }

  Status wait_until_held(std::optional<std::chrono::milliseconds> timeout) override {
    calls.push_back(timeout ? "wait " + std::to_string(timeout->count()) : "wait");
    if (nobody_ && !refusal_.ok()) return refusal_;
    if (nobody_ && !timeout) return stay({}) ? Status() : Status(Code::kInterrupted, "interrupted");
    if (nobody_) return Status(Code::kNotFound, "no training process came within the time given");
    if (state_ != LiveState::kWaiting) return {};
    state_ = LiveState::kHeld;
    put(initial_);
    post(Severity::kInfo, "connected: MindSpore 2.2.0, GPU 0, 1 graph");
    return {};
  }

  Status set_watchpoints(std::span<const Watchpoint> watchpoints) override {
    for (const Watchpoint& watch : watchpoints) {
      if (!watch.optional && watch.on.resolve(graphs()).empty())
        return Status(Code::kNotFound, "selector '" + watch.on.text() + "' matches no node");
    }
    calls.push_back("watch " + std::to_string(watchpoints.size()));
    in_force.assign(watchpoints.begin(), watchpoints.end());
    return {};
  }

  Result<RunResult> run(const RunRequest& request) override {
    constexpr const char* kKinds[] = {"step", "continue", "next", "to", "finish"};
    calls.push_back(std::string("run ") + kKinds[static_cast<int>(request.kind)]);
    if (request.kind == RunKind::kStep && request.count < 1)
      return Status(Code::kInvalidArgument, "step: 1 or more steps are expected, not " + std::to_string(request.count));
    if (request.kind == RunKind::kToNode && !find(request.node))
      return Status(Code::kInvalidArgument, "run_to: no operator '" + request.node + "'");
    if (state_ != LiveState::kHeld) return not_held();
    if (request.kind == RunKind::kFinish && (at_end_ || node_.empty()))
      return Status(Code::kInvalidArgument, "finish: step " + std::to_string(step_) + " has ended already; step runs the next one");
    const int64_t first = completed_;
    for (;;) {
      CheckResult found;
      const StopReason reason = advance(request, &found);
      if (request.on_hits && !(found.hits.empty() && found.not_checked.empty())) request.on_hits(found, 0);
      if (reason != StopReason::kDone) return result(reason, first, std::move(found));
      if (!found.hits.empty()) return result(StopReason::kHit, first, std::move(found));
      const auto has_nan = [](const NotChecked& each) { return (each.error_code & kErrorNan) != 0; };
      if (std::ranges::any_of(found.not_checked, has_nan)) return result(StopReason::kNotChecked, first, std::move(found));
      if (request.kind == RunKind::kNextNode) return result(StopReason::kDone, first, std::move(found));
      if (request.kind == RunKind::kToNode && node_ == request.node && !at_end_)
        return result(StopReason::kDone, first, std::move(found));
      if (!at_end_) continue;
      if (request.kind == RunKind::kToNode) return result(StopReason::kNodeNotMet, first, std::move(found));
      if (request.kind == RunKind::kFinish) return result(StopReason::kDone, first, std::move(found));
      if (request.kind == RunKind::kStep && completed_ - first >= request.count)
        return result(StopReason::kDone, first, std::move(found));
      if (request.on_step && !request.on_step(step_)) return result(StopReason::kPaused, first, std::move(found));
    }
  }

  Result<RunResult> recheck() override {
    calls.push_back("recheck");
    if (state_ != LiveState::kHeld) return not_held();
    if (!peer_.has_recheck) return Status(Code::kUnsupported, "this peer (" + peer_.version + ") cannot recheck; use check");
    CheckResult found = judge();
    const StopReason reason = found.hits.empty() ? StopReason::kDone : StopReason::kHit;
    return result(reason, completed_, std::move(found));
  }

  Result<RunResult> attach(std::chrono::milliseconds timeout) override {
    calls.push_back("attach");
    if (!std::exchange(detached_, false)) return Status(Code::kUnsupported, "attach: the session is not detached");
    return pause(timeout);
  }
  Result<RunResult> pause(std::chrono::milliseconds timeout) override {
    calls.push_back("pause " + std::to_string(timeout.count()));
    detached_ = false;
    if (state_ == LiveState::kRunning) {
      stays_in_step_.reset();
      if (completed_ >= static_cast<int64_t>(script_.size())) state_ = LiveState::kEnded;  // it ran on after detach()
      if (state_ == LiveState::kEnded) return result(StopReason::kEnded, completed_, {});
      state_ = LiveState::kHeld;
      finish_step();
    }
    return result(StopReason::kPaused, completed_, {});
  }

  Result<RunResult> terminate(std::chrono::milliseconds) override {
    calls.push_back("terminate");
    if (state_ == LiveState::kLost || state_ == LiveState::kEnded) return not_held();
    const int64_t first = completed_;
    state_ = LiveState::kEnded;
    return result(StopReason::kEnded, first, {});
  }

  bool detached() const override { return detached_; }
  Status detach() override {
    calls.push_back("detach");
    if (state_ != LiveState::kHeld && state_ != LiveState::kRunning) return not_held();
    detached_ = true;
    in_force.clear();
    state_ = LiveState::kRunning;
    return {};
  }

  Status wait_until_ended(std::optional<std::chrono::milliseconds>) override {
    calls.push_back("wait until ended");
    if (stays_in_step_ && !stay({})) return Status(Code::kInterrupted, "interrupted");
    while (completed_ < static_cast<int64_t>(script_.size())) finish_step();
    state_ = LiveState::kEnded;
    return {};
  }

  void drop_elements(const TensorId& id) override { given_back.push_back(id); }
  std::vector<TensorId> given_back;
  std::vector<LiveEvent> take_events() override {
    char bytes[64];
    while (::read(pipe_[0], bytes, sizeof bytes) > 0) continue;
    return std::exchange(events_, {});
  }
  int event_descriptor() const override { return pipe_[0]; }

 private:
  bool is_parameter(const std::string& name) const {
    const Node* node = graphs()[0]->find(name);
    return node != nullptr && node->kind == NodeKind::kParameter;
  }
  bool find(const std::string& name) const { return graphs()[0]->find(name) != nullptr; }

  void put(const NamedValues& values) {
    for (const auto& [name, tensor] : values) {
      const TensorId id = inner_.put(name, step_, tensor);
      forget_stats([&](const TensorId& kept) { return kept == id; });
      if (is_parameter(name)) parameters_[name] = tensor;
    }
  }

  // For earlier steps, only statistics are kept, and only for a limited number of steps.
  void begin_step() {
    TensorQuery all;
    for (const TensorId& id : inner_.tensors(all)) {
      if (completed_ - id.step > history_) {
        inner_.erase(id);
      } else if (auto stats = inner_.stats(id)) {
        const Shape shape = inner_.describe(id)->shape;
        inner_.set_statistics_only(id, *stats, shape);
      }
    }
    step_ = completed_;
    at_end_ = false;
    next_ = 0;
    forget_stats([this](const TensorId& id) { return id.step == step_; });
    for (const auto& [name, tensor] : parameters_) inner_.put(name, step_, tensor);
  }

  // One operator, or the end of the step.
  StopReason advance(const RunRequest& request, CheckResult* found) {
    if (at_end_ || (completed_ == 0 && next_ == 0)) {
      if (completed_ >= static_cast<int64_t>(script_.size())) {
        state_ = LiveState::kEnded;
        return StopReason::kEnded;
      }
      begin_step();
    }
    if (breaks_in_step_ == step_) {
      state_ = LiveState::kLost;
      return StopReason::kLost;
    }
    if (stays_in_step_ == step_) {
      if (std::exchange(ctrl_c_, false)) ::raise(SIGINT);
      if (stay(request.timeout)) {
        stays_in_step_.reset();
        finish_step();
        return StopReason::kPaused;
      }
      state_ = LiveState::kRunning;
      return StopReason::kInterrupted;
    }
    const NamedValues& values = script_[static_cast<size_t>(step_)];
    if (next_ < values.size() && !is_parameter(values[next_].first)) {
      put({values[next_]});
      node_ = values[next_++].first;
      if (!stops_behind_operators_) return StopReason::kDone;
      *found = judge();
      std::erase_if(found->hits, [this](const Hit& hit) { return node(hit.tensor).name != node_; });
      found->total_hits = found->hits.size();
      return StopReason::kDone;
    }
    finish_step();
    *found = judge();
    if (stops_behind_operators_) {
      std::erase_if(found->hits, [this](const Hit& hit) { return !is_parameter(node(hit.tensor).name); });
      found->total_hits = found->hits.size();
    }
    return StopReason::kDone;
  }

  void finish_step() {
    if (at_end_ || (completed_ == 0 && next_ == 0)) begin_step();
    const NamedValues& values = script_[static_cast<size_t>(step_)];
    for (; next_ < values.size(); ++next_) {
      put({values[next_]});
      if (!is_parameter(values[next_].first)) node_ = values[next_].first;
    }
    completed_ = step_ + 1;
    at_end_ = true;
  }

  // True after the timeout, false after Ctrl-C.
  static bool stay(std::optional<std::chrono::milliseconds> timeout) {
    const auto until = std::chrono::steady_clock::now() + timeout.value_or(std::chrono::seconds(60));
    while (std::chrono::steady_clock::now() < until) {
      if (interrupt_requested()) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return true;
  }

  CheckResult judge() {
    CheckOptions options;
    options.steps = IntSet::of(step_);
    options.threads = 1;
    if (in_force.empty()) return {};
    auto made = check(*this, in_force, options);
    return made ? *made : CheckResult{};
  }

  Status not_held() const {
    return Status(state_ == LiveState::kEnded ? Code::kUnsupported : Code::kPeerLost,
                  "the training is not held (" + std::string(live_state_name(state_)) + "): the command was not delivered");
  }

  RunResult result(StopReason reason, int64_t first, CheckResult found) const {
    RunResult made;
    made.state = state_;
    made.reason = reason;
    made.step = step_;
    made.completed_steps = completed_;
    made.steps_run = completed_ - first;
    made.node = node_;
    made.held = state_ == LiveState::kHeld;
    made.check = std::move(found);
    made.check.steps = {step_};
    return made;
  }

  FakeSession inner_;
  LivePeer peer_;
  NamedValues initial_;
  std::deque<NamedValues> script_;
  std::map<std::string, TensorPtr> parameters_;
  LiveState state_ = LiveState::kWaiting;
  bool detached_ = false;
  int64_t step_ = 0, completed_ = 0;
  size_t next_ = 0;  ///< value of the next step
  bool at_end_ = false, ctrl_c_ = false, nobody_ = false, stops_behind_operators_ = false;
  Status refusal_;
  std::optional<int64_t> stays_in_step_, breaks_in_step_;
  int history_ = 16;
  std::string node_;
  std::vector<LiveEvent> events_;
  int pipe_[2] = {-1, -1};
};

}  // namespace msdbg::testing
