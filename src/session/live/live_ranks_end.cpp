// Waiting for all ranks, holding them again, detaching from them, and ending them.
#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "session/live/live_ranks.h"

namespace msdbg::live {
namespace {

/// When a missing rank is told, and how often again.
constexpr std::chrono::seconds kFirstReminder{10}, kNextReminder{60};
/// A client that looks for a new debugger tries again after at most 5 s.
constexpr std::chrono::milliseconds kReconnectPatience{6000};
/// How long the others may take once a rank is held.
constexpr std::chrono::milliseconds kGatherPatience{1000};
/// How long a rank that has said nothing yet may take to say goodbye once another one has.
constexpr std::chrono::milliseconds kGoodbyePatience{15000};

std::string has(const std::vector<int>& ranks) { return ranks_text(ranks) + (ranks.size() == 1 ? " has" : " have"); }
std::string are(const std::vector<int>& ranks) { return ranks_text(ranks) + (ranks.size() == 1 ? " is" : " are"); }

Clock::time_point end_of(std::optional<std::chrono::milliseconds> timeout) {
  return timeout ? Clock::now() + *timeout : Clock::time_point::max();
}

}  // namespace

/// Whether a command can go to the ranks. Error: why not.
Status LiveRanks::ready(std::string_view command) {
  switch (state()) {
    case LiveState::kHeld:
      return {};
    case LiveState::kWaiting:
      return {Code::kPeerLost, fmt::format("{}: no training has connected yet", command)};
    case LiveState::kConnected:
      return {Code::kPeerLost, fmt::format("{}: {} not connected yet; wait waits for all ranks", command, has(missing()))};
    case LiveState::kEnded:
      return {Code::kUnsupported, fmt::format("{}: the training has ended; the command was not delivered", command)};
    case LiveState::kLost:
      return {Code::kPeerLost, fmt::format("{}: the connections to the training are lost; the command was not delivered", command)};
    case LiveState::kRunning:
      break;
  }
  return {Code::kPeerLost, fmt::format("{}: no rank is held; the command was not delivered. pause() waits for the next suspension",
                                       command)};
}

/// Reports ranks that the others wait for, from time to time.
void LiveRanks::tell_late() {
  const Clock::time_point now = Clock::now();
  const std::vector<int> late = missing();
  if (late.empty()) return waiting_since_.reset(), late_told_.reset();
  if (!waiting_since_) waiting_since_ = now;
  if (now - *waiting_since_ < kFirstReminder || (late_told_ && now - *late_told_ < kNextReminder)) return;
  late_told_ = now;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - *waiting_since_);
  report(Severity::kWarning,
         fmt::format("{} not connected in {} s; {} waiting. Set the three variables where {} too, or start msdbg with --ranks {}",
                     has(late), seconds.count(), are(active()), late.size() == 1 ? "it starts" : "they start", count() - late.size()));
}

/// Ranks that come from another debugger may be in different steps: one that is missing may wait in a collective for one that is held.
void LiveRanks::help_reconnecting() {
  const std::vector<int> here = held();
  const auto is_orphan = [this](int rank) { return of(rank)->orphan(); };
  const bool reconnect = !missing().empty() && running().empty() && std::ranges::any_of(here, is_orphan);
  const Clock::time_point now = Clock::now();
  reconnecting_since_ = reconnect ? std::min(reconnecting_since_, now) : Clock::time_point::max();
  if (!reconnect || now - reconnecting_since_ < kReconnectPatience) return;
  reconnecting_since_ = Clock::time_point::max();
  const int behind = *std::ranges::min_element(here, {}, [this](int rank) { return of(rank)->completed_steps(); });
  report(Severity::kInfo, fmt::format("rank {} runs a step: another rank may wait for it in a collective", behind));
  (void)of(behind)->pass_step();
}

Status LiveRanks::wait_until_held(std::optional<std::chrono::milliseconds> timeout) {
  if (options_.kind == SessionKind::kRecording) {
    for (const auto& session : ranks_) (void)session->wait_until_held(std::chrono::milliseconds(1));
    refresh();
    if (!held().empty()) return {};
    return {Code::kPeerLost, "the recording is at its end: it holds no more suspensions"};
  }
  const Clock::time_point deadline = end_of(timeout);
  Clock::time_point first_held = Clock::time_point::max();
  for (;;) {
    refresh();
    const Clock::time_point now = Clock::now();
    const bool complete = !active().empty() && missing().empty();
    if (options_.answer_only && !active().empty()) return {};
    if (complete && running().empty()) return {};
    // Held in the middle of a step: the others may wait for it.
    if (complete && !held().empty() && std::ranges::none_of(places_, [](const Place& p) { return p.state == LiveState::kConnected; })) {
      first_held = std::min(first_held, now);
      if (now - first_held >= kGatherPatience) return {};
    }
    if (interrupt_requested()) return {Code::kInterrupted, "interrupted while waiting for a training"};
    if (now >= deadline) break;
    tell_late();
    help_reconnecting();
    wait(deadline);
  }
  if (active().empty()) {
    const bool refused = std::ranges::any_of(ranks_, [](const auto& session) { return session->refused(); });
    if (refused) return {Code::kUnsupported, "the only training that came was refused: its version is not served"};
    return {Code::kNotFound, fmt::format("no training came to {} in time: are the three variables exported there?", address())};
  }
  const std::vector<int> late = missing();
  if (late.empty()) return {Code::kNotFound, fmt::format("{} of {} ranks are held in time", held().size(), count())};
  return {Code::kNotFound, fmt::format("{} of {} ranks came to {} in time; {} did not: are the three variables exported there? --ranks {} "
                                       "waits for fewer", count() - late.size(), count(), address(), ranks_text(late),
                                       count() - late.size())};
}

Status LiveRanks::wait_until_ended(std::optional<std::chrono::milliseconds> timeout) {
  const Clock::time_point deadline = end_of(timeout);
  Clock::time_point goodbyes = Clock::time_point::max();
  for (;;) {
    refresh();
    if (active().empty()) {
      const LiveState now = state();
      const bool silent = std::ranges::any_of(places_, [](const Place& place) { return place.state == LiveState::kWaiting; });
      if (now == LiveState::kEnded) goodbyes = std::min(goodbyes, Clock::now() + kGoodbyePatience);
      if (now == LiveState::kEnded && (!options_.answer_only || !silent || Clock::now() >= goodbyes)) return {};
      if (now == LiveState::kLost) return {Code::kPeerLost, "a rank of the training went away without a goodbye"};
    }
    const auto waits = [this](int rank) { return !of(rank)->detached(); };
    if (std::ranges::any_of(held(), waits))
      return {Code::kInvalidArgument, "the training is held: continue, detach or terminate it first"};
    if (interrupt_requested()) return {Code::kInterrupted, "interrupted while the training runs"};
    if (Clock::now() >= deadline) return {Code::kPeerLost, "the training has not ended in time"};
    wait(std::min(deadline, goodbyes));
  }
}

/// Waits until all ranks are held. If some may wait for one that is held, returns without them; or, with `catch_up`, lets the ranks
/// that are behind run until all are held after the same step.
Result<RunResult> LiveRanks::gather(Clock::time_point deadline, bool catch_up) {
  CheckResult check;
  StopReason reason = StopReason::kPaused;
  Clock::time_point first_held = Clock::time_point::max();
  for (;;) {
    refresh();
    for (const int rank : held()) {
      Place& place = places_[static_cast<size_t>(rank)];
      if (!place.run) continue;
      LiveSessionImpl& session = *of(rank);
      if (RunEnd end = session.arrived(*place.run, true, StopReason::kDone)) {
        place.run.reset();
        if (*end) merge(check, std::move((*end)->check));
        else report(Severity::kWarning, end->status().message());
      }
      place.state = session.state();
    }
    if (active().empty()) {
      reason = state() == LiveState::kLost ? StopReason::kLost : StopReason::kEnded;
      break;
    }
    const Clock::time_point now = Clock::now();
    const std::vector<int> here = held();
    if (running().empty()) {
      const auto is_behind = [this](int rank) { return of(rank)->completed_steps() < most_completed(); };
      const auto behind = std::ranges::find_if(here, is_behind);
      if (!catch_up || behind == here.end()) break;
      (void)of(*behind)->pass_step();
      continue;
    }
    if (interrupt_requested()) reason = StopReason::kInterrupted;
    if (interrupt_requested() || now >= deadline) break;
    first_held = here.empty() ? Clock::time_point::max() : std::min(first_held, now);
    if (!here.empty() && now - first_held >= kGatherPatience) {
      if (!catch_up) break;
      const auto steps_of = [this](int rank) { return of(rank)->completed_steps(); };
      (void)of(*std::ranges::min_element(here, {}, steps_of))->pass_step();
      first_held = Clock::time_point::max();
    }
    wait(deadline);
  }
  for (const int rank : held()) merge(check, of(rank)->held_again(true, StopReason::kPaused).check);
  RunResult result = summary(check.hits.empty() ? reason : StopReason::kHit);
  result.state = state();
  check.steps = result.check.steps;
  result.check = std::move(check);
  return result;
}

Result<RunResult> LiveRanks::pause(std::chrono::milliseconds timeout) {
  refresh();
  if (detached_) return attach(timeout);
  if (state() == LiveState::kWaiting) return Status(Code::kPeerLost, "pause: no training has connected yet");
  return gather(Clock::now() + timeout, false);
}

Result<RunResult> LiveRanks::recheck() {
  refresh();
  if (detached_) return Status(Code::kUnsupported, "the session is detached: the training runs on its own; attach holds it again");
  if (Status status = ready("recheck"); !status.ok()) return status;
  CheckResult check;
  for (const int rank : held()) {
    Result<RunResult> own = of(rank)->recheck();
    if (!own) return Status(own.status().code(), fmt::format("rank {}: {}", rank, own.status().message()));
    merge(check, std::move(own->check));
  }
  if (const std::vector<int> others = running(); !others.empty())
    report(Severity::kWarning, fmt::format("recheck: {} not held and not judged", are(others)));
  RunResult result = summary(check.hits.empty() ? StopReason::kDone : StopReason::kHit);
  result.state = state();
  check.steps = result.check.steps;
  result.check = std::move(check);
  return result;
}

Result<RunResult> LiveRanks::terminate(std::chrono::milliseconds timeout) {
  refresh();
  if (detached_) return Status(Code::kUnsupported, "the session is detached: the training runs to its own end; attach holds it again");
  if (active().empty()) {
    if (state() == LiveState::kWaiting) return Status(Code::kPeerLost, "terminate: no training has connected yet");
    return summary(state() == LiveState::kLost ? StopReason::kLost : StopReason::kEnded);
  }
  const Clock::time_point deadline = Clock::now() + timeout;
  std::vector<bool> told(count());
  for (;;) {
    refresh();
    // Each finishes its step first; older releases run one more.
    for (const int rank : held()) {
      const auto at = static_cast<size_t>(rank);
      places_[at].run.reset();
      const Status status = ranks_[at]->send_exit();
      told[at] = told[at] || status.ok();
    }
    if (active().empty()) break;
    if (interrupt_requested() || Clock::now() >= deadline) break;
    wait(deadline);
  }
  const std::vector<int> unreached = those([&](size_t rank) { return is_active(rank) && !told[rank]; });
  if (!unreached.empty()) {
    report(Severity::kError, fmt::format("terminate: {} not held, so the command was not delivered; a process that waits for another rank "
                                         "in a collective must be ended itself, or gives up after a while",
                                         are(unreached)));
    if (std::ranges::none_of(told, [](bool each) { return each; }))
      return Status(Code::kPeerLost, "terminate: the training is not held yet; the command was not delivered. Try again, or pause()");
  }
  refresh();
  const StopReason otherwise = interrupt_requested() ? StopReason::kInterrupted : StopReason::kPaused;
  RunResult result = summary(active().empty() ? StopReason::kEnded : otherwise);
  result.state = state();
  return result;
}

Status LiveRanks::detach() {
  refresh();
  if (active().empty()) return ranks_.front()->detach();  // the error of a session without a training
  Status failed;
  for (const int rank : active()) {
    places_[static_cast<size_t>(rank)].run.reset();
    const Status status = of(rank)->detached() ? Status() : of(rank)->detach();
    if (!status.ok() && failed.ok()) failed = Status(status.code(), fmt::format("rank {}: {}", rank, status.message()));
  }
  detached_ = failed.ok();
  refresh();
  return failed;
}

Status LiveRanks::wait_until_detached(std::chrono::milliseconds timeout) {
  const Clock::time_point deadline = Clock::now() + timeout;
  for (const int rank : active()) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    const Status status = of(rank)->wait_until_detached(std::max(left, std::chrono::milliseconds(0)));
    if (!status.ok()) return {status.code(), fmt::format("rank {}: {}", rank, status.message())};
  }
  return {};
}

Result<RunResult> LiveRanks::attach(std::chrono::milliseconds timeout) {
  refresh();
  if (!detached_ && !options_.answer_only)
    return Status(Code::kUnsupported, "attach: the session is not detached; pause waits until the training is held");
  if (state() == LiveState::kEnded) return Status(Code::kUnsupported, "attach: the training has ended");
  if (options_.answer_only) return summary(StopReason::kPaused);  // it lets everything run
  const Clock::time_point deadline = Clock::now() + timeout;
  detached_ = false;
  for (const int rank : active()) (void)of(rank)->attach(std::chrono::milliseconds(0));
  return gather(deadline, true);
}

}  // namespace msdbg::live
