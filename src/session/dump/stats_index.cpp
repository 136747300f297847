#include "session/dump/stats_index.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <mutex>

#include "msdbg/log.h"
#include "msdbg/threads.h"
#include "session/dump/place_near.h"
#include "session/kept_stats_bytes.h"

namespace msdbg::dump {
namespace {

/// Instead of the digest of the previous value's file.
enum NoFile : uint64_t { kNoPrevious = 1, kNoHistory = 2, kNotAFile = 3, kVanished = 4 };
static_assert(kVanished < kFirstDigest);

constexpr size_t kEntriesPerPart = 4096;
/// Without a look at the file system's own clock, which may be slow.
constexpr int kUnsureOfTheClock = 30;

/// The release and the instruction set decide about the last digits.
uint64_t made_by() { return hash_of(simd_target(), hash_of(kVersion)); }

/// The time of the last tick: what is read afterwards is not older.
int64_t now() {
  struct timespec time {};
  ::clock_gettime(CLOCK_REALTIME_COARSE, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

/// `parts`: a power of two.
size_t part_of(uint64_t name, size_t parts) { return parts == 1 ? 0 : static_cast<size_t>(name >> (64 - std::countr_zero(parts))); }

/// How far the clock of the file system is ahead of ours; nullopt if no file can be made in the directory.
std::optional<int64_t> clock_difference(const std::string& directory) {
  std::string path = join_path(directory, ".msdbg-index-XXXXXX");
  const int file = ::mkstemp(path.data());
  if (file < 0) return std::nullopt;
  struct stat info {};
  const int64_t here = now();
  const bool known = ::fstat(file, &info) == 0;
  ::close(file);
  ::unlink(path.c_str());
  return known ? std::optional(FileStamp::of(info).modified - here) : std::nullopt;
}

}  // namespace

StatsIndex::Directory::~Directory() {
  if (descriptor >= 0) ::close(descriptor);
}

StatsIndex::StatsIndex(std::string root, std::chrono::nanoseconds settled)
    : root_(std::move(root)), settled_(settled) {
  if (const std::optional<IndexPlace> place = existing_index(root_)) file_ = std::make_unique<IndexFile>(place->path);
}

StatsIndex::~StatsIndex() {
  if (writer_.joinable()) writer_.join();
}

std::optional<std::string> StatsIndex::key_of(const std::string& path) const {
  if (path == root_) return ".";
  const std::string start = root_.ends_with('/') ? root_ : root_ + "/";
  if (!path.starts_with(start) || path.size() == start.size()) return std::nullopt;
  return path.substr(start.size());
}

// ---- listings --------------------------------------------------------------------------------------------------------

Result<std::vector<DirectoryEntry>> StatsIndex::list(const std::string& path) {
  const std::optional<std::string> key = key_of(path);
  struct stat info {};
  if (!key || ::stat(path.c_str(), &info) != 0) return list_directory(path);
  {
    std::lock_guard lock(listed_);
    keys_.insert(*key);
  }
  const FileStamp stamp = FileStamp::of(info);
  const uint64_t digest = stamp.digest();
  if (file_) {
    const std::optional<std::string> bytes = file_->row(*key, 0);
    if (bytes && stamp_of_listing(*bytes) == digest) {
      if (auto known = decode_listing(*bytes)) return std::move(*known);
      file_->give_up();
    }
  }
  const int64_t when = now();
  Result<std::vector<DirectoryEntry>> entries = list_directory(path);
  // What a link leads to may change without the directory.
  if (entries && std::none_of(entries->begin(), entries->end(), [](const DirectoryEntry& entry) { return entry.link; })) {
    std::string bytes = encode_listing(digest, *entries);
    std::lock_guard lock(listed_);
    listings_[*key] = {std::move(bytes), {digest, 0, stamp.youngest(), when}};
    changed_ = true;
  }
  return entries;
}

// ---- statistics ------------------------------------------------------------------------------------------------------

void StatsIndex::attach(const FilePlaces& places, std::span<const std::string> directories, bool plain, bool complete) {
  places_ = &places;
  write_ = new_index(root_, plain);
  complete_ = complete;
  for (const std::string& path : directories) {
    directories_.push_back(std::make_unique<Directory>(path, key_of(path)));
    if (directories_.back()->key) keys_.insert(*directories_.back()->key);
  }
}

std::optional<FileStamp> StatsIndex::stamp_of(Directory& directory, std::string_view file) {
  // Thousands of directories must not take all descriptors.
  constexpr int kMostDescriptors = 256;
  int descriptor = directory.descriptor.load(std::memory_order_relaxed);
  if (descriptor == Directory::kNotOpened) {
    std::lock_guard lock(directory.mutex);
    descriptor = directory.descriptor;
    if (descriptor == Directory::kNotOpened) {
      descriptor = ::open(directory.path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
      if (descriptor > kMostDescriptors) {
        ::close(descriptor);
        descriptor = Directory::kNone;
      }
      directory.descriptor = descriptor;
    }
  }
  struct stat info;
  const int failed = descriptor >= 0 ? ::fstatat(descriptor, file.data(), &info, 0)
                                     : ::stat(join_path(directory.path, file).c_str(), &info);
  if (failed != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  return FileStamp::of(info);
}

std::optional<StatsIndex::Seen> StatsIndex::look(const FilePlace& place) {
  const int64_t when = now();
  const std::optional<FileStamp> stamp = stamp_of(*directories_[place.directory], place.file);
  if (!stamp) return std::nullopt;
  return Seen{stamp->digest(place.context ^ made_by()), 0, stamp->youngest(), when};
}

uint64_t StatsIndex::look_at_previous(const TensorId& id, int64_t& youngest) {
  bool history_missing = false;
  const Result<TensorId> before = places_->earlier(id, &history_missing);
  if (!before) return history_missing ? kNoHistory : kNoPrevious;
  const std::optional<FilePlace> place = places_->locate(*before);
  if (!place) return kNotAFile;
  const std::optional<Seen> seen = look(*place);
  if (!seen) return kVanished;
  youngest = std::max(youngest, seen->youngest);
  return seen->digest;
}

void StatsIndex::open(Directory& directory) {
  if (directory.opened) return;
  directory.opened = true;
  if (!file_ || !directory.key) return;
  const size_t count = file_->parts(*directory.key);
  if (count == 0) return;
  if (!std::has_single_bit(count)) return file_->give_up();
  for (size_t number = 0; number < count; ++number) directory.parts.push_back(std::make_unique<Part>());
}

void StatsIndex::load(const Directory& directory, size_t number) {
  Part& part = *directory.parts[number];
  if (part.loaded.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(part.mutex);
  if (part.loaded.load(std::memory_order_relaxed)) return;
  std::optional<std::string> bytes = file_->row(*directory.key, static_cast<int64_t>(number) + 1);
  const std::optional<IndexPart> decoded = bytes ? decode_part(*bytes) : std::nullopt;
  if (bytes && !decoded) file_->give_up();
  // Another process may have divided the directory anew: then the part is read as an empty one.
  if (decoded && decoded->parts == directory.parts.size()) {
    part.bytes = std::move(*bytes);
    part.references.reserve(decoded->offsets.size());
    for (const uint32_t offset : decoded->offsets) part.references.push_back({entry_at(part.bytes, offset).name, offset});
  }
  part.loaded.store(true, std::memory_order_release);
}

std::optional<IndexEntry> StatsIndex::entry_of(const Directory& directory, uint64_t name) {
  if (directory.parts.empty()) return std::nullopt;
  const size_t number = part_of(name, directory.parts.size());
  load(directory, number);
  // Names are hashes: their order tells about where to look.
  constexpr size_t kUsuallyOff = 32;
  const Part& part = *directory.parts[number];
  const std::span<const Reference> all = part.references;
  const uint64_t rest = name << std::countr_zero(directory.parts.size());
  const auto guess = static_cast<size_t>(static_cast<double>(rest) * 0x1p-64 * static_cast<double>(all.size()));
  const size_t at = place_near(all, guess, kUsuallyOff, [name](const Reference& reference) { return reference.name < name; });
  if (at == all.size() || all[at].name != name) return std::nullopt;
  return entry_at(part.bytes, all[at].offset);
}

void StatsIndex::find(const TensorId& id, bool previous, std::string& bytes) {
  bytes.clear();
  const std::optional<FilePlace> place = places_->locate(id);
  if (!place) return;
  std::optional<Seen> seen = look(*place);
  if (!seen) return;
  Directory& directory = *directories_[place->directory];
  const uint64_t name = place->name();
  uint64_t depends_on = 0;
  for (bool opened = false; !opened;) {
    {
      std::shared_lock lock(directory.mutex);
      opened = directory.opened;
      const std::optional<IndexEntry> entry = opened ? entry_of(directory, name) : std::nullopt;
      if (entry && entry->digest == seen->digest) {
        bytes = entry->bytes;
        depends_on = entry->previous;
      }
    }
    if (opened) break;
    std::lock_guard lock(directory.mutex);
    open(directory);
  }
  if (previous || depends_on != 0) seen->previous = look_at_previous(id, seen->youngest);
  if (depends_on != 0 && depends_on != seen->previous) bytes.clear();
  if (bytes.empty() || (previous && depends_on == 0)) {
    std::lock_guard lock(directory.mutex);
    directory.seen[name] = *seen;
  }
}

void StatsIndex::put(const TensorId& id, std::string_view entry) {
  const std::optional<FilePlace> place = places_->locate(id);
  if (!place || !write_) return;
  Directory& directory = *directories_[place->directory];
  if (!directory.key) return;
  const uint64_t name = place->name();
  std::lock_guard lock(directory.mutex);
  Seen known;
  if (const auto seen = directory.seen.find(name); seen != directory.seen.end()) {
    known = seen->second;
    directory.seen.erase(seen);
  } else if (const std::optional<IndexEntry> old = entry_of(directory, name)) {
    known = {old->digest, old->previous, INT64_MIN, 0};  // find() has just compared it
  } else {
    return;
  }
  if (!depends_on_previous(entry)) known.previous = 0;
  else if (known.previous == 0) return;
  directory.fresh.push_back({name, known, directory.fresh_bytes.size(), entry.size()});
  directory.fresh_bytes += entry;
  changed_ = true;
}

// ---- writing ---------------------------------------------------------------------------------------------------------

void StatsIndex::save() {
  if (!write_ || !changed_) return;
  if (writer_.joinable()) writer_.join();
  if (!start_thread(writer_, "index", [this] { save_now(); }).ok()) save_now();
}

void StatsIndex::detach() {
  if (writer_.joinable()) writer_.join();
  if (places_ != nullptr && write_ && changed_) save_now();
  places_ = nullptr;
}

void StatsIndex::save_now() {
  changed_ = false;
  if (!write_->beside) {
    std::error_code ignored;
    std::filesystem::create_directories(parent_path(write_->path), ignored);
  }
  const std::optional<int64_t> ahead = write_->beside ? clock_difference(parent_path(write_->path)) : std::nullopt;
  const int64_t settled = settled_.count() * (ahead ? 1 : kUnsureOfTheClock);
  const auto is_settled = [&](const Seen& seen) {
    return seen.youngest == INT64_MIN || seen.when + ahead.value_or(0) - seen.youngest >= settled;
  };
  std::erase_if(listings_, [&](const auto& listing) { return !is_settled(listing.second.seen); });
  bool anything = !listings_.empty();
  for (const std::unique_ptr<Directory>& directory : directories_) {
    std::lock_guard lock(directory->mutex);
    std::erase_if(directory->fresh, [&](const Fresh& fresh) { return !is_settled(fresh.seen); });
    anything = anything || !directory->fresh.empty();
  }
  if (!anything) return;

  const Stopwatch watch;
  Result<IndexWriter> writer = IndexWriter::begin(write_->path, file_ && file_->damaged());
  Status status = writer.status();
  if (writer) status = write(*writer);
  if (status.ok()) status = writer->commit();
  log(LogLevel::kInfo, status.ok() ? fmt::format("wrote {} in {}", write_->path, format_duration(watch.seconds())) : status.message());
}

Status StatsIndex::write(IndexWriter& writer) {
  for (const auto& [key, listing] : listings_) {
    if (Status status = writer.put(key, 0, listing.bytes); !status.ok()) return status;
  }
  listings_.clear();
  std::vector<uint64_t> files(directories_.size());
  places_->for_each_file([&](const FilePlace& place) { ++files[place.directory]; });
  for (uint32_t number = 0; number < directories_.size(); ++number) {
    if (Status status = write_statistics(writer, number, files[number]); !status.ok()) return status;
  }
  return complete_ ? writer.keep_only(keys_) : Status();
}

Status StatsIndex::write_statistics(IndexWriter& writer, uint32_t number, uint64_t files) {
  Directory& directory = *directories_[number];
  std::lock_guard lock(directory.mutex);
  if (directory.fresh.empty()) return {};
  open(directory);
  for (size_t part = 0; part < directory.parts.size(); ++part) load(directory, part);
  // Of several for one file, the last one counts.
  std::stable_sort(directory.fresh.begin(), directory.fresh.end(), [](const Fresh& a, const Fresh& b) { return a.name < b.name; });
  const auto is_fresh = [&](uint64_t name) {
    const auto at = std::lower_bound(directory.fresh.begin(), directory.fresh.end(), name,
                                     [](const Fresh& a, uint64_t b) { return a.name < b; });
    return at != directory.fresh.end() && at->name == name;
  };
  std::vector<IndexEntry> entries;
  for (const std::unique_ptr<Part>& part : directory.parts) {
    for (const Reference& reference : part->references) {
      if (!is_fresh(reference.name)) entries.push_back(entry_at(part->bytes, reference.offset));
    }
  }
  for (size_t at = 0; at < directory.fresh.size(); ++at) {
    const Fresh& fresh = directory.fresh[at];
    if (at + 1 < directory.fresh.size() && directory.fresh[at + 1].name == fresh.name) continue;
    const std::string_view bytes = std::string_view(directory.fresh_bytes).substr(fresh.offset, fresh.size);
    entries.push_back({fresh.name, fresh.seen.digest, fresh.seen.previous, bytes});
  }
  if (entries.size() > files) remove_lost(number, entries);
  std::sort(entries.begin(), entries.end(), [](const IndexEntry& a, const IndexEntry& b) { return a.name < b.name; });

  const auto parts = static_cast<uint32_t>(std::bit_ceil(std::max<size_t>(1, entries.size() / kEntriesPerPart)));
  const bool all = parts != directory.parts.size() || file_->path() != write_->path || file_->damaged();
  auto first = entries.begin();
  for (uint32_t part = 0; part < parts; ++part) {
    const auto last = std::find_if(first, entries.end(), [&](const IndexEntry& entry) { return part_of(entry.name, parts) != part; });
    if (all || std::any_of(first, last, [&](const IndexEntry& entry) { return is_fresh(entry.name); })) {
      if (Status status = writer.put(*directory.key, part + 1, encode_part(parts, {first, last})); !status.ok()) return status;
    }
    first = last;
  }
  // From now on, they come from the file.
  directory.fresh = {};
  directory.fresh_bytes = {};
  directory.parts.clear();
  directory.opened = false;
  return writer.remove_after(*directory.key, parts);
}

/// Drops entries of files that do not exist any more.
void StatsIndex::remove_lost(uint32_t number, std::vector<IndexEntry>& entries) const {
  std::vector<uint64_t> names;
  places_->for_each_file([&](const FilePlace& place) {
    if (place.directory == number) names.push_back(place.name());
  });
  std::sort(names.begin(), names.end());
  std::erase_if(entries, [&](const IndexEntry& entry) { return !std::binary_search(names.begin(), names.end(), entry.name); });
}

}  // namespace msdbg::dump
