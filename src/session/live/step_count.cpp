#include "session/live/step_count.h"

#include <algorithm>

namespace msdbg::live {

HoldKind hold_kind(const PeerProfile& profile, const HoldFacts& facts) {
  if (facts.initial) return HoldKind::kInitial;
  if (profile.ascend) return HoldKind::kStepEnd;
  if (facts.node_level) {
    const bool moved = facts.cur_node != facts.last_node || facts.cur_step != facts.last_step;
    const bool met = !facts.asked_node.empty() && facts.cur_node == facts.asked_node;
    // The boundary of the older ones says a new step and the old operator.
    if (profile.counting == Counting::kBoundaryNext && facts.cur_step != facts.last_step && !met &&
        facts.cur_node == facts.last_node) {
      return HoldKind::kStepEnd;
    }
    if (met) return HoldKind::kNode;
    return facts.asked_node.empty() && moved ? HoldKind::kNode : HoldKind::kStepEnd;
  }
  if (profile.counting == Counting::kBoundaryNext) {
    return facts.hits && facts.cur_step == facts.last_step ? HoldKind::kNode : HoldKind::kStepEnd;
  }
  // Two suspensions at the same place are the stop behind the step's last operator and the end of the step.
  const bool again = facts.cur_node == facts.last_node && facts.cur_step == facts.last_step;
  return facts.hits && facts.hit_at_node && !again ? HoldKind::kNode : HoldKind::kStepEnd;
}

int64_t completed_steps(const PeerProfile& profile, HoldKind kind, int64_t cur_step) {
  switch (profile.counting) {
    case Counting::kAfterHold:
      return kind == HoldKind::kStepEnd ? cur_step + 1 : cur_step;
    case Counting::kCompleted:
    case Counting::kBoundaryNext:
      return cur_step;
    case Counting::kAtStepStart:
      return kind == HoldKind::kNode ? std::max<int64_t>(0, cur_step - 1) : cur_step;
  }
  return cur_step;
}

}  // namespace msdbg::live
