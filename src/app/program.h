// The running program as a file: what lies next to it, and how to start it once more.
#pragma once

#include <filesystem>

namespace msdbg::app {

struct ProgramFile {
  std::filesystem::path start;   ///< starts this program again, even after it was replaced by another version
  std::filesystem::path folder;  ///< bin/ of the installed tree or of the bundle, wherever it was moved to; empty if unknown
};

/// In a bundle, /proc/self/exe is the dynamic loader, and the launcher (packaging/launcher.c) passes its own path in MSDBG_LAUNCHER. The
/// first call takes the variable out of the environment, so that other programs do not get it; main() makes it before threads start.
const ProgramFile& program_file();

}  // namespace msdbg::app
