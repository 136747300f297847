// Runs a plan: worker threads measure tensors in any order, the owner's thread turns them into verdicts in the order of the plan.
// Results do not depend on the number of threads, and scripts are called in execution order.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <iterator>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "msdbg/log.h"
#include "msdbg/memory.h"
#include "msdbg/threads.h"
#include "session/answer.h"
#include "session/check_plan.h"
#include "session/check_tensor.h"
#include "session/shared_measure.h"
#include "session/stats_cache.h"
#include "session/verdict.h"

namespace msdbg {
namespace {

constexpr std::chrono::milliseconds kTick{100};
/// A worker takes this part of its share at a time, and not more tensors than this: the threads then rarely touch the same memory.
constexpr size_t kBlocksPerWorker = 64, kMostInBlock = 64;
/// A worker keeps this many results for itself, or for this long.
constexpr size_t kMostReady = 256;
constexpr std::chrono::microseconds kWait{500};
/// Workers are at most so many tensors ahead of the owner: rules in Lua take longer than the index.
constexpr size_t kMostAhead = 1 << 14;
/// While other processes measure, too: how often their results are taken in.
constexpr std::chrono::milliseconds kPoll{1};
/// Planning a check of so many tensors leaves memory that is worth giving back.
constexpr size_t kManyTensors = 100'000;
/// Memory for one block of the widest elements and one of its previous value.
constexpr uint64_t kBytesPerWorker = 2 * 8 * kElementsPerBlock;

unsigned worker_count(const CheckOptions& options, size_t tensors) {
  return thread_count(options.threads, std::min<uint64_t>(tensors, options.mem_limit_bytes / kBytesPerWorker));
}

void log_rules(std::span<const Watchpoint> watchpoints) {
  if (!log_wanted(LogLevel::kInfo)) return;
  std::string names;
  for (const Watchpoint& watch : watchpoints) {
    if (watch.enabled) names += (names.empty() ? "" : ", ") + watch.rule;
  }
  log(LogLevel::kInfo, "running " + (names.empty() ? "no rule" : names));
}

}  // namespace

class CheckRun {
 public:
  CheckRun(Session& session, CheckPlan plan, std::span<const Watchpoint> watchpoints, const CheckOptions& options)
      : session_(session),
        plan_(std::move(plan)),
        watchpoints_(watchpoints),
        options_(options),
        asks_for_counts_(std::ranges::any_of(watchpoints_, [](const Watchpoint& watch) { return watch.enabled && watch.asks_for_counts; })),
        measured_(plan_.tensors.size()),
        verdicts_(session, options) {}

  ~CheckRun() {  // the threads are declared last: they are joined before other members are destroyed
    stop_ = true;
    if (shared_) shared_->stop();
    session_.stats_cache_->check_ends();
  }

  /// Rethrows exceptions of workers.
  CheckResult run() {
    result_.semantics = options_.semantics;
    result_.steps = plan_.steps;
    for (const int rank : session_.ranks()) {
      if (options_.ranks.contains(rank)) result_.ranks.push_back(rank);
    }
    result_.inputs_instead = plan_.inputs_instead;
    result_.rule_problems = plan_.problems;
    result_.coverage.tensors = plan_.tensors.size();
    session_.stats_cache_->begin_check();
    session_.stats_cache_->leaves_to_store = options_.only_check;
    announced_.emplace(session_, reads());
    if (Team* team = Team::current(); team != nullptr && session_.info().kind == SessionKind::kDump) {
      shared_.emplace(*team, session_, *session_.stats_cache_, plan_, options_.threads,
                      [this](size_t at, Measured measured) { arrived(at, std::make_unique<Measured>(std::move(measured))); });
    }
    start_workers();
    try {
      collect();
    } catch (...) {
      stop_ = true;  // or workers would wait for an owner that does not come
      room_.notify_all();
      throw;
    }
    workers_.join();
    log_reading();
    result_.coverage.not_checked = result_.coverage.tensors - result_.coverage.checked;
    if (std::any_of(watchpoints_.begin(), watchpoints_.end(), [](const Watchpoint& w) { return w.turn != 0 || w.step_end || w.finish; })) {
      sort_results(session_, result_);
    }
    return std::move(result_);
  }

 private:
  class Announced {
   public:
    Announced(Session& session, std::vector<TensorId> reads) : session_(session) { session_.check_begins(std::move(reads)); }
    ~Announced() { session_.check_ends(); }
    Announced(const Announced&) = delete;
    Announced& operator=(const Announced&) = delete;

   private:
    Session& session_;
  };

  /// The tensors that will be opened. Only a live session uses the list.
  std::vector<TensorId> reads() const {
    std::vector<TensorId> ids;
    if (!session_.can_step()) return ids;
    for (const PlannedTensor& planned : plan_.tensors) {
      const KeptStatsPtr kept = session_.stats_cache_->find(planned.id);
      if (!planned.missing && reads_elements(kept.get(), plan_.sets[planned.set])) ids.push_back(planned.id);
    }
    return ids;
  }

  void log_reading() const {
    if (!log_wanted(LogLevel::kInfo)) return;
    const Coverage& done = result_.coverage;
    log(LogLevel::kInfo, fmt::format("checked {} of {} tensors ({} from kept statistics), read {}", done.checked, done.tensors,
                                     done.from_cache, format_reading(done.bytes, watch_.seconds())));
  }

  // ---- workers ----
  using Ready = std::vector<std::pair<size_t, std::unique_ptr<Measured>>>;
  using Spares = std::vector<std::unique_ptr<Measured>>;
  void start_workers() {
    const auto guarded = [this](unsigned) {
      try {
        work();
      } catch (...) {
        stop_ = true;  // keeps the owner from waiting for a tensor that will not come
        throw;
      }
    };
    const unsigned count = worker_count(options_, plan_.tensors.size());
    block_ = std::clamp<size_t>(plan_.tensors.size() / (count * kBlocksPerWorker), 1, kMostInBlock);
    if (workers_.start(count, guarded) > 0) return;
    most_ = plan_.tensors.size();
    work();
  }

  void work() {
    PassBuffers buffers;
    Ready ready;
    Spares spares;
    auto handed_over = std::chrono::steady_clock::now();
    for (;;) {
      if (!shared_ && next_ >= most_) wait_for_room(ready, spares);
      const auto [first, last] = next_tensors();
      for (size_t at = first; at < last; ++at) {
        // Recorded here because the interrupt handler may clear the flag before the owner sees it.
        if (interrupt_requested()) stop_ = true;
        if (stop_) break;
        const PlannedTensor& planned = plan_.tensors[at];
        auto measured = spare(spares);
        *measured = planned.missing ? Measured() : measure(session_, *session_.stats_cache_, planned.id, plan_.sets[planned.set], buffers);
        ready.emplace_back(at, std::move(measured));
      }
      if (first == last || stop_) return hand_over(ready);
      // Waking the owner takes longer than measuring a small tensor.
      const auto now = std::chrono::steady_clock::now();
      if (!shared_ && ready.size() < kMostReady && now - handed_over < kWait) continue;
      handed_over = now;
      hand_over(ready, &spares);
    }
  }

  /// Hands over everything first: the owner may wait for it.
  void wait_for_room(Ready& ready, Spares& spares) {
    hand_over(ready, &spares);
    std::unique_lock lock(mutex_);
    while (next_ >= most_ && next_ < plan_.tensors.size() && !stop_ && !interrupt_requested()) room_.wait_for(lock, kTick);
  }

  /// An object that the owner has done with: memory that another thread gives back takes a lock of the allocator.
  static std::unique_ptr<Measured> spare(Spares& spares) {
    if (spares.empty()) return std::make_unique<Measured>();
    std::unique_ptr<Measured> last = std::move(spares.back());
    spares.pop_back();
    return last;
  }

  void hand_over(Ready& ready, Spares* spares = nullptr) {
    if (ready.empty()) return;
    std::unique_lock lock(mutex_);
    if (spares != nullptr && spares->empty()) spares->swap(spares_);
    for (auto& [at, measured] : ready) {
      ++arrived_;
      bytes_ += measured->bytes;
      measured_[at] = std::move(measured);
    }
    ready.clear();
    const bool wake = measured_[wanted_] != nullptr;
    lock.unlock();
    if (wake) changed_.notify_one();
  }

  /// From the first to before the last; none if there are no more.
  std::pair<size_t, size_t> next_tensors() {
    if (shared_) {
      const std::optional<size_t> at = shared_->next();
      return at ? std::pair(*at, *at + 1) : std::pair<size_t, size_t>();
    }
    const size_t first = std::min(next_.fetch_add(block_, std::memory_order_relaxed), plan_.tensors.size());
    return {first, std::min(first + block_, plan_.tensors.size())};
  }

  void arrived(size_t at, std::unique_ptr<Measured> measured) {
    std::lock_guard lock(mutex_);
    ++arrived_;
    bytes_ += measured->bytes;
    measured_[at] = std::move(measured);
    changed_.notify_one();
  }

  // ---- the owner's thread ----
  void collect() {
    auto last_report = std::chrono::steady_clock::now();
    size_t at = 0;
    while (at < plan_.tensors.size()) {
      std::unique_ptr<Measured> measured = wait_for(at);
      if (stop_ || interrupt_requested()) return finish_interrupted(at, std::move(measured));
      if (measured) {
        judge(at, *measured, true);
        used_.push_back(std::move(measured));
        const TensorId& id = plan_.tensors[at++].id;
        const TensorId* next = at < plan_.tensors.size() ? &plan_.tensors[at].id : nullptr;
        if (next == nullptr || next->step != id.step || next->rank != id.rank) end_step(id.rank, id.step);
      }
      if (!options_.progress || is_taken(at)) continue;
      const auto now = std::chrono::steady_clock::now();
      if (now - last_report >= kTick || at == plan_.tensors.size()) {
        last_report = now;
        const auto [done, bytes] = progress();
        options_.progress(done, plan_.tensors.size(), bytes);
      }
    }
    if (!shared_) forget_tensors();
    for (const Watchpoint& watch : watchpoints_) {
      if (watch.enabled && watch.finish) take(watch, watch.finish());
    }
    if (interrupt_requested()) result_.interrupted = true;
  }

  /// All of them were judged: what is asked at the end takes memory of its own.
  void forget_tensors() {
    workers_.join();
    const bool many = plan_.tensors.size() > kManyTensors;
    std::vector<PlannedTensor>().swap(plan_.tensors);
    std::vector<std::unique_ptr<Measured>>().swap(measured_);
    if (!many) return;
    if (session_.stats_cache_->store) session_.stats_cache_->store->rest();
    return_free_memory();
  }

  void end_step(int rank, int64_t step) {
    for (const Watchpoint& watch : watchpoints_) {
      if (watch.enabled && watch.step_end) take(watch, watch.step_end(rank, step));
    }
  }

  void take(const Watchpoint& watch, ScriptPhase phase) {
    for (ScriptFinding& finding : phase.findings) verdicts_.add_finding(watch, std::move(finding), result_);
    if (phase.replicas) result_.replicas = std::move(phase.replicas);
    report({watch.rule, std::move(phase.problem), RuleProblemKind::kBroken});
    report({watch.rule, std::move(phase.gap), RuleProblemKind::kIdle});
  }

  /// The end of every step may fail for the same reason: that is reported once.
  void report(RuleProblem problem) {
    const auto same = [&](const RuleProblem& other) { return other.rule == problem.rule && other.reason == problem.reason; };
    if (!problem.reason.empty() && std::ranges::none_of(result_.rule_problems, same)) result_.rule_problems.push_back(std::move(problem));
  }

  bool is_taken(size_t at) const { return at - first_taken_ < taken_.size(); }

  /// Takes as many as are ready, so that the threads rarely meet. Null after a while.
  std::unique_ptr<Measured> wait_for(size_t at) {
    if (is_taken(at)) return std::move(taken_[at - first_taken_]);
    if (shared_) shared_->poll();
    std::unique_lock lock(mutex_);
    std::move(used_.begin(), used_.end(), std::back_inserter(spares_));
    used_.clear();
    wanted_ = at;
    most_ = at + kMostAhead;
    room_.notify_all();
    changed_.wait_for(lock, shared_ ? kPoll : kTick, [&] { return measured_[at] != nullptr; });
    taken_.clear();
    first_taken_ = at;
    for (size_t next = at; next < measured_.size() && taken_.size() < kMostReady && measured_[next]; ++next) {
      taken_.push_back(std::move(measured_[next]));
    }
    return taken_.empty() ? nullptr : std::move(taken_.front());
  }

  std::pair<uint64_t, uint64_t> progress() {
    std::lock_guard lock(mutex_);
    return {arrived_, bytes_};
  }

  /// Keeps what was measured before the interrupt, but calls no more scripts.
  void finish_interrupted(size_t from, std::unique_ptr<Measured> first) {
    result_.interrupted = true;
    stop_ = true;
    room_.notify_all();
    workers_.join();  // from here on only this thread uses measured_
    for (size_t i = 0; i < taken_.size(); ++i) {
      if (taken_[i]) measured_[first_taken_ + i] = std::move(taken_[i]);
    }
    if (first) measured_[from] = std::move(first);
    for (size_t at = from; at < measured_.size(); ++at) {
      if (measured_[at]) judge(at, *measured_[at], false);
    }
  }

  void judge(size_t at, const Measured& measured, bool scripts) {
    if (measured.interrupted) {
      result_.interrupted = true;
      return;
    }
    const PlannedTensor& planned = plan_.tensors[at];
    result_.coverage.bytes += measured.bytes;
    result_.coverage.from_cache += measured.from_cache ? 1 : 0;
    if (verdicts_.judge(planned, plan_.sets[planned.set], measured, scripts, result_)) ++result_.coverage.checked;
    if (asks_for_counts_ && measured.kept) session_.stats_cache_->judged(planned.id, measured.kept->stats);
  }

  Session& session_;
  CheckPlan plan_;
  std::span<const Watchpoint> watchpoints_;
  const CheckOptions& options_;
  const bool asks_for_counts_;
  std::atomic<size_t> next_{0};
  size_t block_ = 1;
  std::atomic<size_t> most_{kMostAhead};  // the workers take no tensor from here on
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::condition_variable changed_, room_;
  std::vector<std::unique_ptr<Measured>> measured_;  // under mutex_
  uint64_t arrived_ = 0, bytes_ = 0;                 // under mutex_
  size_t wanted_ = 0;                                // under mutex_: the owner waits for it
  Spares spares_;                                    // under mutex_
  Spares taken_, used_;                              // the owner's: results from first_taken_ on, and those that were judged
  size_t first_taken_ = 0;
  Verdicts verdicts_;
  CheckResult result_;
  Stopwatch watch_;
  std::optional<Announced> announced_;
  std::optional<SharedMeasure> shared_;  // with other processes
  Workers workers_;
};

Result<CheckResult> check(Session& session, std::span<const Watchpoint> watchpoints, const CheckOptions& options) {
  return answer([&]() -> Result<CheckResult> {
    log_rules(watchpoints);
    Result<CheckPlan> plan = make_plan(session, watchpoints, options);
    if (!plan) return plan.status();
    if (plan->tensors.size() > kManyTensors) return_free_memory();
    return CheckRun(session, std::move(*plan), watchpoints, options).run();
  });
}

}  // namespace msdbg
