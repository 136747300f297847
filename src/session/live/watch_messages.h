// Watchpoints as messages for the training process, and its hits as results.
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

/// True when the peer itself can decide the condition as the catalogue defines it.
bool peer_judges(const PeerProfile& profile, const Condition& condition);

/// One SetCMD per `ids` element: the names are spread so each message stays far below the 4 MiB a client accepts.
/// Every parameter of the condition is listed in the order that clients index by; unused ones are disabled.
/// Precondition: ids.size() >= set_cmds_needed(names).
std::vector<debugger::EventReply> make_set_cmds(const PeerProfile& profile, const Condition& condition,
                                                std::span<const WatchedName> names, std::span<const int> ids);
size_t set_cmds_needed(std::span<const WatchedName> names);

/// A watchpoint that is never evaluated and only makes a GPU client read the operators, so they can be fetched.
std::vector<debugger::EventReply> make_carriers(const PeerProfile& profile, std::span<const WatchedName> names,
                                                std::span<const int> ids);
/// A watchpoint that hits on any output: a training that runs a step stops after the first of these operators.
std::vector<debugger::EventReply> make_stops(const PeerProfile& profile, std::span<const WatchedName> names,
                                             std::span<const int> ids);

debugger::EventReply make_delete(int id);
debugger::EventReply make_run(std::string_view level, const std::string& node = {});
debugger::EventReply make_exit();

/// What a hit says about `condition`: thresholds and measured values of its enabled parameters.
std::vector<ParamResult> hit_params(const PeerProfile& profile, const Condition& condition,
                                    const debugger::WatchpointHit& hit);

}  // namespace msdbg::live
