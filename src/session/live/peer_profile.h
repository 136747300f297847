// How a training process behaves, according to its handshake. Source: docs/live-protocol.md.
#pragma once

#include <string>

#include "msdbg/live.h"
#include "msdbg/release.h"
#include "session/live/exchange.h"

namespace msdbg::live {

/// The release, plus the process that runs it.
struct PeerProfile : Release {
  LivePeer peer;         ///< for people
  bool reports = false;  ///< tells of the ends of steps on its own

  static constexpr uint64_t kWrongMeansFrom = 20000;  ///< elements
};

/// Error: kUnsupported for an unsupported version.
Result<PeerProfile> make_profile(const debugger::Metadata& metadata, const std::string& address);

/// "" for another program.
inline std::string mindspore_version(const LivePeer& peer) { return peer.program == "MindSpore" ? peer.version : ""; }

/// For a process that connects without a handshake, because the debugger was restarted while it was held.
PeerProfile unknown_profile(const debugger::Metadata& metadata, const std::string& address);

}  // namespace msdbg::live
