#include "app/live.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <csignal>

#include "app/background.h"
#include "app/output.h"

namespace msdbg::app {
namespace {

constexpr auto kTerminateTimeout = std::chrono::seconds(60);
constexpr auto kDetachTimeout = std::chrono::seconds(5);

// Stays until the training ends: only this process answers it.
int stay(LiveSession& session, FILE* to, int status) {
  print(to, "the training runs on; msdbg stays until it has ended (Ctrl-C leaves it)\n");
  std::fflush(to);
  const Status waited = session.wait_until_ended({});
  if (waited.ok()) {
    print(to, "the training has ended\n");
    return status;
  }
  if (waited.code() == Code::kInterrupted) {
    print(to, "msdbg exits; the training ends itself when nothing answers it\n");
    return kExitInterrupted;
  }
  print(to, fmt::format("{}\n", waited.message()));
  return status == kExitClean ? exit_status_for(waited) : status;
}

// Leaves an msdbg in the background to answer the training, and returns the user to the shell.
int run_on(LiveSession& session, Leaving leaving, FILE* to, int status) {
  if (leaving != Leaving::kToBackground) return stay(session, to, status);
  (void)session.wait_until_detached(kDetachTimeout);
  const Result<pid_t> process = answer_in_background(session);
  if (!process) {
    if (process.status().code() != Code::kUnsupported) print(to, process.status().message() + "\n");
    return stay(session, to, status);
  }
  session.hang_up();
  if (session.state() == LiveState::kEnded) {  // it said goodbye to this process
    ::kill(*process, SIGTERM);
    print(to, "the training has ended\n");
    return status;
  }
  print(to, fmt::format("the training runs on; msdbg answers it in the background (process {}) until it has ended\n", *process));
  return status;
}

}  // namespace

LiveFactories& live_factories() {
  static LiveFactories factories = {
      [](const ListenOptions& options) { return listen(options); },
      [](const std::string& path) { return open_recording(path); },
      [](const std::string& path) { return is_recording(path); },
  };
  return factories;
}

void EventPrinter::show(const LiveEvent& event) {
  const std::string_view word = event.severity == Severity::kInfo ? "" : severity_name(event.severity);
  const std::string text = fmt::format("{}{}{}\n", word, word.empty() ? "" : ": ", printable(event.text));
  if (keeping_) {
    kept_ += text;
    return;
  }
  print(to_, text);
  std::fflush(to_);
}

std::string EventPrinter::take() {
  keeping_ = false;
  return std::exchange(kept_, {});
}

ListenOptions listen_options(const Options& options) {
  ListenOptions out;
  out.bind = options.bind;
  out.port = options.port;
  out.ranks = options.rank_count;
  out.answer_only = options.answer_only;
  out.record = options.record;
  out.mem_limit_bytes = options.mem_limit_mb << 20;
  out.history_steps = options.history;
  out.history_tensors = options.history > 0 ? kHistoryTensors : 0;
  out.graph_from = options.graph_from;
  out.sockets = options.sockets;
  out.view_deadline = std::chrono::milliseconds(std::llround(std::ceil(options.answer_timeout_s * 1000)));
  return out;
}

std::string held_text(LiveSession& session) {
  const LiveState state = session.state();
  if (state != LiveState::kHeld) return std::string(live_state_name(state));
  std::string text = session.completed_steps() == 0 && session.current_node().empty()
      ? "held before its first step"
      : fmt::format("held in step {}, {} completed", session.current_step(), session.completed_steps());
  for (const LiveRank& rank : session.live_ranks()) {
    if (rank.state != LiveState::kHeld) text += fmt::format("; rank {} {}", rank.rank, live_state_name(rank.state));
  }
  return text;
}

// What the history keeps of each step, on its own line; "" when it keeps nothing.
std::string history_text(const LiveHistory& history, size_t ranks) {
  if (history.tensors == 0) return "";
  std::string what = fmt::format("{} weight{}", history.weights, history.weights == 1 ? "" : "s");
  if (history.weights < history.all_weights) what = fmt::format("{} of {} weights", history.weights, history.all_weights);
  const size_t others = history.tensors - history.weights;
  if (others > 0) what += fmt::format(" and {} value{} of loss and learning rate", others, others == 1 ? "" : "s");
  return fmt::format("\nhistory: statistics of {}{} over the last {} steps (goto -1); --history 0 turns it off", what,
                     ranks > 1 ? " of each rank" : "", history.steps);
}

/// "0 1 2 3"; a device that all ranks share is named once.
std::string devices_text(LiveSession& session) {
  std::vector<std::string> devices;
  for (const LiveRank& rank : session.live_ranks()) devices.push_back(printable(rank.peer.device));
  if (std::ranges::all_of(devices, [&](const std::string& each) { return each == devices.front(); })) devices.resize(1);
  return fmt::to_string(fmt::join(devices, " "));
}

std::string connected_text(LiveSession& session) {
  const LivePeer& peer = session.peer();
  size_t nodes = 0;
  for (const GraphPtr& graph : session.graphs()) nodes += graph->nodes().size();
  const size_t graphs = session.graphs().size(), ranks = session.ranks().size();
  const std::string device = ranks > 1 ? devices_text(session) : printable(peer.device);
  return fmt::format("connected: {} {}, {}{} graph{}, {} node{}. The training is {}.", peer.program_text(), device,
                     ranks > 1 ? fmt::format("{} ranks, ", ranks) : "", graphs, graphs == 1 ? "" : "s", nodes, nodes == 1 ? "" : "s",
                     held_text(session)) +
         history_text(session.history(), ranks);
}

Status keep_for_next_step(Session& session, std::span<const NodeRef> nodes) {
  constexpr size_t kMostKept = 64;
  auto* live = dynamic_cast<LiveSession*>(&session);
  if (live == nullptr || session.info().kind != SessionKind::kLive || nodes.empty() || nodes.size() > kMostKept) return {};
  if (live->state() != LiveState::kHeld) return {};
  const auto value_of = [&](const NodeRef& ref) {
    return TensorId{ref.graph->rank(), ref.graph->id(), live->current_step(), 0, ref.node, {Io::kOutput, 0}};
  };
  for (const NodeRef& ref : nodes) (void)live->keep_readable(value_of(ref));  // describe() below reports what cannot be kept
  const auto info = session.describe(value_of(nodes.front()));
  if (info || nodes.size() == 1) return info.status();
  return {info.status().code(), fmt::format("{}; the same holds for {} more", info.status().message(), nodes.size() - 1)};
}

int end_trainings(Script& script, OnLeave on_leave, Leaving leaving, FILE* to, int status) {
  for (const Script::Training& training : script.trainings()) {
    clear_interrupt();
    LiveSession& session = *training.session;
    if (training.detached) {
      status = run_on(session, leaving, to, status);
      continue;
    }
    if (on_leave == OnLeave::kDetach) {
      const Status detached = session.detach();
      if (detached.ok())
        status = run_on(session, leaving, to, status);
      else
        print(to, fmt::format("{}\n", detached.message()));
      continue;
    }
    print(to, fmt::format("the training is {}; terminating it (detach would let it run)\n", held_text(session)));
    std::fflush(to);
    const auto ended = session.terminate(kTerminateTimeout);
    if (!ended) print(to, fmt::format("{}\n", ended.status().message()));
  }
  script.report_events();
  std::fflush(to);
  return status;
}

}  // namespace msdbg::app
