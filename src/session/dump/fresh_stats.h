// Statistics that are not in the index yet: in memory, and beyond that in a file without a name.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "session/dump/index_bytes.h"

namespace msdbg::dump {

/// A file as it was before it was read.
struct Seen {
  uint64_t digest = 0, previous = 0;
  int64_t youngest = 0;  ///< last change of the file and of the previous value's file
  int64_t when = 0;
};

/// Opens a file without a name, to read and write: nothing is left of it, however the process ends. -1 if the directory cannot be written.
int open_unnamed(const std::string& directory);

/// A temporary file that disappears with the process. One thread at a time.
class SpillFile {
 public:
  /// `directory` must exist when the first bytes are written.
  explicit SpillFile(std::string directory) : directory_(std::move(directory)) {}
  ~SpillFile();
  SpillFile(const SpillFile&) = delete;
  SpillFile& operator=(const SpillFile&) = delete;

  /// The offset of the bytes; nullopt if they cannot be written, now or ever again.
  std::optional<uint64_t> append(std::string_view bytes);
  bool read(uint64_t offset, char* bytes, size_t size) const;

 private:
  bool open();

  const std::string directory_;
  int file_ = -1;
  bool failed_ = false;
  uint64_t size_ = 0;
};

/// The new statistics of one directory. Several threads may call add(), may_have() and find() at once; everything else needs it alone.
class FreshStats {
 public:
  /// Returns the bytes of memory that it takes.
  size_t add(uint64_t name, const Seen& seen, std::string_view bytes);
  /// False: find() will find nothing. Most questions end here.
  bool may_have(uint64_t name) const;
  /// The entry of that name that was added last, copied to `bytes`, and its file; nullopt without one.
  std::optional<Seen> find(const SpillFile& file, uint64_t name, std::string& bytes);

  /// Entries that were added, those of one name several times.
  size_t count() const;
  /// Bytes in memory.
  size_t memory() const;
  bool in_file() const { return !runs_.empty(); }
  void clear();
  /// Of those in memory, drops all others.
  void forget_unless(const std::function<bool(const Seen&)>& wanted);
  /// False, and everything in memory is lost, if the file cannot be written: the index only saves time.
  bool move_to(SpillFile& file);

  /// Appends the entries from `first` to `last` that `wanted` accepts, sorted by name; of several for one name, the last one added.
  /// Their bytes are in `storage` or in this object. False if the file cannot be read.
  bool collect(const SpillFile& file, uint64_t first, uint64_t last, const std::function<bool(const Seen&)>& wanted, std::string& storage,
               std::vector<IndexEntry>& entries) const;

 private:
  /// Two bits for each name, which is a hash.
  class Names {
   public:
    void reserve(size_t names);
    size_t room() const { return bits_.size() / kBits; }
    void add(uint64_t name) { bits_[first(name)] = bits_[second(name)] = true; }
    bool may_have(uint64_t name) const { return !bits_.empty() && bits_[first(name)] && bits_[second(name)]; }

   private:
    static constexpr size_t kBits = 16;  ///< for each
    size_t first(uint64_t name) const { return name & (bits_.size() - 1); }
    size_t second(uint64_t name) const { return name >> 32 & (bits_.size() - 1); }
    std::vector<bool> bits_;  ///< a power of two
  };
  /// What is in memory, of the names that begin with the same bits: threads rarely meet.
  struct Memory {
    mutable std::mutex mutex;  // for threads that are not alone
    std::string records;
    size_t count = 0;
    Names names;
    std::unordered_map<uint64_t, size_t> offsets;  // into `records`, of the last entry of each name, as far as it was looked at
    size_t looked_at = 0;                          // bytes of `records`

    void add(uint64_t name, const Seen& seen, std::string_view bytes);
    void clear();
  };
  /// Entries in the file, sorted by name.
  struct Piece {
    uint64_t first = 0;  ///< the first name
    uint64_t offset = 0, size = 0;
  };
  struct Run {
    std::vector<Piece> pieces;
    Names names;
    size_t count = 0;
  };
  static constexpr int kMemoryBits = 4;
  Memory& memory_of(uint64_t name) { return memory_[name >> (64 - kMemoryBits)]; }
  const Memory& memory_of(uint64_t name) const { return memory_[name >> (64 - kMemoryBits)]; }

  std::array<Memory, 1 << kMemoryBits> memory_;
  std::vector<Run> runs_;  // in the order of their age
};

}  // namespace msdbg::dump
