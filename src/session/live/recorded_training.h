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

/// The last training in the recording that sent a graph; one entry per rank. Error: kNotFound without any graph; errors of opening
/// the file.
Result<std::vector<RecordedTraining>> read_recorded_trainings(const std::string& path);

}  // namespace msdbg::live
