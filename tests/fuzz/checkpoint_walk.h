// Opens a checkpoint in memory and reads all of it.
#pragma once

#include "fuzz/session_walk.h"
#include "msdbg/checkpoint.h"

namespace msdbg::fuzz {

inline void walk_checkpoint(std::string_view file, const CheckpointOptions& options = {}) {
  static MemoryFile memory;
  const std::string& path = memory.write(file);
  (void)is_checkpoint(path);
  const Result<std::unique_ptr<Checkpoint>> checkpoint = open_checkpoint(path, options);
  if (good(checkpoint)) walk(**checkpoint);
}

}  // namespace msdbg::fuzz
