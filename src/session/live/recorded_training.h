// The training in a recording, for a debugger to which the same training reconnects without a handshake.
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "session/live/exchange.h"

namespace msdbg::live {

struct RecordedTraining {
  debugger::Metadata handshake;
  std::vector<std::string> graphs;            ///< serialized
  std::unordered_set<std::string> operators;  ///< of all graphs, by name

  /// Whether a training with this WaitCMD may be the recorded one.
  bool may_be(const debugger::Metadata& wait) const;
};

/// The last training in the recording that sent a graph. Error: kNotFound without one; errors of opening the file.
Result<RecordedTraining> read_recorded_training(const std::string& path);

}  // namespace msdbg::live
