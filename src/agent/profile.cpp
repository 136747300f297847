#include "agent/profile.h"

namespace msdbg::agent {
namespace {

StepHold hold_of(Profile profile, bool ascend) {
  if (ascend && profile == Profile::k2_3) return StepHold::kNever;
  if (profile >= Profile::k1_6) return StepHold::kBeforeCounting;
  if (ascend) return StepHold::kAfterCounting;
  return profile <= Profile::k1_1 ? StepHold::kCountedAtStart : StepHold::kNextStart;
}

}  // namespace

Traits traits_of(const Options& options) {
  const Profile profile = options.profile;
  Traits traits;
  traits.ascend = options.backend == "Ascend";
  traits.hold = hold_of(profile, traits.ascend);
  traits.replaces_hold = profile >= Profile::k1_6   ? NodeStop::kAny
                         : profile >= Profile::k1_3 ? NodeStop::kLast
                                                    : NodeStop::kNone;
  const bool first = profile == Profile::k1_0;
  traits.node_level_never_holds = first && !traits.ascend;
  traits.version_answer = traits.many_graphs = traits.params = traits.recheck = !first;
  traits.own_names = traits.handshake_per_run = traits.exits_at_once = first;
  traits.end_check = !first || traits.ascend;
  traits.initial_values = !first;
  traits.heartbeat = traits.levels = profile >= Profile::k1_5;
  traits.root_name = traits.source_lines = profile >= Profile::k1_3;
  traits.line_in_brackets = profile < Profile::k1_10;
  traits.named_constants = traits.one_handshake = profile >= Profile::k1_6;
  traits.prefix_scopes = profile < Profile::k1_5;
  traits.swapped_tolerances = !first && profile <= Profile::k1_5;
  traits.reloads_parameters = traits.ascend || (!first && profile <= Profile::k1_6);
  traits.data_inputs = traits.ascend || (!first && profile <= Profile::k1_5);
  traits.nonfinite_in_extremes = profile >= Profile::k2_3;
  return traits;
}

}  // namespace msdbg::agent
