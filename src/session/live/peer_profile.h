// How a training process behaves, from what its handshake says. Source: docs/live-protocol.md.
#pragma once

#include <string>

#include "msdbg/live.h"
#include "msdbg/release.h"
#include "session/live/exchange.h"

namespace msdbg::live {

/// Its release, and the process that runs it.
struct PeerProfile : Release {
  LivePeer peer;  ///< for people

  static constexpr uint64_t kWrongMeansFrom = 20000;  ///< elements
};

/// Error: kUnsupported for a version that cannot be served.
Result<PeerProfile> make_profile(const debugger::Metadata& metadata, const std::string& address);

/// For a process that comes without a handshake, because the debugger was restarted while it was held.
PeerProfile unknown_profile(const debugger::Metadata& metadata, const std::string& address);

}  // namespace msdbg::live
