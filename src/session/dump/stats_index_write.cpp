// How a dump's index writes what is new.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "msdbg/log.h"
#include "msdbg/threads.h"
#include "session/dump/parts_update.h"
#include "session/dump/stats_index.h"

namespace msdbg::dump {
namespace {

/// Without a look at the file system's own clock, which may be slow.
constexpr int kUnsureOfTheClock = 30;

/// How far the clock of the file system is ahead of ours; nullopt if no file can be made in the directory.
std::optional<int64_t> clock_difference(const std::string& directory) {
  const int file = open_unnamed(directory);
  if (file < 0) return std::nullopt;
  struct stat info {};
  const int64_t here = file_clock();
  const bool known = ::fstat(file, &info) == 0;
  ::close(file);
  return known ? std::optional(FileStamp::of(info).modified - here) : std::nullopt;
}

}  // namespace

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
  make_place(*write_);
  const std::optional<int64_t> ahead = write_->beside ? clock_difference(parent_path(write_->path)) : std::nullopt;
  const int64_t settled = settled_.count() * (ahead ? 1 : kUnsureOfTheClock);
  const auto is_settled = [&](const Seen& seen) {
    return seen.when + ahead.value_or(0) - seen.youngest >= settled;
  };
  std::erase_if(listings_, [&](const auto& listing) { return !is_settled(listing.second.seen); });
  bool anything = !listings_.empty();
  for (const std::unique_ptr<Directory>& directory : directories_) {
    const std::lock_guard lock(directory->mutex);
    const FreshStats::Alone alone(directory->fresh);
    if (directory->fresh.any(is_settled)) {
      anything = true;
    } else {
      fresh_bytes_ -= directory->fresh.memory();
      directory->fresh.clear();
    }
  }
  if (!anything) return;

  const Stopwatch watch;
  Result<IndexWriter> writer = IndexWriter::begin(write_->path, file_ && file_->damaged(), fresh_bytes_);
  Status status = writer.status();
  if (writer) status = write(*writer, is_settled);
  if (status.ok()) status = writer->commit();
  if (status.ok()) read_again();
  log(LogLevel::kInfo, status.ok() ? fmt::format("wrote {} in {}", write_->path, format_duration(watch.seconds())) : status.message());
}

/// What was written is found from now on.
void StatsIndex::read_again() {
  if (!file_) {
    file_ = std::make_unique<IndexFile>(write_->path);
    readable_ = file_.get();
  }
  for (const std::unique_ptr<Directory>& directory : directories_) {
    std::lock_guard lock(directory->mutex);
    if (directory->parts.empty()) directory->known = Known::kNotAsked;
  }
}

class StatsIndex::ListingRow : public NewRow {
 public:
  ListingRow(IndexWriter& writer, const SpillFile& spill, const std::string& directory, NewListing listing)
      : writer_(writer), spill_(spill), directory_(directory), listing_(std::move(listing)) {}

  void make() override {
    if (!listing_.in_file) return;
    listing_.bytes.resize(listing_.in_file->second);
    readable_ = spill_.read(listing_.in_file->first, listing_.bytes.data(), listing_.bytes.size());
  }
  Status put() override { return readable_ ? writer_.put(directory_, 0, listing_.bytes) : Status(); }

 private:
  IndexWriter& writer_;
  const SpillFile& spill_;
  const std::string& directory_;
  NewListing listing_;
  bool readable_ = true;
};

Status StatsIndex::write(IndexWriter& writer, const std::function<bool(const Seen&)>& settled) {
  const std::lock_guard no_spilling(spilling_);
  std::vector<std::vector<uint64_t>> names;
  const auto names_in = [&](size_t directory) {
    if (names.empty()) {
      names.resize(directories_.size());
      places_->for_each_file([&](const FilePlace& place) { names[place.directory].push_back(place.name()); });
    }
    return std::move(names[directory]);
  };
  // Rows in the file that is written are read by its writer: it may have locked the others out.
  IndexFile* const elsewhere = file_ && file_->path() != write_->path && !file_->damaged() ? file_.get() : nullptr;

  struct Lock {
    explicit Lock(Directory& directory) : finds(directory.mutex), adds(directory.fresh) {}
    const std::unique_lock<std::shared_mutex> finds;
    const FreshStats::Alone adds;
  };
  std::vector<std::optional<Lock>> locks(directories_.size());  // from the first row of a directory to the last
  const auto written = [&](size_t number) {
    Directory& directory = *directories_[number];
    // From now on, its statistics come from the index.
    fresh_bytes_ -= directory.fresh.memory();
    directory.fresh.clear();
    directory.parts.clear();
    loaded_bytes_ -= directory.loaded.exchange(0);
    directory.known = Known::kNotAsked;
    locks[number].reset();
  };
  auto listing = listings_.begin();
  size_t number = 0;
  std::shared_ptr<PartsUpdate> update;
  const Status status = write_rows([&]() -> std::unique_ptr<NewRow> {
    if (listing != listings_.end()) {
      auto row = std::make_unique<ListingRow>(writer, *spill_, listing->first, std::move(listing->second));
      ++listing;
      return row;
    }
    for (;;) {
      if (std::unique_ptr<NewRow> row = update ? update->next() : nullptr) return row;
      if (number == directories_.size()) return nullptr;
      const size_t at = number++;
      Directory& directory = *directories_[at];
      locks[at].emplace(directory);
      if (directory.fresh.count() == 0) {
        locks[at].reset();
        continue;
      }
      if (directory.fresh.in_file()) move_to_file(directory.fresh);
      PartsUpdate::What what{*directory.key, directory.fresh, *spill_, settled, [&, at] { return names_in(at); },
                             [&, at] { written(at); }};
      update = std::make_shared<PartsUpdate>(writer, elsewhere, std::move(what));
    }
  });
  if (!status.ok()) return status;
  listings_.clear();
  spill_ = std::make_unique<SpillFile>(parent_path(write_->path));
  return complete_ ? writer.keep_only(keys_) : Status();
}

}  // namespace msdbg::dump
