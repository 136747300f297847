#include "session/live/step_count.h"

#include <algorithm>

namespace msdbg::live {

HoldKind hold_kind(const PeerProfile& profile, const HoldFacts& facts) {
  if (facts.initial) return HoldKind::kInitial;
  if (facts.begins) return HoldKind::kNode;
  if (profile.ascend) return HoldKind::kStepEnd;
  const bool other_step = facts.cur_step != facts.last_step;
  const bool moved = other_step || facts.cur_node != facts.last_node;
  // Two suspensions at the same operator are the stop after the step's last operator and the end of the step.
  const bool stopped_by_hit = facts.hits && moved && (facts.hit_at_node || !profile.judges_at_step_end);
  if (profile.step_hold == StepHold::kNextStart) {
    // The end of a step already has the next number and names the last operator; a stop at an operator has the step's own number.
    if (!other_step) return facts.hits || facts.node_level ? HoldKind::kNode : HoldKind::kStepEnd;
    if (!facts.node_level || facts.cur_node == facts.last_node) return HoldKind::kStepEnd;
  }
  if (!facts.node_level) return stopped_by_hit ? HoldKind::kNode : HoldKind::kStepEnd;
  const bool met = facts.asked_node.empty() || facts.cur_node == facts.asked_node;
  return moved && (met || stopped_by_hit) ? HoldKind::kNode : HoldKind::kStepEnd;
}

int64_t completed_steps(const PeerProfile& profile, HoldKind kind, int64_t cur_step) {
  switch (profile.step_hold) {
    case StepHold::kBeforeCounting:
    case StepHold::kNever:
      return kind == HoldKind::kStepEnd ? cur_step + 1 : cur_step;
    case StepHold::kAfterCounting:
    case StepHold::kNextStart:
      return cur_step;
    case StepHold::kCountedAtStart:
      return kind == HoldKind::kNode ? std::max<int64_t>(0, cur_step - 1) : cur_step;
  }
  return cur_step;
}

}  // namespace msdbg::live
