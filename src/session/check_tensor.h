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
  Status problem;                  ///< why there are no statistics
  uint64_t bytes = 0;              ///< element bytes read
  bool from_cache = false;
  bool interrupted = false;
};

/// True if measure() will open the tensor. `kept`: its cached statistics, or null.
bool reads_elements(const KeptStats* kept, const WatchSet& set);

/// Any thread, with its own `buffers`. Does not throw.
Measured measure(Session& session, KeptStatsTable& table, const TensorId& id, const WatchSet& set,
                 PassBuffers& buffers) noexcept;

}  // namespace msdbg
