// Batches: one view for many small values that a check is about to read, or for the statistics of many values.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "session/live/live_session.h"

namespace msdbg::live {
namespace {

constexpr size_t kMostItems = 256;                          ///< in one view
constexpr size_t kMostLookedAt = 8 * kMostItems;            ///< including reads that are skipped
constexpr uint64_t kSmallValue = uint64_t{64} << 10;        ///< a larger one is requested by itself
constexpr uint64_t kValues = uint64_t{4} << 20;             ///< bytes of elements and names in one view
constexpr uint64_t kShareOfMemory = 8;                      ///< a batch uses at most one eighth of the limit; it is copied once
// The training reads these bytes but sends none of them; it is silent until it answers.
constexpr uint64_t kSmallReduced = uint64_t{1} << 20, kReduced = uint64_t{64} << 20;

}  // namespace

void LiveSessionImpl::check_begins(std::vector<TensorId> reads) {
  ++checks_;
  talk_.pin(suspension_.number);
  std::lock_guard lock(cache_mutex_);
  reads_.clear();
  read_at_.clear();
  if (!profile_.levels) return;  // sizes are unknown until the value arrives
  reads_ = std::move(reads);
  read_at_.reserve(reads_.size());
  for (size_t i = 0; i < reads_.size(); ++i) {
    if (reads_[i].step != step_) continue;
    if (const Result<Source> source = source_of(reads_[i]))
      read_at_.try_emplace({reads_[i].rank, reads_[i].graph, source->node->id, source->slot}, i);
  }
}

void LiveSessionImpl::check_ends() {
  if (--checks_ == 0) talk_.pin(std::nullopt);
  summaries_.clear();
  std::lock_guard lock(cache_mutex_);
  reads_.clear();
  read_at_.clear();
}

/// A fetched value, or the reason why it could not be fetched; nullopt if it was not requested.
std::optional<Result<TensorPtr>> LiveSessionImpl::cached_value(const Key& key) {
  std::lock_guard lock(cache_mutex_);
  if (TensorPtr tensor = values_.find(key)) return Result<TensorPtr>(std::move(tensor));
  if (auto lost = lost_.extract(key)) return Result<TensorPtr>(std::move(lost.mapped()));
  return std::nullopt;
}

/// The next reads of the check, starting with this value, up to the limit of one request. Empty if it must be requested by itself.
std::vector<LiveSessionImpl::Asked> LiveSessionImpl::reads_from(const Key& key, const Row& most) {
  std::vector<Asked> row;
  std::lock_guard lock(cache_mutex_);
  const auto found = read_at_.find(key);
  if (found == read_at_.end()) return row;
  uint64_t bytes = 0;
  std::set<std::pair<std::string_view, uint32_t>> names;  // the training has one name for a node that two graphs share
  const size_t end = std::min(reads_.size(), found->second + kMostLookedAt);
  for (size_t i = found->second; i < end && row.size() < kMostItems; ++i) {
    const TensorId& id = reads_[i];
    const Result<Source> source = source_of(id);
    if (!source || id.step != step_) continue;
    const Key each{id.rank, id.graph, source->node->id, source->slot};
    const auto known = known_.find(each);
    // A tensor without elements sends no slice that could say so.
    const bool small = known != known_.end() && known->second.exists && known->second.info.elements().ok() &&
                       known->second.info.bytes > 0 && known->second.info.bytes <= most.each_bytes;
    if (!small && each == key) return row;
    if (!small || (most.elements && (values_.contains(each) || lost_.count(each) > 0))) continue;
    const auto& [info, exists, name] = known->second;
    if (!names.emplace(name, source->slot).second) continue;
    bytes += info.bytes + name.size();
    if (bytes > most.all_bytes) break;
    row.push_back({each, id, {{name, source->slot, false}, info.bytes}, info.dtype, info.shape});
  }
  return row;
}

std::vector<LiveSessionImpl::Asked> LiveSessionImpl::values_from(const Key& key) {
  return reads_from(key, {kSmallValue, std::min(kValues, options_.mem_limit_bytes / kShareOfMemory), true});
}

/// The training's statistics of a value. If a check needs only statistics, the next ones are requested with it. Owner only.
Result<debugger::TensorSummary> LiveSessionImpl::summary(const Key& key, const std::string& name) {
  std::vector<Asked> row;
  if (statistics_only_) {
    if (auto there = summaries_.extract(key)) return std::move(there.mapped());
    row = reads_from(key, {kSmallReduced, kReduced, false});
  }
  std::vector<ViewItem> items;
  for (const Asked& asked : row) items.push_back(asked.item);
  if (items.empty()) items.push_back({name, key.slot, false});
  Result<std::vector<debugger::TensorSummary>> answer = talk_.summaries(items);
  for (size_t i = 1; i < row.size(); ++i)  // a batch that failed is not requested again
    summaries_.insert_or_assign(row[i].key, answer ? std::move((*answer)[i]) : debugger::TensorSummary());
  if (!answer) return answer.status();
  return std::move(answer->front());
}

/// Caches the values, or the reasons for missing ones. An error applies to the whole view.
Status LiveSessionImpl::fetch_together(const std::vector<Asked>& asked) {
  std::vector<ValueItem> items;
  uint64_t bytes = 0;
  for (const Asked& each : asked) {
    items.push_back(each.item);
    bytes += each.item.most_bytes;
  }
  {
    std::lock_guard lock(cache_mutex_);
    values_.shrink(options_.mem_limit_bytes - 2 * bytes);
  }
  const Result<std::shared_ptr<ValueUpload>> upload = talk_.values(items, bytes, bytes);
  if (!upload && upload.status().code() == Code::kInterrupted) return upload.status();
  std::vector<std::pair<Key, Result<TensorPtr>>> results;
  for (size_t i = 0; i < asked.size(); ++i) {
    Result<TensorPtr> tensor = upload ? arrived(asked[i], *upload, i, true) : Result<TensorPtr>(upload.status());
    if (!tensor && tensor.status().code() == Code::kNotFound) tensor = unavailable(asked[i].id);
    if (tensor) {
      if (Status status = check_announced(asked[i].id, asked[i].dtype, asked[i].shape, **tensor); !status.ok()) tensor = std::move(status);
    }
    results.emplace_back(asked[i].key, std::move(tensor));
  }
  std::lock_guard lock(cache_mutex_);
  for (auto& [key, tensor] : results) {
    if (tensor) values_.put(key, std::move(*tensor));
    else lost_.insert_or_assign(key, tensor.status());
  }
  return {};
}

}  // namespace msdbg::live
