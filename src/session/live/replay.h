// Replays a recording in place of a training process, that of one rank: the session's commands move through the recorded suspensions.
//
// The run is fixed; queries about it are free. Every run command goes to the next recorded suspension that fits it, views return
// what was read in that suspension, a recheck returns the recorded hits. Nothing is ever written.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "session/live/mailbox.h"
#include "session/live/recording_index.h"
#include "session/live/transport.h"

namespace msdbg::live {

class ReplayTransport final : public Transport {
 public:
  /// One transport per rank.
  static Result<std::vector<std::unique_ptr<ReplayTransport>>> open(const std::string& path);

  bool next(WireEvent* event, Clock::time_point deadline, bool stop_on_interrupt) override;
  Status answer(const debugger::EventReply& reply) override;
  void expect(std::shared_ptr<ValueUpload> upload) override { upload_ = std::move(upload); }
  uint64_t received_bytes() const override { return received_; }
  void answer_unattended(std::vector<debugger::EventReply> replies) override;
  size_t stop_unattended() override { return 0; }
  std::string address() const override { return path_; }
  int descriptor() const override { return mailbox_.descriptor(); }
  void acknowledge() override { mailbox_.acknowledge(); }

 private:
  ReplayTransport(std::unique_ptr<RecordingReader> reader, RecordingIndex index, std::string path);

  void advance(const debugger::RunCMD& command);
  bool fits(size_t candidate, const debugger::RunCMD& command);
  void arrive();
  void hold_again();
  void finish();
  void deliver_all(const std::vector<RecordedCall>& calls);
  void deliver(const RecordedCall& call);
  void post(WireEvent event);
  debugger::Metadata metadata_of(size_t hold);
  void view(const debugger::ViewCMD& command);
  void fill(const debugger::TensorProto& asked, ValueUpload& into);
  debugger::TensorBase base_of(const debugger::TensorProto& asked);
  const RecordedUpload* find(debugger::ViewCMD::Level level, const debugger::TensorProto& asked);
  template <typename Message>
  bool read(uint64_t frame, Message* message);

  const std::unique_ptr<RecordingReader> reader_;
  const RecordingIndex index_;
  const std::string path_;
  Mailbox mailbox_;
  size_t at_ = 0;            // of the current suspension; index_.holds.size(): past the last
  bool open_ = false;        // a WaitCMD waits for its answer
  bool over_ = false;        // the tail has been played
  std::vector<RecordedCall> later_;  // after the end of a process
  size_t rechecks_ = 0;      // answered in this suspension
  /// The uploads of the suspension `found_in_`, by request.
  std::unordered_map<std::string, const RecordedUpload*> found_;
  std::optional<size_t> found_in_;
  std::shared_ptr<ValueUpload> upload_;
  std::atomic<uint64_t> received_{0};
};

}  // namespace msdbg::live
