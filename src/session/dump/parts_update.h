// Joins the new statistics of a directory with those in the index, a part at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "session/dump/fresh_stats.h"
#include "session/dump/index_file.h"
#include "session/dump/new_rows.h"

namespace msdbg::dump {

class PartsUpdate : public std::enable_shared_from_this<PartsUpdate> {
 public:
  struct What {
    std::string directory;  ///< as the rows name it
    const FreshStats& fresh;
    const SpillFile& spill;
    std::function<bool(const Seen&)> settled;      ///< whether to keep an entry
    std::function<std::vector<uint64_t>()> names;  ///< of all files in the directory; asked only where there are older statistics
    std::function<void()> written;                 ///< after put() of the last row
  };

  /// `old`: where older statistics are; null if the writer has them. The thread of the writer.
  PartsUpdate(IndexWriter& writer, IndexFile* old, What what);
  ~PartsUpdate();

  /// The next row, for write_rows(); null after the last one. This object must be shared.
  std::unique_ptr<NewRow> next();

 private:
  class PartRow;
  using Rows = std::shared_ptr<const std::vector<std::string>>;

  Rows old_rows(size_t part);
  std::string read_row(size_t part);

  IndexWriter& writer_;
  IndexFile* const old_;
  const What what_;
  size_t old_parts_ = 0, parts_ = 1, given_ = 0;
  std::vector<uint64_t> names_;                              // sorted
  std::vector<std::vector<FreshStats::Record>> in_memory_;  // by part
  Rows old_rows_;
  size_t first_row_ = 0;
};

}  // namespace msdbg::dump
