// Finished statistics, kept for the life of a session so that a recheck with other thresholds reads no tensor.
//
// Any thread: entries are immutable, the table is locked.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "msdbg/session.h"

namespace msdbg {

/// True when statistics computed for `have` answer everything that `want` asks.
bool covers(const StatsRequest& have, const StatsRequest& want);

/// Adds what `from` asks to `to`, each range and tolerance once.
void merge_request(const StatsRequest& from, StatsRequest& to);

/// Statistics of one tensor together with what they were computed from.
struct KeptStats {
  TensorInfo info;
  StatsRequest request;
  Stats stats;
  Previous previous = Previous::kNotNeeded;
  std::string previous_reason;          ///< when the previous value is missing
  std::optional<TensorId> previous_id;  ///< set when `previous` is kPresent
  /// Of expressions, by text; nullopt where the previous value that one needs is missing.
  std::map<std::string, std::optional<ExpressionValue>, std::less<>> values;

  bool answers(const StatsRequest& want) const;
  bool holds(std::span<const Expression> expressions) const;
};
using KeptStatsPtr = std::shared_ptr<const KeptStats>;

class KeptStatsTable {
 public:
  /// The oldest entry goes when this many are held: about 100 MB at the usual length of a path.
  static constexpr size_t kMaxEntries = size_t{1} << 17;

  KeptStatsPtr find(const TensorId& id) const;
  void put(KeptStatsPtr entry);
  void erase_if(const std::function<bool(const TensorId&)>& gone);
  std::vector<TensorId> ids() const;

 private:
  struct Hash {
    size_t operator()(const TensorId& id) const noexcept;
  };

  mutable std::mutex mutex_;
  std::unordered_map<TensorId, KeptStatsPtr, Hash> entries_;
  std::deque<TensorId> age_;  // oldest first
};

struct Session::StatsCache : KeptStatsTable {};

}  // namespace msdbg
