// What a recorded server told its client, said again as calls of a LiveSession, and the comparison of both.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "debug_grpc.pb.h"
#include "msdbg/live.h"
#include "support/recorded_peer.h"

namespace msdbg::test {

/// Where a recorded name points to in the graphs of a session; node is kNoNode when it names nothing that has a value.
NodeRef find_recorded(const LiveSession& session, const std::string& name);

/// The watchpoint with the recorded condition, parameters and nodes. `known` are the last components of the nodes that
/// it names in full, in the session's graphs; a scope or `*` sets `expanded`, other names that are left out `left_out`.
struct RebuiltWatch {
  Watchpoint watch;
  std::multiset<std::string> known;
  bool expanded = false, left_out = false;
  Status problem;
};
RebuiltWatch rebuild(const LiveSession& session, const debugger::SetCMD& set);

/// "tensor_all_zero zero_percentage_ge=100" with disabled parameters in place as "name-": what a client indexes by.
std::string full_condition_text(const debugger::WatchCondition& condition);

/// One line per hit, sorted: "5 MatMul-op24:0 zero_percentage_ge=100", or "... error 4".
std::vector<std::string> hit_lines(std::span<const debugger::WatchpointHit> hits, const RecordedPeer& peer);
/// The same of what the session shows; watchpoints of `left_out` are not listed.
std::vector<std::string> hit_lines(const LiveSession& session, const CheckResult& check, const std::set<int>& left_out);

}  // namespace msdbg::test
