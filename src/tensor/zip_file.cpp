// Definition: PKWARE's APPNOTE.TXT, sections 4.3 to 4.5.
#include "tensor/zip_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace msdbg {
namespace {

constexpr uint32_t kEndMark = 0x06054b50, kEnd64Mark = 0x06064b50, kLocator64Mark = 0x07064b50, kDirectoryMark = 0x02014b50,
                   kLocalMark = 0x04034b50;
constexpr size_t kEndBytes = 22, kEnd64Bytes = 56, kLocator64Bytes = 20, kDirectoryBytes = 46, kLocalBytes = 30;
/// The end record is followed by a comment of up to 65535 bytes; torch writes none.
constexpr uint64_t kUsualTail = 4096, kLongestTail = kEndBytes + 65535;
/// A tensor file has less than ten entries.
constexpr uint64_t kLargestDirectory = 1 << 20;
constexpr uint32_t kIn64 = 0xFFFFFFFF;

Status corrupt(std::string text) { return Status(Code::kCorrupt, std::move(text)); }

uint64_t little(std::span<const std::byte> bytes, size_t at, size_t width) {
  uint64_t value = 0;
  for (size_t i = width; i-- > 0;) value = value << 8 | std::to_integer<uint64_t>(bytes[at + i]);
  return value;
}

struct DirectoryPlace {
  uint64_t offset = 0, bytes = 0, entries = 0;
};

/// The position of the end record in the tail; nullopt without one.
std::optional<size_t> find_end(std::span<const std::byte> tail) {
  if (tail.size() < kEndBytes) return std::nullopt;
  for (size_t at = tail.size() - kEndBytes + 1; at-- > 0;) {
    if (little(tail, at, 4) == kEndMark && little(tail, at + 20, 2) == tail.size() - at - kEndBytes) return at;
  }
  return std::nullopt;
}

/// Replaces the numbers that need 64 bits by those of the second end record.
Status read_end64(const FileEnds& file, uint64_t end, DirectoryPlace& place) {
  std::byte locator[kLocator64Bytes], record[kEnd64Bytes];
  if (end < kLocator64Bytes) return corrupt("is damaged: its ZIP64 locator is missing");
  if (Status status = file.read(end - kLocator64Bytes, locator); !status.ok()) return status;
  if (little(locator, 0, 4) != kLocator64Mark) return corrupt("is damaged: its ZIP64 locator is missing");
  const uint64_t at = little(locator, 8, 8);
  if (at > end - kLocator64Bytes || end - kLocator64Bytes - at < kEnd64Bytes) return corrupt("is damaged: its ZIP64 end record is missing");
  if (Status status = file.read(at, record); !status.ok()) return status;
  if (little(record, 0, 4) != kEnd64Mark) return corrupt("is damaged: its ZIP64 end record is missing");
  place = {little(record, 48, 8), little(record, 40, 8), little(record, 32, 8)};
  return {};
}

/// Takes those of size, stored size and offset that do not fit into 32 bits from the extra field 1, which has them in this order.
Status apply_extra64(std::span<const std::byte> extra, ZipEntry& entry) {
  uint64_t* const fields[] = {&entry.bytes, &entry.stored_bytes, &entry.header_offset};
  if (std::none_of(std::begin(fields), std::end(fields), [](const uint64_t* field) { return *field == kIn64; })) return {};
  for (size_t at = 0; at + 4 <= extra.size();) {
    const uint64_t id = little(extra, at, 2), size = little(extra, at + 2, 2);
    at += 4;
    if (size > extra.size() - at) break;
    if (id != 1) {
      at += size;
      continue;
    }
    for (uint64_t* field : fields) {
      if (*field != kIn64) continue;
      if (at + 8 > extra.size()) return corrupt("is damaged: a ZIP64 size is missing");
      *field = little(extra, at, 8);
      at += 8;
    }
    return {};
  }
  return corrupt("is damaged: a ZIP64 size is missing");
}

}  // namespace

Status FileEnds::load_tail(uint64_t bytes) {
  bytes = std::min(bytes, size());
  if (tail_.size() >= bytes) return {};
  std::vector<std::byte> tail(bytes);
  if (Status status = read(size() - bytes, tail); !status.ok()) return status;
  tail_ = std::move(tail);
  return {};
}

Status FileEnds::read(uint64_t offset, std::span<std::byte> out) const {
  const auto inside = [&](uint64_t begin, std::span<const std::byte> kept) {
    return offset >= begin && offset - begin <= kept.size() && out.size() <= kept.size() - (offset - begin);
  };
  if (out.empty()) return {};
  if (inside(0, head_)) {
    std::memcpy(out.data(), head_.data() + offset, out.size());
    return {};
  }
  if (const uint64_t begin = size() - tail_.size(); inside(begin, tail_)) {
    std::memcpy(out.data(), tail_.data() + (offset - begin), out.size());
    return {};
  }
  return without_path(file_.read(offset, out), file_.path());
}

Result<ZipDirectory> ZipDirectory::read(FileEnds& file) {
  std::optional<size_t> found;
  for (const uint64_t bytes : {kUsualTail, kLongestTail}) {
    if (Status status = file.load_tail(bytes); !status.ok()) return status;
    if (found = find_end(file.tail()); found || bytes >= file.size()) break;
  }
  if (!found) return corrupt("is cut off: the directory at the end of a ZIP file is missing");
  const auto record = file.tail().subspan(*found);
  const uint64_t end = file.size() - record.size();
  DirectoryPlace place{little(record, 16, 4), little(record, 12, 4), little(record, 10, 2)};
  if (place.offset == kIn64 || place.bytes == kIn64 || place.entries == 0xFFFF) {
    if (Status status = read_end64(file, end, place); !status.ok()) return status;
  }
  if (place.offset > end || place.bytes > end - place.offset) return corrupt("is damaged: its ZIP directory is not inside of it");
  if (place.bytes > kLargestDirectory) {
    return Status(Code::kUnsupported, fmt::format("has a ZIP directory of {} bytes; that of a tensor is small", place.bytes));
  }
  std::vector<std::byte> bytes(place.bytes);
  if (Status status = file.read(place.offset, bytes); !status.ok()) return status;

  ZipDirectory directory;
  directory.end_ = place.offset;
  const std::span<const std::byte> all(bytes);
  size_t at = 0;
  for (uint64_t i = 0; i < place.entries; ++i) {
    const bool begins = all.size() - at >= kDirectoryBytes && little(all, at, 4) == kDirectoryMark;
    if (!begins) return corrupt("is damaged: its ZIP directory is too short");
    const auto head = all.subspan(at, kDirectoryBytes);
    const size_t name_bytes = little(head, 28, 2), extra_bytes = little(head, 30, 2), comment_bytes = little(head, 32, 2);
    at += kDirectoryBytes;
    if (name_bytes + extra_bytes + comment_bytes > all.size() - at) return corrupt("is damaged: its ZIP directory is too short");
    ZipEntry entry;
    // Reads characters through their bytes.
    entry.name.assign(reinterpret_cast<const char*>(all.data()) + at, name_bytes);
    entry.encrypted = (little(head, 8, 2) & 1) != 0;
    entry.method = static_cast<unsigned>(little(head, 10, 2));
    entry.stored_bytes = little(head, 20, 4);
    entry.bytes = little(head, 24, 4);
    entry.header_offset = little(head, 42, 4);
    if (Status status = apply_extra64(all.subspan(at + name_bytes, extra_bytes), entry); !status.ok()) return status;
    at += name_bytes + extra_bytes + comment_bytes;
    directory.entries_.push_back(std::move(entry));
  }
  return directory;
}

const ZipEntry* ZipDirectory::find(std::string_view name) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const ZipEntry& entry) { return entry.name == name; });
  return found == entries_.end() ? nullptr : &*found;
}

Result<uint64_t> ZipDirectory::contents(const FileEnds& file, const ZipEntry& entry) const {
  const std::string name = printable(entry.name.substr(0, 80));
  if (entry.encrypted) return Status(Code::kUnsupported, fmt::format("is encrypted (entry {})", name));
  if (entry.method != 0) {
    return Status(Code::kUnsupported, fmt::format("is compressed (entry {}, ZIP method {}); torch.save never compresses: unpack it and "
                                                  "store it again, or save the tensor again",
                                                  name, entry.method));
  }
  const auto damaged = [&] { return corrupt(fmt::format("is damaged: the contents of {} are not where its directory says", name)); };
  std::byte head[kLocalBytes];
  if (entry.header_offset > end_ || end_ - entry.header_offset < kLocalBytes) return damaged();
  if (Status status = file.read(entry.header_offset, head); !status.ok()) return status;
  if (little(head, 0, 4) != kLocalMark) return damaged();
  const uint64_t offset = entry.header_offset + kLocalBytes + little(head, 26, 2) + little(head, 28, 2);
  if (entry.bytes != entry.stored_bytes || offset > end_ || entry.bytes > end_ - offset) return damaged();
  return offset;
}

}  // namespace msdbg
