#include "session/dump/fresh_stats.h"

#include <fcntl.h>
#include <sched.h>
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

using Header = FreshStats::Header;
using Record = FreshStats::Record;

/// Entries are read from the file in pieces of about this size.
constexpr size_t kPiece = 32 << 10;
/// Memory grows by blocks: there may be thousands of directories with a few entries, and some with a million.
constexpr size_t kFirstBlock = 2 << 10, kLargestBlock = 64 << 10;

size_t size_of(const Header& header) { return sizeof header + header.size; }

/// Until `take` returns true; then true.
template <typename Take>
bool until_record(std::string_view bytes, const Take& take) {
  constexpr size_t kAhead = 1024;  // bytes; where the next entry is cannot be told before this one is there
  while (!bytes.empty()) {
    __builtin_prefetch(bytes.data() + std::min(kAhead, bytes.size()));
    Header header;
    std::memcpy(&header, bytes.data(), sizeof header);
    if (take(Record{header.name, header.age, bytes.data()}, header)) return true;
    bytes.remove_prefix(size_of(header));
  }
  return false;
}

template <typename Take>
void each_record(std::string_view bytes, const Take& take) {
  until_record(bytes, [&](const Record& record, const Header& header) {
    take(record, header);
    return false;
  });
}

/// Threads that run at the same time get different places, as far as there are enough.
size_t place_of_thread() { return static_cast<size_t>(std::max(0, ::sched_getcpu())); }

bool is_before(const Record& a, const Record& b) { return a.name != b.name ? a.name < b.name : a.age < b.age; }

/// Names are hashes: where they divide their range evenly, a few end in each of as many buckets as there are records. Records of one
/// name and age stay in their order.
void sort_by_name(std::vector<Record>& records) {
  const size_t count = records.size();
  if (count < 2) return;
  const auto [low, high] = std::ranges::minmax(records, {}, &Record::name);
  const uint64_t first = low.name;
  const double scale = static_cast<double>(count - 1) / std::max(1.0, static_cast<double>(high.name - first));
  const auto bucket = [&](const Record& record) {
    return std::min(count - 1, static_cast<size_t>(static_cast<double>(record.name - first) * scale));
  };
  std::vector<uint32_t> ends(count + 1, 0);
  for (const Record& record : records) ++ends[bucket(record) + 1];
  std::partial_sum(ends.begin(), ends.end(), ends.begin());
  std::vector<Record> sorted(count);
  for (const Record& record : records) sorted[ends[bucket(record)]++] = record;
  // ends[i] is the end of bucket i now.
  uint32_t start = 0;
  for (size_t i = 0; i < count; start = ends[i++]) {
    if (ends[i] - start > 1) std::stable_sort(sorted.begin() + start, sorted.begin() + ends[i], is_before);
  }
  records.swap(sorted);
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

Header FreshStats::Record::header() const {
  Header header;
  std::memcpy(&header, at, sizeof header);
  return header;
}

IndexEntry FreshStats::Record::entry() const {
  const Header found = header();
  return {found.name, found.seen.digest, found.seen.previous, {at + sizeof found, found.size}};
}

FreshStats::Alone::Alone(FreshStats& stats) : stats_(stats), gate_(stats.gate_) {
  stats_.closed_ = true;
  for (Memory& memory : stats_.memory_) const std::lock_guard ends(memory.mutex);  // whoever is adding
}

FreshStats::Alone::~Alone() { stats_.closed_ = false; }

void FreshStats::Memory::clear() {
  std::vector<std::string>().swap(blocks);
  count = bytes = looked_at = from = 0;
}

/// Where the name is, or would be.
Record& FreshStats::Last::place_of(uint64_t name) {
  size_t at = name & (places_.size() - 1);
  while (places_[at].at != nullptr && places_[at].name != name) at = (at + 1) & (places_.size() - 1);
  return places_[at];
}

void FreshStats::Last::add(const Record& record) {
  if (2 * count_ >= places_.size()) {
    const std::vector<Record> before = std::exchange(places_, std::vector<Record>(std::max<size_t>(64, 4 * count_)));
    for (const Record& known : before) {
      if (known.at != nullptr) place_of(known.name) = known;
    }
  }
  Record& place = place_of(record.name);
  if (place.at == nullptr) ++count_;
  if (place.at == nullptr || record.age >= place.age) place = record;
}

const Record* FreshStats::Last::find(uint64_t name) {
  if (places_.empty()) return nullptr;
  const Record& place = place_of(name);
  return place.at == nullptr ? nullptr : &place;
}

size_t FreshStats::add(uint64_t name, const Seen& seen, std::string_view bytes) {
  Memory& memory = memory_[place_of_thread() % memory_.size()];
  const Header header{name, age_.load(std::memory_order_relaxed), seen, bytes.size()};
  std::unique_lock lock(memory.mutex);
  while (closed_) {
    lock.unlock();
    { const std::lock_guard wait(gate_); }
    lock.lock();
  }
  size_t more = 0;
  if (memory.blocks.empty() || memory.blocks.back().capacity() - memory.blocks.back().size() < size_of(header)) {
    more = std::max(size_of(header), std::clamp(memory.bytes, kFirstBlock, kLargestBlock));
    memory.blocks.emplace_back().reserve(more);
    memory.bytes += more;
  }
  memory.blocks.back().append(reinterpret_cast<const char*>(&header), sizeof header).append(bytes);
  ++memory.count;
  return more;
}

/// Adds what came since the last time to `last_`.
void FreshStats::look_at_new() {
  for (Memory& memory : memory_) {
    const std::lock_guard lock(memory.mutex);
    for (; memory.looked_at < memory.blocks.size(); ++memory.looked_at, memory.from = 0) {
      const std::string_view block = memory.blocks[memory.looked_at];
      each_record(block.substr(memory.from), [&](const Record& record, const Header&) {
        last_.add(record);
      });
      memory.from = block.size();
      if (memory.looked_at + 1 == memory.blocks.size()) break;
    }
  }
}

std::optional<Seen> FreshStats::find(const SpillFile& file, uint64_t name, std::string& bytes) {
  const auto copy = [&](const Record& record) {
    bytes = record.entry().bytes;
    return record.header().seen;
  };
  {
    const std::lock_guard lock(looking_);
    // Whoever finds an entry may add a better one.
    age_.fetch_add(1, std::memory_order_relaxed);
    look_at_new();
    if (const Record* known = last_.find(name)) return copy(*known);
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
    each_record(storage, [&](const Record& record, const Header&) {
      if (record.name == name) found = copy(record);
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
  return std::accumulate(memory_.begin(), memory_.end(), size_t{0}, [](size_t sum, const Memory& memory) { return sum + memory.bytes; });
}

void FreshStats::forget_memory() {
  for (Memory& memory : memory_) memory.clear();
  last_.clear();
}

void FreshStats::clear() {
  forget_memory();
  runs_.clear();
}

bool FreshStats::any(const std::function<bool(const Seen&)>& wanted) const {
  if (!runs_.empty()) return true;
  const auto has_wanted = [&](const std::string& block) {
    return until_record(block, [&](const Record&, const Header& header) { return wanted(header.seen); });
  };
  return std::ranges::any_of(memory_, [&](const Memory& memory) { return std::ranges::any_of(memory.blocks, has_wanted); });
}

bool FreshStats::move_to(SpillFile& file) {
  std::vector<Record> records = std::move(divided(1, [](const Seen&) { return true; }).front());
  if (records.empty()) return true;
  sort_by_name(records);
  Run run(records.size());
  std::string bytes;
  bool written = true;
  for (size_t at = 0; at < records.size() && written; ++at) {
    run.names.add(records[at].name);
    if (bytes.empty()) run.pieces.push_back({records[at].name});
    bytes.append(records[at].at, size_of(records[at].header()));
    if (bytes.size() < kPiece && at + 1 < records.size()) continue;
    const std::optional<uint64_t> offset = file.append(bytes);
    written = offset.has_value();
    run.pieces.back().offset = offset.value_or(0);
    run.pieces.back().size = bytes.size();
    bytes.clear();
  }
  if (written) runs_.push_back(std::move(run));
  forget_memory();
  return written;
}

std::vector<std::vector<Record>> FreshStats::divided(size_t parts, const std::function<bool(const Seen&)>& wanted) const {
  std::vector<std::vector<Record>> divided(parts);
  const size_t all = std::accumulate(memory_.begin(), memory_.end(), size_t{0}, [](size_t sum, const Memory& memory) { return sum + memory.count; });
  for (std::vector<Record>& part : divided) part.reserve(all / parts + all / parts / 8);  // names are hashes: they divide evenly
  for (const Memory& memory : memory_) {
    for (const std::string& block : memory.blocks) {
      each_record(block, [&](const Record& record, const Header& header) {
        if (wanted(header.seen)) divided[part_of(record.name, parts)].push_back(record);
      });
    }
  }
  return divided;
}

std::optional<std::vector<IndexEntry>> FreshStats::collect(const SpillFile& file, uint64_t first, uint64_t last,
                                                           std::span<const Record> in_memory,
                                                           const std::function<bool(const Seen&)>& wanted, std::string& storage) const {
  storage.clear();
  for (const Run& run : runs_) {
    auto from = std::lower_bound(run.pieces.begin(), run.pieces.end(), first,
                                 [](const Piece& piece, uint64_t name) { return piece.first < name; });
    if (from != run.pieces.begin()) --from;  // it may end with that name
    for (; from != run.pieces.end() && from->first <= last; ++from) {
      const size_t before = storage.size();
      storage.resize(before + from->size);
      if (!file.read(from->offset, storage.data() + before, from->size)) return std::nullopt;
    }
  }
  std::vector<Record> records;
  each_record(storage, [&](const Record& record, const Header& header) {
    if (record.name >= first && record.name <= last && wanted(header.seen)) records.push_back(record);
  });
  records.insert(records.end(), in_memory.begin(), in_memory.end());
  sort_by_name(records);
  std::vector<IndexEntry> entries;
  entries.reserve(records.size());
  constexpr size_t kAhead = 8;
  for (size_t at = 0; at < records.size(); ++at) {
    if (at + kAhead < records.size()) __builtin_prefetch(records[at + kAhead].at);
    const bool again = at + 1 < records.size() && records[at + 1].name == records[at].name;
    if (!again) entries.push_back(records[at].entry());
  }
  return entries;
}

}  // namespace msdbg::dump
