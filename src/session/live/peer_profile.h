// How a training process behaves, from what its handshake says. Source: docs/live-protocol.md.
#pragma once

#include <string>

#include "msdbg/live.h"
#include "session/live/exchange.h"

namespace msdbg::live {

/// When the number in cur_step goes up.
enum class Counting : uint8_t {
  kAfterHold,      ///< from 1.6: after the suspension at the end of the step
  kCompleted,      ///< Ascend before 1.6: the number of completed steps
  kAtStepStart,    ///< GPU 1.0 to 1.2: inside the first step it says 1
  kBoundaryNext,   ///< GPU 1.3 to 1.5: kernel stops of step k say k, the boundary behind it (at the start of the next) k + 1
};

struct PeerProfile {
  int major = 1, minor = 0;
  bool ascend = false;
  Counting counting = Counting::kAfterHold;
  bool params = true;              ///< from 1.1: conditions 13 to 21, parameter lists, error codes
  bool recheck = true;             ///< from 1.1; a 1.0 client would run a step instead
  bool levels = true;              ///< from 1.5
  bool swaps_tolerances = false;   ///< 1.1 to 1.5 read rtol and atol in the wrong order
  bool previous = true;            ///< keeps the previous value of parameters
  bool constants = true;           ///< from 1.6: tensor constants can be fetched
  bool bad_mean = false;           ///< 1.6 to 2.3: the mean of 20,000 elements and more is that of the first block
  bool nonfinite_in_extremes = false;  ///< from 2.3: NaN and Inf enter max, min and mean
  bool rewatches = false;          ///< before 1.6: a handshake may come again, the table of watchpoints is empty then
  LivePeer peer;                   ///< for people

  static constexpr uint64_t kBadMeanFrom = 20000;  ///< elements
};

/// Error: kUnsupported "... : only releases 1.0 to 2.x speak this protocol" for a version that cannot be served.
Result<PeerProfile> make_profile(const debugger::Metadata& metadata, const std::string& address);

/// For a process that comes without a handshake, because the debugger was restarted while it was held.
PeerProfile unknown_profile(const debugger::Metadata& metadata, const std::string& address);

}  // namespace msdbg::live
