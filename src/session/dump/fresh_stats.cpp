#include "session/dump/fresh_stats.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
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

void each_record(std::string_view bytes, const std::function<void(const Record&)>& take) {
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

void FreshStats::add(uint64_t name, const Seen& seen, std::string_view bytes) {
  constexpr size_t kFirstRoom = 64;
  if (in_memory_ == names_.room()) {
    names_.reserve(std::max(kFirstRoom, 2 * in_memory_));
    each_record(records_, [&](const Record& record) { names_.add(record.header.name); });
  }
  const Header header{name, seen, bytes.size()};
  records_.append(reinterpret_cast<const char*>(&header), sizeof header).append(bytes);
  names_.add(name);
  ++in_memory_;
  ++count_;
}

bool FreshStats::may_have(uint64_t name) const {
  return names_.may_have(name) || std::any_of(runs_.begin(), runs_.end(), [name](const Run& run) { return run.names.may_have(name); });
}

std::optional<Seen> FreshStats::find(const SpillFile& file, uint64_t name, std::string& bytes) {
  const auto copy = [&](const Record& record) {
    bytes = record.entry().bytes;
    return record.header.seen;
  };
  if (names_.may_have(name)) {
    const std::string_view all = records_;
    each_record(all.substr(looked_at_), [&](const Record& record) {
      offsets_[record.header.name] = static_cast<size_t>(record.all.data() - all.data());
    });
    looked_at_ = all.size();
    if (const auto at = offsets_.find(name); at != offsets_.end()) return copy(record_at(all.substr(at->second)));
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

void FreshStats::forget_memory() {
  records_ = {};
  names_ = {};
  offsets_ = {};
  in_memory_ = looked_at_ = 0;
}

void FreshStats::forget_unless(const std::function<bool(const Seen&)>& wanted) {
  const std::string all = std::move(records_);
  count_ -= in_memory_;
  forget_memory();
  each_record(all, [&](const Record& record) {
    if (wanted(record.header.seen)) add(record.header.name, record.header.seen, record.entry().bytes);
  });
}

bool FreshStats::move_to(SpillFile& file) {
  if (records_.empty()) return true;
  std::vector<Record> records;
  each_record(records_, [&](const Record& record) { records.push_back(record); });
  sort_by_name(records);
  Run run;
  run.names.reserve(records.size());
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
  else count_ -= records.size();
  forget_memory();
  return written;
}

bool FreshStats::collect(const SpillFile& file, uint64_t first, uint64_t last, const std::function<bool(const Seen&)>& wanted,
                         std::string& storage, std::vector<IndexEntry>& entries) const {
  storage.clear();
  for (const Run& any : runs_) {
    const std::vector<Piece>& run = any.pieces;
    auto from = std::lower_bound(run.begin(), run.end(), first, [](const Piece& piece, uint64_t name) { return piece.first < name; });
    if (from != run.begin()) --from;  // it may end with that name
    for (; from != run.end() && from->first <= last; ++from) {
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
  each_record(records_, take);
  sort_by_name(records);
  for (size_t at = 0; at < records.size(); ++at) {
    const bool again = at + 1 < records.size() && records[at + 1].header.name == records[at].header.name;
    if (!again) entries.push_back(records[at].entry());
  }
  return true;
}

}  // namespace msdbg::dump
