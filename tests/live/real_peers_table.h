// The expected behaviour of each recorded client with msdbg, and where msdbg answers differently from the recorded server.
#pragma once

#include <chrono>
#include <cstdint>
#include <ostream>
#include <span>
#include <string>

#include "msdbg/live.h"

namespace msdbg::test {

inline const std::string kFolder = std::string(MSDBG_TEST_DATA) + "/live";
/// Longer than any answer takes; reached only if one is missing.
inline constexpr std::chrono::milliseconds kLong{20000};

inline int port_of(const LiveSession& session) {
  return static_cast<int>(parse_int(session.address().substr(session.address().rfind(':') + 1)).value_or(0));
}

struct RealPeer {
  const char* name;
  const char* version;   ///< as shown by the session
  const char* backend;
  int graphs;            ///< at the end
  int nodes;             ///< of all graphs: operators, parameters and constants
  const char* holds;     ///< per suspension: cur_step as the client counts / completed steps
};

inline void PrintTo(const RealPeer& peer, std::ostream* out) { *out << peer.name; }

/// How msdbg may differ from a recorded server. Each difference is listed for the file it occurs in, and must occur there.
enum class Differs : uint8_t {
  kVersionAccepted,    ///< a handshake that was refused, failed or unanswered is accepted
  kHeldNotFailed,      ///< a WaitCMD that failed is held instead
  kHitAccepted,        ///< unrequested hits do not fail the call
  kOddReplyLeftOut,    ///< a reply that is not a command is never sent for a WaitCMD
  kExitPresent,        ///< exit is sent as true
  kUnknownNode,        ///< an operator that is in no graph is refused here instead of sent
  kScopeExpanded,      ///< a scope or `*` becomes the list of its operators
  kJudgedHere,         ///< conditions that this client cannot decide are not sent
  kNamesLeftOut,       ///< names without a tensor, or unknown to the client, are not sent
  kDeathNoticed,       ///< a client that dies while held is lost at once
};

struct ListedDifference {
  const char* file;
  Differs what;
  const char* reason;
};

std::span<const RealPeer> real_peers();
std::span<const ListedDifference> listed_differences();

}  // namespace msdbg::test
