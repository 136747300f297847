// The client's side of the conversation: handshake, suspensions, steps. Source: docs/live-protocol.md.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "agent/channel.h"
#include "agent/heartbeat.h"
#include "agent/step_reports.h"
#include "agent/tensor_store.h"
#include "agent/watch_table.h"

namespace msdbg::agent {

class Conversation {
 public:
  explicit Conversation(Options options);
  ~Conversation();
  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;

  Status add_graph(GraphDescription graph);
  Status replace_graph(int graph, GraphDescription description);
  Status set_parameter(int graph, std::string_view name, std::optional<DType> dtype, const Shape& shape, const void* data,
                       TensorStore::Remote remote = {});
  Status set_option(std::string_view name, std::string_view value);
  Control begin_step(int graph);
  void publish(NodeIndex node, uint32_t slot, const void* data, size_t bytes, const Shape* shape);
  bool publish_copy(NodeIndex node, uint32_t slot, std::optional<DType> dtype, const void* data, const Shape& shape,
                    std::span<const int64_t> strides);
  struct Output {
    NodeIndex node;
    uint32_t slot;
  };
  void publish_strided(Output output, std::optional<DType> dtype, const void* data, const Shape& shape, std::span<const int64_t> strides,
                       std::optional<Output> of = std::nullopt);
  void publish_remote(NodeIndex node, uint32_t slot, std::optional<DType> dtype, const Shape& shape, ValueState state, Fetch fetch);
  Result<size_t> publish_dump(const std::string& directory);
  Wants wants();
  bool wants_node(NodeIndex node);
  /// Watchpoints of a debugger that does not know the operator may cover it as soon as it does.
  bool is_unseen(NodeIndex node) const { return node < unseen_.size() && unseen_[node]; }
  bool passes();
  void overflowed(NodeIndex node);
  void step_computed();
  void skipped(std::span<const NodeIndex> nodes);
  void cut_short(std::string_view why);
  void node_done(NodeIndex node);
  Control end_step();
  /// May be called on another thread: ends a wait for the debugger.
  void finish();

  /// False if publish() and node_done() have nothing to do.
  bool active() const { return options_.enabled && !finished_ && (!terminated_ || in_step_); }
  std::string problem() const {
    const std::lock_guard lock(problem_mutex_);
    return problem_;
  }

 private:
  void open();
  void connect();
  void present_graphs();
  void present_replaced();
  Reply greet();
  bool handshake();
  void send_graphs();
  void suspend();
  bool execute(const debugger::EventReply& command);
  bool run(const debugger::RunCMD& command);
  void recheck();
  void send_hits(const std::vector<debugger::WatchpointHit>& hits);
  bool pause(std::chrono::milliseconds time);
  void judge_beginning();
  void terminate();
  bool replaces_hold() const;
  bool keeps_previous() const;
  void close_step();
  bool has_output(NodeIndex node, uint32_t slot);
  void refuse_value(NodeIndex node, uint32_t slot, const Status& why);
  void note_unfetched();
  void load_watched();
  Status no_graph(int graph) const;
  void set_problem(std::string text, bool waiting = false);
  void note(const char* what, const Reply& reply, bool waiting = false);
  void clear_waiting_problem();
  debugger::Metadata metadata(bool for_wait) const;

  Options options_;  // unchanged from the first step on
  const ReleaseTraits traits_;
  std::vector<std::unique_ptr<TensorStore>> graphs_;
  std::vector<size_t> pending_;   // graphs that were not sent to the debugger
  std::vector<size_t> replaced_;  // those whose new description was not sent
  std::vector<bool> unseen_;      // operators of the current graph that the debugger does not know yet; empty: none
  size_t current_ = 0;
  bool ran_ = false;  // a graph has run: current_ is valid
  TensorStore* store_ = nullptr;
  WatchTable table_{traits_};

  std::mutex caller_mutex_;  // finish() uses the caller while set_option() may make another one
  ChannelPtr channel_;
  std::unique_ptr<Caller> caller_;
  std::unique_ptr<Heartbeat> heartbeat_;

  bool connected_ = false;  // the first step has begun
  bool handshaken_ = false;
  bool initial_ = false;     // the suspension before the first step
  bool terminated_ = false;  // the debugger ended the training, or we gave up on the debugger
  std::atomic<bool> finished_{false};
  bool in_step_ = false;
  bool step_open_ = false;  // tensors of the last step are still readable
  bool step_computed_ = false;  // what is reported now ran earlier
  bool may_hold_at_beginning_ = false;  // only msdbg says it
  bool begins_ = false;                 // held before anything of the step has run
  std::vector<std::string> skipped_;  // names of operators that this step does not run
  std::string cut_short_;  // why this step ends in its midst; "" if it does not
  bool hold_due_ = false;   // the suspension after the last step must come before the next step
  int32_t step_ = 0;
  std::atomic<const std::string*> cur_node_{nullptr};
  std::string gone_node_;  // the name of that node, if the new description lacks it
  static constexpr NodeIndex kNone = UINT32_MAX, kGone = UINT32_MAX - 1;
  NodeIndex last_node_ = kNone;   // the last one that ran in this step
  NodeIndex stopped_at_ = kNone;  // where node level stopped in this step
  bool node_level_ = false;
  std::string stop_name_;  // "": any
  bool described_again_ = false;  // in this step
  StepReports reports_;
  std::optional<bool> looked_at_;  // somebody may look at values at the end of this step; only msdbg says it

  mutable std::mutex problem_mutex_;
  std::string problem_;      // under problem_mutex_
  bool waiting_ = false;     // the reason is that nobody answers; under problem_mutex_
  std::mutex conversation_mutex_;  // held during a conversation on the training thread
  std::mutex pause_mutex_;
  std::condition_variable pause_;
};

}  // namespace msdbg::agent
