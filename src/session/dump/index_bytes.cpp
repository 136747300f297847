#include "session/dump/index_bytes.h"

#include <algorithm>
#include <bit>
#include <climits>
#include <cstring>

namespace msdbg::dump {
namespace {

constexpr size_t kChecksumBytes = 8;

uint64_t fixed(std::string_view bytes, size_t at) { return hash_word(bytes.data() + at); }

void put_fixed(std::string& out, uint64_t value) {
  char bytes[sizeof value];
  if constexpr (std::endian::native == std::endian::little) {
    std::memcpy(bytes, &value, sizeof value);
  } else {
    for (size_t i = 0; i < sizeof value; ++i) bytes[i] = static_cast<char>(value >> (8 * i) & 0xff);
  }
  out.append(bytes, sizeof bytes);
}

void put_number(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>((value & 0x7f) | 0x80);
  out += static_cast<char>(value);
}

/// Reads a number and moves `at` behind it. False beyond the end, and for numbers above 32 bits.
bool number(std::string_view bytes, size_t& at, uint32_t& value) {
  uint64_t found = 0;
  for (int shift = 0; shift < 35; shift += 7) {
    if (at >= bytes.size()) return false;
    const auto next = static_cast<uint8_t>(bytes[at++]);
    found |= uint64_t{next & 0x7fu} << shift;
    if (next < 0x80) {
      value = static_cast<uint32_t>(found);
      return found <= UINT32_MAX;
    }
  }
  return false;
}

/// The bytes behind a checksum that matches; nullopt otherwise.
std::optional<std::string_view> checked(std::string_view bytes) {
  if (bytes.size() < kChecksumBytes) return std::nullopt;
  const std::string_view rest = bytes.substr(kChecksumBytes);
  if (fixed(bytes, 0) != hash_of(rest)) return std::nullopt;
  return rest;
}

void seal(std::string& bytes) {
  std::string sum;
  put_fixed(sum, hash_of(std::string_view(bytes).substr(kChecksumBytes)));
  bytes.replace(0, kChecksumBytes, sum);
}

/// How many bytes at the start of both are the same.
size_t shared_start(std::string_view a, std::string_view b) {
  const size_t most = std::min(a.size(), b.size());
  size_t at = 0;
  while (at + 8 <= most && fixed(a, at) == fixed(b, at)) at += 8;
  while (at < most && a[at] == b[at]) ++at;
  return at;
}

/// How many bytes at the end of both are the same.
size_t shared_end(std::string_view a, std::string_view b) {
  const size_t most = std::min(a.size(), b.size());
  size_t count = 0;
  while (count + 8 <= most && fixed(a, a.size() - count - 8) == fixed(b, b.size() - count - 8)) count += 8;
  while (count < most && a[a.size() - count - 1] == b[b.size() - count - 1]) ++count;
  return count;
}

bool is_name(std::string_view name) {
  return !name.empty() && name.size() <= NAME_MAX && name != "." && name != ".." && name.find('/') == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}

}  // namespace

uint64_t digest_of(const FileStamp& stamp, uint64_t seed) {
  uint64_t h = seed ^ 0x51ed270b27d5ad35u;
  for (const uint64_t word : {stamp.size, stamp.inode, static_cast<uint64_t>(stamp.modified), static_cast<uint64_t>(stamp.changed)})
    h = hash_step(h, word);
  return std::max(hash_end(h), kFirstDigest);
}

std::string encode_listing(uint64_t stamp, std::span<const DirectoryEntry> entries) {
  size_t most = 32;
  for (const DirectoryEntry& entry : entries) most += 8 + entry.name.size();
  std::string out(kChecksumBytes, '\0');
  out.reserve(most);
  put_fixed(out, stamp);
  put_number(out, entries.size());
  std::string_view before;
  for (const DirectoryEntry& entry : entries) {
    // Neighbours in the order of names share most of them.
    const size_t shared = shared_start(before, entry.name);
    const std::string_view rest = std::string_view(entry.name).substr(shared);
    const size_t end = shared_end(before.substr(shared), rest);
    put_number(out, shared * 2 + (entry.directory ? 1 : 0));
    put_number(out, end);
    put_number(out, rest.size() - end);
    out += rest.substr(0, rest.size() - end);
    before = entry.name;
  }
  seal(out);
  return out;
}

uint64_t stamp_of_listing(std::string_view bytes) { return bytes.size() < 2 * kChecksumBytes ? 0 : fixed(bytes, kChecksumBytes); }

std::optional<Listing> decode_listing(std::string_view bytes) {
  const std::optional<std::string_view> rest = checked(bytes);
  if (!rest || rest->size() < 8) return std::nullopt;
  size_t at = 8;
  uint32_t count = 0;
  if (!number(*rest, at, count) || count > rest->size()) return std::nullopt;
  Listing listing;
  listing.entries.reserve(count);
  std::string name;
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t start = 0, end = 0, more = 0;
    if (!number(*rest, at, start) || !number(*rest, at, end) || !number(*rest, at, more)) return std::nullopt;
    const size_t shared = start / 2;
    if (shared > name.size() || end > name.size() - shared || more > rest->size() - at) return std::nullopt;
    name.replace(shared, name.size() - shared - end, rest->substr(at, more));
    at += more;
    if (!is_name(name)) return std::nullopt;
    listing.add(name, start % 2 == 1, false);
  }
  if (at != rest->size()) return std::nullopt;
  return listing;
}

std::string encode_part(uint32_t parts, std::span<const IndexEntry> entries) {
  size_t size = kChecksumBytes + 16;
  for (const IndexEntry& entry : entries) size += 28 + entry.bytes.size();
  std::string out(kChecksumBytes, '\0');
  out.reserve(size);
  put_number(out, parts);
  put_number(out, entries.size());
  for (const IndexEntry& entry : entries) {
    put_fixed(out, entry.name);
    put_fixed(out, entry.digest);
    put_fixed(out, entry.previous);
    put_number(out, entry.bytes.size());
    out += entry.bytes;
  }
  seal(out);
  return out;
}

std::optional<IndexPart> decode_part(std::string_view bytes) {
  if (!checked(bytes)) return std::nullopt;
  IndexPart part;
  size_t at = kChecksumBytes;
  uint32_t count = 0;
  if (!number(bytes, at, part.parts) || !number(bytes, at, count) || count > bytes.size() / 24) return std::nullopt;
  if (bytes.size() > UINT32_MAX || !std::has_single_bit(part.parts)) return std::nullopt;
  part.offsets.reserve(count);
  uint64_t before = 0;
  for (uint32_t i = 0; i < count; ++i) {
    part.offsets.push_back(static_cast<uint32_t>(at));
    if (bytes.size() - at < 24) return std::nullopt;
    const uint64_t name = fixed(bytes, at);
    if (i > 0 && name <= before) return std::nullopt;
    before = name;
    at += 24;
    uint32_t size = 0;
    if (!number(bytes, at, size) || size > bytes.size() - at) return std::nullopt;
    at += size;
  }
  if (at != bytes.size()) return std::nullopt;
  return part;
}

IndexEntry entry_at(std::string_view bytes, uint32_t offset) {
  size_t at = offset;
  IndexEntry entry{fixed(bytes, at), fixed(bytes, at + 8), fixed(bytes, at + 16), {}};
  at += 24;
  uint32_t size = 0;
  number(bytes, at, size);
  entry.bytes = bytes.substr(at, size);
  return entry;
}

}  // namespace msdbg::dump
