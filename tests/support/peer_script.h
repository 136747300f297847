// The messages of a recorded client, ordered by its suspensions, and the answers it got there.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "debug_grpc.pb.h"
#include "support/recorded_conversation.h"

namespace msdbg::test {

/// A tensor as in the recorded client's answer to a view.
struct PeerUpload {
  debugger::ViewCMD::Level level = debugger::ViewCMD::value;
  std::string key;  ///< "name:slot" or "name:slot:prev", the name as the client looks it up
  std::vector<std::string> messages;
};

struct PeerHold {
  std::string metadata_bytes;
  debugger::Metadata metadata;
  std::vector<debugger::EventReply> commands;  ///< of the recorded server, including views, in order
  std::optional<debugger::EventReply> left;    ///< run or exit; nullopt if it never came
  std::vector<PeerUpload> uploads;
  std::vector<std::vector<debugger::WatchpointHit>> rechecks;
  std::vector<std::string> heartbeats;  ///< while it was held
  int failures = 0;                     ///< WaitCMDs that the recorded server refused or never received
  bool odd_reply = false;               ///< it received something that is not a command
  bool dies = false;                    ///< the process is killed while it is held
  bool after_restart = false;           ///< first suspension of a new process
  int line = 0;
};

struct PeerCall {
  live::Rpc rpc{};
  std::vector<std::string> messages;
  std::string reply;  ///< the recorded server's
  std::string grpc_status;
  int line = 0;
};

/// The client's next action: a call or a suspension by its index, or a new process.
struct PeerAct {
  enum class Kind : uint8_t { kCall, kHits, kHold, kStart } kind;
  size_t index = 0;
};

struct PeerScript {
  std::vector<PeerHold> holds;
  std::vector<PeerCall> calls;
  std::vector<PeerAct> acts;
  bool has_levels = true;                             ///< false: answers every view with the value
  std::map<int, std::vector<debugger::SetCMD>> sets;  ///< every version of each watchpoint, by recorded id
};
PeerScript read_script(const RecordedConversation& conversation);

/// "name:slot" or "name:slot:prev" as a client looks it up.
std::string key_of(const debugger::TensorProto& asked);
/// Null if the recorded client did not answer that in this suspension.
const PeerUpload* find_upload(const PeerHold& hold, debugger::ViewCMD::Level level, const std::string& key);
bool is_stream(live::Rpc rpc);

/// The part after the last slash.
std::string last_component(const std::string& name);
/// Parameters that no client reads, whether disabled or not.
bool has_no_effect(const std::string& param);
/// A SetCMD without its nodes: "tensor_all_zero zero_percentage_ge=100", without disabled parameters.
std::string condition_text(const debugger::WatchCondition& condition);

}  // namespace msdbg::test
