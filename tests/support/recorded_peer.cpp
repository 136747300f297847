#include "support/recorded_peer.h"

#include <algorithm>
#include <chrono>

namespace msdbg::test {
namespace {

using live::Rpc;

bool is_farewell(const PeerCall& call) {
  debugger::Metadata metadata;
  return call.rpc == Rpc::kSendMetadata && metadata.ParseFromString(call.messages.front()) && metadata.training_done();
}

/// A client that was asked only for the value would have known type and shape as well.
std::string base_of(const PeerHold& hold, const std::string& key) {
  if (const PeerUpload* upload = find_upload(hold, debugger::ViewCMD::base, key)) return upload->messages.front();
  debugger::TensorBase base;
  if (const PeerUpload* upload = find_upload(hold, debugger::ViewCMD::statistics, key)) {
    debugger::TensorSummary summary;
    summary.ParseFromString(upload->messages.front());
    return summary.tensor_base().SerializeAsString();
  }
  if (const PeerUpload* upload = find_upload(hold, debugger::ViewCMD::value, key)) {
    for (const std::string& bytes : upload->messages) {
      debugger::TensorProto slice;
      slice.ParseFromString(bytes);
      base.set_data_type(slice.data_type());
      base.mutable_shape()->CopyFrom(slice.dims());
      base.set_data_size(base.data_size() + static_cast<int64_t>(slice.tensor_content().size()));
    }
  }
  if (base.data_type() == 0) {
    base.Clear();
    base.add_shape(0);
  }
  return base.SerializeAsString();
}

std::string summary_of(const PeerHold& hold, const std::string& key) {
  if (const PeerUpload* upload = find_upload(hold, debugger::ViewCMD::statistics, key)) return upload->messages.front();
  debugger::TensorSummary summary;
  summary.mutable_tensor_base();
  summary.mutable_statistics();
  return summary.SerializeAsString();
}

std::vector<std::string> serialized(const std::vector<debugger::WatchpointHit>& hits) {
  std::vector<std::string> messages;
  for (const debugger::WatchpointHit& hit : hits) messages.push_back(hit.SerializePartialAsString());
  return messages;
}

}  // namespace

RecordedPeer::~RecordedPeer() {
  kill();
  start_next();
  if (thread_.joinable()) thread_.join();
}

std::optional<debugger::Metadata> RecordedPeer::goodbye() const {
  for (const PeerCall& call : script_.calls) {
    debugger::Metadata metadata;
    if (is_farewell(call) && metadata.ParseFromString(call.messages.front())) return metadata;
  }
  return std::nullopt;
}

void RecordedPeer::start(int port) {
  thread_ = std::thread([this, port] {
    play(port);
    client_.reset();
    const std::lock_guard lock(mutex_);
    done_ = true;
    changed_.notify_all();
  });
}

void RecordedPeer::kill() {
  const std::lock_guard lock(mutex_);
  killed_ = true;
  changed_.notify_all();
}

void RecordedPeer::start_next() {
  const std::lock_guard lock(mutex_);
  next_ = true;
  changed_.notify_all();
}

bool RecordedPeer::join(milliseconds deadline) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, deadline, [this] { return done_; });
}

void RecordedPeer::play(int port) {
  client_ = RawClient::connect(port);
  if (!client_) return complain("nobody listens");
  bool leaving = false;
  size_t next_hold = 0;
  for (const PeerAct& act : script_.acts) {
    if (act.kind == PeerAct::Kind::kStart) {
      {
        std::unique_lock lock(mutex_);
        changed_.wait_for(lock, RawClient::kPatience, [this] { return next_; });
      }
      client_ = RawClient::connect(port);
      if (!client_) return complain("nobody listens any more");
      leaving = false;
    } else if (act.kind == PeerAct::Kind::kHold) {
      next_hold = act.index + 1;
      if (!leaving) leaving = !play_hold(act.index);
    } else {
      const PeerCall& call = script_.calls[act.index];
      // When told to exit, a client sends only its farewell. What never reached the recorded server is not sent here.
      if ((leaving && !is_farewell(call)) || call.grpc_status == "UNAVAILABLE") continue;
      std::vector<std::string> messages = call.messages;
      if (act.kind == PeerAct::Kind::kHits) {
        std::vector<debugger::WatchpointHit> hits(messages.size());
        for (size_t i = 0; i < messages.size(); ++i) hits[i].ParseFromString(messages[i]);
        hits = translated(hits, stopped_at(next_hold));
        if (hits.empty()) continue;
        messages = serialized(hits);
        const std::lock_guard lock(mutex_);
        sent_[next_hold] = hits;
      }
      const RawReply reply =
          is_stream(call.rpc) ? client_->stream(call.rpc, messages) : client_->unary(call.rpc, messages.front());
      if (reply.timed_out)
        return complain(std::string(live::rpc_name(call.rpc)) + " of line " + std::to_string(call.line) +
                        " was not answered");
      const std::lock_guard lock(mutex_);
      answers_[act.index] = reply;
    }
  }
}

/// False if the client was told to exit.
bool RecordedPeer::play_hold(size_t index) {
  {
    const std::lock_guard lock(mutex_);
    current_hold_ = index;
  }
  const PeerHold& hold = script_.holds[index];
  const std::string where = "suspension of line " + std::to_string(hold.line) + ": ";
  size_t rechecks = 0;
  for (bool first = true;; first = false) {
    const auto wait = client_->wait_cmd(hold.metadata_bytes);
    for (const std::string& beat : first ? hold.heartbeats : std::vector<std::string>()) {
      if (const RawReply reply = client_->unary(Rpc::kSendHeartbeat, beat); !reply.ok())
        complain(where + "heartbeat: " + reply.describe());
    }
    if (hold.dies) {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, RawClient::kPatience, [this] { return killed_; });
      lock.unlock();
      client_->drop();
      return true;
    }
    const std::optional<RawReply> reply = wait->get();
    if (!reply || !reply->ok() || reply->parsed().status() != debugger::EventReply::OK) {
      complain(where + (reply ? reply->describe() : "no command in time"));
      return false;
    }
    const debugger::EventReply command = reply->parsed();
    {
      const std::lock_guard lock(mutex_);
      told_[index].push_back(command);
    }
    if (command.has_exit()) return false;
    if (command.has_set_cmd()) {
      learn(command.set_cmd());
    } else if (command.has_view_cmd()) {
      if (!upload(hold, command.view_cmd())) return false;
    } else if (command.has_run_cmd()) {
      if (command.run_cmd().run_level() != "recheck") return true;
      if (rechecks >= hold.rechecks.size()) continue;
      const auto hits = translated(hold.rechecks[rechecks++], "");
      {
        const std::lock_guard lock(mutex_);
        sent_after_rechecks_[index].push_back(hits);
      }
      if (hits.empty()) continue;
      if (const RawReply sent = client_->stream(Rpc::kSendWatchpointHits, serialized(hits)); !sent.ok()) {
        complain(where + "hits: " + sent.describe());
        return false;
      }
    } else {
      complain(where + "a reply without a command");
    }
  }
}

bool RecordedPeer::upload(const PeerHold& hold, const debugger::ViewCMD& view) {
  std::vector<std::string> messages;
  const auto level = script_.has_levels ? view.level() : debugger::ViewCMD::value;
  for (const debugger::TensorProto& asked : view.tensors()) {
    if (level == debugger::ViewCMD::base) {
      messages.push_back(base_of(hold, key_of(asked)));
    } else if (level == debugger::ViewCMD::statistics) {
      messages.push_back(summary_of(hold, key_of(asked)));
    } else {
      debugger::TensorProto answer = asked;
      answer.set_finished(true);
      const PeerUpload* found = find_upload(hold, debugger::ViewCMD::value, key_of(asked));
      if (found == nullptr) {
        messages.push_back(answer.SerializeAsString());
        continue;
      }
      for (const std::string& bytes : found->messages) {
        answer.ParseFromString(bytes);
        answer.set_node_name(asked.node_name());
        answer.set_truncate(asked.truncate());
        messages.push_back(answer.SerializeAsString());
      }
    }
  }
  const Rpc rpc = level == debugger::ViewCMD::base         ? Rpc::kSendTensorBase
                  : level == debugger::ViewCMD::statistics ? Rpc::kSendTensorStats
                                                           : Rpc::kSendTensors;
  const RawReply reply = client_->stream(rpc, messages);
  if (!reply.ok()) complain("upload: " + reply.describe());
  return reply.ok();
}

/// Our watchpoint numbers may differ from the recorded ones; the condition and the nodes identify them.
void RecordedPeer::learn(const debugger::SetCMD& set) {
  const std::lock_guard lock(mutex_);
  if (set.delete_()) {
    std::erase_if(ours_, [&](const auto& entry) { return entry.second == set.id(); });
    names_.erase(set.id());
    return;
  }
  std::vector<std::string>& names = names_[set.id()];
  names.clear();
  for (const auto& node : set.watch_nodes()) names.push_back(node.node_name());
  int best = 0;
  size_t best_score = 0;
  for (const auto& [id, versions] : script_.sets) {
    for (const debugger::SetCMD& version : versions) {
      if (condition_text(version.watch_condition()) != condition_text(set.watch_condition())) continue;
      size_t score = 0;
      for (const auto& node : version.watch_nodes()) {
        const auto same = [&](const std::string& name) {
          return last_component(name) == last_component(node.node_name());
        };
        if (node.node_type() == "scope" || std::any_of(names.begin(), names.end(), same)) ++score;
      }
      if (score > best_score) {
        best = id;
        best_score = score;
      }
    }
  }
  if (best_score > 0) ours_[best] = set.id();
}

size_t RecordedPeer::current_hold() const {
  const std::lock_guard lock(mutex_);
  return current_hold_;
}

std::optional<int> RecordedPeer::recorded_id(int id) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [recorded, ours] : ours_) {
    if (ours == id) return recorded;
  }
  return std::nullopt;
}

/// The operator that ran last, if the suspension is a stop after it.
std::string RecordedPeer::stopped_at(size_t hold) const {
  if (hold >= script_.holds.size()) return "";
  const std::string& node = script_.holds[hold].metadata.cur_node();
  return hold > 0 && script_.holds[hold - 1].metadata.cur_node() == node ? "" : node;
}

/// Hits as this client would have sent them to us: our numbers, our spelling, and only watched tensors. Numbers that the recorded
/// server never assigned are sent unchanged. A hit with the name `*` does not identify its tensor; after an operator it becomes a
/// hit of that operator, otherwise it is dropped.
std::vector<debugger::WatchpointHit> RecordedPeer::translated(const std::vector<debugger::WatchpointHit>& hits,
                                                              const std::string& stopped_at) const {
  const std::lock_guard lock(mutex_);
  std::vector<debugger::WatchpointHit> translated;
  for (debugger::WatchpointHit hit : hits) {
    if (script_.sets.count(hit.id()) > 0) {
      const auto ours = ours_.find(hit.id());
      if (ours == ours_.end()) continue;
      hit.set_id(ours->second);
      const std::string named = hit.tensor().node_name() == "*" ? stopped_at : hit.tensor().node_name();
      const std::vector<std::string>& names = names_.at(ours->second);
      const auto spelled = std::find_if(names.begin(), names.end(), [&](const std::string& name) {
        return last_component(name) == last_component(named);
      });
      if (spelled == names.end()) continue;
      hit.mutable_tensor()->set_node_name(*spelled);
    }
    translated.push_back(hit);
  }
  return translated;
}

std::vector<debugger::WatchpointHit> RecordedPeer::sent(size_t hold) const {
  const std::lock_guard lock(mutex_);
  const auto found = sent_.find(hold);
  return found == sent_.end() ? std::vector<debugger::WatchpointHit>() : found->second;
}

std::vector<debugger::WatchpointHit> RecordedPeer::sent_after_recheck(size_t hold, size_t recheck) const {
  const std::lock_guard lock(mutex_);
  const auto found = sent_after_rechecks_.find(hold);
  return found == sent_after_rechecks_.end() || recheck >= found->second.size() ? std::vector<debugger::WatchpointHit>()
                                                                                : found->second[recheck];
}

std::vector<debugger::EventReply> RecordedPeer::told(size_t hold) const {
  const std::lock_guard lock(mutex_);
  const auto found = told_.find(hold);
  return found == told_.end() ? std::vector<debugger::EventReply>() : found->second;
}

std::optional<RawReply> RecordedPeer::answer(size_t call) const {
  const std::lock_guard lock(mutex_);
  const auto found = answers_.find(call);
  return found == answers_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<std::string> RecordedPeer::problems() const {
  const std::lock_guard lock(mutex_);
  return problems_;
}

void RecordedPeer::complain(const std::string& text) {
  const std::lock_guard lock(mutex_);
  problems_.push_back(text);
}

}  // namespace msdbg::test
