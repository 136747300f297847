// A training of several ranks in this process: each is a thread with an agent. They wait for each other in an AllReduce.
#pragma once

#include <array>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "msdbg/agent.h"

namespace msdbg::test {

using Four = std::array<float, 4>;

inline const std::string kRankMul = "Default/net-Net/Mul-op1";
inline const std::string kRankReduce = "Default/grad_reducer-DistributedGradReducer/AllReduce-op2";
inline const std::string kRankAssign = "Default/optimizer-Sgd/Assign-op3";

/// The AllReduce: returns once every rank has come.
class Meeting {
 public:
  explicit Meeting(size_t ranks) : here_(ranks) {}

  /// False once a rank has left for good.
  bool sum(size_t rank, const Four& in, Four& out) {
    std::unique_lock lock(mutex_);
    here_[rank] = in;
    const size_t turn = turn_;
    if (++come_ == here_.size()) {
      total_ = {};
      for (const Four& each : here_) {
        for (size_t i = 0; i < each.size(); ++i) total_[i] += each[i];
      }
      come_ = 0;
      ++turn_;
      all_here_.notify_all();
    }
    all_here_.wait(lock, [&] { return over_ || turn_ != turn; });
    out = total_;
    return turn_ != turn;
  }
  void leave() {
    const std::lock_guard lock(mutex_);
    over_ = true;
    all_here_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable all_here_;
  std::vector<Four> here_;
  Four total_{};
  size_t come_ = 0, turn_ = 0;
  bool over_ = false;
};

struct RankTrainingOptions {
  size_t ranks = 3;
  int steps = 5;
  std::string backend = "GPU";
  bool says_rank = true;    ///< otherwise only its device
  bool meets = true;        ///< false: every rank goes its own way
  bool patient = false;     ///< waits longer for a debugger that has gone away
  int first_device = 0;
  /// Changes the data of a rank before a step.
  std::function<void(size_t rank, int step, Four& x)> data = [](size_t, int, Four&) {};
  /// Where a rank ends in the midst of a step, with an exception.
  std::function<bool(size_t rank, int step)> fails = [](size_t, int) { return false; };
};

class RankTraining {
 public:
  RankTraining(int port, RankTrainingOptions options) : options_(std::move(options)), meeting_(options_.ranks) {
    for (size_t rank = 0; rank < options_.ranks; ++rank) start(port, rank);
  }
  ~RankTraining() {
    meeting_.leave();
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  void start(int port, size_t rank) {
    agent::Options options;
    options.enabled = true;
    options.port = port;
    options.backend = options_.backend;
    options.device_id = options_.first_device + static_cast<int>(rank);
    if (options_.says_rank) options.rank = static_cast<int>(rank);
    options.retry_unit = std::chrono::milliseconds(options_.patient ? 500 : 20);
    threads_.emplace_back([this, options, rank] { train(options, rank); });
  }

  void train(const agent::Options& options, size_t rank) {
    const auto number = static_cast<float>(rank);
    Four x{}, w{1, 1, 1, 1}, mul{}, sum{};
    agent::Agent agent(options);
    if (!agent.add_graph(describe(x, w)).ok()) return;
    for (int step = 0; step < options_.steps; ++step) {
      if (agent.begin_step() == agent::Control::kStop) break;
      x = {number, number + 1, number + 2, number + 3};
      options_.data(rank, step, x);
      for (size_t i = 0; i < mul.size(); ++i) mul[i] = x[i] * w[i];
      agent.publish(0, 0, mul.data(), sizeof mul);
      agent.node_done(0);
      if (options_.fails(rank, step)) {
        agent.cut_short("RuntimeError: no memory");
        agent.end_step();
        meeting_.leave();
        break;
      }
      if (options_.meets && !meeting_.sum(rank, mul, sum)) break;
      agent.publish(1, 0, sum.data(), sizeof sum);
      agent.node_done(1);
      for (size_t i = 0; i < w.size(); ++i) w[i] -= 0.001F * sum[i];
      agent.publish(2, 0, w.data(), sizeof w);
      agent.node_done(2);
      if (agent.end_step() == agent::Control::kStop) break;
    }
    agent.finish();
  }

  static agent::GraphDescription describe(const Four& x, const Four& w) {
    const std::vector<OutputType> vector{{DType::kFloat32, Shape{4}}};
    agent::GraphDescription graph;
    graph.parameters = {{"x", DType::kFloat32, {4}, x.data(), false}, {"w", DType::kFloat32, {4}, w.data(), true}};
    graph.nodes = {{kRankMul, "Mul", {{"x", 0}, {"w", 0}}, vector, {}, {}},
                   {kRankReduce, "AllReduce", {{kRankMul, 0}}, vector, {{"group", "nccl_world_group"}}, {}},
                   {kRankAssign, "Assign", {{"w", 0}, {kRankReduce, 0}}, vector, {}, {}}};
    return graph;
  }

  const RankTrainingOptions options_;
  Meeting meeting_;
  std::vector<std::thread> threads_;
};

}  // namespace msdbg::test
