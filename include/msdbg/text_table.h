// A hash table from texts to values for very many texts: it keeps views of them and allocates nothing for a single one.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "msdbg/hash.h"

namespace msdbg {

/// The bytes of the texts belong to the caller and must stay where they are. At most 2^31 texts. One thread; find() any thread while
/// nobody adds.
template <typename Value>
class TextTable {
 public:
  struct Entry {
    std::string_view text;
    Value value;
  };

  /// Before many more texts are added.
  void reserve(size_t more) {
    entries_.reserve(entries_.size() + more);
    if (places_for(entries_.size() + more) > places_.size()) rehash(places_for(entries_.size() + more));
  }
  /// nullptr if the text is not there. The next add() moves the value.
  const Value* find(std::string_view text) const {
    if (entries_.empty()) return nullptr;
    const Place& place = places_[place_of(text, hash32(text))];
    return place.entry == kFree ? nullptr : &entries_[place.entry].value;
  }
  Value* find(std::string_view text) { return const_cast<Value*>(std::as_const(*this).find(text)); }
  /// The value of the text, and whether it is new; `value` counts for a new one only.
  std::pair<Value&, bool> add(std::string_view text, Value value = Value()) {
    if (places_for(entries_.size() + 1) > places_.size()) rehash(places_for(entries_.size() + 1));
    const uint32_t hash = hash32(text);
    Place& place = places_[place_of(text, hash)];
    const bool is_new = place.entry == kFree;
    if (is_new) {
      place = {hash, static_cast<uint32_t>(entries_.size())};
      entries_.push_back({text, std::move(value)});
    }
    return {entries_[place.entry].value, is_new};
  }

  bool empty() const { return entries_.empty(); }
  size_t size() const { return entries_.size(); }
  /// In the order in which they were added.
  auto begin() { return entries_.begin(); }
  auto end() { return entries_.end(); }
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }

 private:
  static constexpr uint32_t kFree = UINT32_MAX;
  struct Place {
    uint32_t hash = 0, entry = kFree;
  };

  static uint32_t hash32(std::string_view text) { return static_cast<uint32_t>(hash_of(text)); }
  static size_t places_for(size_t entries) { return std::bit_ceil(entries + entries / 2 + 8); }
  /// Where the text is, or the free place where it belongs.
  size_t place_of(std::string_view text, uint32_t hash) const {
    const size_t mask = places_.size() - 1;
    size_t at = hash & mask;
    while (places_[at].entry != kFree && (places_[at].hash != hash || entries_[places_[at].entry].text != text)) at = (at + 1) & mask;
    return at;
  }
  void rehash(size_t places) {
    std::vector<Place> before = std::exchange(places_, std::vector<Place>(places));
    for (const Place& place : before) {
      if (place.entry == kFree) continue;
      size_t at = place.hash & (places - 1);
      while (places_[at].entry != kFree) at = (at + 1) & (places - 1);
      places_[at] = place;
    }
  }

  std::vector<Entry> entries_;
  std::vector<Place> places_;  // linear probing
};

}  // namespace msdbg
