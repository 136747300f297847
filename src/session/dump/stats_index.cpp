#include "session/dump/stats_index.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <mutex>

#include "msdbg/log.h"
#include "session/dump/place_near.h"
#include "session/kept_stats_bytes.h"

namespace msdbg::dump {
namespace {

/// Instead of the digest of the previous value's file.
enum NoFile : uint64_t { kNoPrevious = 1, kNoHistory = 2, kNotAFile = 3, kVanished = 4 };
static_assert(kVanished < kFirstDigest);

/// What is new in all directories, before it goes to a file.
constexpr size_t kMostInMemory = 8 << 20;
/// Beyond so many bytes of statistics, those of directories that nobody has asked for some nanoseconds are dropped.
constexpr size_t kMostLoaded = 16 << 20;
constexpr int64_t kStillAsked = 200'000'000;
/// Beyond so many bytes of listings, those that are not small wait in a file until they are written.
constexpr size_t kMostListings = 4 << 20, kSmallListing = 64 << 10;

/// The release and the instruction set decide about the last digits.
uint64_t made_by() { return hash_of(simd_target(), hash_of(kVersion)); }

}  // namespace

StatsIndex::Directory::~Directory() {
  if (descriptor >= 0) ::close(descriptor);
}

StatsIndex::StatsIndex(std::string root, std::chrono::nanoseconds settled, bool look_ahead)
    : root_(std::move(root)), settled_(settled) {
  if (look_ahead) ahead_ = std::make_unique<LookAhead>();
  if (const std::optional<IndexPlace> place = existing_index(root_)) file_ = std::make_unique<IndexFile>(place->path);
  readable_ = file_.get();
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

Result<Listing> StatsIndex::list(const std::string& path) {
  const std::optional<std::string> key = key_of(path);
  struct stat info {};
  if (!key || ::stat(path.c_str(), &info) != 0) return list_directory(path);
  {
    std::lock_guard lock(listed_);
    keys_.insert(*key);
  }
  const FileStamp stamp = FileStamp::of(info);
  const uint64_t digest = digest_of(stamp);
  if (file_) {
    const std::optional<std::string> bytes = file_->row(*key, 0);
    if (bytes && stamp_of_listing(*bytes) == digest) {
      if (std::optional<Listing> known = decode_listing(*bytes)) {
        if (ahead_) ahead_->add(path, *known);
        return std::move(*known);
      }
      file_->give_up();
    }
  }
  const int64_t when = file_clock();
  Result<Listing> listing = list_directory(path);
  // What a link leads to may change without the directory.
  if (listing && std::none_of(listing->entries.begin(), listing->entries.end(), [](const DirectoryEntry& entry) { return entry.link; })) {
    std::string bytes = encode_listing(digest, listing->entries);
    std::lock_guard lock(listed_);
    listings_[*key] = {std::move(bytes), {digest, 0, stamp.youngest(), when}, {}};
    changed_ = true;
  }
  return listing;
}

// ---- statistics ------------------------------------------------------------------------------------------------------

void StatsIndex::attach(const FilePlaces& places, std::span<const std::string> directories, bool plain, bool complete) {
  places_ = &places;
  made_by_ = made_by();
  write_ = new_index(root_, plain);
  complete_ = complete;
  if (ahead_) ahead_->stop();
  if (write_) {
    spill_ = std::make_unique<SpillFile>(parent_path(write_->path));
    move_listings_to_file();
  }
  for (const std::string& path : directories) {
    directories_.push_back(std::make_unique<Directory>(path, key_of(path)));
    if (directories_.back()->key) keys_.insert(*directories_.back()->key);
    if (ahead_) directories_.back()->seen_ahead = ahead_->find(path);
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

std::optional<Seen> StatsIndex::look(const FilePlace& place, uint64_t name) {
  const int64_t when = file_clock();
  const auto seen = [&](const FileStamp& stamp, int64_t at) {
    return Seen{digest_of(stamp, place.context() ^ made_by_), 0, stamp.youngest(), at};
  };
  Directory& directory = *directories_[place.directory];
  if (const SeenFiles* ahead = directory.seen_ahead) {
    if (const FileStamp* stamp = ahead->find(place.part == 0 ? name : hash_of(place.file), when)) return seen(*stamp, ahead->when());
  }
  const std::optional<FileStamp> stamp = stamp_of(directory, place.file);
  return stamp ? std::optional(seen(*stamp, when)) : std::nullopt;
}

uint64_t StatsIndex::look_at_previous(const TensorId& id, int64_t& youngest) {
  bool history_missing = false;
  const Result<TensorId> before = places_->earlier(id, &history_missing);
  if (!before) return history_missing ? kNoHistory : kNoPrevious;
  const std::optional<FilePlace> place = places_->locate(*before);
  if (!place) return kNotAFile;
  const std::optional<Seen> seen = look(*place, place->name());
  if (!seen) return kVanished;
  youngest = std::max(youngest, seen->youngest);
  return seen->digest;
}

void StatsIndex::open(Directory& directory) {
  if (directory.known != Known::kNotAsked) return;
  IndexFile* const file = readable_;
  const size_t count = file != nullptr && directory.key ? file->parts(*directory.key) : 0;
  const bool usable = std::has_single_bit(count);
  if (count > 0 && !usable) file->give_up();
  for (size_t number = 0; usable && number < count; ++number) directory.parts.push_back(std::make_unique<Part>());
  directory.known = usable ? Known::kSome : Known::kNothing;
}

/// Ranks and steps come one after the other: the parts of those before are not needed any more.
void StatsIndex::unload(int64_t now) {
  for (const std::unique_ptr<Directory>& directory : directories_) {
    if (directory->loaded == 0 || now - directory->asked < kStillAsked) continue;
    const std::unique_lock lock(directory->mutex, std::try_to_lock);
    if (!lock) continue;
    for (std::unique_ptr<Part>& part : directory->parts) part = std::make_unique<Part>();
    loaded_bytes_ -= directory->loaded.exchange(0);
  }
}

void StatsIndex::rest() {
  unload(INT64_MAX);
  if (write_ && fresh_bytes_ > 0) make_room();
}

void StatsIndex::load(Directory& directory, size_t number) {
  Part& part = *directory.parts[number];
  if (part.loaded.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(part.mutex);
  if (part.loaded.load(std::memory_order_relaxed)) return;
  IndexFile& file = *readable_;
  std::optional<std::string> bytes = file.row(*directory.key, static_cast<int64_t>(number) + 1);
  const std::optional<IndexPart> decoded = bytes ? decode_part(*bytes) : std::nullopt;
  if (bytes && !decoded) file.give_up();
  // Another process may have divided the directory anew: then the part is read as an empty one.
  if (decoded && decoded->parts == directory.parts.size()) {
    part.bytes = std::move(*bytes);
    directory.loaded += part.bytes.size();
    loaded_bytes_ += part.bytes.size();
    part.references.reserve(decoded->offsets.size());
    for (const uint32_t offset : decoded->offsets) part.references.push_back({entry_at(part.bytes, offset).name, offset});
  }
  part.loaded.store(true, std::memory_order_release);
}

std::optional<IndexEntry> StatsIndex::entry_of(Directory& directory, uint64_t name) {
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

bool StatsIndex::is_known(Directory& directory) {
  Known known = directory.known;  // asked for each value: threads must not wait for each other here
  if (known == Known::kNotAsked) {
    std::lock_guard lock(directory.mutex);
    open(directory);
    known = directory.known;
  }
  return known == Known::kSome;
}

std::optional<StatsStore::Ticket> StatsIndex::find(const TensorId& id, bool previous, bool kept_before, std::string& bytes) {
  bytes.clear();
  const std::optional<FilePlace> place = places_->locate(id);
  if (!place) return std::nullopt;
  Directory& directory = *directories_[place->directory];
  const bool possible = is_known(directory) || kept_before;
  // Whoever reads a file looks at it anyway, and has its name in the cache then.
  if (!previous && !possible) return Ticket{.when = file_clock(), .directory = place->directory};
  const uint64_t name = place->name();
  std::optional<Seen> seen = look(*place, name);
  if (!seen) return std::nullopt;
  const int64_t now = file_clock();
  directory.asked.store(now, std::memory_order_relaxed);
  if (loaded_bytes_.load(std::memory_order_relaxed) > kMostLoaded) unload(now);
  uint64_t depends_on = 0;
  const auto use = [&](uint64_t digest, uint64_t previous_digest, std::string_view entry) {
    if (digest != seen->digest) return bytes.clear();
    if (bytes.data() != entry.data()) bytes = entry;
    depends_on = previous_digest;
  };
  if (possible) {
    std::shared_lock lock(directory.mutex);
    const std::optional<Seen> fresh = kept_before ? directory.fresh.find(*spill_, name, bytes) : std::nullopt;
    if (fresh) {
      use(fresh->digest, fresh->previous, bytes);
    } else if (const std::optional<IndexEntry> entry = entry_of(directory, name)) {
      use(entry->digest, entry->previous, entry->bytes);
    }
  }
  if (previous || depends_on != 0) seen->previous = look_at_previous(id, seen->youngest);
  if (depends_on != 0 && depends_on != seen->previous) bytes.clear();
  return Ticket{seen->digest, seen->previous, seen->youngest, seen->when, name, place->directory};
}

void StatsIndex::look(const TensorId& id, Ticket& ticket) {
  if (ticket.digest != 0) return;
  const std::optional<FilePlace> place = places_->locate(id);
  if (!place) return;
  const uint64_t name = place->name();
  if (const std::optional<Seen> seen = look(*place, name)) ticket = {seen->digest, 0, seen->youngest, seen->when, name, place->directory};
}

void StatsIndex::put(const TensorId& id, const Ticket& ticket, const FileStamp* file, std::string_view entry) {
  if (!write_) return;
  Directory& directory = *directories_[ticket.directory];
  if (!directory.key) return;
  Seen seen{ticket.digest, ticket.previous, ticket.youngest, ticket.when};
  uint64_t name = ticket.name;
  if (seen.digest == 0) {
    const std::optional<FilePlace> place = file != nullptr ? places_->locate(id) : std::nullopt;
    if (!place) return;
    name = place->name();
    seen.digest = digest_of(*file, place->context() ^ made_by_);
    seen.youngest = file->youngest();
  }
  if (!depends_on_previous(entry)) seen.previous = 0;
  else if (seen.previous == 0) return;
  const size_t more = directory.fresh.add(name, seen, entry);
  const bool full = more > 0 && (fresh_bytes_ += more) > kMostInMemory;
  if (!changed_.load(std::memory_order_relaxed)) changed_ = true;
  if (full) make_room();
}

/// Moves what is new from memory to a file.
void StatsIndex::make_room() {
  const std::unique_lock lock(spilling_, std::try_to_lock);
  if (!lock) return;
  make_place(*write_);
  for (const std::unique_ptr<Directory>& directory : directories_) {
    const std::lock_guard directory_lock(directory->mutex);
    const FreshStats::Alone alone(directory->fresh);
    move_to_file(directory->fresh);
  }
}

/// Those of a million files take 80 MB.
void StatsIndex::move_listings_to_file() {
  const std::lock_guard lock(listed_);
  size_t kept = 0;
  for (auto& [key, listing] : listings_) {
    if (kept + listing.bytes.size() <= kMostListings || listing.bytes.size() < kSmallListing) {
      kept += listing.bytes.size();
      continue;
    }
    make_place(*write_);
    const std::optional<uint64_t> offset = spill_->append(listing.bytes);
    if (!offset) return;
    listing.in_file = {*offset, listing.bytes.size()};
    std::string().swap(listing.bytes);
  }
}

void StatsIndex::move_to_file(FreshStats& fresh) {
  fresh_bytes_ -= fresh.memory();
  if (!fresh.move_to(*spill_)) log(LogLevel::kInfo, fmt::format("{}: has no room for all new entries", write_->path));
}

}  // namespace msdbg::dump
