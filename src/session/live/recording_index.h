// An index of a recording by suspension: one pass over the file; payloads stay in the file.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "session/live/exchange.h"
#include "session/live/recording_reader.h"

namespace msdbg::live {

/// The messages of one completed call that the session sees, as offsets in the file.
struct RecordedCall {
  WireEvent::Kind kind = WireEvent::Kind::kProblem;
  Rpc rpc = Rpc::kWaitCmd;
  std::vector<uint64_t> frames;
  std::string text;  ///< for kinds without a message (kDisconnected)
};

/// One tensor that was read.
struct RecordedUpload {
  debugger::ViewCMD::Level level = debugger::ViewCMD::value;
  std::string node, slot, iter;   ///< as requested
  std::vector<uint64_t> frames;   ///< slices of a value; one message for other kinds; none for an empty value
};

/// From the first WaitCMD of a suspension to the command that released the training.
struct RecordedHold {
  uint64_t wait = 0;                             ///< frame of the metadata
  std::vector<RecordedCall> before;              ///< calls since the previous suspension
  std::vector<RecordedUpload> uploads;
  std::vector<std::vector<uint64_t>> rechecks;   ///< hits of each recheck
  std::optional<debugger::RunCMD> left;          ///< the command that resumed it; nullopt for exit and at the end
  bool has_hits() const;
};

struct RecordingIndex {
  std::vector<RecordedHold> holds;
  std::vector<RecordedCall> tail;   ///< after the last suspension: a farewell, or the end of the recording
  std::string note;                 ///< why reading stopped early; "" if it did not, and in all but the first rank
};

/// Reads `reader` to its end; one index per rank. Skips inconsistent messages: the recorder wrote whatever peers sent.
std::vector<RecordingIndex> index_recording(RecordingReader& reader);

}  // namespace msdbg::live
