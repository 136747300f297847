#include "support/peer_script.h"

#include <utility>

namespace msdbg::test {

using live::Rpc;

namespace {

class ScriptReader {
 public:
  void take(const RecordedMessage& message) {
    if (message.direction == RecordedMessage::Direction::kNote) return note(message.text);
    if (message.rpc == Rpc::kWaitCmd) return message.is_client() ? held(message) : commanded(message);
    if (message.is_server()) return answered(message);
    if (hold() != nullptr && message.rpc == Rpc::kSendHeartbeat) {
      hold()->heartbeats.push_back(message.bytes);
    } else if (hold() != nullptr && command_.has_view_cmd() && is_stream(message.rpc)) {
      uploaded(message);
    } else if (hold() != nullptr && message.rpc == Rpc::kSendWatchpointHits && !hold()->rechecks.empty()) {
      hold()->rechecks.back().emplace_back().ParseFromString(message.bytes);
    } else {
      called(message);
    }
  }
  PeerScript finish() { return std::move(script_); }

 private:
  PeerHold* hold() { return held_ ? &script_.holds.back() : nullptr; }

  void note(const std::string& text) {
    if (text.starts_with("client process dies") && hold() != nullptr) hold()->dies = true;
    if (!text.starts_with("a new training process")) return;
    script_.acts.push_back({PeerAct::Kind::kStart, 0});
    held_ = false;
    restarted_ = true;
  }

  void held(const RecordedMessage& message) {
    if (std::exchange(held_, true)) return;  // the same suspension asks again
    PeerHold& made = script_.holds.emplace_back();
    made.metadata_bytes = message.bytes;
    made.metadata.ParseFromString(message.bytes);
    made.after_restart = std::exchange(restarted_, false);
    made.line = message.line;
    script_.acts.push_back({PeerAct::Kind::kHold, script_.holds.size() - 1});
  }

  void commanded(const RecordedMessage& message) {
    command_.Clear();
    if (hold() == nullptr) return;
    if (!message.grpc_status.empty() || !command_.ParseFromString(message.bytes) ||
        command_.status() != debugger::EventReply::OK) {
      ++hold()->failures;
      return;
    }
    const bool recheck = command_.run_cmd().run_level() == "recheck";
    if (command_.has_exit() || (command_.has_run_cmd() && !recheck)) {
      hold()->left = command_;
      held_ = false;
    } else if (command_.has_set_cmd() || command_.has_view_cmd() || recheck) {
      hold()->commands.push_back(command_);
      if (recheck) hold()->rechecks.emplace_back();
      const debugger::SetCMD& set = command_.set_cmd();
      if (command_.has_set_cmd() && !set.delete_()) script_.sets[set.id()].push_back(set);
    } else {
      hold()->odd_reply = true;
    }
  }

  void answered(const RecordedMessage& message) {
    const auto open = open_.find(message.rpc);
    if (open == open_.end()) return;
    script_.calls[open->second].reply = message.bytes;
    script_.calls[open->second].grpc_status = message.grpc_status;
    open_.erase(open);
  }

  void uploaded(const RecordedMessage& message) {
    if (message.rpc != Rpc::kSendTensors) {
      if (message.index >= command_.view_cmd().tensors_size()) return;
      const auto level = message.rpc == Rpc::kSendTensorBase ? debugger::ViewCMD::base : debugger::ViewCMD::statistics;
      hold()->uploads.push_back({level, key_of(command_.view_cmd().tensors(message.index)), {message.bytes}});
      return;
    }
    debugger::TensorProto slice;
    slice.ParseFromString(message.bytes);
    const std::string key = key_of(slice);
    if (find_upload(*hold(), debugger::ViewCMD::value, key) == nullptr) {
      hold()->uploads.push_back({debugger::ViewCMD::value, key, {}});
    }
    for (PeerUpload& upload : hold()->uploads) {
      if (upload.level != debugger::ViewCMD::value || upload.key != key) continue;
      // Requested twice, answered twice: keep one answer.
      debugger::TensorProto last;
      if (!upload.messages.empty()) last.ParseFromString(upload.messages.back());
      if (!last.finished()) upload.messages.push_back(message.bytes);
    }
  }

  void called(const RecordedMessage& message) {
    const auto open = open_.find(message.rpc);
    if (open != open_.end() && message.index > 0) {
      script_.calls[open->second].messages.push_back(message.bytes);
      return;
    }
    open_[message.rpc] = script_.calls.size();
    const bool hits = message.rpc == Rpc::kSendWatchpointHits;
    script_.acts.push_back({hits ? PeerAct::Kind::kHits : PeerAct::Kind::kCall, script_.calls.size()});
    script_.calls.push_back({message.rpc, {message.bytes}, {}, {}, message.line});
    if (message.rpc != Rpc::kSendMetadata) return;
    debugger::Metadata metadata;
    metadata.ParseFromString(message.bytes);
    script_.has_levels = !metadata.ms_version().starts_with("1.3");
  }

  PeerScript script_;
  bool held_ = false, restarted_ = false;
  debugger::EventReply command_;  // the last one of the suspension
  std::map<Rpc, size_t> open_;    // calls without their reply
};

}  // namespace

PeerScript read_script(const RecordedConversation& conversation) {
  ScriptReader reader;
  for (const RecordedMessage& message : conversation.messages) reader.take(message);
  return reader.finish();
}

std::string key_of(const debugger::TensorProto& asked) {
  std::string key = (asked.truncate() ? last_component(asked.node_name()) : asked.node_name()) + ":" + asked.slot();
  if (!asked.iter().empty()) key += ":" + asked.iter();
  return key;
}

bool is_stream(Rpc rpc) { return rpc != Rpc::kWaitCmd && rpc != Rpc::kSendMetadata && rpc != Rpc::kSendHeartbeat; }

const PeerUpload* find_upload(const PeerHold& hold, debugger::ViewCMD::Level level, const std::string& key) {
  for (const PeerUpload& upload : hold.uploads) {
    if (upload.level == level && upload.key == key) return &upload;
  }
  return nullptr;
}

std::string last_component(const std::string& name) { return name.substr(name.rfind('/') + 1); }

bool has_no_effect(const std::string& param) { return param == "epsilon" || param == "equal_nan"; }

std::string condition_text(const debugger::WatchCondition& condition) {
  std::string text = debugger::WatchCondition::Condition_Name(condition.condition());
  for (const auto& param : condition.params()) {
    if (param.disabled() || has_no_effect(param.name())) continue;
    text += " " + param.name() + "=" + format_short(param.value(), 6);
  }
  return text;
}

}  // namespace msdbg::test
