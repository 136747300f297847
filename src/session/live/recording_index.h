// What is in a recording, by suspension: one pass over the file, payloads stay in it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "session/live/exchange.h"
#include "session/live/recording_reader.h"

namespace msdbg::live {

/// Messages of one completed call that the session hears about, as places in the file.
struct RecordedCall {
  WireEvent::Kind kind = WireEvent::Kind::kProblem;
  Rpc rpc = Rpc::kWaitCmd;
  std::vector<uint64_t> frames;
  std::string text;  ///< of what has no message (kGone)
};

/// One tensor that was read.
struct RecordedUpload {
  debugger::ViewCMD::Level level = debugger::ViewCMD::value;
  std::string node, slot, iter;   ///< as asked for
  std::vector<uint64_t> frames;   ///< slices of a value; one message otherwise; none for an empty value
};

/// From the first WaitCMD of a suspension to the command that let the training go.
struct RecordedHold {
  uint64_t wait = 0;                             ///< frame of the metadata
  std::vector<RecordedCall> before;              ///< what came since the suspension before
  std::vector<RecordedUpload> uploads;
  std::vector<std::vector<uint64_t>> rechecks;   ///< hits of each recheck
  std::optional<debugger::RunCMD> left;          ///< the command that resumed it; not exit, not at the end
  bool has_hits() const;
};

struct RecordingIndex {
  std::vector<RecordedHold> holds;
  std::vector<RecordedCall> tail;   ///< after the last suspension: a farewell, or the end of the recording
  std::string note;                 ///< why not everything was read; "" when it was
};

/// Reads `reader` to its end. What does not fit together is skipped: the recorder wrote what peers sent, odd or not.
RecordingIndex index_recording(RecordingReader& reader);

}  // namespace msdbg::live
