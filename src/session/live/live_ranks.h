// A training of several ranks as one session: each rank has its own connection and session (LiveSessionImpl), and every command goes
// to all of them. Split into live_ranks.cpp (what is there), live_ranks_run.cpp (running together), live_ranks_end.cpp (waiting,
// detaching, ending).
//
// The ranks of a training wait for each other in their collectives: while one is held in the middle of a step, the others may be
// unable to reach the end of theirs. So no command waits for all ranks without end: once one has stopped early, the others get as
// much time as it took, and those that have not come then are left running; the next command waits for them again.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "session/live/live_session.h"

namespace msdbg::live {

struct RanksOptions {
  SessionKind kind = SessionKind::kLive;
  std::string source;
  bool answer_only = false;  ///< lets every rank run as it comes
  std::chrono::milliseconds late_after = ListenOptions().late_after;
};

class LiveRanks final : public LiveSession, private StatsKeeper {
 public:
  /// `ranks` are the sessions of rank 0, 1, ...; at least two.
  LiveRanks(std::vector<std::unique_ptr<LiveSessionImpl>> ranks, RanksOptions options);
  ~LiveRanks() override;

  // ---- Session ----
  const SessionInfo& info() const override { return info_; }
  std::span<const int> ranks() const override { return numbers_; }
  std::span<const GraphPtr> graphs() const override { return graphs_; }
  std::vector<int64_t> steps() const override;
  std::vector<int64_t> steps(int rank, int graph) const override;
  std::vector<TensorId> tensors(const TensorQuery& query) override;
  uint32_t executions(int rank, int graph, int64_t step, NodeId node) override;
  Result<OpenTensor> open(const TensorId& id) override;
  Result<TensorInfo> describe(const TensorId& id) override;
  std::optional<Stats> given_statistics(const TensorId& id) override;
  Result<TensorId> previous(const TensorId& id, bool* history_missing) override;
  bool may_have_changed(const TensorId& parameter) const override;
  bool yet_to_run(const TensorId& id) const override;
  bool at_step_begin(int rank, int64_t step) const override;
  Result<bool> operator_overflow(const TensorId& id) override;
  SessionReport inspect() override;
  void check_begins(std::vector<TensorId> reads) override;
  void check_ends() override;

  // ---- LiveSession ----
  LiveState state() override;
  const LivePeer& peer() const override;
  std::vector<LiveRank> live_ranks() override;
  std::string address() const override { return ranks_.front()->address(); }
  int64_t current_step() const override;
  int64_t completed_steps() const override;
  std::string current_node() const override;
  Status wait_until_held(std::optional<std::chrono::milliseconds> timeout) override;
  Status set_watchpoints(std::span<const Watchpoint> watchpoints) override;
  Result<RunResult> run(const RunRequest& request) override;
  Result<RunResult> recheck() override;
  Result<RunResult> pause(std::chrono::milliseconds timeout) override;
  Result<RunResult> terminate(std::chrono::milliseconds timeout) override;
  Status detach() override;
  Result<RunResult> attach(std::chrono::milliseconds timeout) override;
  Status wait_until_detached(std::chrono::milliseconds timeout) override;
  Result<std::vector<int>> copy_sockets() override { return ranks_.front()->copy_sockets(); }
  void hang_up() override { ranks_.front()->hang_up(); }
  bool detached() const override { return detached_; }
  Status wait_until_ended(std::optional<std::chrono::milliseconds> timeout) override;
  LiveHistory history() override;
  Result<bool> keep_readable(const TensorId& id) override;
  void drop_elements(const TensorId& id) override;
  std::vector<LiveEvent> take_events() override;
  int event_descriptor() const override { return news_; }

 private:
  /// What became of a rank, besides the state of its session.
  struct Place {
    LiveState state = LiveState::kWaiting;
    uint64_t processes = 0;
    std::unique_ptr<RunInProgress> run;  ///< released, and not come back yet
    bool loss_told = false;
  };
  /// One command for all ranks.
  struct Round;

  void forget_kept(const std::function<bool(const TensorId&)>& stale) override { forget_stats(stale); }
  std::vector<TensorId> kept_tensors() const override { return tensors_with_stats(); }
  std::optional<TensorInfo> kept_info(const TensorId& id) const override { return info_of_kept(id); }

  size_t count() const { return ranks_.size(); }
  /// Null if there is no such rank.
  LiveSessionImpl* of(int rank) const;
  /// Processes what has arrived for all ranks.
  void refresh();
  void tell_loss(size_t rank);
  void report(Severity severity, std::string text) { events_.push_back({severity, std::move(text)}); }
  /// Waits a short time for something to arrive, at most until `deadline`.
  void wait(Clock::time_point deadline);

  bool is_active(size_t rank) const;
  /// The process of this rank has not come yet, though others of the same training have.
  bool is_missing(size_t rank) const;
  bool is_held(size_t rank) const { return places_[rank].state == LiveState::kHeld; }
  std::vector<int> those(const std::function<bool(size_t rank)>& is) const;
  std::vector<int> active() const;
  std::vector<int> missing() const;
  std::vector<int> held() const;
  std::vector<int> running() const;
  int64_t most_completed() const;
  Status ready(std::string_view command);
  void tell_late();
  void help_reconnecting();

  // live_ranks_run.cpp
  void begin(Round& round, size_t rank);
  void proceed(Round& round, size_t rank);
  void take(Round& round, size_t rank, Result<RunResult> end);
  StopReason run_together(Round& round);
  void await_answers();
  std::vector<int> late(const Round& round) const;
  std::string late_text(const Round& round) const;
  void warn_of_late(const Round& round);
  RunResult summary(StopReason reason) const;
  static void merge(CheckResult& into, CheckResult from);
  static void sort(CheckResult& check, size_t first_hit, size_t first_not_checked);
  Result<RunResult> gather(Clock::time_point deadline, bool catch_up);

  RanksOptions options_;
  bool warned_of_late_ = false;  // in this command
  std::vector<std::unique_ptr<LiveSessionImpl>> ranks_;
  std::vector<Place> places_;
  std::vector<int> numbers_;
  SessionInfo info_;
  std::vector<GraphPtr> graphs_;  // of all ranks
  int news_ = -1;                 // an epoll of all event descriptors: readable while a rank has news
  int arrivals_ = -1;             // another one: readable once for each event that arrives
  bool detached_ = false;
  int checks_ = 0;
  std::optional<Clock::time_point> waiting_since_, late_told_;  // for ranks that are missing
  Clock::time_point reconnecting_since_ = Clock::time_point::max();
  std::vector<LiveEvent> events_;
};

}  // namespace msdbg::live
