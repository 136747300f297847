// Classifies a suspension: WaitCMD does not say whether it is the first one, a stop after an operator, or the end of a step. Pure
// functions of the observed facts.
#pragma once

#include <cstdint>
#include <string>

#include "session/live/peer_profile.h"

namespace msdbg::live {

/// kNode: within a step.
enum class HoldKind : uint8_t { kInitial, kNode, kStepEnd };

struct HoldFacts {
  bool initial = false;          ///< no RunCMD was sent since the handshake
  bool begins = false;           ///< held when a step began
  int64_t cur_step = 0, last_step = 0;
  std::string cur_node, last_node;  ///< of this suspension and the previous one
  bool node_level = false;       ///< the RunCMD before it said "node"
  std::string asked_node;        ///< and named this operator
  bool hits = false;             ///< a stream of hits came directly before it
  bool hit_at_node = false;      ///< a hit is on an output of cur_node that is judged right after the operator ran
};

HoldKind hold_kind(const PeerProfile& profile, const HoldFacts& facts);
/// Number of completed steps.
int64_t completed_steps(const PeerProfile& profile, HoldKind kind, int64_t cur_step);

}  // namespace msdbg::live
