// The small files of a dump: its writer, its configuration, and the records of the overflow detector.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "msdbg/session.h"

namespace msdbg::dump {

struct Metadata {
  std::string framework_version, device_target, net_name;
  bool all_operators = false;  ///< the configuration chooses none of them
};

/// `.dump_metadata` (or `.metadata`) below `directory`; missing fields stay empty.
Metadata read_metadata(const std::string& directory, std::vector<Problem>& problems);

/// A kernel that overflowed.
struct OverflowEntry {
  int64_t task = 0, stream = 0;
  std::string unit;  ///< "AI Core", ...
};
/// From `Opdebug.*.json`.
/// Error: kIoError, kCorrupt.
Result<std::vector<OverflowEntry>> read_overflow_record(const std::string& path);
/// The same from the container `Opdebug.*` of an asynchronous dump.
Result<std::vector<OverflowEntry>> read_overflow_container(const std::string& path);

}  // namespace msdbg::dump
