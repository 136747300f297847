// A session of several ranks, and a training for it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "live/rank_training.h"
#include "live/session_driver.h"

namespace msdbg::test {

using namespace std::chrono_literals;

/// A session of several ranks and its training; the training ends before the session does.
struct Ranks {
  explicit Ranks(RankTrainingOptions options, ListenOptions listen = {}) : driver(with_ranks(std::move(listen), options.ranks)) {
    training.emplace(driver.port(), std::move(options));
  }
  ~Ranks() {
    driver.session.reset();  // tells held ranks to exit
    training.reset();
  }
  static ListenOptions with_ranks(ListenOptions listen, size_t ranks) {
    listen.ranks = static_cast<int>(ranks);
    return listen;
  }
  LiveSession& session() { return *driver.session; }

  /// Completed steps by rank.
  std::vector<int64_t> completed() {
    std::vector<int64_t> out;
    for (const LiveRank& rank : session().live_ranks()) out.push_back(rank.completed_steps);
    return out;
  }
  std::vector<LiveState> states() {
    std::vector<LiveState> out;
    for (const LiveRank& rank : session().live_ranks()) out.push_back(rank.state);
    return out;
  }
  TensorId id(int rank, const std::string& node) {
    const auto found = find_node(session().graphs(), node, rank);
    EXPECT_TRUE(found.ok()) << node;
    return {rank, found->graph->id(), session().current_step(), 0, found->node, {Io::kOutput, 0}};
  }
  void watch(const std::string& on, const std::string& condition) {
    Watchpoint watch;
    watch.id = 1;
    watch.rule = "rule";
    watch.on = *Selector::parse(on);
    watch.condition = *parse_condition(condition);
    ASSERT_TRUE(session().set_watchpoints({&watch, 1}).ok());
  }
  Result<RunResult> run(RunKind kind, int64_t count = 1) {
    RunRequest request;
    request.kind = kind;
    request.count = count;
    request.timeout = 30s;
    return session().run(request);
  }
  bool told(const std::string& text) {
    for (LiveEvent& event : session().take_events()) texts.push_back(std::move(event.text));
    for (const std::string& each : texts) {
      if (each.find(text) != std::string::npos) return true;
    }
    return false;
  }
  std::string all_told() {
    std::string out;
    for (const std::string& each : texts) out += each + "\n";
    return out;
  }

  Driver driver;
  std::optional<RankTraining> training;
  std::vector<std::string> texts;
};

}  // namespace msdbg::test
