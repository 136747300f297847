// A training process that behaves like a recorded one: it sends the recorded client's messages in order, and answers commands with
// what the recorded client answered in the same suspension.
//
// It runs on its own thread over a real connection. Any thread can read what it received and what went wrong.
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
#include "support/peer_script.h"
#include "support/raw_client.h"

namespace msdbg::test {

class RecordedPeer {
 public:
  explicit RecordedPeer(const RecordedConversation& conversation) : script_(read_script(conversation)) {}
  ~RecordedPeer();

  const std::vector<PeerHold>& holds() const { return script_.holds; }
  /// The metadata of its farewell; nullopt if it just fell silent.
  std::optional<debugger::Metadata> goodbye() const;
  const std::vector<PeerCall>& calls() const { return script_.calls; }

  void start(int port);
  /// Kills the process that is held in a suspension with `dies`, and starts the next one.
  void kill();
  void start_next();
  /// Waits until everything was sent, or the deadline. False at the deadline.
  bool join(milliseconds deadline = RawClient::kPatience);

  /// The suspension that the client entered last.
  size_t current_hold() const;
  /// Our server's answers: to each WaitCMD of a suspension, and to each other call.
  std::vector<debugger::EventReply> told(size_t hold) const;
  std::optional<RawReply> answer(size_t call) const;
  /// Hits that were actually sent: just before a suspension, and after each recheck in it.
  std::vector<debugger::WatchpointHit> sent(size_t hold) const;
  std::vector<debugger::WatchpointHit> sent_after_recheck(size_t hold, size_t recheck) const;
  /// Recorded id of a watchpoint that our server numbered `id`; nullopt if the recorded server did not set it.
  std::optional<int> recorded_id(int id) const;
  std::vector<std::string> problems() const;

 private:
  void play(int port);
  bool play_hold(size_t index);
  bool upload(const PeerHold& hold, const debugger::ViewCMD& view);
  void learn(const debugger::SetCMD& set);
  std::vector<debugger::WatchpointHit> translated(const std::vector<debugger::WatchpointHit>& hits,
                                                  const std::string& stopped_at) const;
  std::string stopped_at(size_t hold) const;
  void complain(const std::string& text);

  const PeerScript script_;
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
  std::map<int, int> ours_;                        // recorded id -> our id
  std::map<int, std::vector<std::string>> names_;  // our id -> names as we sent them
  std::vector<std::string> problems_;
};

}  // namespace msdbg::test
