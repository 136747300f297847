// Statistics that are not in the index yet: in memory, and beyond that in a file without a name.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "session/dump/index_bytes.h"

namespace msdbg::dump {

/// The part of a name, if there are `parts`, a power of two.
inline size_t part_of(uint64_t name, size_t parts) { return parts == 1 ? 0 : static_cast<size_t>(name >> (64 - std::countr_zero(parts))); }

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

/// The new statistics of one directory. Several threads may call add() and find() at once; everything else needs it Alone, and without
/// find().
class FreshStats {
 public:
  /// Keeps threads from add().
  class Alone {
   public:
    explicit Alone(FreshStats& stats);
    ~Alone();
    Alone(const Alone&) = delete;
    Alone& operator=(const Alone&) = delete;

   private:
    FreshStats& stats_;
    const std::lock_guard<std::mutex> gate_;
  };

  /// Returns by how many bytes of memory it grew: mostly 0. Call find() before you add an entry under the same name again: only that
  /// tells which of them is the last one.
  size_t add(uint64_t name, const Seen& seen, std::string_view bytes);
  /// The entry of that name that was added last, copied to `bytes`, and its file; nullopt without one.
  std::optional<Seen> find(const SpillFile& file, uint64_t name, std::string& bytes);

  /// Entries that were added, those of one name several times.
  size_t count() const;
  /// Bytes in memory.
  size_t memory() const;
  bool in_file() const { return !runs_.empty(); }
  void clear();
  /// Whether there is such an entry in memory, or any in the file.
  bool any(const std::function<bool(const Seen&)>& wanted) const;
  /// False, and everything in memory is lost, if the file cannot be written: the index only saves time.
  bool move_to(SpillFile& file);

  /// In front of the bytes of an entry. The process alone reads it.
  struct Header {
    uint64_t name = 0, age = 0;
    Seen seen;
    uint64_t size = 0;
  };
  /// An entry: its header, and the bytes behind it.
  struct Record {
    uint64_t name = 0, age = 0;
    const char* at = nullptr;

    Header header() const;
    IndexEntry entry() const;
  };
  /// Of the entries in memory, those that `wanted` accepts: divided into `parts`, a power of two, by the first bits of their names.
  std::vector<std::vector<Record>> divided(size_t parts, const std::function<bool(const Seen&)>& wanted) const;
  /// Such entries, and those from `first` to `last` in the file that `wanted` accepts, sorted by name; of several for one name, the last
  /// one added. The bytes of the latter go to `storage`. nullopt if the file cannot be read.
  std::optional<std::vector<IndexEntry>> collect(const SpillFile& file, uint64_t first, uint64_t last, std::span<const Record> in_memory,
                                                 const std::function<bool(const Seen&)>& wanted, std::string& storage) const;

 private:
  /// Two bits for each name, which is a hash.
  class Names {
   public:
    explicit Names(size_t names) : bits_(std::bit_ceil(kBits * names)) {}
    void add(uint64_t name) { bits_[first(name)] = bits_[second(name)] = true; }
    bool may_have(uint64_t name) const { return bits_[first(name)] && bits_[second(name)]; }

   private:
    static constexpr size_t kBits = 16;  ///< for each
    size_t first(uint64_t name) const { return name & (bits_.size() - 1); }
    size_t second(uint64_t name) const { return name >> 32 & (bits_.size() - 1); }
    std::vector<bool> bits_;  ///< a power of two
  };
  /// What some threads added: they rarely meet, and no byte moves.
  struct alignas(64) Memory {
    mutable std::mutex mutex;  // for threads that are not alone
    std::vector<std::string> blocks;
    size_t count = 0, bytes = 0;
    size_t looked_at = 0, from = 0;  // find() knows what is in so many blocks, and in so many bytes of the next

    void clear();
  };
  /// Entries in the file, sorted by name.
  struct Piece {
    uint64_t first = 0;  ///< the first name
    uint64_t offset = 0, size = 0;
  };
  struct Run {
    explicit Run(size_t entries) : names(entries), count(entries) {}
    std::vector<Piece> pieces;
    Names names;
    size_t count;
  };
  /// The last entries of names that are hashes.
  class Last {
   public:
    void add(const Record& record);
    const Record* find(uint64_t name);
    void clear() { *this = {}; }

   private:
    Record& place_of(uint64_t name);
    std::vector<Record> places_;  // twice as many as entries, or more; a power of two
    size_t count_ = 0;
  };
  void look_at_new();
  void forget_memory();

  std::array<Memory, 16> memory_;
  std::mutex gate_;  // held by whoever is Alone, instead of the mutex of each Memory: a thread may have many directories for itself
  std::atomic<bool> closed_{false};
  std::atomic<uint64_t> age_{0};  ///< of what is added now: greater than that of everything that was found before
  std::mutex looking_;            // for the next one
  Last last_;                     // of those in memory, as far as they were looked at
  std::vector<Run> runs_;         // in the order of their age
};

}  // namespace msdbg::dump
