// Statistics of one planned tensor: from the kept ones, or read in one pass together with the previous value.
#pragma once

#include "msdbg/check.h"
#include "session/check_plan.h"
#include "session/pass.h"
#include "session/stats_cache.h"

namespace msdbg {

/// What a worker found out about one tensor; the owner's thread turns it into verdicts.
struct Measured {
  KeptStatsPtr kept;               ///< null when there are no statistics from elements
  std::optional<TensorInfo> info;  ///< set when described but not measured (statistics only, unreadable)
  Status problem;                  ///< why there are no statistics
  uint64_t bytes = 0;              ///< element bytes read
  bool from_cache = false;
  bool interrupted = false;
};

/// True when measure() will open the tensor. `kept`: what is kept of it, null for nothing.
bool reads_elements(const KeptStats* kept, const WatchSet& set);

/// Any thread; `buffers` belong to it. Nothing is thrown.
Measured measure(Session& session, KeptStatsTable& table, const TensorId& id, const WatchSet& set,
                 PassBuffers& buffers) noexcept;

}  // namespace msdbg
