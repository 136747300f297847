#include "session/live/conversation.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "session/live/ended_steps.h"
#include "session/live/limits.h"
#include "session/live/watch_messages.h"

namespace msdbg::live {
namespace {

constexpr size_t kMaxEvents = 1000;  ///< texts kept for a session that never fetches them

}  // namespace

Conversation::Conversation(std::unique_ptr<Transport> transport, std::chrono::milliseconds view_deadline, std::string who)
    : transport_(std::move(transport)), view_deadline_(view_deadline), who_(std::move(who)) {}
Conversation::~Conversation() = default;

// ---- requests of the owner -------------------------------------------------------------------------------------------

void Conversation::drain() {
  std::lock_guard lock(mutex_);
  WireEvent event;
  while (transport_->next(&event, Clock::time_point::min(), false)) handle(std::exchange(event, {}));
}

LiveState Conversation::state() const {
  std::lock_guard lock(mutex_);
  return busy_ && state_ == LiveState::kHeld ? LiveState::kRunning : state_;
}
PeerProfile Conversation::profile() const {
  std::lock_guard lock(mutex_);
  return profile_;
}
Suspension Conversation::suspension() const {
  std::lock_guard lock(mutex_);
  return suspension_;
}
uint64_t Conversation::handshakes() const {
  std::lock_guard lock(mutex_);
  return handshakes_;
}
uint64_t Conversation::processes() const {
  std::lock_guard lock(mutex_);
  return processes_;
}
bool Conversation::orphan() const {
  std::lock_guard lock(mutex_);
  return orphan_;
}
bool Conversation::refused() const {
  std::lock_guard lock(mutex_);
  return refused_;
}
int64_t Conversation::goodbye_steps() const {
  std::lock_guard lock(mutex_);
  return state_ == LiveState::kEnded ? goodbye_steps_ : -1;
}
std::vector<std::string> Conversation::take_graphs() {
  std::lock_guard lock(mutex_);
  graph_charges_.clear();
  return std::exchange(graphs_, {});
}
std::vector<debugger::WatchpointHit> Conversation::take_hits() {
  std::lock_guard lock(mutex_);
  hit_charges_.clear();
  return std::exchange(hits_, {});
}
std::vector<LiveEvent> Conversation::take_events() {
  std::lock_guard lock(mutex_);
  transport_->acknowledge();
  if (dropped_events_ > 0)
    events_.push_back({Severity::kWarning, fmt::format("{} further messages are not shown", std::exchange(dropped_events_, 0))});
  for (LiveEvent& event : events_) {
    const auto count = event_counts_.find(event.text);
    if (count != event_counts_.end() && count->second > 1) event.text += fmt::format(" ({} times)", count->second);
  }
  event_counts_.clear();
  return std::exchange(events_, {});
}
void Conversation::report(Severity severity, std::string text) {
  std::lock_guard lock(mutex_);
  add_event(severity, text);
}

// A misbehaving peer may cause the same message a thousand times in one step.
void Conversation::add_text(Severity severity, std::string text) {
  if (const auto known = event_counts_.find(text); known != event_counts_.end()) {
    ++known->second;
    return;
  }
  if (events_.size() >= kMaxEvents) {
    ++dropped_events_;
    return;
  }
  if (severity != Severity::kInfo) event_counts_.emplace(text, 1);
  events_.push_back({severity, std::move(text)});
}

bool Conversation::wait_settled(Clock::time_point deadline, bool stop_on_interrupt) {
  std::lock_guard lock(mutex_);
  WireEvent event;
  for (;;) {
    if ((state_ == LiveState::kHeld && !busy_) || state_ == LiveState::kEnded || state_ == LiveState::kLost) return true;
    if (!transport_->next(&event, deadline, stop_on_interrupt)) return false;
    handle(std::exchange(event, {}));
  }
}

bool Conversation::wait_held(Clock::time_point deadline, bool stop_on_interrupt) {
  std::lock_guard lock(mutex_);
  WireEvent event;
  while (state_ != LiveState::kHeld || busy_) {
    if (!transport_->next(&event, deadline, stop_on_interrupt)) return false;
    handle(std::exchange(event, {}));
  }
  return true;
}

// ---- what arrives ----------------------------------------------------------------------------------------------------

void Conversation::note_passed() {
  Passed passed = transport_->stop_ahead();
  if (passed.count == 0) return;
  passed_ += passed.count;
  suspension_.number += passed.count;
  suspension_.cur_step = passed.last.cur_step();
  suspension_.cur_node = passed.last.cur_node();
  suspension_.device = passed.last.device_name();
  suspension_.begins = false;
  suspension_.computed = passed.last.step_computed();
  suspension_.cut_short.clear();
  suspension_.skipped.assign(passed.last.skipped().begin(), passed.last.skipped().end());
  suspension_.initial = suspension_.late_graph = false;
  std::ranges::move(passed.ended, std::back_inserter(ended_));
}

/// What the training tells of steps at whose end it did not ask; the last of them was `last_step`.
void Conversation::take_in_ends(debugger::Metadata& metadata, int64_t last_step) {
  live::take_ended(metadata, report_, ended_);
  if (metadata.passed() == 0) return;
  passed_ += metadata.passed();
  suspension_.number += metadata.passed();
  suspension_.cur_step = last_step;
  suspension_.initial = suspension_.late_graph = false;
}

void Conversation::handle(WireEvent event) {
  using Kind = WireEvent::Kind;
  // What the transport answered by itself comes before everything that it delivers.
  note_passed();
  switch (event.kind) {
    case Kind::kHandshake:
      return handle_handshake(event);
    case Kind::kWait:
      return handle_wait(std::move(event));
    case Kind::kFarewell:
      if (state_ != LiveState::kEnded) {
        state_ = LiveState::kEnded;
        busy_ = false;
        goodbye_steps_ = event.metadata.cur_step();
        take_in_ends(event.metadata, goodbye_steps_ - 1);
        add_event(Severity::kInfo, fmt::format("the training at {} has ended; it counts {} step{}", event.peer, goodbye_steps_,
                                         goodbye_steps_ == 1 ? "" : "s"));
      }
      return;
    case Kind::kDisconnected:
      busy_ = false;
      if (state_ == LiveState::kEnded || state_ == LiveState::kWaiting) return;
      lost_held_ = state_ == LiveState::kHeld;
      state_ = LiveState::kLost;
      return add_event(Severity::kError, event.text);
    case Kind::kGraphs:
      late_graph_ = ran_ && state_ == LiveState::kRunning;
      if (event.graphs.empty()) add_event(Severity::kWarning, "the training sent an empty graph; nodes are known from hits only");
      std::move(event.graphs.begin(), event.graphs.end(), std::back_inserter(graphs_));
      graph_charges_.push_back(std::move(event.charge));
      return;
    case Kind::kHits:
      return take_in_hits(std::move(event));
    case Kind::kBases:
      bases_ = std::move(event.bases);
      return;
    case Kind::kSummaries:
      summaries_ = std::move(event.summaries);
      return;
    case Kind::kValues:
      // An upload that arrives after its deadline is not the awaited one.
      if (event.values == values_) values_done_ = true;
      return;
    case Kind::kHeartbeat:
      return;
    case Kind::kRefused:
      return add_text(Severity::kWarning, std::move(event.text));  // about another process
    case Kind::kProblem:
      return add_event(Severity::kWarning, event.text);
  }
}

void Conversation::take_in_hits(WireEvent event) {
  const size_t fit = std::min(event.hits.size(), limits::kHits - hits_.size());
  if (const size_t left_out = event.left_out + event.hits.size() - fit; left_out > 0)
    add_event(Severity::kWarning, fmt::format("more hits in one suspension than msdbg keeps; {} are left out", left_out));
  std::move(event.hits.begin(), event.hits.begin() + static_cast<std::ptrdiff_t>(fit), std::back_inserter(hits_));
  hit_charges_.push_back(std::move(event.charge));
}

void Conversation::handle_handshake(const WireEvent& event) {
  Result<PeerProfile> profile = make_profile(event.metadata, event.peer);
  refused_ = !profile.ok();
  if (refused_) {
    add_event(Severity::kError, fmt::format("refused: {}", profile.status().message()));
    return;  // it asks for a command inside the handshake and will be told to exit
  }
  const bool same_process = peer_ == event.peer && state_ != LiveState::kEnded && state_ != LiveState::kLost;
  profile_ = std::move(*profile);
  peer_ = event.peer;
  state_ = LiveState::kConnected;
  ran_ = busy_ = orphan_ = recalled_ = late_graph_ = false;
  awaiting_ = true;
  ++handshakes_;
  hits_.clear();
  hit_charges_.clear();
  if (!same_process) {
    graphs_.clear();  // from a process that was never held here
    graph_charges_.clear();
    ++processes_;
    const uint64_t number = suspension_.number;
    suspension_ = {};
    suspension_.number = number;
  }
  add_event(Severity::kInfo,
      fmt::format("connected: {} {} at {}", profile_.peer.program_text(), profile_.peer.device, peer_));
}

// Whether this process was debugged before. On a new connection only its metadata can show that: a held process repeats what it
// sent then, a running one has not gone back.
bool Conversation::is_known(const WireEvent& wait) const {
  if (handshakes_ == 0) return false;
  if (state_ == LiveState::kEnded) return peer_ == wait.peer;  // its connection stayed open
  const debugger::Metadata& metadata = wait.metadata;
  if (wait.turned_away || (metadata.backend() == "Ascend") != profile_.ascend) return false;
  if (!lost_held_) return metadata.cur_step() >= suspension_.cur_step;
  return metadata.cur_step() == suspension_.cur_step && metadata.cur_node() == suspension_.cur_node;
}

void Conversation::handle_wait(WireEvent event) {
  if (refused_) {
    if (Status status = transport_->answer(make_exit()); status.ok()) add_event(Severity::kInfo, "the refused training was told to exit");
    return;
  }
  const debugger::Metadata& metadata = event.metadata;
  if (state_ == LiveState::kWaiting || state_ == LiveState::kEnded || state_ == LiveState::kLost) {
    // It was held by a debugger that exited, or it reconnected. The same process goes on.
    const bool known = is_known(event);
    // Held before its first step: no operator has run. An Ascend training never names one.
    const bool untouched = metadata.cur_step() == 0 && metadata.cur_node().empty() && !metadata.begins() && metadata.backend() != "Ascend";
    if (!known) {
      std::optional<debugger::Metadata> handshake = recall_ ? recall_(metadata) : std::nullopt;
      if (handshake) handshake->set_device_name(metadata.device_name());
      Result<PeerProfile> profile = handshake ? make_profile(*handshake, event.peer) : Status(Code::kNotFound, "");
      recalled_ = profile.ok();
      profile_ = profile ? std::move(*profile) : unknown_profile(metadata, event.peer);
      orphan_ = true;
      ran_ = !untouched;
      ++handshakes_;
      ++processes_;
    }
    peer_ = event.peer;
    profile_.peer.address = event.peer;
    awaiting_ = true;
    add_event(Severity::kWarning, fmt::format("the training at {} is held again; {}", event.peer,
                                            known       ? "it was connected before"
                                            : recalled_ ? "it came without handshake and graph; those of a recording are used"
                                                        : "it came without handshake and graph"));
  }
  state_ = LiveState::kHeld;
  busy_ = false;
  if (!std::exchange(awaiting_, false)) return;
  take_in_ends(event.metadata, int64_t{metadata.cur_step()} - 1);
  suspension_.last_step = suspension_.cur_step;
  suspension_.last_node = suspension_.cur_node;
  suspension_.cur_step = metadata.cur_step();
  suspension_.cur_node = metadata.cur_node();
  suspension_.device = metadata.device_name();
  suspension_.begins = metadata.begins();
  suspension_.computed = metadata.step_computed();
  suspension_.skipped.assign(metadata.skipped().begin(), metadata.skipped().end());
  suspension_.late_graph = std::exchange(late_graph_, false);
  // It is passed over when a graph comes late.
  suspension_.cut_short = suspension_.late_graph ? "" : metadata.cut_short().substr(0, limits::kReasonBytes);
  suspension_.initial = !ran_ || suspension_.late_graph;
  ++suspension_.number;
  if (!event.came_from) return;
  suspension_.last_step = event.came_from->last_step;
  suspension_.last_node = event.came_from->last_node;
  suspension_.node_level = event.came_from->run_level == "node";
  suspension_.asked_node = suspension_.node_level ? event.came_from->node : "";
}

}  // namespace msdbg::live
