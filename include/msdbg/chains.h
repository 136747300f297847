// Very many short lists in one vector: no allocation for each of them.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace msdbg {

template <typename T>
class Chains {
  struct Link {
    T item;
    uint32_t next;
  };

 public:
  static constexpr uint32_t kEnd = UINT32_MAX;
  /// One of the lists; only the Chains that it was made with know its items.
  class List {
   public:
    bool empty() const { return first_ == kEnd; }
    bool has_one() const { return first_ != kEnd && first_ == last_; }
    uint32_t first() const { return first_; }

   private:
    friend class Chains;
    uint32_t first_ = kEnd, last_ = kEnd;
  };
  class Iterator {
   public:
    Iterator(const std::vector<Link>& links, uint32_t at) : links_(&links), at_(at) {}
    const T& operator*() const { return (*links_)[at_].item; }
    Iterator& operator++() {
      at_ = (*links_)[at_].next;
      return *this;
    }
    bool operator==(const Iterator& other) const { return at_ == other.at_; }

   private:
    const std::vector<Link>* links_;
    uint32_t at_;
  };
  struct Range {
    Iterator first, last;
    Iterator begin() const { return first; }
    Iterator end() const { return last; }
  };

  void reserve(size_t more) { links_.reserve(links_.size() + more); }
  /// Appends to the list and returns the number of the item among all.
  uint32_t add(List& list, T item) {
    const auto at = static_cast<uint32_t>(links_.size());
    links_.push_back({std::move(item), kEnd});
    (list.empty() ? list.first_ : links_[list.last_].next) = at;
    list.last_ = at;
    return at;
  }
  /// In the order in which they were added. The next add() ends a walk.
  Range of(const List& list) const { return {{links_, list.first_}, {links_, kEnd}}; }
  /// The item that follows one in its list, or kEnd.
  uint32_t after(uint32_t number) const { return links_[number].next; }
  T& operator[](uint32_t number) { return links_[number].item; }
  const T& operator[](uint32_t number) const { return links_[number].item; }
  size_t size() const { return links_.size(); }

 private:
  std::vector<Link> links_;
};

}  // namespace msdbg
