// The rows of a dump's index as bytes: the listing of a directory, and the statistics of its files. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "msdbg/file.h"
#include "msdbg/hash.h"
#include "session/dump/directory.h"

namespace msdbg::dump {

/// Never below kFirstDigest. `seed` adds what else must be the same.
uint64_t digest_of(const FileStamp& stamp, uint64_t seed = 0);

/// Smaller numbers mean: there is no file.
inline constexpr uint64_t kFirstDigest = 16;

/// `stamp`: the digest of the directory. The entries are sorted by name.
std::string encode_listing(uint64_t stamp, std::span<const DirectoryEntry> entries);
/// nullopt if the bytes are damaged. A name can only be that of an entry of the directory.
std::optional<Listing> decode_listing(std::string_view bytes);
/// The stamp of a listing; 0 if the bytes are too short.
uint64_t stamp_of_listing(std::string_view bytes);

/// The statistics of one file.
struct IndexEntry {
  uint64_t name = 0;      ///< hash_of() the file's path below the directory
  uint64_t digest = 0;    ///< of the file
  uint64_t previous = 0;  ///< of the previous value's file; 0 if the statistics do not depend on it
  std::string_view bytes;
};

/// `entries` are sorted by name; `parts`: into how many rows the directory is divided.
std::string encode_part(uint32_t parts, std::span<const IndexEntry> entries);

struct IndexPart {
  uint32_t parts = 0;
  std::vector<uint32_t> offsets;  ///< of each entry, for entry_at()
};
/// Checks everything that entry_at() relies on. nullopt if the bytes are damaged.
std::optional<IndexPart> decode_part(std::string_view bytes);
IndexEntry entry_at(std::string_view bytes, uint32_t offset);

}  // namespace msdbg::dump
