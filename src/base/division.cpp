#include "msdbg/division.h"

#include <algorithm>

namespace msdbg {
namespace {

constexpr uint64_t kParcelsPerProcess = 32;
constexpr uint64_t kLeastCost = uint64_t{1} << 20, kMostCost = uint64_t{4} << 30;

}  // namespace

std::vector<Parcel> divide(std::span<const uint64_t> bytes, unsigned processes) {
  // Sizes are guesses: none may make a sum overflow.
  const auto cost = [](uint64_t size) { return std::min(size, uint64_t{1} << 36) + kBytesPerItem; };
  const uint64_t shares = std::max(1u, processes);
  uint64_t left = 0;
  for (const uint64_t size : bytes) left += cost(size);
  const uint64_t usual = std::clamp(left / (shares * kParcelsPerProcess), kLeastCost, kMostCost);
  std::vector<Parcel> parcels;
  for (uint64_t at = 0; at < bytes.size();) {
    const uint64_t wanted = std::clamp(left / (shares * kParcelsPerProcess / 8), kLeastCost, usual);
    Parcel parcel{at, 0};
    uint64_t sum = 0;
    while (at < bytes.size() && (sum == 0 || sum + cost(bytes[at]) <= wanted)) {
      sum += cost(bytes[at++]);
      ++parcel.count;
    }
    left -= sum;
    parcels.push_back(parcel);
  }
  return parcels;
}

Dealer::Dealer(std::span<const uint64_t> bytes, unsigned processes) : holders_(std::max(1u, processes)), finished_(bytes.size()) {
  const std::vector<Parcel> parcels = divide(bytes, processes);
  parcels_.assign(parcels.begin(), parcels.end());
}

std::optional<Parcel> Dealer::deal(unsigned process) {
  Holder& holder = holders_[process];
  if (parcels_.empty() || holder.gone || holder.parcels.size() >= kParcelsAhead) return std::nullopt;
  const Parcel parcel = parcels_.front();
  parcels_.pop_front();
  if (process != 0) {
    holder.parcels.push_back(parcel);
    holder.left.push_back(parcel.count);
    waiting_ += parcel.count;
  }
  return parcel;
}

bool Dealer::finish(unsigned process, uint64_t item) {
  Holder& holder = holders_[process];
  for (size_t i = 0; i < holder.parcels.size(); ++i) {
    const Parcel& parcel = holder.parcels[i];
    if (item < parcel.first || item - parcel.first >= parcel.count) continue;
    if (finished_[item]) return false;
    finished_[item] = true;
    --waiting_;
    if (--holder.left[i] == 0) {
      holder.parcels.erase(holder.parcels.begin() + static_cast<std::ptrdiff_t>(i));
      holder.left.erase(holder.left.begin() + static_cast<std::ptrdiff_t>(i));
    }
    return true;
  }
  return false;
}

void Dealer::give_up(unsigned process) {
  Holder& holder = holders_[process];
  holder.gone = true;
  for (size_t i = holder.parcels.size(); i-- > 0;) {
    const Parcel& parcel = holder.parcels[i];
    waiting_ -= holder.left[i];
    // Runs of unfinished items, back to the front of the queue in their order.
    for (uint64_t end = parcel.first + parcel.count; end > parcel.first;) {
      if (finished_[end - 1]) {
        --end;
        continue;
      }
      uint64_t first = end - 1;
      while (first > parcel.first && !finished_[first - 1]) --first;
      parcels_.push_front({first, end - first});
      end = first;
    }
  }
  holder.parcels.clear();
  holder.left.clear();
}

}  // namespace msdbg
