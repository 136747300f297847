// Statistics of one planned tensor: cached, or computed in one pass together with the previous value.
#pragma once

#include "msdbg/check.h"
#include "session/check_plan.h"
#include "session/pass.h"
#include "session/stats_cache.h"

namespace msdbg {

/// A worker's measurements of one tensor; the owner's thread turns them into verdicts.
struct Measured {
  KeptStatsPtr kept;               ///< null without statistics from elements
  std::optional<TensorInfo> info;  ///< set if described but not measured (statistics only, unreadable)
  /// Of the set's expressions, where `kept` does not hold them all and its statistics decide them; else empty.
  std::vector<std::optional<ExpressionValue>> values;
  Status problem;                  ///< why there are no statistics
  uint64_t bytes = 0;              ///< element bytes read
  bool from_cache = false;
  bool interrupted = false;
};

/// True if measure() will open the tensor. `kept`: its cached statistics, or null.
bool reads_elements(const KeptStats* kept, const WatchSet& set);

/// The set's expressions if the entry does not hold them all and its statistics decide the others; else none. Values that statistics
/// decide are not kept: that takes longer than to decide them again.
std::vector<std::optional<ExpressionValue>> values_from_stats(const KeptStats& kept, const WatchSet& set);
/// What one pass computes for the set; with `old`, so much of it again that the result replaces it. `old` may be null.
StatsRequest extended_request(const KeptStats* old, const WatchSet& set);
/// Adds the values of expressions that the entry to be replaced holds.
void keep_values(const KeptStats& old, KeptStats& kept);

/// Any thread, with its own `buffers`. Does not throw.
Measured measure(Session& session, StatsCache& cache, const TensorId& id, const WatchSet& set,
                 PassBuffers& buffers) noexcept;

}  // namespace msdbg
