// The directory of a ZIP file whose entries are stored, not compressed: as torch.save and NumPy's savez write them. A contents' place
// in the file is known, so it is read like any other part of the file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "msdbg/file.h"

namespace msdbg {

/// Small reads from the first and the last bytes of a file, which are read once; others go to the file. Must not outlive it or `head`.
class FileEnds {
 public:
  FileEnds(const File& file, std::span<const std::byte> head) : file_(file), head_(head) {}
  uint64_t size() const { return file_.size(); }
  /// Keeps the last bytes of the file for later reads.
  Status load_tail(uint64_t bytes);
  std::span<const std::byte> tail() const { return tail_; }
  /// Error: as for File::read(), without the path.
  Status read(uint64_t offset, std::span<std::byte> out) const;

 private:
  const File& file_;
  std::span<const std::byte> head_;
  std::vector<std::byte> tail_;
};

struct ZipEntry {
  std::string name;
  uint64_t bytes = 0;         ///< of the contents
  uint64_t stored_bytes = 0;  ///< in the file; differs if the entry is compressed
  uint64_t header_offset = 0;
  unsigned method = 0;        ///< 0: stored
  bool encrypted = false;
};

class ZipDirectory {
 public:
  /// Error, to follow "the file": kCorrupt (cut off, damaged), kUnsupported (more than a mebibyte of entries); as for File::read().
  static Result<ZipDirectory> read(FileEnds& file);

  const std::vector<ZipEntry>& entries() const { return entries_; }
  /// Null without such an entry.
  const ZipEntry* find(std::string_view name) const;
  /// The offset of the entry's contents. All `bytes` of them are inside the file.
  /// Error: kUnsupported if it is compressed or encrypted; kCorrupt.
  Result<uint64_t> contents(const FileEnds& file, const ZipEntry& entry) const;

 private:
  std::vector<ZipEntry> entries_;
  uint64_t end_ = 0;  // where the directory begins: contents are before it
};

}  // namespace msdbg
