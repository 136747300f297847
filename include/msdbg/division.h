// How work on many files is divided over processes. Pure: no process is needed to try it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

namespace msdbg {

/// Consecutive items that one process reads.
struct Parcel {
  uint64_t first = 0, count = 0;
  bool operator==(const Parcel&) const = default;
};

/// Opening a file costs as much time as reading this many bytes.
inline constexpr uint64_t kBytesPerItem = 64 << 10;
/// A process has so many parcels at most: it reads one while the next is on its way.
inline constexpr unsigned kParcelsAhead = 2;

/// Cuts items of these sizes in bytes into parcels of about equal cost, in order. The last eighth of the bytes is cut into ever smaller
/// ones, and all processes finish at about the same time.
std::vector<Parcel> divide(std::span<const uint64_t> bytes, unsigned processes);

/// Deals parcels out to the processes as they ask for them. Process 0 deals; it reads, too. Not thread-safe.
class Dealer {
 public:
  Dealer(std::span<const uint64_t> bytes, unsigned processes);

  /// The next parcel for `process`. Nothing if no parcel is left or another process still has kParcelsAhead of them.
  std::optional<Parcel> deal(unsigned process);
  /// Process `process` has finished an item. False if it did not have that item.
  bool finish(unsigned process, uint64_t item);
  /// Takes back what `process` has not finished; it gets nothing more.
  void give_up(unsigned process);

  /// True if no item is left to deal out or to wait for. Items of process 0 count as finished when they are dealt.
  bool done() const { return parcels_.empty() && waiting_ == 0; }

 private:
  struct Holder {
    std::deque<Parcel> parcels;  ///< dealt and not finished, the oldest first
    std::deque<uint64_t> left;   ///< unfinished items of each
    bool gone = false;
  };
  std::deque<Parcel> parcels_;
  std::vector<Holder> holders_;     // by process
  std::vector<bool> finished_;      // by item
  uint64_t waiting_ = 0;            // items dealt to other processes and not finished
};

}  // namespace msdbg
