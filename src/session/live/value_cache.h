// Fetched values of the current suspension, by the training's identity for them. The owner locks.
#pragma once

#include <compare>
#include <cstdint>
#include <list>
#include <unordered_map>

#include "msdbg/graph.h"
#include "msdbg/tensor.h"

namespace msdbg::live {

/// An output: the value of an input is that of its producer.
struct ValueKey {
  int rank = 0, graph = 0;
  NodeId node = kNoNode;
  uint32_t slot = 0;
  auto operator<=>(const ValueKey&) const = default;

  struct Hash {
    size_t operator()(const ValueKey& key) const noexcept {
      const uint64_t graph = uint64_t{static_cast<uint32_t>(key.rank)} << 32 | static_cast<uint32_t>(key.graph);
      const uint64_t value = uint64_t{key.node} << 32 | key.slot;
      return static_cast<size_t>((graph * 0x9e3779b97f4a7c15u + value) * 0xbf58476d1ce4e5b9u >> 16);
    }
  };
};

class ValueCache {
 public:
  /// Null if it is not cached.
  TensorPtr find(const ValueKey& key);
  bool contains(const ValueKey& key) const { return places_.count(key) > 0; }
  void put(const ValueKey& key, TensorPtr tensor);
  void erase(const ValueKey& key);
  void clear();
  /// Drops the least recently used values until the elements take at most `bytes`.
  void shrink(uint64_t bytes);
  uint64_t bytes() const { return bytes_; }

 private:
  struct Value {
    ValueKey key;
    TensorPtr tensor;
  };
  std::list<Value> values_;  // most recently used first
  std::unordered_map<ValueKey, std::list<Value>::iterator, ValueKey::Hash> places_;
  uint64_t bytes_ = 0;
};

}  // namespace msdbg::live
