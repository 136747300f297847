#include "session/dump/parts_update.h"

#include <algorithm>
#include <bit>
#include <optional>

namespace msdbg::dump {
namespace {

constexpr size_t kEntriesPerPart = 4096;

struct Range {
  uint64_t first = 0, last = UINT64_MAX;
};

/// The names of a part.
Range range_of(size_t part, size_t parts) {
  if (parts == 1) return {};
  const int shift = 64 - std::countr_zero(parts);
  const uint64_t first = uint64_t{part} << shift;
  return {first, first + ((uint64_t{1} << shift) - 1)};
}

class Update {
 public:
  Update(IndexWriter& writer, IndexFile* old, PartsUpdate what)
      : writer_(writer), old_(old), what_(std::move(what)), old_parts_(old_ ? old_->parts(what_.directory) : writer_.parts(what_.directory)) {
    if (!std::has_single_bit(old_parts_)) old_parts_ = 0;
    if (old_parts_ > 0) {
      names_ = what_.names();
      std::sort(names_.begin(), names_.end());
    }
    const size_t most = std::min(what_.files, what_.fresh.count() + old_parts_ * kEntriesPerPart);
    parts_ = std::bit_ceil(std::max<size_t>(1, most / kEntriesPerPart));
  }

  Status run() {
    for (size_t done = 0; done < parts_; ++done) {
      // Where there were fewer parts, the last ones come first: no row is replaced before it is read.
      const size_t part = old_parts_ < parts_ ? parts_ - 1 - done : done;
      if (Status status = write(part); !status.ok()) return status;
    }
    return writer_.remove_after(what_.directory, static_cast<int64_t>(parts_));
  }

 private:
  Status write(size_t part) {
    const Range range = range_of(part, parts_);
    std::vector<IndexEntry> fresh;
    if (!what_.fresh.collect(what_.spill, range.first, range.last, what_.settled, storage_, fresh))
      return Status(Code::kIoError, "new entries of the index cannot be read");
    const bool same = old_ == nullptr && old_parts_ == parts_;
    if (same && fresh.empty()) return {};
    std::vector<IndexEntry> kept = old_entries(part, range);
    std::erase_if(kept, [&](const IndexEntry& entry) { return std::binary_search(fresh.begin(), fresh.end(), entry, by_name); });
    remove_lost(range, fresh.size(), kept);
    std::vector<IndexEntry> all(fresh.size() + kept.size());
    std::merge(fresh.begin(), fresh.end(), kept.begin(), kept.end(), all.begin(), by_name);
    return writer_.put(what_.directory, static_cast<int64_t>(part) + 1, encode_part(static_cast<uint32_t>(parts_), all));
  }

  static bool by_name(const IndexEntry& a, const IndexEntry& b) { return a.name < b.name; }

  /// Those of the range, sorted by name. Valid until the next call.
  std::vector<IndexEntry> old_entries(size_t part, const Range& range) {
    std::vector<IndexEntry> entries;
    if (old_parts_ == 0) return entries;
    const size_t first = part * old_parts_ / parts_;
    const size_t count = std::max<size_t>(1, old_parts_ / parts_);
    if (rows_.empty() || first != first_row_) {
      rows_.clear();
      for (size_t row = first; row < first + count; ++row) rows_.push_back(read_row(row));
      first_row_ = first;
    }
    for (const std::string& row : rows_) {
      const std::optional<IndexPart> decoded = decode_part(row);
      if (!decoded || decoded->parts != old_parts_) continue;
      for (const uint32_t offset : decoded->offsets) {
        const IndexEntry entry = entry_at(row, offset);
        if (entry.name >= range.first && entry.name <= range.last) entries.push_back(entry);
      }
    }
    return entries;
  }

  std::string read_row(size_t part) {
    const int64_t number = static_cast<int64_t>(part) + 1;
    return (old_ ? old_->row(what_.directory, number) : writer_.row(what_.directory, number)).value_or(std::string());
  }

  /// Drops entries of files that do not exist any more.
  void remove_lost(const Range& range, size_t fresh, std::vector<IndexEntry>& kept) const {
    if (kept.empty()) return;
    const auto first = std::lower_bound(names_.begin(), names_.end(), range.first);
    const auto last = std::upper_bound(first, names_.end(), range.last);
    if (fresh + kept.size() <= static_cast<size_t>(last - first)) return;
    std::erase_if(kept, [&](const IndexEntry& entry) { return !std::binary_search(first, last, entry.name); });
  }

  IndexWriter& writer_;
  IndexFile* const old_;
  PartsUpdate what_;
  size_t old_parts_ = 0, parts_ = 1;
  std::vector<uint64_t> names_;  // sorted
  std::string storage_;  // of fresh entries
  std::vector<std::string> rows_;
  size_t first_row_ = 0;
};

}  // namespace

size_t part_of(uint64_t name, size_t parts) { return parts == 1 ? 0 : static_cast<size_t>(name >> (64 - std::countr_zero(parts))); }

Status write_parts(IndexWriter& writer, IndexFile* old, PartsUpdate update) { return Update(writer, old, std::move(update)).run(); }

}  // namespace msdbg::dump
