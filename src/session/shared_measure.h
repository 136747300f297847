// A check whose tensors are measured by several processes. Measurements from other processes are kept like this process's own.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <vector>

#include "msdbg/shared.h"
#include "session/check_plan.h"
#include "session/check_tensor.h"

namespace msdbg {

/// Deals out the tensors of a plan. The owner's thread, unless documented otherwise.
class SharedMeasure {
 public:
  /// `take` gets what other processes measured, by index into the plan.
  SharedMeasure(Team& team, Session& session, StatsCache& cache, const CheckPlan& plan, unsigned threads,
                std::function<void(size_t at, Measured measured)> take);

  /// The next tensor that this process measures, as index into the plan. Nothing when none is left. Any thread.
  std::optional<size_t> next();
  void poll() { run_->poll(); }
  /// Any thread.
  void stop() { run_->stop(); }

 private:
  /// A tensor that some process must read.
  struct Item {
    size_t at = 0;
    StatsCache::Found found;  ///< what is known of it and not enough
  };
  void choose();
  bool is_located(const PlannedTensor& planned) const;
  std::string describe(const Item& item) const;
  Taken take(const Item& item, std::string_view result);

  Session& session_;
  StatsCache& cache_;
  const CheckPlan& plan_;
  const std::function<void(size_t, Measured)> take_;
  std::vector<size_t> here_;       ///< tensors that need no reading
  std::atomic<size_t> next_{0};    ///< into here_
  std::vector<Item> items_;
  std::optional<SharedRun> run_;
};

}  // namespace msdbg
