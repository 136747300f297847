// What the commands share about live sessions: how they are opened, how their events are printed, and what happens to a training
// when msdbg exits.
#pragma once

#include <cstdio>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "app/options.h"
#include "msdbg/live.h"
#include "msdbg/script.h"

namespace msdbg::app {

/// Tests put fakes here.
struct LiveFactories {
  std::function<Result<std::unique_ptr<LiveSession>>(const ListenOptions&)> listen;
  std::function<Result<std::unique_ptr<LiveSession>>(const std::string& path)> open_recording;
  std::function<bool(const std::string& path)> is_recording;
};
LiveFactories& live_factories();

/// Prints the events of live sessions, one line each, or keeps them for a caller that places them itself.
class EventPrinter {
 public:
  explicit EventPrinter(FILE* to) : to_(to) {}
  void show(const LiveEvent& event);
  /// Keeps events from now on, until take().
  void keep() { keeping_ = true; }
  std::string take();

 private:
  FILE* to_;
  bool keeping_ = false;
  std::string kept_;
};

ListenOptions listen_options(const Options& options);
/// `connected: MindSpore 1.10.0, GPU 0, 1 graph, 46 nodes. Training is held before its first step.`
std::string connected_text(LiveSession& session);
/// `held after step 12`, `running step 3`, ...
std::string held_text(LiveSession& session);

/// Keeps the values of these nodes from the next step on. Error: why a held training has no value of them now. Ok for every other
/// session.
Status keep_for_next_step(Session& session, std::span<const NodeRef> nodes);

enum class OnLeave { kTerminate, kDetach };
/// Who answers a training that runs on: this process until it ends, or one in the background.
enum class Leaving { kWhenItHasEnded, kToBackground };
/// Ends the trainings that still wait for `script`, or lets them run on; those that the script detached run on in any case. Prints
/// what it does to `to`. Returns `status`, or the exit status of a lost connection.
int end_trainings(Script& script, OnLeave on_leave, Leaving leaving, FILE* to, int status);

}  // namespace msdbg::app
