#include "session/live/value_cache.h"

#include <utility>

namespace msdbg::live {

TensorPtr ValueCache::find(const ValueKey& key) {
  const auto place = places_.find(key);
  if (place == places_.end()) return nullptr;
  values_.splice(values_.begin(), values_, place->second);
  return place->second->tensor;
}

void ValueCache::put(const ValueKey& key, TensorPtr tensor) {
  erase(key);
  bytes_ += tensor->bytes().size();
  values_.push_front({key, std::move(tensor)});
  places_.emplace(key, values_.begin());
}

void ValueCache::erase(const ValueKey& key) {
  const auto place = places_.find(key);
  if (place == places_.end()) return;
  bytes_ -= place->second->tensor->bytes().size();
  values_.erase(place->second);
  places_.erase(place);
}

void ValueCache::clear() {
  values_.clear();
  places_.clear();
  bytes_ = 0;
}

void ValueCache::shrink(uint64_t bytes) {
  while (!values_.empty() && bytes_ > bytes) erase(ValueKey(values_.back().key));
}

}  // namespace msdbg::live
