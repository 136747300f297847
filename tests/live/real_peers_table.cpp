#include "live/real_peers_table.h"

#include <array>

namespace msdbg::test {
namespace {

// The completed steps follow from what each client is known to do (docs/live-protocol.md 3.9) and fit the number in its
// goodbye. `-` is a suspension that the session passes by itself. One entry is a guess that cannot be better: in
// hits-and-names the third suspension is the end of step 0, but its only hit is on a weight that the last operator
// reads.
constexpr std::array kPeers = {
    RealPeer{"mi1.5.0-real-1.5.0-session", "1.5.0", "GPU", 1, 38, "0/0 0/0 0/0"},
    RealPeer{"mi1.5.0-ref-ascend-1.5", "1.5.0", "Ascend", 1, 93, "0/0 1/1 2/2"},
    RealPeer{"mi1.5.0-ref-gpu-1.3-mismatch", "1.3.0", "GPU", 0, 0, "0/0"},
    RealPeer{"mi1.5.0-ref-gpu-1.5", "1.5.0", "GPU", 1, 93, "0/0 0/0 1/1 1/1"},
    RealPeer{"mi1.5.0-ref-server-too-late", "unknown", "GPU", 0, 0, "0/1"},
    RealPeer{"mi2.0.0-ref-session-start", "2.0.0", "GPU", 1, 93, "0/0 0/1 1/2"},
    RealPeer{"mi2.0.0-ref-watchpoint-hit-recheck", "2.0.0", "GPU", 1, 93, "0/0 0/0 0/0"},
    RealPeer{"mi2.3.1-real-1.10.0-mismatch", "1.10.0", "GPU", 0, 0, "0/0"},
    RealPeer{"mi2.3.1-ref-compare-with-previous", "2.3.0", "Ascend", 1, 93, "0/0 0/1 1/2"},
    RealPeer{"mi2.3.1-ref-die-held-reconnect", "2.3.0", "GPU", 1, 93, "0/0 0/0 0/1"},
    RealPeer{"mi2.3.1-ref-heartbeat-periods", "2.3.0", "GPU", 1, 93, ""},
    RealPeer{"mi2.3.1-ref-late-graph", "2.3.0", "GPU", 2, 96, "0/0 0/1 - 1/2"},
    RealPeer{"mi2.3.1-ref-multi-graph", "2.3.0", "GPU", 2, 186, "0/0 0/0"},
    RealPeer{"mi2.3.1-ref-odd-hits", "2.3.0", "GPU", 1, 93, "0/0"},
    RealPeer{"mi2.3.1-ref-pause", "2.3.0", "GPU", 1, 93, "0/0 0/1 1/2 2/3 3/4 4/5 5/6 6/7 7/8 8/9 9/10"},
    RealPeer{"mi2.3.1-ref-recommended-watchpoints", "2.3.0", "GPU", 1, 93, "0/0 0/1"},
    RealPeer{"mi2.3.1-ref-session-start", "2.3.0", "GPU", 1, 93, "0/0 0/1 1/2"},
    RealPeer{"mi2.3.1-ref-step-by-node", "2.3.0", "GPU", 1, 93, "0/0 0/0 0/0 0/0 0/0 0/0 0/0 0/0 0/0 0/0 0/0 0/1"},
    RealPeer{"mi2.3.1-ref-terminate-while-running", "2.3.0", "GPU", 1, 93, "0/0 0/1 1/2 2/3 3/4 4/5 5/6"},
    RealPeer{"mi2.3.1-ref-version-mismatch", "1.9.0", "GPU", 0, 0, "0/0"},
    RealPeer{"mi2.3.1-ref-view-tensor-chunked", "2.3.0", "GPU", 1, 94, "0/0 0/1"},
    RealPeer{"mi2.3.1-ref-wait-without-metadata", "unknown", "GPU", 0, 0, "5/6"},
    RealPeer{"mi2.3.1-ref-watchpoint-hit-recheck", "2.3.0", "GPU", 1, 93, "0/0 0/0 0/1 1/2"},
    RealPeer{"scripted-real-1.10.0-constants", "1.10.0", "GPU", 1, 38, "0/0 0/1"},
    RealPeer{"scripted-real-1.10.0-exit-false", "1.10.0", "GPU", 1, 38, "0/0"},
    RealPeer{"scripted-real-1.10.0-exit", "1.10.0", "GPU", 1, 38, "0/0 0/1"},
    RealPeer{"scripted-real-1.10.0-held-33s-heartbeats", "1.10.0", "GPU", 1, 38, "0/0 0/1"},
    RealPeer{"scripted-real-1.10.0-hits-and-names", "1.10.0", "GPU", 1, 38,
             "0/0 0/0 0/0 1/1 1/1 1/1 1/1 1/1 1/1 1/1 1/1 1/1 1/1 1/2 2/2 2/2 2/2 2/2 2/2 2/2 2/2 2/2 2/2 2/2 2/3"},
    RealPeer{"scripted-real-1.10.0-metadata-failed", "1.10.0", "GPU", 0, 0, "0/0 1/2"},
    RealPeer{"scripted-real-1.10.0-mismatch-exit", "1.10.0", "GPU", 0, 0, "0/0"},
    RealPeer{"scripted-real-1.10.0-mismatch-run", "1.10.0", "GPU", 0, 0, "0/0 0/1 1/2"},
    RealPeer{"scripted-real-1.10.0-no-version-answer", "1.10.0", "GPU", 0, 0, ""},
    RealPeer{"scripted-real-1.10.0-node-stepping", "1.10.0", "GPU", 1, 38,
             "0/0 0/0 0/0 0/0 0/0 0/0 0/0 0/0 0/0 0/0 0/0 1/1 1/1 1/1 1/1 1/1 1/1 1/2 2/3"},
    RealPeer{"scripted-real-1.10.0-run-to-node", "1.10.0", "GPU", 1, 38, "0/0 0/1 1/2 2/3 3/4"},
    RealPeer{"scripted-real-1.10.0-server-restart-while-held", "1.10.0", "GPU", 1, 38, "0/0 0/1 1/2"},
    RealPeer{"scripted-real-1.10.0-six-failures", "1.10.0", "GPU", 1, 38, "0/0"},
    RealPeer{"scripted-real-1.10.0-version-in-waitcmd", "1.10.0", "GPU", 1, 38, "0/0"},
    RealPeer{"scripted-real-1.10.0-view-7MB", "1.10.0", "GPU", 1, 38, "0/0 0/1"},
    RealPeer{"scripted-real-1.10.0-views-prev-and-change", "1.10.0", "GPU", 1, 38, "0/0 0/1 1/2 2/3"},
    RealPeer{"scripted-real-1.3.0-exit", "1.3.0", "GPU", 1, 38, "0/0 1/1"},
    RealPeer{"scripted-real-1.3.0-node-stepping", "1.3.0", "GPU", 1, 38,
             "0/0 0/0 0/0 0/0 0/0 0/0 0/0 0/0 0/0 0/0 0/0 1/1 1/1 1/1 2/2"},
    RealPeer{"scripted-real-1.3.0-three-steps", "1.3.0", "GPU", 1, 38, "0/0 1/1 2/2"},
    RealPeer{"scripted-real-1.3.0-views-prev-and-change", "1.3.0", "GPU", 1, 38, "0/0 1/1 2/2"},
    RealPeer{"scripted-real-1.5.0-exit", "1.5.0", "GPU", 1, 38, "0/0 1/1"},
    RealPeer{"scripted-real-1.5.0-node-stepping", "1.5.0", "GPU", 1, 38,
             "0/0 0/0 0/0 0/0 0/0 0/0 0/0 0/0 0/0 0/0 0/0 1/1 1/1 1/1 2/2"},
    RealPeer{"scripted-real-1.5.0-three-steps", "1.5.0", "GPU", 1, 38, "0/0 1/1 2/2"},
    RealPeer{"scripted-real-1.5.0-views-prev-and-change", "1.5.0", "GPU", 1, 38, "0/0 1/1 2/2"},
};

constexpr std::array kDifferences = {
    ListedDifference{"mi1.5.0-real-1.5.0-session", Differs::kNamesLeftOut,
                     "4.1 to 4.4 and 6.5: Load, MakeTuple, UpdateState, constants"},
    ListedDifference{"mi1.5.0-ref-ascend-1.5", Differs::kNamesLeftOut,
                     "4.1 to 4.4 and 6.5: Load, MakeTuple, UpdateState, constants"},
    ListedDifference{"mi1.5.0-ref-gpu-1.3-mismatch", Differs::kVersionAccepted,
                     "3.2: true to every version that is served; an empty answer ends the client"},
    ListedDifference{"mi1.5.0-ref-server-too-late", Differs::kHeldNotFailed,
                     "3.12 and T2, T50: held, since every failed WaitCMD brings the client nearer to giving up"},
    ListedDifference{"mi2.0.0-ref-watchpoint-hit-recheck", Differs::kNamesLeftOut,
                     "4.1 to 4.4 and 6.5: Load, MakeTuple, UpdateState, constants"},
    ListedDifference{"mi2.3.1-real-1.10.0-mismatch", Differs::kVersionAccepted,
                     "3.2: true to every version that is served; an empty answer ends the client"},
    ListedDifference{"mi2.3.1-ref-die-held-reconnect", Differs::kDeathNoticed, "6.8 no. 0"},
    ListedDifference{"mi2.3.1-ref-odd-hits", Differs::kHitAccepted,
                     "6.8 no. 9 and T48: an unknown number does not fail the call"},
    ListedDifference{"mi2.3.1-ref-recommended-watchpoints", Differs::kJudgedHere,
                     "3.6 and U1: a GPU client from 1.7 on keeps no previous values"},
    ListedDifference{"mi2.3.1-ref-recommended-watchpoints", Differs::kNamesLeftOut,
                     "4.1 to 4.4 and 6.5: Load, MakeTuple, UpdateState, constants"},
    ListedDifference{"mi2.3.1-ref-version-mismatch", Differs::kVersionAccepted,
                     "3.2: true to every version that is served; an empty answer ends the client"},
    ListedDifference{"mi2.3.1-ref-wait-without-metadata", Differs::kHeldNotFailed,
                     "3.12 and T2, T50: held, since every failed WaitCMD brings the client nearer to giving up"},
    ListedDifference{"scripted-real-1.10.0-exit-false", Differs::kExitPresent, "2.7 no. 1 and T5"},
    ListedDifference{"scripted-real-1.10.0-hits-and-names", Differs::kScopeExpanded,
                     "4.4 and T25, T26: hits of a scope or `*` cannot be attributed"},
    ListedDifference{"scripted-real-1.10.0-metadata-failed", Differs::kVersionAccepted,
                     "3.2: true to every version that is served; an empty answer ends the client"},
    ListedDifference{"scripted-real-1.10.0-mismatch-exit", Differs::kVersionAccepted,
                     "3.2: true to every version that is served; an empty answer ends the client"},
    ListedDifference{"scripted-real-1.10.0-mismatch-run", Differs::kVersionAccepted,
                     "3.2: true to every version that is served; an empty answer ends the client"},
    ListedDifference{"scripted-real-1.10.0-no-version-answer", Differs::kVersionAccepted,
                     "3.2: an empty answer ends the client"},
    ListedDifference{"scripted-real-1.10.0-run-to-node", Differs::kUnknownNode,
                     "3.8: the client would run on to the end of the step"},
    ListedDifference{"scripted-real-1.10.0-six-failures", Differs::kHeldNotFailed,
                     "3.12 and T2, T50: held, since every failed WaitCMD brings the client nearer to giving up"},
    ListedDifference{"scripted-real-1.10.0-version-in-waitcmd", Differs::kOddReplyLeftOut,
                     "3.4: the client would report an error and stop"},
    ListedDifference{"scripted-real-1.10.0-views-prev-and-change", Differs::kJudgedHere,
                     "3.6 and U1: a GPU client from 1.7 on keeps no previous values"},
};

}  // namespace

std::span<const RealPeer> real_peers() { return kPeers; }
std::span<const ListedDifference> listed_differences() { return kDifferences; }

}  // namespace msdbg::test
