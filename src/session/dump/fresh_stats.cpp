#include "session/dump/fresh_stats.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <utility>

namespace msdbg::dump {
namespace {

/// In front of the bytes of an entry. The process alone reads it.
struct Header {
  uint64_t name = 0;
  Seen seen;
  uint64_t size = 0;
};

struct Record {
  Header header;
  std::string_view all;  ///< with the header
  IndexEntry entry() const { return {header.name, header.seen.digest, header.seen.previous, all.substr(sizeof(Header))}; }
};

/// Entries are read from the file in pieces of about this size.
constexpr size_t kPiece = 32 << 10;

/// The first one.
Record record_at(std::string_view bytes) {
  Record record;
  std::memcpy(&record.header, bytes.data(), sizeof record.header);
  record.all = bytes.substr(0, sizeof record.header + record.header.size);
  return record;
}

template <typename Take>
void each_record(std::string_view bytes, const Take& take) {
  while (!bytes.empty()) {
    const Record record = record_at(bytes);
    take(record);
    bytes.remove_prefix(record.all.size());
  }
}

void sort_by_name(std::vector<Record>& records) {
  std::stable_sort(records.begin(), records.end(), [](const Record& a, const Record& b) { return a.header.name < b.header.name; });
}

}  // namespace

// ---- the file --------------------------------------------------------------------------------------------------------

int open_unnamed(const std::string& directory) {
  int file = ::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file >= 0) return file;
  // Network file systems have no such files.
  std::string path = directory + "/.msdbg-index-XXXXXX";
  file = ::mkostemp(path.data(), O_CLOEXEC);
  if (file >= 0) ::unlink(path.c_str());
  return file;
}

SpillFile::~SpillFile() {
  if (file_ >= 0) ::close(file_);
}

bool SpillFile::open() {
  if (failed_ || file_ >= 0) return !failed_;
  file_ = open_unnamed(directory_);
  failed_ = file_ < 0;
  return !failed_;
}

std::optional<uint64_t> SpillFile::append(std::string_view bytes) {
  if (!open()) return std::nullopt;
  const uint64_t start = size_;
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(file_, bytes.data(), bytes.size(), static_cast<off_t>(size_));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      failed_ = true;
      return std::nullopt;
    }
    size_ += static_cast<uint64_t>(written);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return start;
}

bool SpillFile::read(uint64_t offset, char* bytes, size_t size) const {
  while (size > 0) {
    const ssize_t count = ::pread(file_, bytes, size, static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    offset += static_cast<uint64_t>(count);
    bytes += count;
    size -= static_cast<size_t>(count);
  }
  return true;
}

// ---- the statistics --------------------------------------------------------------------------------------------------

void FreshStats::Names::reserve(size_t names) { bits_.assign(std::bit_ceil(kBits * names), false); }

void FreshStats::Memory::add(uint64_t name, const Seen& seen, std::string_view bytes) {
  constexpr size_t kFirstRoom = 64;
  if (count == names.room()) {
    names.reserve(std::max(kFirstRoom, 4 * count));
    each_record(records, [&](const Record& record) { names.add(record.header.name); });
  }
  const Header header{name, seen, bytes.size()};
  records.append(reinterpret_cast<const char*>(&header), sizeof header).append(bytes);
  names.add(name);
  ++count;
}

void FreshStats::Memory::clear() {
  std::string().swap(records);
  names = {};
  offsets = {};
  count = looked_at = 0;
}

size_t FreshStats::add(uint64_t name, const Seen& seen, std::string_view bytes) {
  Memory& memory = memory_of(name);
  const std::lock_guard lock(memory.mutex);
  const size_t before = memory.records.size();
  memory.add(name, seen, bytes);
  return memory.records.size() - before;
}

bool FreshStats::may_have(uint64_t name) const {
  if (std::any_of(runs_.begin(), runs_.end(), [name](const Run& run) { return run.names.may_have(name); })) return true;
  const Memory& memory = memory_of(name);
  const std::lock_guard lock(memory.mutex);
  return memory.names.may_have(name);
}

std::optional<Seen> FreshStats::find(const SpillFile& file, uint64_t name, std::string& bytes) {
  const auto copy = [&](const Record& record) {
    bytes = record.entry().bytes;
    return record.header.seen;
  };
  {
    Memory& memory = memory_of(name);
    const std::lock_guard lock(memory.mutex);
    const std::string_view all = memory.records;
    if (memory.names.may_have(name)) {
      each_record(all.substr(memory.looked_at), [&](const Record& record) {
        memory.offsets[record.header.name] = static_cast<size_t>(record.all.data() - all.data());
      });
      memory.looked_at = all.size();
      if (const auto at = memory.offsets.find(name); at != memory.offsets.end()) return copy(record_at(all.substr(at->second)));
    }
  }
  std::string storage;
  for (auto run = runs_.rbegin(); run != runs_.rend(); ++run) {
    if (!run->names.may_have(name)) continue;
    const auto behind = std::upper_bound(run->pieces.begin(), run->pieces.end(), name,
                                         [](uint64_t to_find, const Piece& piece) { return to_find < piece.first; });
    if (behind == run->pieces.begin()) continue;
    const Piece& piece = *std::prev(behind);
    storage.resize(piece.size);
    if (!file.read(piece.offset, storage.data(), piece.size)) return std::nullopt;
    std::optional<Seen> found;
    each_record(storage, [&](const Record& record) {
      if (record.header.name == name) found = copy(record);
    });
    if (found) return found;
  }
  return std::nullopt;
}

size_t FreshStats::count() const {
  const size_t in_runs = std::accumulate(runs_.begin(), runs_.end(), size_t{0}, [](size_t sum, const Run& run) { return sum + run.count; });
  return std::accumulate(memory_.begin(), memory_.end(), in_runs, [](size_t sum, const Memory& memory) { return sum + memory.count; });
}

size_t FreshStats::memory() const {
  return std::accumulate(memory_.begin(), memory_.end(), size_t{0}, [](size_t sum, const Memory& memory) { return sum + memory.records.size(); });
}

void FreshStats::clear() {
  for (Memory& memory : memory_) memory.clear();
  runs_.clear();
}

void FreshStats::forget_unless(const std::function<bool(const Seen&)>& wanted) {
  for (Memory& memory : memory_) {
    bool all_wanted = true;
    each_record(memory.records, [&](const Record& record) { all_wanted = all_wanted && wanted(record.header.seen); });
    if (all_wanted) continue;
    const std::string all = std::move(memory.records);
    memory.clear();
    each_record(all, [&](const Record& record) {
      if (wanted(record.header.seen)) memory.add(record.header.name, record.header.seen, record.entry().bytes);
    });
  }
}

bool FreshStats::move_to(SpillFile& file) {
  std::vector<Record> records;
  for (const Memory& memory : memory_) each_record(memory.records, [&](const Record& record) { records.push_back(record); });
  if (records.empty()) return true;
  sort_by_name(records);
  Run run;
  run.names.reserve(records.size());
  run.count = records.size();
  std::string bytes;
  bool written = true;
  for (size_t at = 0; at < records.size() && written; ++at) {
    run.names.add(records[at].header.name);
    if (bytes.empty()) run.pieces.push_back({records[at].header.name});
    bytes += records[at].all;
    if (bytes.size() < kPiece && at + 1 < records.size()) continue;
    const std::optional<uint64_t> offset = file.append(bytes);
    written = offset.has_value();
    run.pieces.back().offset = offset.value_or(0);
    run.pieces.back().size = bytes.size();
    bytes.clear();
  }
  if (written) runs_.push_back(std::move(run));
  for (Memory& memory : memory_) memory.clear();
  return written;
}

bool FreshStats::collect(const SpillFile& file, uint64_t first, uint64_t last, const std::function<bool(const Seen&)>& wanted,
                         std::string& storage, std::vector<IndexEntry>& entries) const {
  storage.clear();
  for (const Run& run : runs_) {
    auto from = std::lower_bound(run.pieces.begin(), run.pieces.end(), first,
                                 [](const Piece& piece, uint64_t name) { return piece.first < name; });
    if (from != run.pieces.begin()) --from;  // it may end with that name
    for (; from != run.pieces.end() && from->first <= last; ++from) {
      const size_t before = storage.size();
      storage.resize(before + from->size);
      if (!file.read(from->offset, storage.data() + before, from->size)) return false;
    }
  }
  std::vector<Record> records;
  const auto take = [&](const Record& record) {
    if (record.header.name >= first && record.header.name <= last && wanted(record.header.seen)) records.push_back(record);
  };
  each_record(storage, take);
  const size_t from = first >> (64 - kMemoryBits), to = last >> (64 - kMemoryBits);
  for (size_t i = from; i <= to; ++i) each_record(memory_[i].records, take);
  sort_by_name(records);
  for (size_t at = 0; at < records.size(); ++at) {
    const bool again = at + 1 < records.size() && records[at + 1].header.name == records[at].header.name;
    if (!again) entries.push_back(records[at].entry());
  }
  return true;
}

}  // namespace msdbg::dump
