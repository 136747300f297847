// How diff divides its reading over the processes of a job. The owner's thread.
#pragma once

#include <atomic>
#include <functional>
#include <span>
#include <vector>

#include "analysis/diff_parts.h"
#include "msdbg/shared_analysis.h"

namespace msdbg {

/// compare_entry() for all entries; `done` and `bytes` grow meanwhile, and `between` is called now and then.
/// Error: kInterrupted.
Status compare_entries(Session& a, Session& b, const DiffOptions& options, std::span<TensorDiff> entries, std::atomic<size_t>& done,
                       std::atomic<uint64_t>& bytes, const std::function<void()>& between);

}  // namespace msdbg
