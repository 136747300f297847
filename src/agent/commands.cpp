// A suspension: executes the debugger's commands until one of them resumes the training.
#include <fmt/format.h>

#include "agent/conversation.h"
#include "agent/uploads.h"

namespace msdbg::agent {
namespace {

constexpr int kMaxFailures = 5;

}  // namespace

void Conversation::suspend() {
  // The same bytes for every call of one suspension.
  const grpc::ByteBuffer message = to_buffer(metadata(true));
  int failures = 0;
  while (!finished_) {
    const Reply reply = caller_->call("WaitCMD", message);
    if (finished_) return;
    if (reply.ok) {
      clear_waiting_problem();
      if (!execute(reply.message)) return;
      continue;
    }
    note("waiting for commands", reply, true);
    // Success does not reset the count: six failures in one suspension end the training.
    if (++failures > kMaxFailures) return terminate();
    if (!pause(options_.retry_unit * failures)) return;
  }
}

/// False if the suspension is over.
bool Conversation::execute(const debugger::EventReply& command) {
  switch (command.cmd_case()) {
    case debugger::EventReply::kExit:
      set_problem("");  // a requested end
      terminate();
      return false;
    case debugger::EventReply::kRunCmd:
      return !run(command.run_cmd());
    case debugger::EventReply::kSetCmd:
      table_.apply(command.set_cmd());
      return true;
    case debugger::EventReply::kViewCmd:
      if (const Reply reply = answer_view(*caller_, command.view_cmd(), store_, traits_); !reply.ok) {
        note("sending tensors", reply);
      }
      if (store_ != nullptr) note_unfetched();
      return true;
    case debugger::EventReply::kVersionMatched:
      set_problem("the debugger answered a wait for commands with a version");
      terminate();
      return true;
    case debugger::EventReply::CMD_NOT_SET:
      break;
  }
  return true;
}

/// True if the training continues.
bool Conversation::run(const debugger::RunCMD& command) {
  if (traits_.recheck && command.run_level() == "recheck") {
    recheck();
    return false;
  }
  node_level_ = command.run_level() == "node" && !traits_.ascend;
  stop_name_ = command.node_name();
  looked_at_ = command.has_looked_at() ? std::optional(command.looked_at()) : std::nullopt;
  may_hold_at_beginning_ = command.begins();
  initial_ = false;
  reports_.begin(command);
  caller_->open_ahead("WaitCMD");
  return true;
}

void Conversation::recheck() {
  send_hits(table_.judge(*store_, initial_ ? JudgeTime::kInitialRecheck : JudgeTime::kRecheck));
}

void Conversation::send_hits(const std::vector<debugger::WatchpointHit>& hits) {
  if (hits.empty()) return;
  size_t at = 0;
  const Reply reply = caller_->stream("SendWatchpointHits", [&](grpc::ByteBuffer& message) {
    if (at == hits.size()) return false;
    message = to_buffer(hits[at++]);
    return true;
  });
  if (!reply.ok) note("reporting hits", reply);
}

bool Conversation::pause(std::chrono::milliseconds time) {
  std::unique_lock lock(pause_mutex_);
  return !pause_.wait_for(lock, time, [this] { return finished_.load(); });
}

void Conversation::terminate() {
  terminated_ = true;
  if (heartbeat_) heartbeat_->stop();
}

}  // namespace msdbg::agent
