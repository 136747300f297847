// Writes new statistics of a directory into the index: a row at a time, so that never all of them are in memory.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "session/dump/fresh_stats.h"
#include "session/dump/index_file.h"

namespace msdbg::dump {

struct PartsUpdate {
  const std::string& directory;  ///< as the rows name it
  const FreshStats& fresh;
  const SpillFile& spill;
  std::function<bool(const Seen&)> settled;  ///< whether to keep an entry
  size_t files = 0;                          ///< in the directory
  std::function<std::vector<uint64_t>()> names;  ///< of these files; asked only where there are older statistics
};

/// The part of a name, if there are `parts`, a power of two.
size_t part_of(uint64_t name, size_t parts);

/// `old`: where older statistics are; null if the writer has them.
Status write_parts(IndexWriter& writer, IndexFile* old, PartsUpdate update);

}  // namespace msdbg::dump
