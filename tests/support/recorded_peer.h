// A training process that behaves as a recorded one did: it says what the recorded client said, in that order, and
// answers the commands it is given from what the recorded client answered in the same suspension.
//
// It runs on a thread of its own over a real connection. What it was told and what went wrong can be read from any thread.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "debug_grpc.pb.h"
#include "support/raw_client.h"
#include "support/recorded_conversation.h"

namespace msdbg::test {

/// A tensor as the recorded client answered one look at it.
struct PeerUpload {
  debugger::ViewCMD::Level level = debugger::ViewCMD::value;
  std::string key;                    ///< "name:slot" or "name:slot:prev", the name as the client looks it up
  std::vector<std::string> messages;
};

struct PeerHold {
  std::string metadata_bytes;
  debugger::Metadata metadata;
  std::vector<debugger::EventReply> commands;        ///< of the recorded server, views included, in order
  std::optional<debugger::EventReply> left;          ///< run or exit; nothing when it never came
  std::vector<PeerUpload> uploads;
  std::vector<std::vector<debugger::WatchpointHit>> rechecks;
  std::vector<debugger::WatchpointHit> hits;         ///< that were sent just before it
  std::vector<std::string> heartbeats;               ///< while it was held
  int failures = 0;                                  ///< WaitCMDs that the recorded server refused or did not reach
  bool odd_reply = false;                            ///< it was given something that is no command
  bool dies = false;                                 ///< the process is killed while it is held
  bool after_restart = false;                        ///< first suspension of a new process
  int line = 0;
};

struct PeerCall {
  live::Rpc rpc{};
  std::vector<std::string> messages;
  std::string reply;        ///< the recorded server's
  std::string grpc_status;
  int line = 0;
};

class RecordedPeer {
 public:
  explicit RecordedPeer(const RecordedConversation& conversation);
  ~RecordedPeer();

  const std::vector<PeerHold>& holds() const { return holds_; }
  /// The metadata of its farewell; nothing when it just stopped talking.
  std::optional<debugger::Metadata> goodbye() const;
  const std::vector<PeerCall>& calls() const { return calls_; }

  void start(int port);
  /// Kills the process that is held in a suspension with `dies`, and lets the next one start.
  void kill();
  void start_next();
  /// Until everything was said, or the deadline. False at the deadline.
  bool join(milliseconds deadline = RawClient::kPatience);

  /// The suspension that the client entered last.
  size_t current_hold() const;
  /// What our server answered: to each WaitCMD of a suspension, and to each other call.
  std::vector<debugger::EventReply> told(size_t hold) const;
  std::optional<RawReply> answer(size_t call) const;
  /// Hits that were really sent: just before a suspension, and after each recheck in it.
  std::vector<debugger::WatchpointHit> sent(size_t hold) const;
  std::vector<debugger::WatchpointHit> sent_after_recheck(size_t hold, size_t recheck) const;
  /// Recorded id of a watchpoint that our server gave the number `id`; nothing for one that the recorded server did not set.
  std::optional<int> recorded_id(int id) const;
  std::vector<std::string> problems() const;

 private:
  struct Act {
    enum class Kind : uint8_t { kCall, kHits, kHold, kStart } kind;
    size_t index = 0;  // of the call or the suspension
  };

  void read(const RecordedConversation& conversation);
  void play(int port);
  bool play_hold(size_t index);
  bool upload(const PeerHold& hold, const debugger::ViewCMD& view);
  void learn(const debugger::SetCMD& set);
  std::vector<debugger::WatchpointHit> translated(const std::vector<debugger::WatchpointHit>& hits, const std::string& stopped_at) const;
  std::string stopped_at(size_t hold) const;
  void complain(const std::string& text);

  std::vector<PeerHold> holds_;
  std::vector<PeerCall> calls_;
  std::vector<Act> acts_;
  bool has_levels_ = true;
  std::map<int, std::vector<debugger::SetCMD>> recorded_sets_;  // by recorded id

  std::unique_ptr<RawClient> client_;
  std::thread thread_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  size_t current_hold_ = 0;
  bool killed_ = false, next_ = false, done_ = false;
  std::map<size_t, std::vector<debugger::EventReply>> told_;
  std::map<size_t, RawReply> answers_;
  std::map<size_t, std::vector<debugger::WatchpointHit>> sent_;
  std::map<size_t, std::vector<std::vector<debugger::WatchpointHit>>> sent_after_rechecks_;
  std::map<int, int> ours_;                                    // recorded id -> our id
  std::map<int, std::vector<std::string>> names_;              // our id -> names as we sent them
  std::vector<std::string> problems_;
};

/// The part behind the last slash.
std::string last_component(const std::string& name);
/// Parameters that no client reads, whether disabled or not.
bool has_no_effect(const std::string& param);
/// What is armed by a SetCMD apart from its nodes: "tensor_all_zero zero_percentage_ge=100", disabled ones left out.
std::string condition_text(const debugger::WatchCondition& condition);

}  // namespace msdbg::test
