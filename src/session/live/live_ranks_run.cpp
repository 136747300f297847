// Running all ranks together: a command becomes rounds, each of which takes every rank as far as the others.
#include <fmt/format.h>

#include <algorithm>

#include "session/live/live_ranks.h"

namespace msdbg::live {
namespace {

/// How long the others may take once a rank has stopped early: as long as it took, within these limits.
constexpr std::chrono::milliseconds kLeastPatience{250}, kMostPatience{5000};
/// A rank that is this much later than the others is shown.
constexpr std::chrono::seconds kLate{2};

}  // namespace

struct LiveRanks::Round {
  enum class Turn : uint8_t {
    kOut,         ///< nothing to do
    kBackground,  ///< still on its way from an earlier command; nobody waits for it
    kAwaited,     ///< not held yet; released once it is
    kReleased,
    kDone,
  };
  RunRequest each;       ///< for one rank
  int64_t goal = 0;      ///< completed steps, for commands that end with a step
  bool passes = false;   ///< nobody looks at the end of this step
  std::vector<Turn> turns;
  CheckResult check;
  bool stopped = false, not_checked = false, cut_short = false, lost = false, interrupted = false, met = false, not_met = false;
  Status failure;
  std::optional<Clock::time_point> deadline;
  Clock::time_point began = Clock::now();
  Clock::time_point first_stop = Clock::time_point::max();  ///< when a rank stopped that others may wait for
  Clock::time_point first_done = Clock::time_point::max();
  std::function<void(const std::string& late)> tick;
};

void LiveRanks::merge(CheckResult& into, CheckResult from) {
  std::ranges::move(from.hits, std::back_inserter(into.hits));
  std::ranges::move(from.not_checked, std::back_inserter(into.not_checked));
  std::ranges::move(from.rule_problems, std::back_inserter(into.rule_problems));
  into.total_hits += from.total_hits;
  into.interrupted = into.interrupted || from.interrupted;
  into.coverage.tensors += from.coverage.tensors;
  into.coverage.checked += from.coverage.checked;
  into.coverage.not_checked += from.coverage.not_checked;
  into.coverage.bytes += from.coverage.bytes;
  into.coverage.from_cache += from.coverage.from_cache;
}

void LiveRanks::begin(Round& round, size_t rank) {
  auto run = std::make_unique<RunInProgress>(round.each);
  run->passes = round.passes;
  // A rank whose graphs lack the node runs to the end of its step.
  if (round.each.kind == RunKind::kToNode && !find_node(ranks_[rank]->graphs(), round.each.node)) run->request.kind = RunKind::kStep;
  if (RunEnd end = ranks_[rank]->begin(*run)) return take(round, rank, std::move(*end));
  places_[rank].run = std::move(run);
  places_[rank].state = LiveState::kRunning;
  round.turns[rank] = Round::Turn::kReleased;
}

/// Processes what came of a rank that is on its way, if anything did.
void LiveRanks::proceed(Round& round, size_t rank) {
  StopReason reason = StopReason::kDone;
  if (!ranks_[rank]->settled(&reason)) return;
  Place& place = places_[rank];
  place.state = ranks_[rank]->state();
  if (std::unique_ptr<RunInProgress> run = std::move(place.run)) {
    RunEnd end = ranks_[rank]->arrived(*run, place.state == LiveState::kHeld, reason);
    if (end) return take(round, rank, std::move(*end));
    place.run = std::move(run);
    place.state = LiveState::kRunning;
    return;
  }
  round.turns[rank] = Round::Turn::kDone;
  if (place.state != LiveState::kHeld) round.lost = round.lost || reason == StopReason::kLost;
  else if (ranks_[rank]->completed_steps() < round.goal) begin(round, rank);
}

/// Adds the result of a rank to that of the round.
void LiveRanks::take(Round& round, size_t rank, Result<RunResult> end) {
  round.turns[rank] = Round::Turn::kDone;
  places_[rank].state = ranks_[rank]->state();
  if (!end) {
    const Status status(end.status().code(), fmt::format("rank {}: {}", rank, end.status().message()));
    if (round.failure.ok()) round.failure = status;
    else report(Severity::kWarning, status.message());
    return;
  }
  merge(round.check, std::move(end->check));
  switch (end->reason) {
    case StopReason::kHit: round.stopped = true; break;
    case StopReason::kNotChecked: round.stopped = round.not_checked = true; break;
    case StopReason::kCutShort: round.stopped = round.cut_short = true; break;
    case StopReason::kInterrupted: round.interrupted = true; break;
    case StopReason::kLost: round.lost = true; break;
    case StopReason::kNodeNotMet: round.not_met = true; break;
    case StopReason::kPaused: round.stopped = true; break;
    case StopReason::kEnded: break;
    case StopReason::kDone:
      if (is_node_level(round.each.kind)) round.met = true;
      // It was behind the others.
      else if (end->steps_run > 0 && end->completed_steps < round.goal && is_held(rank)) begin(round, rank);
  }
}

/// The ranks that the others wait for.
std::vector<int> LiveRanks::late(const Round& round) const {
  return those([&](size_t rank) { return round.turns[rank] == Round::Turn::kReleased || round.turns[rank] == Round::Turn::kAwaited; });
}

/// "rank 1 since 12 s": the ranks that others have waited for; "" without any.
std::string LiveRanks::late_text(const Round& round) const {
  const auto since = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - round.began);
  const std::vector<int> awaited = late(round);
  if (round.first_done == Clock::time_point::max() || awaited.empty() || since < kLate) return "";
  return fmt::format("{} since {} s", ranks_text(awaited), since.count());
}

/// Once in a command: a rank may wait in a collective for one that is held.
void LiveRanks::warn_of_late(const Round& round) {
  const auto now = Clock::now();
  if (warned_of_late_ || round.first_done > now || now - round.first_done < options_.late_after) return;
  const std::vector<int> ended = those([&](size_t rank) { return round.turns[rank] == Round::Turn::kDone && is_held(rank); });
  if (ended.empty()) return;
  warned_of_late_ = true;
  const std::string done = ranks_text(ended);
  const auto since = std::chrono::duration_cast<std::chrono::seconds>(now - round.first_done);
  report(Severity::kWarning,
         fmt::format("{}: the step has not ended, {} s after that of {}. If the program waits in a collective for {}, which msdbg holds, it "
                     "has left out an update, such as optimizer.step(). Ctrl-C ends the waiting, or option `timeout` of step and continue",
                     ranks_text(late(round)), since.count(), done, done));
}

/// One command for all ranks, up to the point where each of them has stopped, or cannot be expected to.
StopReason LiveRanks::run_together(Round& round) {
  using Turn = Round::Turn;
  const bool node_level = is_node_level(round.each.kind);
  round.turns.assign(count(), Turn::kOut);
  const bool any_held = !held().empty();
  for (size_t rank = 0; rank < count(); ++rank) {
    if (!is_active(rank)) continue;
    if (!is_held(rank)) {
      round.turns[rank] = node_level && any_held ? Turn::kBackground : places_[rank].run ? Turn::kReleased : Turn::kAwaited;
    } else if (places_[rank].run) {
      round.turns[rank] = Turn::kReleased;  // it has come back after the command that released it
    } else if (node_level || ranks_[rank]->completed_steps() < round.goal) {
      begin(round, rank);
    }
  }
  for (;;) {
    refresh();
    bool waits = false;
    for (size_t rank = 0; rank < count(); ++rank) {
      if (round.turns[rank] == Turn::kOut || round.turns[rank] == Turn::kDone) continue;
      const bool awaited = round.turns[rank] != Turn::kBackground;
      if (awaited || places_[rank].run) proceed(round, rank);
      waits = waits || (awaited && round.turns[rank] != Turn::kDone);
    }
    if (!waits) return StopReason::kDone;
    const Clock::time_point now = Clock::now();
    if (std::ranges::count(round.turns, Turn::kDone) > 0) round.first_done = std::min(round.first_done, now);
    // The others may wait for a rank that is held in the middle of the step, or gone.
    const bool early = round.stopped || round.lost || !round.failure.ok() || (node_level && (round.met || round.not_met));
    if (early || interrupt_requested()) round.first_stop = std::min(round.first_stop, now);
    if (early) {
      const auto patience = std::clamp<Clock::duration>(round.first_stop - round.began, kLeastPatience, kMostPatience);
      if (now - round.first_stop >= patience) return StopReason::kDone;
    }
    if (interrupt_requested()) {
      if (now - round.first_stop >= kInterruptGrace) return StopReason::kInterrupted;
    } else if (round.deadline && now >= *round.deadline) {
      return StopReason::kPaused;
    }
    if (!node_level && !early) warn_of_late(round);
    if (round.tick) round.tick(late_text(round));
    wait(round.deadline && !interrupt_requested() ? *round.deadline : Clock::time_point::max());
  }
}

/// After an interrupt: a rank may still be answering the last question.
void LiveRanks::await_answers() {
  const Clock::time_point deadline = Clock::now() + kInterruptGrace;
  for (refresh(); !running().empty() && Clock::now() < deadline; refresh()) wait(deadline);
}

RunResult LiveRanks::summary(StopReason reason) const {
  RunResult result;
  result.reason = reason;
  result.step = current_step();
  result.completed_steps = completed_steps();
  result.node = current_node();
  result.at_begin = result.node.empty() && std::ranges::any_of(ranks_, [](const auto& rank) { return rank->held_at_begin(); });
  result.held = !held().empty();
  result.check.steps = {result.step};
  return result;
}

Result<RunResult> LiveRanks::run(const RunRequest& request) {
  refresh();
  if (detached_) return Status(Code::kUnsupported, "the session is detached: the training runs on its own; attach holds it again");
  if (Status status = ready(word_of(request.kind)); !status.ok()) return status;
  if (request.count < 1) return Status(Code::kInvalidArgument, fmt::format("step {}: give a number of steps from 1 on", request.count));
  const bool node_level = is_node_level(request.kind);
  if (request.kind == RunKind::kToNode) {
    if (auto found = find_node(graphs_, request.node); !found) return found.status();
  }
  int64_t goal = 0;
  if (request.kind == RunKind::kFinish) {
    for (const int rank : held()) {
      const LiveSessionImpl& session = *ranks_[static_cast<size_t>(rank)];
      if (session.held_within_step()) goal = std::max(goal, session.completed_steps() + 1);
    }
    if (goal == 0) {  // no rank is in the middle of a step: the session of a rank says it
      RunInProgress refused(request);
      if (RunEnd end = ranks_[static_cast<size_t>(held().front())]->begin(refused)) return std::move(*end);
      return Status(Code::kInvalidArgument, "finish: no step is running");
    }
  }

  warned_of_late_ = false;
  const Clock::time_point began = Clock::now();
  std::optional<Clock::time_point> deadline;
  if (request.timeout) deadline = began + *request.timeout;
  CheckResult check;
  int64_t steps_run = 0;
  Clock::duration ran{};
  Clock::time_point shown = began;
  const auto finish = [&](StopReason reason) {
    RunResult end = summary(reason);
    end.state = state();
    end.steps_run = steps_run;
    check.steps = end.check.steps;
    end.check = std::move(check);
    return end;
  };
  const auto sift = [&](size_t first) {
    const auto begin = check.hits.begin() + static_cast<std::ptrdiff_t>(first);
    std::stable_sort(begin, check.hits.end(), [](const Hit& a, const Hit& b) { return a.tensor.rank < b.tensor.rank; });
    if (request.on_hits && (check.hits.size() > first || !check.not_checked.empty())) request.on_hits(check, first);
    return check.hits.size() > first;
  };
  // A rank reached a hit while no command waited: report that before anything runs.
  for (const int rank : held()) {
    const auto at = static_cast<size_t>(rank);
    if (!places_[at].run) merge(check, ranks_[at]->held_again(true, StopReason::kPaused).check);
  }
  if (sift(0)) return finish(StopReason::kHit);

  for (;;) {
    const size_t hits_before = check.hits.size();
    Round round;
    round.each.kind = node_level ? request.kind : RunKind::kStep;
    round.each.node = request.node;
    const bool last = request.kind == RunKind::kFinish || (request.kind == RunKind::kStep && steps_run + 1 >= request.count);
    round.passes = !node_level && !last && !request.on_step;
    round.goal = goal > 0 ? goal : most_completed() + 1;
    round.deadline = deadline;
    if (request.on_progress) {
      round.tick = [&](const std::string& late) {
        const Clock::time_point now = Clock::now();
        if (now - shown < kProgressTick) return;
        shown = now;
        request.on_progress({current_step(), steps_run, now - began, now - began - ran - (now - round.began), late});
      };
    }
    const StopReason reason = run_together(round);
    ran += Clock::now() - round.began;
    refresh();
    merge(check, std::move(round.check));
    const bool nothing = check.hits.empty() && check.not_checked.empty() && steps_run == 0;
    if (!round.failure.ok() && nothing) return round.failure;
    if (!round.failure.ok()) report(Severity::kWarning, round.failure.message());
    const bool complete = std::ranges::none_of(
        round.turns, [](Round::Turn turn) { return turn == Round::Turn::kReleased || turn == Round::Turn::kAwaited; });
    if (!node_level && complete && !round.stopped) ++steps_run;
    if (sift(hits_before)) return finish(StopReason::kHit);
    if (round.cut_short) return finish(StopReason::kCutShort);
    if (round.not_checked && !check.not_checked.empty()) return finish(StopReason::kNotChecked);
    if (reason == StopReason::kInterrupted || round.interrupted || check.interrupted || interrupt_requested()) {
      await_answers();
      return finish(StopReason::kInterrupted);
    }
    if (active().empty()) return finish(state() == LiveState::kLost ? StopReason::kLost : StopReason::kEnded);
    if (round.lost) return finish(StopReason::kLost);
    if (!round.failure.ok() || reason == StopReason::kPaused) return finish(StopReason::kPaused);
    if (node_level) return finish(round.met || !round.not_met ? StopReason::kDone : StopReason::kNodeNotMet);
    if (!complete) continue;  // hits that the caller ignores stopped a rank
    const bool by_steps = request.kind != RunKind::kContinue;
    if (by_steps && steps_run >= request.count) return finish(StopReason::kDone);
    if (request.on_step && !request.on_step(current_step())) return finish(StopReason::kPaused);
    if (deadline && Clock::now() >= *deadline) return finish(StopReason::kPaused);
  }
}

}  // namespace msdbg::live
