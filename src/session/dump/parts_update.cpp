#include "session/dump/parts_update.h"

#include <algorithm>
#include <bit>
#include <optional>

namespace msdbg::dump {
namespace {

constexpr size_t kEntriesPerPart = 2048;

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

bool by_name(const IndexEntry& a, const IndexEntry& b) { return a.name < b.name; }

}  // namespace

class PartsUpdate::PartRow : public NewRow {
 public:
  PartRow(std::shared_ptr<const PartsUpdate> of, size_t part, bool last, Rows old)
      : shared_(std::move(of)), of_(*shared_), part_(part), last_(last), old_(std::move(old)) {}

  void make() override {
    const Range range = range_of(part_, of_.parts_);
    std::string storage;
    const auto fresh = of_.what_.fresh.collect(of_.what_.spill, range.first, range.last, of_.in_memory_[part_], of_.what_.settled, storage);
    readable_ = fresh.has_value();
    same_ = readable_ && of_.old_ == nullptr && of_.old_parts_ == of_.parts_ && fresh->empty();
    if (!readable_ || same_) return;
    std::vector<IndexEntry> kept = old_entries(range);
    std::erase_if(kept, [&](const IndexEntry& entry) { return std::binary_search(fresh->begin(), fresh->end(), entry, by_name); });
    remove_lost(range, fresh->size(), kept);
    if (kept.empty()) {
      bytes_ = encode_part(static_cast<uint32_t>(of_.parts_), *fresh);
      return;
    }
    std::vector<IndexEntry> all(fresh->size() + kept.size());
    std::merge(fresh->begin(), fresh->end(), kept.begin(), kept.end(), all.begin(), by_name);
    bytes_ = encode_part(static_cast<uint32_t>(of_.parts_), all);
  }

  Status put() override {
    if (!readable_) return Status(Code::kIoError, "new entries of the index cannot be read");
    const std::string& directory = of_.what_.directory;
    Status status = same_ ? Status() : of_.writer_.put(directory, static_cast<int64_t>(part_) + 1, bytes_);
    if (!status.ok() || !last_) return status;
    status = of_.writer_.remove_after(directory, static_cast<int64_t>(of_.parts_));
    if (status.ok()) of_.what_.written();
    return status;
  }

 private:
  /// Those of the range, sorted by name.
  std::vector<IndexEntry> old_entries(const Range& range) const {
    std::vector<IndexEntry> entries;
    for (const std::string& row : *old_) {
      const std::optional<IndexPart> decoded = decode_part(row);
      if (!decoded || decoded->parts != of_.old_parts_) continue;
      for (const uint32_t offset : decoded->offsets) {
        const IndexEntry entry = entry_at(row, offset);
        if (entry.name >= range.first && entry.name <= range.last) entries.push_back(entry);
      }
    }
    return entries;
  }

  /// Drops entries of files that do not exist any more.
  void remove_lost(const Range& range, size_t fresh, std::vector<IndexEntry>& kept) const {
    if (kept.empty()) return;
    const auto first = std::lower_bound(of_.names_.begin(), of_.names_.end(), range.first);
    const auto last = std::upper_bound(first, of_.names_.end(), range.last);
    if (fresh + kept.size() <= static_cast<size_t>(last - first)) return;
    std::erase_if(kept, [&](const IndexEntry& entry) { return !std::binary_search(first, last, entry.name); });
  }

  const std::shared_ptr<const PartsUpdate> shared_;
  const PartsUpdate& of_;
  const size_t part_;
  const bool last_;
  const Rows old_;  // those that had the names of the part
  std::string bytes_;
  bool readable_ = true, same_ = false;
};

PartsUpdate::PartsUpdate(IndexWriter& writer, IndexFile* old, What what)
    : writer_(writer), old_(old), what_(std::move(what)), old_parts_(old_ ? old_->parts(what_.directory) : writer_.parts(what_.directory)) {
  if (!std::has_single_bit(old_parts_)) old_parts_ = 0;
  size_t most = what_.fresh.count();
  if (old_parts_ > 0) {
    names_ = what_.names();
    std::sort(names_.begin(), names_.end());
    most = std::min(names_.size(), most + old_parts_ * kEntriesPerPart);
  }
  parts_ = std::bit_ceil(std::max<size_t>(1, most / kEntriesPerPart));
  in_memory_ = what_.fresh.divided(parts_, what_.settled);
}

PartsUpdate::~PartsUpdate() = default;

std::unique_ptr<NewRow> PartsUpdate::next() {
  if (given_ == parts_) return nullptr;
  // Where there were fewer parts, the last ones come first: no row is replaced before it is read.
  const size_t part = old_parts_ < parts_ ? parts_ - 1 - given_ : given_;
  ++given_;
  return std::make_unique<PartRow>(shared_from_this(), part, given_ == parts_, old_rows(part));
}

PartsUpdate::Rows PartsUpdate::old_rows(size_t part) {
  const size_t first = part * old_parts_ / parts_;
  if (old_rows_ && first == first_row_) return old_rows_;
  std::vector<std::string> rows;
  const size_t behind = std::min(old_parts_, first + std::max<size_t>(1, old_parts_ / parts_));
  for (size_t row = first; row < behind; ++row) rows.push_back(read_row(row));
  first_row_ = first;
  return old_rows_ = std::make_shared<const std::vector<std::string>>(std::move(rows));
}

std::string PartsUpdate::read_row(size_t part) {
  const int64_t number = static_cast<int64_t>(part) + 1;
  return (old_ ? old_->row(what_.directory, number) : writer_.row(what_.directory, number)).value_or(std::string());
}

}  // namespace msdbg::dump
