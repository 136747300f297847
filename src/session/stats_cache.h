// Cache of finished statistics: a recheck with other thresholds reads no tensor.
//
// Any thread: entries are immutable, the table is locked.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bitset>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "msdbg/bits.h"
#include "msdbg/expr.h"
#include "msdbg/session.h"
#include "msdbg/shared_list.h"
#include "msdbg/watch.h"

namespace msdbg {

/// True if statistics computed for `have` also answer `want`.
bool covers(const StatsRequest& have, const StatsRequest& want);

/// Which counts are known and above 0, as bits of StatField.
uint32_t counts_above_zero(const Stats& stats);

/// Adds the requirements of `from` to `to`, each range and tolerance once.
void merge_request(const StatsRequest& from, StatsRequest& to);

/// Statistics of one tensor together with the identity of their input.
struct KeptStats {
  TensorInfo info;
  StatsRequest request;
  Stats stats;
  Previous previous = Previous::kNotNeeded;
  std::string previous_reason;          ///< why the previous value is missing
  std::optional<TensorId> previous_id;  ///< set if `previous` is kPresent
  uint64_t previous_bytes = 0;          ///< of the elements of the previous value
  std::optional<BitsPrint> bits;        ///< set if `request` has it
  /// Values of expressions, by text; nullopt if a required previous value is missing.
  std::map<std::string, std::optional<ExpressionValue>, std::less<>> values;

  bool answers(const StatsRequest& want) const;
  bool holds(std::span<const Expression> expressions) const;
};
using KeptStatsPtr = std::shared_ptr<const KeptStats>;

inline constexpr size_t kStatsShards = 16;

struct TensorIdHash {
  size_t operator()(const TensorId& id) const;  // not noexcept: tables then keep the hashes
};

/// The bits of tensors, from a check to the comparison that it ends with. Smaller than their statistics, and never evicted.
class KeptBits {
 public:
  void put(const TensorInfo& info, const BitsPrint& print);
  /// Whoever compares tensors asks for each once: they are not given again.
  std::optional<TensorBits> take(const TensorId& id);
  void erase_if(const std::function<bool(const TensorId&)>& stale);

 private:
  /// There may be a million of them.
  struct Entry {
    TensorId id;
    SharedList<int64_t> shape;
    uint64_t low = 0, high = 0;
    DType dtype = DType::kUnknown;
    bool nan = false, taken = false;
  };
  /// The threads of a check rarely meet.
  struct Shard {
    std::mutex mutex;
    std::deque<Entry> entries;
    size_t sorted = 0;  ///< so many entries are in order, each tensor once
    std::map<Shape, SharedList<int64_t>> shapes;

    void sort();
  };
  std::array<Shard, kStatsShards> shards_;
};

class KeptStatsTable {
 public:
  explicit KeptStatsTable(size_t capacity);

  /// From here on, entries that neither this check nor the previous one used may be evicted. Without this rule, a check over more
  /// tensors than fit would evict each entry shortly before its next use.
  void begin_check();
  /// `put_before`: set to false if put() was never called for the tensor; true says little.
  KeptStatsPtr find(const TensorId& id, bool* put_before = nullptr);
  /// Stores nothing if the table is full of entries in use, or without `keep`.
  void put(KeptStatsPtr entry, bool keep = true);
  void erase_if(const std::function<bool(const TensorId&)>& stale);
  std::vector<TensorId> ids() const;
  size_t size() const { return size_; }

 private:
  struct Entry {
    KeptStatsPtr stats;
    uint64_t last_check = 0;  ///< the last check that used it
  };
  /// Three bits for each tensor that was ever put: most questions of a first check end here, in the processor's cache.
  class PutBefore {
   public:
    void add(size_t hash) {
      for (const int shift : kShifts) bits_.set(hash >> shift & kMask);
    }
    /// Also true of one in 400 other tensors, once there are 100,000.
    bool may_have(size_t hash) const {
      return std::ranges::all_of(kShifts, [&](int shift) { return bits_.test(hash >> shift & kMask); });
    }

   private:
    static constexpr size_t kMask = (1 << 17) - 1;
    static constexpr std::array<int, 3> kShifts{0, 17, 47};  ///< those between decide about the shard
    std::bitset<kMask + 1> bits_;
  };
  /// A part of the table with its own lock: the threads of a check rarely meet.
  struct Shard {
    mutable std::mutex mutex;
    bool all_in_use = false;  ///< nothing can be evicted in this check
    bool complete = true;     ///< it has all that was ever put
    std::unordered_map<TensorId, Entry, TensorIdHash> entries;
    std::deque<TensorId> queue;  ///< eviction candidates, next one first
    PutBefore put_before;
  };
  Shard& shard_of(size_t hash);
  bool make_room(Shard& shard);

  const size_t capacity_;  ///< of each shard
  std::atomic<uint64_t> check_{1};
  std::atomic<size_t> size_{0};
  std::vector<Shard> shards_;
};

/// The table, and the store behind it.
class StatsCache : public KeptStatsTable {
 public:
  using KeptStatsTable::KeptStatsTable;

  struct Found {
    KeptStatsPtr kept;
    bool from_store = false;
    std::optional<StatsStore::Ticket> ticket = {};  ///< for keep(), if the store was asked
  };
  /// The entry that `enough` accepts, from the table or else from the store. Without one, any entry: what is read now may extend it.
  /// `remembers`: the table keeps what came from the store, and finds it the next time.
  Found look_up(Session& session, const TensorId& id, bool previous, const std::function<bool(const KeptStats&)>& enough,
                bool remembers = true);
  /// Any entry, for somebody who asks about one tensor and will ask again.
  Found recall(Session& session, const TensorId& id);
  /// From the first judged() of a check on, for its owner's thread alone: which counts of a tensor are above 0, as bits of StatField.
  /// Rules ask about operands, which mostly ran shortly before.
  void judged(const TensorId& id, const Stats& stats);
  std::optional<uint32_t> judged_counts(const TensorId& id) const;
  void check_ends() { std::vector<Judged>().swap(judged_); }
  /// Puts statistics of a tensor that was read into the table and into the store. `file`: as of StatsStore::put().
  void keep(KeptStatsPtr entry, const std::optional<StatsStore::Ticket>& ticket, const FileStamp* file);
  void forget(const std::function<bool(const TensorId&)>& stale);

  KeptBits bits;

  std::shared_ptr<StatsStore> store;  ///< may be null
  bool leaves_to_store = false;       ///< keeps nothing that the store answers; unchanged during a check

 private:
  struct Judged {
    TensorId id;
    uint32_t counts = 0;
  };
  static constexpr size_t kJudged = 1 << 14;  ///< 800 KB
  std::vector<Judged> judged_;  // each in the place that its id gives; of two with the same place, the last
};

}  // namespace msdbg
