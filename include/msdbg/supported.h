// What this version can read and talk to; `msdbg --version` prints it.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

namespace msdbg {

/// Releases of MindSpore whose dumps are read (docs/dump-format.md).
inline constexpr std::string_view kFirstDumpRelease = "1.0", kLastDumpRelease = "2.10";

/// Releases of msprobe whose dumps are read (docs/msprobe.md).
inline constexpr std::string_view kFirstMsprobe = "1.2", kLastMsprobe = "26.2";

/// Of the index (docs/index.md). Programs with different numbers do not share one.
inline constexpr int kIndexVersion = 2;

/// The releases that changed the live protocol, oldest first; each also stands for the releases up to the next one.
std::vector<std::pair<int, int>> release_generations();

}  // namespace msdbg
