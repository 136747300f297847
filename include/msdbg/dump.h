// Sessions over dump directories.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "msdbg/session.h"

namespace msdbg {

struct DumpOptions {
  std::optional<std::string> net;   ///< if the dump holds several; default: all
  IntSet ranks = IntSet::all();
  /// Keeps listings and statistics from one run to the next (docs/index.md).
  bool index = false;
  /// The index forgets files that changed less than this before they were read: another change might not show.
  std::chrono::milliseconds settled{2000};
};

/// Opens a dump directory: reads graphs and lists each directory once, on demand; reads no tensor.
/// Error: kNotFound "no dump here" with the nearest candidates below the path; kIoError.
Result<std::unique_ptr<Session>> open_dump(const std::string& path, const DumpOptions& options = {});

}  // namespace msdbg
