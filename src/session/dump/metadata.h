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
};

/// `.dump_metadata` (or `.metadata`) below `directory`; missing fields stay empty.
Metadata read_metadata(const std::string& directory, std::vector<Problem>& problems);

/// (task, stream) of the kernel that overflowed, from `Opdebug.*.json`.
/// Error: kIoError, kCorrupt.
Result<std::vector<std::pair<int64_t, int64_t>>> read_overflow_record(const std::string& path);
/// The same from the container `Opdebug.*` of an asynchronous dump.
Result<std::vector<std::pair<int64_t, int64_t>>> read_overflow_container(const std::string& path);

}  // namespace msdbg::dump
