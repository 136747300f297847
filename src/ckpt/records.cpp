// .ckpt files: walks records of one parameter each, or of one piece of a large one, without reading their contents.
#include <fmt/format.h>

#include <algorithm>

#include "ckpt/record.h"

namespace msdbg::ckpt {
namespace {

constexpr uint64_t kMostText = 1 << 20;
constexpr size_t kMostDamaged = 1000;  // with more records than this, it is not a checkpoint
constexpr uint32_t kRecordField = 1;
constexpr std::string_view kNextStep = "take another copy or save the checkpoint again";

/// Converts UTF-32 to UTF-8.
std::string text_of(const File& file, const Extent& extent) {
  std::string bytes(std::min(extent.bytes, kMostText) / 4 * 4, '\0');
  if (!file.read(extent.offset, std::as_writable_bytes(std::span(bytes.data(), bytes.size()))).ok()) return "";
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 4) {
    const auto unit = static_cast<uint32_t>(little_endian(std::as_bytes(std::span(bytes).subspan(i, 4))));
    const auto put = [&](uint32_t byte) { out += static_cast<char>(byte); };
    if (unit < 0x80) {
      put(unit);
    } else if (unit < 0x800) {
      put(0xC0 | unit >> 6), put(0x80 | (unit & 0x3F));
    } else if (unit < 0x10000) {
      put(0xE0 | unit >> 12), put(0x80 | (unit >> 6 & 0x3F)), put(0x80 | (unit & 0x3F));
    } else if (unit < 0x110000) {
      put(0xF0 | unit >> 18), put(0x80 | (unit >> 12 & 0x3F)), put(0x80 | (unit >> 6 & 0x3F)), put(0x80 | (unit & 0x3F));
    } else {
      put('?');
    }
  }
  return out;
}

/// Assembles entries from records: joins pieces, splits map parameters.
class Assembler {
 public:
  explicit Assembler(Contents& contents) : contents_(contents) {}

  void take(Record record) {
    if (record.is_map) {
      flush();
      take_map(std::move(record));
      return;
    }
    flush_maps_unless("");
    Piece piece = record.tensors.empty() ? Piece{} : std::move(record.tensors.back());
    if (open_ && open_->name == record.tag && record.damage.empty() && continues(piece)) {
      append(*open_, piece.content);
      return;
    }
    flush();
    open_ = make_entry(std::move(record.tag), piece);
    dims_ = piece.dims;
    if (!record.damage.empty()) open_->problem = Status(Code::kCorrupt, fmt::format("damaged: {}; {}", record.damage, kNextStep));
  }

  void finish() {
    flush();
    flush_maps_unless("");
  }

 private:
  static void append(Entry& entry, Extent content) {
    entry.extents.push_back(content);
    entry.bytes += content.bytes;
  }

  static Entry make_entry(std::string name, const Piece& piece) {
    Entry entry;
    entry.name = std::move(name);
    entry.type_text = piece.type;
    entry.dtype = dtype_from_name(piece.type);
    for (const uint64_t dim : piece.dims) entry.shape.push_back(static_cast<int64_t>(dim));
    append(entry, piece.content);
    return entry;
  }

  /// A record with the same name continues the parameter unless it is already complete.
  bool continues(const Piece& piece) const {
    if (piece.type != open_->type_text || piece.dims != dims_ || !open_->problem.ok()) return false;
    const auto count = element_count(open_->shape);
    return !count || item_size(open_->dtype) == 0 || open_->bytes < *count * item_size(open_->dtype);
  }

  void flush() {
    if (!open_) return;
    Entry entry = std::move(*open_);
    open_.reset();
    if (entry.problem.ok() && entry.dtype == DType::kString) {
      contents_.facts.texts.emplace_back(entry.name, text_of(*contents_.file, entry.extents.front()));
      return;
    }
    if (entry.problem.ok() && entry.type_text == "random_op") {
      contents_.problem(Severity::kInfo, fmt::format("'{}' holds the state of random operators ({} bytes), which is not shown",
                                                     printable(entry.name), entry.bytes));
      return;
    }
    // Writers up to 2.2 gave a scalar the shape of an empty vector.
    if (entry.shape == Shape{0} && entry.bytes == item_size(entry.dtype)) entry.shape.clear();
    check_type_and_size(entry);
    contents_.add(std::move(entry));
  }

  // ---- map parameters: key, value and status tensors, in consecutive slices ----
  void take_map(Record record) {
    flush_maps_unless(record.tag);
    if (!record.damage.empty()) {
      Entry entry = make_entry(record.tag, {});
      entry.problem = Status(Code::kCorrupt, fmt::format("damaged map parameter: {}; {}", record.damage, kNextStep));
      contents_.add(std::move(entry));
      return;
    }
    // One release wrote the growing message once per tensor: only the last record counts.
    if (maps_.empty() || maps_.size() != record.tensors.size()) {
      maps_.clear();
      static constexpr std::string_view kParts[] = {"key", "value", "status"};
      for (size_t i = 0; i < record.tensors.size(); ++i) {
        const std::string part = i < 3 ? std::string(kParts[i]) : fmt::format("part{}", i);
        maps_.push_back(make_entry(fmt::format("{}.{}", record.tag, part), record.tensors[i]));
      }
    } else {
      for (size_t i = 0; i < maps_.size(); ++i) join_slice(maps_[i], record.tensors[i]);
    }
    map_tag_ = std::move(record.tag);
  }

  static void join_slice(Entry& entry, const Piece& piece) {
    append(entry, piece.content);
    const bool same_rest =
        piece.dims.size() == entry.shape.size() &&
        std::equal(piece.dims.begin() + !piece.dims.empty(), piece.dims.end(), entry.shape.begin() + !entry.shape.empty(),
                   [](uint64_t a, int64_t b) { return static_cast<int64_t>(a) == b; });
    const auto rows = piece.dims.empty() ? uint64_t{0} : piece.dims[0];
    int64_t sum = 0;
    if (!same_rest || piece.type != entry.type_text || entry.shape.empty() ||
        __builtin_add_overflow(entry.shape[0], static_cast<int64_t>(rows), &sum)) {
      entry.problem = Status(Code::kCorrupt, fmt::format("its slices do not fit together (offset {})", piece.content.offset));
      return;
    }
    entry.shape[0] = sum;
  }

  void flush_maps_unless(std::string_view tag) {
    if (maps_.empty() || (map_tag_ == tag && !tag.empty())) return;
    for (Entry& entry : maps_) {
      entry.note = "part of a map parameter";
      check_type_and_size(entry);
      contents_.add(std::move(entry));
    }
    maps_.clear();
  }

  Contents& contents_;
  std::optional<Entry> open_;
  std::vector<uint64_t> dims_;
  std::vector<Entry> maps_;
  std::string map_tag_;
};

}  // namespace

Status read_records(Contents& contents) {
  const File& file = *contents.file;
  uint64_t end = file.size();
  if (const Status status = strip_crc(contents, end); !status.ok()) return status;
  Assembler assembler(contents);
  FileWindow window(file);
  WireReader reader(window, 0, end);
  WireField field;
  size_t damaged = 0, sound = 0;
  while (!reader.done()) {
    if (interrupt_requested()) return Status(Code::kInterrupted, fmt::format("{}: interrupted while it was opened", file.path()));
    const uint64_t offset = reader.at();
    reader.next(field);
    if (!reader.status().ok() && reader.status().code() != Code::kCorrupt) return reader.status();
    if (!field.is(kRecordField, WireType::kBytes)) {
      const std::string what = reader.status().ok() ? fmt::format("field {} where a record is expected", field.number)
                                                    : reader.status().message();
      contents.problem(Severity::kError,
                       fmt::format("offset {}: {}; what follows ({} bytes) was not read; {}", offset, what, end - offset, kNextStep));
      contents.facts.breaks_off = true;
      break;
    }
    Record record = read_record(reader.inside(field));
    if (!record.io.ok()) return record.io;
    const bool cut = field.cut();
    // A record without a name may have been any parameter; so may anything after the end.
    if (cut || (!record.damage.empty() && record.tag.empty())) contents.facts.breaks_off = true;
    if (cut) {
      contents.problem(Severity::kError, fmt::format("cut off: the record at offset {} promises {} bytes, {} are there; {}", offset,
                                                     field.size, field.present, kNextStep));
      if (record.damage.empty()) record.damage = fmt::format("the file ends inside it, at offset {}", end);
    } else if (!record.damage.empty()) {
      contents.problem(Severity::kError,
                       fmt::format("damaged record at offset {} ('{}'): {}", offset, printable(record.tag), record.damage));
    }
    if (record.damage.empty()) {
      ++sound;
    } else if (++damaged > kMostDamaged) {
      contents.problem(Severity::kError,
                       fmt::format("more than {} damaged records; what follows offset {} was not read", kMostDamaged, offset));
      contents.facts.breaks_off = true;
      break;
    }
    if (!record.tag.empty()) assembler.take(std::move(record));
  }
  assembler.finish();
  if (sound > 0 || end == 0) return {};
  return Status(Code::kCorrupt, contents.facts.problems.empty() ? "it holds no parameter" : contents.facts.problems.back().message);
}

}  // namespace msdbg::ckpt
