// The live session: the Session interface on top of a conversation. Split into live_session.cpp (identity, graphs, state),
// live_tensors.cpp (which tensors can be read), live_values.cpp and live_reads.cpp (values), live_history.cpp (the history),
// live_watch.cpp (watchpoints), live_run.cpp and live_detach.cpp (commands).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "msdbg/live.h"
#include "session/live/conversation.h"
#include "session/live/names.h"
#include "session/live/recorded_training.h"
#include "session/live/step_count.h"
#include "session/live/value_cache.h"
#include "session/live/watch_messages.h"

namespace msdbg::live {

struct SessionOptions {
  SessionKind kind = SessionKind::kLive;
  int rank = 0;
  std::string who;            ///< begins every text about this process: "rank 1: ", or "" for the only one
  bool recorded = false;      ///< a recording: hits need no watchpoint of ours, and only tensors that were read exist
  bool recording = false;     ///< writes one: each step is held and asked for what it tells, so that a replay can stop there
  std::string source;
  uint64_t mem_limit_bytes = uint64_t{16384} << 20;
  int history_steps = 16;
  size_t history_tensors = 0;
  std::shared_ptr<const RecordedTraining> graph_from;  ///< for a training that connects without handshake and graph; may be null
  std::chrono::milliseconds view_deadline{30000};
};

/// A session of several ranks, which keeps the statistics that its checks computed.
class StatsKeeper {
 public:
  virtual ~StatsKeeper() = default;
  virtual void forget_kept(const std::function<bool(const TensorId&)>& stale) = 0;
  virtual std::vector<TensorId> kept_tensors() const = 0;
  virtual std::optional<TensorInfo> kept_info(const TensorId& id) const = 0;
};

/// A run command on its way. The training runs between begin() and arrived(), and between two calls of arrived().
struct RunInProgress {
  explicit RunInProgress(RunRequest what) : request(std::move(what)) {}
  RunRequest request;
  std::string node;                    ///< the full name of the node to reach
  std::optional<Clock::time_point> deadline{};
  RunResult result{};                  ///< what it has found so far
  size_t looked_at = 0;                ///< hits that were passed to on_hits
  int64_t steps_run = 0;
  bool first = true;                   ///< until the second release
  bool initial_hits = false;           ///< found before anything ran
  bool stops_armed = false;
  bool passes = false;                 ///< the caller does not look at the end of this step
  std::string address{};               ///< of the process when the command began
  int64_t completed = 0;               ///< when the training was released last
  Clock::time_point began{}, shown{}, released{};
  Clock::duration ran{};
};
inline bool is_node_level(RunKind kind) { return kind == RunKind::kNextNode || kind == RunKind::kToNode; }
/// The command in messages: "step", "continue", ...
const char* word_of(RunKind kind);
/// How often the progress of a command is shown.
inline constexpr std::chrono::milliseconds kProgressTick{250};
/// After Ctrl-C the training is usually held by the end of its step; do not wait for longer steps.
inline constexpr std::chrono::milliseconds kInterruptGrace{500};
/// The end of a run command; nullopt while the training runs.
using RunEnd = std::optional<Result<RunResult>>;

/// The session of one training process.
class LiveSessionImpl final : public LiveSession {
 public:
  LiveSessionImpl(std::unique_ptr<Transport> transport, SessionOptions options);
  ~LiveSessionImpl() override;

  // ---- Session ----
  const SessionInfo& info() const override { return info_; }
  std::span<const int> ranks() const override { return ranks_; }
  std::span<const GraphPtr> graphs() const override { return graphs_; }
  std::vector<int64_t> steps() const override;
  std::vector<int64_t> steps(int rank, int graph) const override;
  std::vector<TensorId> tensors(const TensorQuery& query) override;
  uint32_t executions(int rank, int graph, int64_t step, NodeId node) override;
  Result<OpenTensor> open(const TensorId& id) override;
  Result<TensorInfo> describe(const TensorId& id) override;
  std::optional<Stats> given_statistics(const TensorId& id) override;
  Result<TensorId> previous(const TensorId& id, bool* history_missing) override;
  bool may_have_changed(const TensorId& id) const override;
  bool yet_to_run(const TensorId& id) const override;
  bool at_step_begin(int rank, int64_t step) const override;
  Result<bool> operator_overflow(const TensorId& id) override;
  SessionReport inspect() override;
  void check_begins(std::vector<TensorId> reads) override;
  void check_ends() override;

  // ---- LiveSession ----
  LiveState state() override;
  const LivePeer& peer() const override { return profile_.peer; }
  std::vector<LiveRank> live_ranks() override;
  std::string address() const override { return talk_.address(); }
  int64_t current_step() const override { return step_; }
  int64_t completed_steps() const override { return completed_; }
  std::string current_node() const override { return suspension_.cur_node; }
  Status wait_until_held(std::optional<std::chrono::milliseconds> timeout) override;
  Status set_watchpoints(std::span<const Watchpoint> watchpoints) override;
  Result<RunResult> run(const RunRequest& request) override;
  Result<RunResult> recheck() override;
  Result<RunResult> pause(std::chrono::milliseconds timeout) override;
  Result<RunResult> terminate(std::chrono::milliseconds timeout) override;
  Status detach() override;
  Result<RunResult> attach(std::chrono::milliseconds timeout) override;
  Status wait_until_detached(std::chrono::milliseconds timeout) override;
  Result<std::vector<int>> copy_sockets() override { return talk_.copy_sockets(); }
  void hang_up() override { talk_.hang_up(); }
  bool detached() const override { return detached_; }
  Status wait_until_ended(std::optional<std::chrono::milliseconds> timeout) override;
  LiveHistory history() override;
  Result<bool> keep_readable(const TensorId& id) override;
  void drop_elements(const TensorId& id) override;
  std::vector<LiveEvent> take_events() override;
  int event_descriptor() const override { return talk_.descriptor(); }

  // ---- for the session of several ranks ----
  void keep_stats_in(StatsKeeper& keeper) { all_ranks_ = &keeper; }
  /// Sends the first command of a run.
  RunEnd begin(RunInProgress& run);
  /// Processes what came of the command: the training is held (`held`), or it did not come so far, for `reason`.
  RunEnd arrived(RunInProgress& run, bool held, StopReason reason);
  /// True if the training is held, or has ended or is lost; does not wait. `reason` is set for the last two.
  bool settled(StopReason* reason);
  RunResult held_again(bool held, StopReason reason);
  /// Releases a held training: to its end, or for a step without watching it.
  Status send_exit() { return talk_.release(make_exit(), "terminate"); }
  Status pass_step() { return talk_.release(make_run("step", {}, false), "step"); }
  uint64_t processes() const { return talk_.processes(); }
  bool orphan() const { return talk_.orphan(); }
  bool refused() const { return talk_.refused(); }
  bool held_within_step() const { return hold_ == HoldKind::kNode; }
  bool held_at_begin() const { return suspension_.begins; }

 private:
  /// A watchpoint with its nodes and what was sent to the peer for it.
  struct Wanted {
    Watchpoint watch;
    std::vector<NodeRef> nodes;
    bool local = false;                ///< judged here
    std::string sent;                  ///< what the peer has, "" for nothing; it is sent again if it changed
    std::vector<int> peer_ids;
    bool initial_pending = false;      ///< weight_initialization that was not evaluated yet
  };
  struct Before {
    int64_t step;
    TensorPtr tensor;
  };
  struct Known {
    TensorInfo info;
    bool exists = false;
    std::string name;  ///< the spelling that the peer uses
  };
  using Key = ValueKey;
  /// A requested value, with the expected type and shape of a value without slices.
  struct Asked {
    Key key;
    TensorId id;
    ValueItem item;
    DType dtype = DType::kUnknown;
    Shape shape;
  };

  // live_session.cpp
  // Owner only: processes graphs, suspensions, handshakes. Does nothing during a check, whose workers read this state.
  void process_events();
  void add_graph(const std::string& bytes);
  void find_writers();
  bool runs_now(const Graph& graph) const;
  void rebuild_names();
  void arrive(const Suspension& suspension);
  void forget_values();               ///< under cache_mutex_
  /// Drops the statistics of tensors for which `stale` is true, here and in the session of all ranks.
  void forget_statistics(const std::function<bool(const TensorId&)>& stale);
  bool is_over() const;
  bool is_past(const TensorId& id) const;
  std::vector<TensorId> tensors_of_before() const;
  void report(Severity severity, std::string text) { talk_.report(severity, std::move(text)); }

  // live_tensors.cpp
  struct Source { const Graph* graph; const Node* node; uint32_t slot; };
  /// The operator that changes a parameter last.
  const Node* last_writer(const Graph& graph, NodeId parameter) const;
  Result<Source> source_of(const TensorId& id) const;
  void ask_bases(std::span<const TensorId> ids);
  Known known_from(const Source& source, const TensorId& id, const debugger::TensorBase& base) const;
  Known declared(const Source& source, const TensorId& id) const;
  bool is_watched(const Node& node) const;
  Status unavailable(const TensorId& id) const;

  // live_values.cpp
  Result<TensorPtr> remembered(const TensorId& id);
  Result<TensorPtr> fetch(const TensorId& id, const Source& source, bool previous);
  /// Error: kCorrupt if the type or count of a value differs from the training's announcement.
  Status check_announced(const TensorId& id, DType dtype, const Shape& shape, const TensorBuffer& arrived) const;
  /// The value of a finished upload: shares its memory, or copies it. Error: kNotFound if the training does not have it.
  Result<TensorPtr> arrived(const Asked& asked, const std::shared_ptr<ValueUpload>& upload, size_t place, bool copy) const;

  // live_reads.cpp
  std::optional<Result<TensorPtr>> cached_value(const Key& key);
  struct Row {
    uint64_t each_bytes, all_bytes;  ///< limits for one value and for a whole request
    bool elements;                   ///< skip cached values
  };
  std::vector<Asked> reads_from(const Key& key, const Row& most);
  std::vector<Asked> values_from(const Key& key);
  Result<debugger::TensorSummary> summary(const Key& key, const std::string& name);
  Status fetch_together(const std::vector<Asked>& asked);

  // live_history.cpp
  // A tensor of the history, with the training's name for it once it was seen.
  struct Recurring {
    Key key;
    std::string name;
    TensorInfo info;
  };
  struct PastValue {
    TensorInfo info;
    Stats stats;
  };
  void choose_history();
  void watch_kept();
  bool keeps_history() const;
  bool is_told() const;
  void add_report(debugger::RunCMD& command);
  void renumber_history(const Graph& old, const Graph& graph);
  void take_in_ended();
  template <typename Summaries>
  void keep(std::span<const Recurring> tensors, int64_t step, const Summaries& statistics);
  void keep_step();
  bool searches(bool looked_at) const;
  void find_recurring();
  std::optional<Stats> stats_from(const debugger::TensorSummary& summary) const;

  // live_watch.cpp
  Status resolve(Wanted& wanted) const;
  Status flush();
  Status send_watchpoint(Wanted& wanted);
  Status arm_stop(std::span<const WatchedName> names);
  void disarm_stop();
  bool judged_here(const Watchpoint& watch) const;
  std::string condition_signature(const Wanted& wanted) const;
  std::vector<WatchedName> names_of(const Wanted& wanted) const;
  const Wanted* by_peer_id(int id) const;
  /// False when none of the hits belongs to a watchpoint.
  bool collect_hits(CheckResult& into);
  /// Collects hits without a suspension after them, because the training ended.
  void collect_last_hits(CheckResult& into);
  void judge_locally(CheckResult& into);
  void add_hit(const Wanted& wanted, const debugger::WatchpointHit& hit, CheckResult& into);
  bool hit_at_current_node(std::span<const debugger::WatchpointHit> hits) const;

  // live_run.cpp
  RunResult snapshot(StopReason reason) const;
  /// Calls `tick` a few times per second.
  bool await_hold(std::optional<Clock::time_point> deadline, StopReason* reason, const std::function<void()>& tick = {});
  bool is_over(StopReason* reason);
  RunEnd release(RunInProgress& run);
  Result<RunResult> finish(RunInProgress& run, StopReason reason) const;
  Result<RunResult> failed(RunInProgress& run, const Status& status);
  static void sift(RunInProgress& run);
  void show_progress(RunInProgress& run, bool running);
  Status check_initial(RunResult& result);
  uint64_t unseen(const RunRequest& request, int64_t steps_run) const;
  bool looks_at_end(const RunInProgress& run) const;
  bool judges_operators_here() const;
  Result<std::string> node_to_reach(const RunRequest& request) const;
  std::vector<WatchedName> stops_for(const RunRequest& request, const std::string& node) const;
  bool judges_here() const;
  void report_unjudged(int64_t steps);

  SessionOptions options_;
  StatsKeeper* all_ranks_ = nullptr;  // the session of several ranks that this one is part of
  Conversation talk_;
  SessionInfo info_;
  std::vector<int> ranks_;
  std::vector<GraphPtr> graphs_;
  std::map<std::pair<int, NodeId>, std::vector<NodeId>> writers_;  // by graph and parameter: the operators that change it, in order
  std::set<std::pair<int, NodeId>> skipped_;  // by graph: of these, the ones that did not run in the current step
  std::vector<GraphPtr> retired_;     // of earlier processes; Lua objects may still refer to their nodes
  uint64_t graph_bytes_ = 0;          // approximate memory of all graphs
  NameTable names_;
  PeerProfile profile_;

  Suspension suspension_;
  HoldKind hold_ = HoldKind::kInitial;
  int64_t step_ = 0, completed_ = 0;
  std::vector<debugger::WatchpointHit> raw_hits_;
  uint64_t handshakes_ = 0, processes_ = 0;
  bool detached_ = false;             // the current or last process runs without msdbg

  std::vector<Wanted> wanted_;
  bool stale_ = false;                // the peer may not have all of wanted_
  std::vector<int> delete_ids_;       // the peer still has them
  std::vector<int> detach_ids_;       // that detach() deletes, in order
  int next_peer_id_ = 1;
  std::set<int> ignored_ids_;         // carriers and stops
  std::vector<int> stop_ids_;         // of the current command
  int checks_ = 0;                    // that are running
  int64_t node_stop_step_ = -1;       // in which the training stopped after an operator on request

  std::vector<NodeRef> history_nodes_;   // whose statistics are recorded in each step: loss, learning rate, weights
  size_t all_weights_ = 0;               // in the graphs
  std::vector<Recurring> recurring_;     // their tensors, as far as the training has them
  int searches_ = 0;                     // for those
  uint32_t report_number_ = 0;           // of the report that was asked for last,
  std::vector<Recurring> reported_;      // and its tensors
  bool reports_all_ = false;             // these are all of recurring_
  int64_t told_step_ = -1;               // the last step that was reported
  bool history_failed_ = false;
  const Graph* named_first_ = nullptr;   // the graph whose nodes names_ prefers
  bool looked_at_ = true;                // the training was told that somebody may look at the end of its step
  std::vector<std::string> readable_;    // names of nodes to keep readable
  Wanted keeper_;                        // watches history_nodes_ and readable_, and never hits

  // For the current suspension; workers of a check use them too.
  std::mutex fetch_mutex_;            // one value or one batch at a time; lock before cache_mutex_
  mutable std::mutex cache_mutex_;
  std::map<TensorId, PastValue> past_;   // the history; of earlier steps
  std::unordered_map<Key, Known, Key::Hash> known_;
  ValueCache values_;
  std::unordered_map<Key, Status, Key::Hash> lost_;  // that failed in a batch; reported once
  std::vector<TensorId> reads_;       // tensors that the running check opens, in order
  std::unordered_map<Key, size_t, Key::Hash> read_at_;
  std::map<Key, Before> before_;      // values of an earlier step, for conditions on change that are judged locally
  std::set<Key> keep_;                // whose values move to before_ with the next step
  bool statistics_only_ = false;      // while judging watchpoints that need no elements
  std::unordered_map<Key, debugger::TensorSummary, Key::Hash> summaries_;  // that arrived in a batch; the owner's
};

}  // namespace msdbg::live
