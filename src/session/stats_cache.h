// Finished statistics, kept so a recheck with other thresholds reads no tensor.
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

#include "msdbg/expr.h"
#include "msdbg/session.h"
#include "msdbg/watch.h"

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
  explicit KeptStatsTable(size_t capacity) : capacity_(capacity) {}

  /// From here on, entries that neither this check nor the one before it used may make room for new ones. Without this rule a
  /// check over more tensors than there is room for would drop each entry shortly before its next use.
  void begin_check();
  KeptStatsPtr find(const TensorId& id);
  /// Keeps nothing when the table is full of entries in use.
  void put(KeptStatsPtr entry);
  void erase_if(const std::function<bool(const TensorId&)>& gone);
  std::vector<TensorId> ids() const;

 private:
  struct Hash {
    size_t operator()(const TensorId& id) const noexcept;
  };
  struct Entry {
    KeptStatsPtr stats;
    uint64_t last_check = 0;  ///< that used it
  };
  bool make_room();

  const size_t capacity_;
  mutable std::mutex mutex_;
  uint64_t check_ = 1;
  bool all_in_use_ = false;  ///< in this check nothing can go
  std::unordered_map<TensorId, Entry, Hash> entries_;
  std::deque<TensorId> queue_;  ///< the next candidate when room is needed comes first
};

struct Session::StatsCache : KeptStatsTable {
  using KeptStatsTable::KeptStatsTable;
};

}  // namespace msdbg
