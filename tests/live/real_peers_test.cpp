// The recorded clients talk to msdbg: their messages in order, with our session driven to do what the recorded server did. msdbg
// must send the same, except for the differences in real_peers_table.cpp, and show what the clients sent.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "live/real_peers_table.h"
#include "msdbg/live.h"
#include "support/recorded_commands.h"
#include "support/recorded_peer.h"

namespace msdbg::test {
namespace {

using live::Rpc;

class RealPeers : public testing::TestWithParam<RealPeer> {
 protected:
  void SetUp() override {
    auto loaded = load_conversation(kFolder, GetParam().name);
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    peer_ = std::make_unique<RecordedPeer>(*loaded);
    ListenOptions options;
    options.port = 0;
    auto session = listen(options);
    ASSERT_TRUE(session.ok()) << session.status().message();
    session_ = std::move(*session);
    peer_->start(port_of(*session_));
  }

  void TearDown() override {
    if (!peer_) return;
    EXPECT_TRUE(peer_->join(kLong));
    for (const std::string& problem : peer_->problems()) ADD_FAILURE() << problem;
  }

  const PeerHold& hold() const { return peer_->holds()[at_]; }
  void differ(Differs what) { differences_.insert(what); }
  bool wait_for(LiveState state) {
    const auto deadline = std::chrono::steady_clock::now() + kLong;
    while (session_->state() != state && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(milliseconds(1));
    return session_->state() == state;
  }

  void drive();
  void check_suspension();
  void apply_commands();
  void arm();
  void look(const debugger::ViewCMD& view);
  void look_at(const debugger::TensorProto& asked, debugger::ViewCMD::Level level);
  void compare_base(const TensorId& id, const PeerUpload& upload);
  void compare_statistics(const TensorId& id, const PeerUpload& upload);
  void compare_value(const TensorId& id, const PeerUpload& upload, const debugger::TensorProto& asked);
  void leave();
  void check_armed();
  void check_run_command(const std::string& asked_node);
  void check_replies();

  std::unique_ptr<RecordedPeer> peer_;
  std::unique_ptr<LiveSession> session_;
  size_t at_ = 0;
  std::string shown_;                      // step/completed of each suspension
  std::map<int, debugger::SetCMD> armed_;  // of the recorded server
  std::map<int, debugger::SetCMD> told_;   // of ours, by our number
  std::map<int, std::multiset<std::string>> expected_nodes_;
  std::set<int> expanded_, judged_here_;
  bool dirty_ = false;
  std::set<Differs> differences_;
};

TEST_P(RealPeers, IsServedAsRecordedOrBetter) {
  drive();
  if (HasFatalFailure()) return;
  EXPECT_TRUE(peer_->join(kLong));
  check_replies();
  EXPECT_EQ(shown_, GetParam().holds);
  if (const auto goodbye = peer_->goodbye(); goodbye && !peer_->holds().empty()) {
    // The current step is finished; older clients run one more.
    EXPECT_GE(goodbye->cur_step(), session_->completed_steps());
    EXPECT_LE(goodbye->cur_step(), session_->completed_steps() + 1);
  }
  EXPECT_EQ(session_->peer().version, GetParam().version);
  EXPECT_EQ(session_->peer().backend, GetParam().backend);
  size_t nodes = 0;
  for (const GraphPtr& graph : session_->graphs()) nodes += graph->nodes().size();
  EXPECT_EQ(session_->graphs().size(), static_cast<size_t>(GetParam().graphs));
  EXPECT_EQ(nodes, static_cast<size_t>(GetParam().nodes));
  std::set<Differs> listed;
  for (const ListedDifference& entry : listed_differences()) {
    if (entry.file == std::string_view(GetParam().name)) listed.insert(entry.what);
  }
  EXPECT_EQ(differences_, listed) << "numbers of enum Differs";
}

void RealPeers::drive() {
  for (at_ = 0; at_ < peer_->holds().size(); ++at_) {
    SCOPED_TRACE("suspension of line " + std::to_string(hold().line));
    if (at_ == 0 || hold().after_restart) {
      const Status held = session_->wait_until_held(kLong);
      ASSERT_TRUE(held.ok()) << held.message();
    }
    check_suspension();
    apply_commands();
    leave();
    if (HasFatalFailure()) return;
    if (session_->state() != LiveState::kHeld && at_ + 1 < peer_->holds().size() &&
        !peer_->holds()[at_ + 1].after_restart) {
      FAIL() << "the session is " << live_state_name(session_->state());
    }
  }
  // A client that sends a farewell has ended; one that just falls silent is lost.
  ASSERT_TRUE(peer_->join(kLong));
  EXPECT_TRUE(wait_for(peer_->goodbye() ? LiveState::kEnded : LiveState::kLost)) << live_state_name(session_->state());
}

void RealPeers::check_suspension() {
  EXPECT_EQ(session_->state(), LiveState::kHeld);
  EXPECT_EQ(session_->current_step(), hold().metadata.cur_step());
  EXPECT_EQ(session_->current_node(), hold().metadata.cur_node());
  if (!shown_.empty()) shown_ += " ";
  shown_ += std::to_string(session_->current_step()) + "/" + std::to_string(session_->completed_steps());
  if (hold().failures > 0) differ(Differs::kHeldNotFailed);
  if (hold().odd_reply) differ(Differs::kOddReplyLeftOut);
}

void RealPeers::apply_commands() {
  size_t rechecks = 0;
  for (const debugger::EventReply& command : hold().commands) {
    if (command.has_set_cmd()) {
      const debugger::SetCMD& set = command.set_cmd();
      if (set.delete_())
        armed_.erase(set.id());
      else
        armed_[set.id()] = set;
      dirty_ = true;
      continue;
    }
    arm();
    if (command.has_view_cmd()) {
      look(command.view_cmd());
    } else {
      const auto result = session_->recheck();
      ASSERT_TRUE(result.ok()) << result.status().message();
      EXPECT_EQ(hit_lines(*session_, result->check, judged_here_),
                hit_lines(peer_->sent_after_recheck(at_, rechecks), *peer_));
      ++rechecks;
    }
  }
  arm();
}

void RealPeers::arm() {
  if (!std::exchange(dirty_, false)) return;
  std::vector<Watchpoint> watchpoints;
  expected_nodes_.clear();
  expanded_.clear();
  judged_here_.clear();
  for (const auto& [id, set] : armed_) {
    RebuiltWatch rebuilt = rebuild(*session_, set);
    ASSERT_TRUE(rebuilt.problem.ok()) << rebuilt.problem.message();
    if (rebuilt.expanded) expanded_.insert(id), differ(Differs::kScopeExpanded);
    if (rebuilt.left_out) differ(Differs::kNamesLeftOut);
    if (rebuilt.watch.condition->spec->needs_previous && !session_->peer().has_previous) {
      judged_here_.insert(id);
      differ(Differs::kJudgedHere);
    }
    expected_nodes_[id] = rebuilt.known;
    watchpoints.push_back(std::move(rebuilt.watch));
  }
  const Status set = session_->set_watchpoints(watchpoints);
  ASSERT_TRUE(set.ok()) << set.message();
}

// ---- views --------------------------------------------------------------------------------

void RealPeers::look(const debugger::ViewCMD& view) {
  for (const debugger::TensorProto& asked : view.tensors()) {
    SCOPED_TRACE(asked.node_name() + ":" + asked.slot() + " " + asked.iter());
    look_at(asked, session_->peer().has_levels ? view.level() : debugger::ViewCMD::value);
  }
}

void RealPeers::look_at(const debugger::TensorProto& asked, debugger::ViewCMD::Level level) {
  const std::string name = asked.truncate() ? last_component(asked.node_name()) : asked.node_name();
  const NodeRef ref = find_recorded(*session_, name);
  if (ref.node == kNoNode) return;  // nothing that a user could name
  TensorId id{0, ref.graph->id(), session_->current_step(),
              0, ref.node,        {Io::kOutput, static_cast<uint32_t>(parse_int(asked.slot()).value_or(0))}};
  std::string key = name + ":" + asked.slot();
  if (!asked.iter().empty()) {
    key += ":" + asked.iter();
    const auto before = session_->previous(id, nullptr);
    if (!before.ok()) return;  // the session knows that this client has none
    id = *before;
  }
  for (const PeerUpload& upload : hold().uploads) {
    if (upload.key != key || upload.level != level) continue;
    if (level == debugger::ViewCMD::base && asked.iter().empty()) compare_base(id, upload);
    if (level == debugger::ViewCMD::statistics) compare_statistics(id, upload);
    if (level == debugger::ViewCMD::value) compare_value(id, upload, asked);
  }
}

void RealPeers::compare_base(const TensorId& id, const PeerUpload& upload) {
  debugger::TensorBase base;
  ASSERT_TRUE(base.ParseFromString(upload.messages.front()));
  const auto info = session_->describe(id);
  if (base.data_type() == 0) {
    EXPECT_EQ(info.status().code(), Code::kNotFound);
    return;
  }
  ASSERT_TRUE(info.ok()) << info.status().message();
  EXPECT_EQ(info->dtype, dtype_from_mindspore(base.data_type()));
  EXPECT_EQ(info->shape, Shape(base.shape().begin(), base.shape().end()));
  EXPECT_EQ(info->bytes, static_cast<uint64_t>(base.data_size()));
}

void RealPeers::compare_statistics(const TensorId& id, const PeerUpload& upload) {
  debugger::TensorSummary summary;
  ASSERT_TRUE(summary.ParseFromString(upload.messages.front()));
  (void)session_->describe(id);
  const auto stats = session_->given_statistics(id);
  if (summary.tensor_base().data_type() == 0) {
    EXPECT_FALSE(stats.has_value());
    return;
  }
  ASSERT_TRUE(stats.has_value());
  const debugger::Statistics& sent = summary.statistics();
  EXPECT_EQ(stats->count, sent.count());
  EXPECT_EQ(stats->zero_count, sent.zero_count());
  EXPECT_EQ(stats->pos_count, sent.pos_zero_count());
  EXPECT_EQ(stats->neg_count, sent.neg_zero_count());
  EXPECT_EQ(stats->max, sent.max_value());
  EXPECT_EQ(stats->min, sent.min_value());
  // From 20,000 elements on, the mean covers only the first part, and must not be used for the tensor.
  EXPECT_EQ((stats->known & kStatMean) != 0, sent.count() < 20000);
}

void RealPeers::compare_value(const TensorId& id, const PeerUpload& upload, const debugger::TensorProto& asked) {
  std::string content;
  debugger::TensorProto slice;
  for (const std::string& bytes : upload.messages) {
    ASSERT_TRUE(slice.ParseFromString(bytes));
    content += slice.tensor_content();
  }
  const auto tensor = session_->load(id);
  if (slice.data_type() == 0) {
    EXPECT_FALSE(tensor.ok()) << asked.node_name();
    return;
  }
  ASSERT_TRUE(tensor.ok()) << tensor.status().message();
  EXPECT_EQ((*tensor)->dtype(), dtype_from_mindspore(slice.data_type()));
  EXPECT_EQ((*tensor)->shape(), Shape(slice.dims().begin(), slice.dims().end()));
  const auto bytes = (*tensor)->bytes();
  EXPECT_TRUE(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()) == content);
}

// ---- leaving --------------------------------------------------------------------------------

void RealPeers::leave() {
  if (hold().dies) {
    peer_->kill();
    EXPECT_TRUE(wait_for(LiveState::kLost));
    EXPECT_EQ(session_->run({}).status().code(), Code::kPeerLost);
    peer_->start_next();
    differ(Differs::kDeathNoticed);
    return;
  }
  if (!hold().left || hold().left->has_exit()) {
    const auto ended = session_->terminate(kLong);
    ASSERT_TRUE(ended.ok()) << ended.status().message();
    EXPECT_EQ(ended->reason, StopReason::kEnded);
    const auto told = peer_->told(at_);
    ASSERT_FALSE(told.empty());
    EXPECT_TRUE(told.back().exit());
    if (hold().left && !hold().left->exit()) differ(Differs::kExitPresent);
    check_armed();
    return;
  }
  const debugger::RunCMD& recorded = hold().left->run_cmd();
  RunRequest request;
  request.timeout = kLong;
  std::string node;
  if (recorded.run_level() == "node") {
    request.kind = recorded.node_name().empty() ? RunKind::kNextNode : RunKind::kToNode;
    request.node = node = recorded.node_name();
    const bool known = node.empty() || find_recorded(*session_, node).node != kNoNode;
    if (!known) {
      differ(Differs::kUnknownNode);
      EXPECT_EQ(session_->run(request).status().code(), Code::kNotFound);
      request.kind = RunKind::kStep;
    }
  }
  const auto result = session_->run(request);
  ASSERT_TRUE(result.ok()) << result.status().message();
  check_armed();
  check_run_command(request.kind == RunKind::kStep ? "-" : node);
  // The suspension of a graph that arrives later is not the end of a step; the session continues by itself.
  while (result->held && at_ + 1 < peer_->current_hold()) {
    ++at_;
    shown_ += " -";
    const auto told = peer_->told(at_);
    ASSERT_FALSE(told.empty());
    EXPECT_EQ(told.back().run_cmd().run_level(), "step");
  }
  const bool last = at_ + 1 == peer_->holds().size();
  if (last) {
    EXPECT_FALSE(result->held);
    return;
  }
  EXPECT_TRUE(result->held);
  EXPECT_EQ(result->step, peer_->holds()[at_ + 1].metadata.cur_step());
  EXPECT_EQ(result->node, peer_->holds()[at_ + 1].metadata.cur_node());
  const auto expected = hit_lines(peer_->sent(at_ + 1), *peer_);
  EXPECT_EQ(hit_lines(*session_, result->check, judged_here_), expected);
}

/// The watchpoints armed in the client when the training runs are those of the recorded server.
void RealPeers::check_armed() {
  for (const debugger::EventReply& reply : peer_->told(at_)) {
    if (!reply.has_set_cmd()) continue;
    if (reply.set_cmd().delete_())
      told_.erase(reply.set_cmd().id());
    else
      told_[reply.set_cmd().id()] = reply.set_cmd();
  }
  std::set<int> seen;
  for (const auto& [id, set] : told_) {
    EXPECT_GE(id, 1);
    for (const auto& node : set.watch_nodes()) {
      EXPECT_NE(node.node_type(), "scope") << node.node_name();
      const NodeRef ref = find_recorded(*session_, node.node_name());
      ASSERT_NE(ref.node, kNoNode) << node.node_name();
      if (ref.graph->node(ref.node).kind != NodeKind::kOperator) {
        EXPECT_NE(node.node_name().find('/'), std::string::npos) << node.node_name() << " would not be read";
      }
    }
    const auto recorded = peer_->recorded_id(id);
    if (!recorded || !armed_.contains(*recorded)) continue;
    seen.insert(*recorded);
    const debugger::SetCMD& theirs = armed_.at(*recorded);
    EXPECT_EQ(full_condition_text(set.watch_condition()), full_condition_text(theirs.watch_condition()));
    if (expanded_.contains(*recorded)) continue;
    std::set<std::string> names;
    for (const auto& node : set.watch_nodes()) names.insert(last_component(node.node_name()));
    const auto& expected = expected_nodes_[*recorded];
    EXPECT_EQ(names, std::set<std::string>(expected.begin(), expected.end())) << "watchpoint " << *recorded;
  }
  for (const auto& [id, set] : armed_) {
    if (judged_here_.contains(id) || expected_nodes_[id].empty()) continue;
    EXPECT_TRUE(seen.contains(id)) << "watchpoint " << id << " was not sent";
  }
}

void RealPeers::check_run_command(const std::string& asked_node) {
  const auto told = peer_->told(at_);
  ASSERT_FALSE(told.empty());
  ASSERT_TRUE(told.back().has_run_cmd());
  const debugger::RunCMD& ours = told.back().run_cmd();
  EXPECT_EQ(ours.run_level(), asked_node == "-" ? "step" : "node");
  EXPECT_EQ(ours.node_name(), asked_node == "-" ? "" : asked_node);
  const auto rechecks = [](const std::vector<debugger::EventReply>& replies) {
    return std::count_if(replies.begin(), replies.end(),
                         [](const auto& reply) { return reply.run_cmd().run_level() == "recheck"; });
  };
  EXPECT_EQ(rechecks(told), rechecks(hold().commands));
}

void RealPeers::check_replies() {
  for (size_t i = 0; i < peer_->calls().size(); ++i) {
    const PeerCall& call = peer_->calls()[i];
    const auto ours = peer_->answer(i);
    if (!ours) continue;  // hits that were not requested here, or that never reached the recorded server
    SCOPED_TRACE("line " + std::to_string(call.line));
    EXPECT_TRUE(ours->ok()) << ours->describe();
    if (call.grpc_status.empty() && ours->bytes == call.reply) continue;
    if (call.rpc == Rpc::kSendMetadata) {
      EXPECT_TRUE(ours->parsed().version_matched());
      differ(Differs::kVersionAccepted);
    } else {
      EXPECT_EQ(ours->bytes, "");
      EXPECT_EQ(call.rpc, Rpc::kSendWatchpointHits);
      differ(Differs::kHitAccepted);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, RealPeers, testing::ValuesIn(real_peers().begin(), real_peers().end()),
                         [](const auto& instance) {
                           std::string name = instance.param.name;
                           for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
                           return name;
                         });

TEST(RealPeersTable, NamesEveryRecordingOnce) {
  std::vector<std::string> names;
  for (const RealPeer& peer : real_peers()) names.emplace_back(peer.name);
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, conversation_names(kFolder));
}

}  // namespace
}  // namespace msdbg::test
