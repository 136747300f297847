#include "session/stats_cache.h"

#include <algorithm>
#include <utility>

#include "session/kept_stats_bytes.h"

namespace msdbg {
namespace {

/// A smaller table is one shard: its room must not depend on how the tensors spread.
constexpr size_t kLeastSharded = 1 << 16;
/// The store answers again: the table need not hold a million of its entries.
constexpr size_t kMostFromStore = 1 << 15;
/// A single check asks again for a few of its tensors only.
constexpr size_t kMostOfOneCheck = 1 << 13;

/// The tables find an entry by the lower bits.
size_t shard_number(size_t hash) { return (hash >> 40) % kStatsShards; }

template <typename T>
bool contains_all(const std::vector<T>& have, const std::vector<T>& want) {
  return std::all_of(want.begin(), want.end(),
                     [&](const T& item) { return std::find(have.begin(), have.end(), item) != have.end(); });
}

template <typename T>
void add_all(const std::vector<T>& from, std::vector<T>& to) {
  for (const T& item : from) {
    if (std::find(to.begin(), to.end(), item) == to.end()) to.push_back(item);
  }
}

}  // namespace

bool covers(const StatsRequest& have, const StatsRequest& want) {
  return (have.change || !want.change) && (have.bits || !want.bits) && contains_all(have.ranges, want.ranges) &&
         contains_all(have.close, want.close);
}

uint32_t counts_above_zero(const Stats& stats) {
  const std::pair<uint32_t, uint64_t> counts[] = {
      {kStatNan, stats.nan_count}, {kStatPosInf, stats.pos_inf_count}, {kStatNegInf, stats.neg_inf_count}, {kStatZero, stats.zero_count},
      {kStatPos, stats.pos_count}, {kStatNeg, stats.neg_count},        {kStatDtypeMax, stats.dtype_max_count}};
  uint32_t fields = 0;
  for (const auto& [field, count] : counts) fields |= count > 0 ? field : 0;
  return fields & stats.known;
}

void merge_request(const StatsRequest& from, StatsRequest& to) {
  to.change = to.change || from.change;
  to.bits = to.bits || from.bits;
  add_all(from.ranges, to.ranges);
  add_all(from.close, to.close);
}

bool KeptStats::answers(const StatsRequest& want) const {
  if (want.needs_previous()) {
    if (previous == Previous::kNotNeeded) return false;
    if (previous != Previous::kPresent) {
      // Nothing was computed against a previous value, and nothing could be.
      return contains_all(request.ranges, want.ranges) && (request.bits || !want.bits);
    }
  }
  return covers(request, want);
}

bool KeptStats::holds(std::span<const Expression> expressions) const {
  return std::all_of(expressions.begin(), expressions.end(),
                     [this](const Expression& expression) { return values.count(expression.text()) > 0; });
}

size_t TensorIdHash::operator()(const TensorId& id) const {
  uint64_t h = 0x9e3779b97f4a7c15u;
  auto mix = [&h](uint64_t value) {
    h ^= value + 0x9e3779b97f4a7c15u + (h << 6) + (h >> 2);
    h *= 0xff51afd7ed558ccdu;
  };
  mix(static_cast<uint64_t>(id.rank));
  mix(static_cast<uint64_t>(id.graph));
  mix(static_cast<uint64_t>(id.step));
  mix((uint64_t{id.execution} << 32) | id.node);
  mix((uint64_t{id.slot.index} << 1) | (id.slot.io == Io::kOutput ? 1u : 0u));
  return static_cast<size_t>(h ^ (h >> 29));
}

void KeptBits::put(const TensorInfo& info, const BitsPrint& print) {
  Shard& shard = shards_[shard_number(TensorIdHash()(info.id))];
  const std::lock_guard lock(shard.mutex);
  const auto [shape, is_new] = shard.shapes.try_emplace(info.shape);
  if (is_new) shape->second = info.shape;
  shard.entries.push_back({info.id, shape->second, print.low, print.high, info.dtype, print.nan});
}

/// Of several entries of a tensor, the last one stays, and nothing of those that were taken.
void KeptBits::Shard::sort() {
  if (sorted == entries.size()) return;
  std::ranges::stable_sort(entries, {}, &Entry::id);
  size_t kept = 0;
  for (size_t at = 0; at < entries.size(); ++at) {
    if (entries[at].taken || (at + 1 < entries.size() && entries[at + 1].id == entries[at].id)) continue;
    if (kept != at) entries[kept] = std::move(entries[at]);
    ++kept;
  }
  entries.resize(kept);
  sorted = kept;
}

std::optional<TensorBits> KeptBits::take(const TensorId& id) {
  Shard& shard = shards_[shard_number(TensorIdHash()(id))];
  const std::lock_guard lock(shard.mutex);
  shard.sort();
  const auto found = std::ranges::lower_bound(shard.entries, id, {}, &Entry::id);
  if (found == shard.entries.end() || found->id != id || std::exchange(found->taken, true)) return std::nullopt;
  return TensorBits{found->dtype, found->shape, {found->low, found->high, found->nan}};
}

void KeptBits::erase_if(const std::function<bool(const TensorId&)>& stale) {
  for (Shard& shard : shards_) {
    const std::lock_guard lock(shard.mutex);
    shard.sort();
    std::erase_if(shard.entries, [&](const Entry& entry) { return entry.taken || stale(entry.id); });
    shard.sorted = shard.entries.size();
  }
}

KeptStatsTable::KeptStatsTable(size_t capacity)
    : capacity_(capacity < kLeastSharded ? capacity : capacity / kStatsShards), shards_(capacity < kLeastSharded ? 1 : kStatsShards) {}

KeptStatsTable::Shard& KeptStatsTable::shard_of(size_t hash) { return shards_[shards_.size() == 1 ? 0 : shard_number(hash)]; }

void KeptStatsTable::begin_check() {
  ++check_;
  for (Shard& shard : shards_) {
    std::lock_guard lock(shard.mutex);
    shard.all_in_use = false;
  }
}

KeptStatsPtr KeptStatsTable::find(const TensorId& id, bool* put_before) {
  const size_t hash = TensorIdHash()(id);
  Shard& shard = shard_of(hash);
  std::lock_guard lock(shard.mutex);
  const bool added = shard.put_before.may_have(hash);
  const auto it = added ? shard.entries.find(id) : shard.entries.end();
  if (put_before != nullptr) *put_before = added && (it != shard.entries.end() || !shard.complete);
  if (it == shard.entries.end()) return nullptr;
  it->second.last_check = check_;
  return it->second.stats;
}

bool KeptStatsTable::make_room(Shard& shard) {
  if (shard.entries.size() < capacity_) return true;
  for (size_t looked = 0; !shard.all_in_use && looked < shard.queue.size(); ++looked) {
    const TensorId id = shard.queue.front();
    shard.queue.pop_front();
    const auto it = shard.entries.find(id);
    if (it->second.last_check + 1 < check_) {
      shard.complete = false;
      shard.entries.erase(it);
      --size_;
      return true;
    }
    shard.queue.push_back(id);
  }
  shard.all_in_use = true;
  return false;
}

void KeptStatsTable::put(KeptStatsPtr entry, bool keep) {
  const TensorId id = entry->info.id;
  const size_t hash = TensorIdHash()(id);
  Shard& shard = shard_of(hash);
  std::lock_guard lock(shard.mutex);
  shard.put_before.add(hash);
  const auto it = keep ? shard.entries.find(id) : shard.entries.end();
  if (it != shard.entries.end()) {
    it->second = {std::move(entry), check_};
  } else if (!keep || !make_room(shard)) {
    shard.complete = false;
  } else {
    shard.entries.emplace(id, Entry{std::move(entry), check_});
    shard.queue.push_back(id);
    ++size_;
  }
}

void KeptStatsTable::erase_if(const std::function<bool(const TensorId&)>& stale) {
  for (Shard& shard : shards_) {
    std::lock_guard lock(shard.mutex);
    std::erase_if(shard.queue, stale);
    const size_t erased = std::erase_if(shard.entries, [&](const auto& entry) { return stale(entry.first); });
    shard.complete = shard.complete && erased == 0;
    size_ -= erased;
  }
}

std::vector<TensorId> KeptStatsTable::ids() const {
  std::vector<TensorId> ids;
  for (const Shard& shard : shards_) {
    std::lock_guard lock(shard.mutex);
    ids.insert(ids.end(), shard.queue.begin(), shard.queue.end());
  }
  return ids;
}

StatsCache::Found StatsCache::look_up(Session& session, const TensorId& id, bool previous,
                                      const std::function<bool(const KeptStats&)>& enough, bool remembers) {
  bool kept_before = false;
  Found found{find(id, &kept_before)};
  if (found.kept && enough(*found.kept)) return found;
  if (!store) return found;
  std::string bytes;
  found.ticket = store->find(id, previous, kept_before, bytes);
  if (bytes.empty()) return found;
  const auto entry = decode(bytes, session.identify(id));
  if (!entry) return found;
  const bool suffices = enough(**entry);
  if (!suffices && found.kept) return found;
  found.kept = *entry;
  found.from_store = true;
  if (suffices && remembers && !leaves_to_store && size() < kMostFromStore) put(found.kept);
  return found;
}

void StatsCache::judged(const TensorId& id, const Stats& stats) {
  judged_.resize(kJudged);
  judged_[TensorIdHash()(id) % kJudged] = {id, counts_above_zero(stats)};
}

std::optional<uint32_t> StatsCache::judged_counts(const TensorId& id) const {
  if (judged_.empty()) return std::nullopt;
  const Judged& last = judged_[TensorIdHash()(id) % kJudged];
  return last.id == id ? std::optional(last.counts) : std::nullopt;
}

StatsCache::Found StatsCache::recall(Session& session, const TensorId& id) {
  Found found = look_up(session, id, false, [](const KeptStats&) { return true; });
  if (found.from_store && leaves_to_store && size() < kMostOfOneCheck) put(found.kept);
  return found;
}

void StatsCache::keep(KeptStatsPtr entry, const std::optional<StatsStore::Ticket>& ticket, const FileStamp* file) {
  if (entry->bits) bits.put(entry->info, *entry->bits);
  if (ticket) store->put(entry->info.id, *ticket, file, encode(*entry));
  put(std::move(entry), !leaves_to_store || size() < kMostOfOneCheck);
}

void StatsCache::forget(const std::function<bool(const TensorId&)>& stale) {
  erase_if(stale);
  bits.erase_if(stale);
}

}  // namespace msdbg
