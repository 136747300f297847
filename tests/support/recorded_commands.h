// Repeats the recorded server's commands as calls of a LiveSession, and compares both.
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

/// The node that a recorded name refers to in the graphs of a session; node is kNoNode if it has no value there.
NodeRef find_recorded(const LiveSession& session, const std::string& name);

/// The watchpoint with the recorded condition, parameters and nodes. `known` are the last components of the nodes that it names in
/// full and that are in the session's graphs; a scope or `*` sets `expanded`, other missing names are in `left_out`.
struct RebuiltWatch {
  Watchpoint watch;
  std::multiset<std::string> known;
  bool expanded = false, left_out = false;
  Status problem;
};
RebuiltWatch rebuild(const LiveSession& session, const debugger::SetCMD& set);

/// "tensor_all_zero zero_percentage_ge=100" with disabled parameters in place as "name-": the order that a client indexes.
std::string full_condition_text(const debugger::WatchCondition& condition);

/// One line per hit, sorted: "5 MatMul-op24:0 zero_percentage_ge=100", or "... error 4".
std::vector<std::string> hit_lines(std::span<const debugger::WatchpointHit> hits, const RecordedPeer& peer);
/// The same for the session's results; without watchpoints in `left_out`.
std::vector<std::string> hit_lines(const LiveSession& session, const CheckResult& check, const std::set<int>& left_out);

}  // namespace msdbg::test
