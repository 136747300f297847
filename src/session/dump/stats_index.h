// The index of a dump: listings of its directories, and statistics of its tensors, from one run of the program to the next.
//
// Whatever it says is true of files and directories that have not changed: each answer compares size, times and inode. What changed so
// recently that a further change might not show is not kept. docs/index.md describes it.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "msdbg/session.h"
#include "session/dump/directory.h"
#include "session/dump/fresh_stats.h"
#include "session/dump/index_bytes.h"
#include "session/dump/index_file.h"
#include "session/dump/index_place.h"
#include "session/dump/look_ahead.h"
#include "session/dump/step_index.h"

namespace msdbg::dump {

/// The file of a value. What is behind the pointers is rarely in the cache: it is looked at only when it is needed.
struct FilePlace {
  uint32_t directory = 0;      ///< index into the session's list
  std::string_view file;       ///< below the directory; a zero byte is behind it
  uint64_t part = 0;           ///< of a file with several values
  Note note = Note::kNone;     ///< of the value
  const Node* node = nullptr;  ///< whose value it is
  Slot slot = {};

  uint64_t name() const { return hash_of(file, part); }
  /// Hash of what the graph adds to the description.
  uint64_t context() const;
};

/// What the index asks the session. Any thread.
class FilePlaces {
 public:
  virtual ~FilePlaces() = default;
  /// nullopt if the value has no file with elements that can be read.
  virtual std::optional<FilePlace> locate(const TensorId& id) const = 0;
  virtual Result<TensorId> earlier(const TensorId& id, bool* history_missing) const = 0;
  virtual void for_each_file(const std::function<void(const FilePlace& place)>& take) const = 0;
};

class StatsIndex : public DirectoryLister, public StatsStore {
 public:
  /// `settled`: for how long a file must not have changed when it is read. `look_ahead`: all of the dump is asked for once it is open.
  StatsIndex(std::string root, std::chrono::nanoseconds settled, bool look_ahead);
  ~StatsIndex() override;

  const std::string& root() const { return root_; }
  /// Once the dump is open. `plain`: its root is a directory of tensors. `complete`: all of it is open.
  void attach(const FilePlaces& places, std::span<const std::string> directories, bool plain, bool complete);
  /// Writes what is new, in the background.
  void save();
  /// Waits for save(), writes the rest and forgets the session.
  void detach();

  Result<Listing> list(const std::string& path) override;
  std::optional<Ticket> find(const TensorId& id, bool previous, bool kept_before, std::string& entry) override;
  void look(const TensorId& id, Ticket& ticket) override;
  void put(const TensorId& id, const Ticket& ticket, const FileStamp* file, std::string_view entry) override;
  void rest() override;

 private:
  struct NewListing {
    std::string bytes;
    Seen seen;
    std::optional<std::pair<uint64_t, size_t>> in_file;  ///< offset and size, instead of `bytes`
  };
  class ListingRow;
  struct Reference {
    uint64_t name;
    uint32_t offset;
  };
  /// A part of the statistics of a directory, loaded when one of its entries is first asked for: several threads load several parts.
  struct Part {
    std::mutex mutex;  // while it is loaded
    std::atomic<bool> loaded{false};
    std::string bytes;
    std::vector<Reference> references;  // by name
  };
  /// Whether the index has statistics of a directory.
  enum class Known : uint8_t { kNotAsked, kNothing, kSome };
  struct Directory {
    static constexpr int kNotOpened = -2, kNone = -1;
    Directory(std::string path_to_it, std::optional<std::string> name) : path(std::move(path_to_it)), key(std::move(name)) {}
    ~Directory();
    std::string path;
    const SeenFiles* seen_ahead = nullptr;
    std::optional<std::string> key;           ///< below the root; nullopt if it is elsewhere
    std::atomic<int> descriptor{kNotOpened};  ///< kNone: is asked by its path
    std::atomic<Known> known{Known::kNotAsked};
    std::shared_mutex mutex;  // for everything below but FreshStats::add(), and to change `known`
    std::vector<std::unique_ptr<Part>> parts;  // names are divided by their first bits; the mutex of each part guards it, too
    std::atomic<size_t> loaded{0};             // bytes of its parts
    std::atomic<int64_t> asked{0};             // when it was asked last
    FreshStats fresh;
  };

  std::optional<std::string> key_of(const std::string& path) const;
  std::optional<FileStamp> stamp_of(Directory& directory, std::string_view file);
  std::optional<Seen> look(const FilePlace& place, uint64_t name);
  bool is_known(Directory& directory);
  uint64_t look_at_previous(const TensorId& id, int64_t& youngest);
  void open(Directory& directory);
  void load(Directory& directory, size_t number);
  void unload(int64_t now);
  std::optional<IndexEntry> entry_of(Directory& directory, uint64_t name);
  void make_room();
  void move_to_file(FreshStats& fresh);
  void move_listings_to_file();
  void save_now();
  void read_again();
  Status write(IndexWriter& writer, const std::function<bool(const Seen&)>& settled);

  const std::string root_;
  const std::chrono::nanoseconds settled_;
  std::unique_ptr<LookAhead> ahead_;
  std::unique_ptr<IndexFile> file_;              // changes once: the first save() may make it
  std::atomic<IndexFile*> readable_{nullptr};    // the same, for any thread
  std::mutex listed_;                        // for the next two
  std::map<std::string, NewListing> listings_;
  std::set<std::string> keys_;               // of everything that was listed
  const FilePlaces* places_ = nullptr;
  uint64_t made_by_ = 0;                     // what decides about the last digits
  std::vector<std::unique_ptr<Directory>> directories_;
  std::optional<IndexPlace> write_;
  bool complete_ = false;
  std::mutex spilling_;
  std::unique_ptr<SpillFile> spill_;    // under spilling_
  std::atomic<size_t> fresh_bytes_{0}, loaded_bytes_{0};  // in memory
  std::atomic<bool> changed_{false};
  std::thread writer_;
};

}  // namespace msdbg::dump
