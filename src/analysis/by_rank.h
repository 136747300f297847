// Something for each of a few ranks, of which there may be a million.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "msdbg/base.h"

namespace msdbg {

/// A map with the rank as key that takes no more memory than its items.
template <typename T>
class ByRank {
 public:
  using Item = std::pair<int, T>;

  T& operator[](int rank) {
    auto at = place(items_, rank);
    if (at == items_.end() || at->first != rank) at = items_.emplace(at, rank, T());
    return at->second;
  }
  T& at(int rank) { return item(items_, rank)->second; }
  const T& at(int rank) const { return item(items_, rank)->second; }
  auto find(int rank) const { return found(items_, rank); }
  bool contains(int rank) const { return find(rank) != end(); }

  void reserve(size_t ranks) { items_.reserve(ranks); }
  bool empty() const { return items_.empty(); }
  size_t size() const { return items_.size(); }
  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }

 private:
  static auto place(auto& items, int rank) { return std::ranges::lower_bound(items, rank, {}, &Item::first); }
  static auto found(auto& items, int rank) {
    const auto at = place(items, rank);
    return at != items.end() && at->first == rank ? at : items.end();
  }
  static auto item(auto& items, int rank) {
    const auto at = found(items, rank);
    MSDBG_CHECK(at != items.end());
    return at;
  }

  std::vector<Item> items_;  // by rank
};

}  // namespace msdbg
