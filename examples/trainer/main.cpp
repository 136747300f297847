// Trains under a debugger: an example of how a training program uses msdbg/agent.h.
#include <algorithm>
#include <array>
#include <cfenv>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "data.h"
#include "describe.h"
#include "faults.h"
#include "group.h"
#include "msdbg/agent.h"
#include "net.h"
#include "options.h"

namespace trainer {
namespace {

using msdbg::agent::Agent;
using msdbg::agent::Control;

/// Passes the network's values to the agent. The memory belongs to the network; nothing is copied here. The CPU's floating-point
/// overflow flags take the place of an accelerator's.
class AgentHook : public Hook {
 public:
  AgentHook(Agent& agent, bool reduces) : agent_(agent), reduces_(reduces) {}
  void output(Op op, uint32_t slot, const void* data, size_t bytes) override {
    agent_.publish(place_of(op, reduces_), slot, data, bytes);
  }
  void done(Op op, const std::source_location&) override {
    constexpr int kFlags = FE_OVERFLOW | FE_DIVBYZERO;
    if (std::fetestexcept(kFlags) != 0) {
      agent_.overflowed(place_of(op, reduces_));
      std::feclearexcept(kFlags);
    }
    agent_.node_done(place_of(op, reduces_));
  }

 private:
  Agent& agent_;
  const bool reduces_;
};

class Program {
 public:
  /// `group` is null for a training on one rank.
  Program(const Options& options, Group* group)
      : options_(options), group_(group), data_(options.net.seed), net_(options.net, group),
        ops_(place_of(kFc3BiasUpdate, group != nullptr) + 1) {
    if (group_ == nullptr) return;
    prefix_ = "rank " + std::to_string(group_->rank()) + ": ";
    if (is_of_one_rank(options_.fault) && group_->rank() != options_.fault_rank) options_.fault = Fault::kNone;
    if (!options_.agent) return;
    options_.agent->rank = options_.agent->device_id = group_->rank();
  }

  int run() {
    if (!start_agent()) return kExitUsage;
    const auto begin = Clock::now();
    int64_t done = 0;
    Control control = Control::kGo;
    while (done < options_.steps && control == Control::kGo) {
      const auto step_begin = Clock::now();
      const bool shown = agent_ && !(options_.compare && done / kCompared % 2 == 1);
      if (shown && agent_->begin_step() == Control::kStop) {
        control = Control::kStop;
        break;
      }
      train(done, shown ? hook_.get() : nullptr);
      ++done;
      if (group_ != nullptr && group_->broken()) break;
      if (shown) control = agent_->end_step();
      if (options_.compare) step_ms_[shown].push_back(std::chrono::duration<double, std::milli>(Clock::now() - step_begin).count());
    }
    const std::chrono::duration<double> time = Clock::now() - begin;
    return finish(done, control, time.count());
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr int64_t kCompared = 10;  ///< consecutive steps of one kind, to run each kind with warm caches

  bool start_agent() {
    if (!options_.agent) return true;
    agent_ = std::make_unique<Agent>(*options_.agent);
    hook_ = std::make_unique<AgentHook>(*agent_, group_ != nullptr);
    if (options_.extra_megabytes > 0) {
      extra_.resize(static_cast<size_t>(options_.extra_megabytes) * (1 << 20) / sizeof(float));
      for (size_t i = 0; i < extra_.size(); ++i) extra_[i] = static_cast<float>(i % 1000);
    }
    small_.resize(static_cast<size_t>(options_.small_nodes * kSmallCount));
    for (size_t i = 0; i < small_.size(); ++i) small_[i] = static_cast<float>(i % 1000);
    const msdbg::Status status = agent_->add_graph(describe(net_, {.extra = extra_.empty() ? nullptr : &extra_,
                                                                   .small_nodes = options_.small_nodes,
                                                                   .padding_nodes = options_.padding_nodes,
                                                                   .group = group_name()}));
    if (!status.ok()) std::fprintf(stderr, "msdbg_trainer: %s\n", status.message().c_str());
    return status.ok();
  }

  /// MindSpore's name for all ranks.
  std::string group_name() const {
    if (group_ == nullptr) return "";
    return options_.agent->backend == "Ascend" ? "hccl_world_group" : "nccl_world_group";
  }

  void train(int64_t step, Hook* hook) {
    data_.fill(step, group_ == nullptr ? 0 : group_->rank(), net_.ranks(), net_.batch);
    plant(options_.fault, options_.fault_step, step, net_);
    if (options_.step_sleep.count() > 0) std::this_thread::sleep_for(options_.step_sleep);
    std::feclearexcept(FE_ALL_EXCEPT);
    net_.train_step(hook);
    plant_after(options_.fault, options_.fault_step, step, net_);
    if (!extra_.empty() && hook != nullptr) {
      agent_->publish(ops_, 0, extra_.data(), extra_.size() * sizeof(float));
      agent_->node_done(ops_);
    }
    if (hook != nullptr) show_small_ones();
    if (options_.print_loss) say("step " + std::to_string(step) + " loss " + msdbg::format_short(net_.loss(), 6));
  }

  void show_small_ones() {
    const auto first = static_cast<msdbg::agent::NodeIndex>(ops_ + (extra_.empty() ? 0 : 1));
    for (size_t i = 0; i * kSmallCount < small_.size(); ++i) {
      const auto node = static_cast<msdbg::agent::NodeIndex>(first + i);
      agent_->publish(node, 0, &small_[i * kSmallCount], kSmallCount * sizeof(float));
      agent_->node_done(node);
    }
  }

  int finish(int64_t done, Control control, double seconds) {
    const std::string steps = std::to_string(done) + (done == 1 ? " step" : " steps");
    std::string problem;
    if (agent_) {
      problem = agent_->problem();  // before finish(), which may also fail, with less detail
      agent_->finish();
    }
    if (group_ != nullptr && group_->broken()) {
      say("given up after " + steps + ": another rank has ended");
      return kExitGivenUp;
    }
    if (control == Control::kGo) {
      if (!problem.empty()) say("debugger: " + problem);
      if (options_.compare) {
        say("median step: " + msdbg::format_short(median(step_ms_[true]), 6) + " ms with the agent, " +
            msdbg::format_short(median(step_ms_[false]), 6) + " ms without");
      }
      say("done: " + steps + ", loss " + msdbg::format_short(net_.loss(), 6) + ", " + msdbg::format_short(seconds) + " s");
      return kExitOk;
    }
    if (problem.empty()) {
      say("stopped by the debugger after " + steps);
      return kExitOk;
    }
    say("given up after " + steps + ": " + problem);
    return kExitGivenUp;
  }

  static double median(std::vector<double> values) {
    if (values.empty()) return 0;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
  }

  void say(const std::string& line) const {
    std::printf("%s%s\n", prefix_.c_str(), line.c_str());
    std::fflush(stdout);  // lets a reader at the other end of a pipe see each line at once
  }

  Options options_;
  Group* group_;
  std::string prefix_;  ///< "rank 1: "
  Data data_;
  Net net_;
  const msdbg::agent::NodeIndex ops_;  ///< number of operators of the network
  Values extra_, small_;
  std::array<std::vector<double>, 2> step_ms_;  ///< with --compare: without the agent, with it
  std::unique_ptr<Agent> agent_;  // declared after everything it refers to
  std::unique_ptr<AgentHook> hook_;
};

}  // namespace
}  // namespace trainer

int main(int argc, char** argv) {
  const trainer::ParseResult parsed = trainer::parse_options(argc, argv);
  if (parsed.exit_status) return *parsed.exit_status;
  if (parsed.options.ranks == 1) return trainer::Program(parsed.options, nullptr).run();
  // Before any thread exists: a new process has only the thread that started it.
  const trainer::Started started = trainer::start_processes(parsed.options.ranks, trainer::kExitGivenUp);
  return started.group == nullptr ? started.exit_status : trainer::Program(parsed.options, started.group.get()).run();
}
