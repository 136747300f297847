// Converts watchpoints to messages for the training process, and its hits to results.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "msdbg/check.h"
#include "session/live/exchange.h"
#include "session/live/peer_profile.h"

namespace msdbg::live {

struct WatchedName {
  std::string name;  ///< watch_name()
  std::string type;  ///< the operator type; never "scope"
  bool operator==(const WatchedName&) const = default;
};

/// True if the peer can judge the condition exactly as the catalogue defines it.
bool peer_judges(const PeerProfile& profile, const Condition& condition);

/// One SetCMD per element of `ids`: the names are distributed to keep each message far below the 4 MiB that a client accepts. Every
/// parameter of the condition is listed in the order in which clients index them; unused ones are disabled.
/// Precondition: ids.size() >= set_cmds_needed(names).
std::vector<debugger::EventReply> make_set_cmds(const PeerProfile& profile, const Condition& condition,
                                                std::span<const WatchedName> names, std::span<const int> ids);
size_t set_cmds_needed(std::span<const WatchedName> names);

/// A watchpoint that is never evaluated: it only makes a GPU client keep the operators' outputs, which can then be fetched.
std::vector<debugger::EventReply> make_carriers(const PeerProfile& profile, std::span<const WatchedName> names,
                                                std::span<const int> ids);
/// A watchpoint that hits on any output: a training that runs a step stops after the first of these operators.
std::vector<debugger::EventReply> make_stops(const PeerProfile& profile, std::span<const WatchedName> names,
                                             std::span<const int> ids);

debugger::EventReply make_delete(int id);
/// `looked_at`: somebody may look at values at the end of the step.
debugger::EventReply make_run(std::string_view level, const std::string& node = {}, bool looked_at = true);
debugger::EventReply make_exit();

/// The thresholds and measured values of the enabled parameters of `condition` in a hit.
std::vector<ParamResult> hit_params(const PeerProfile& profile, const Condition& condition,
                                    const debugger::WatchpointHit& hit);

}  // namespace msdbg::live
