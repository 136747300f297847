#include "support/old_releases.h"

namespace msdbg::test {

using agent::ReleaseTraits;
using agent::NodeStop;

// The debugger must know what is in the table; it encounters other differences without knowing them.
ReleaseTraits traits_of_release(const agent::Options& options) {
  const auto number = release_number(options.version).value_or(std::pair(1, 0));
  const Release release = release_of(number.first, number.second, options.backend == "Ascend");
  const auto since = [&number](int major, int minor) { return number >= std::pair(major, minor); };
  const bool first = !since(1, 1);
  ReleaseTraits traits;
  traits.ascend = release.ascend;
  traits.hold = release.step_hold;
  traits.params = release.params;
  traits.recheck = release.recheck;
  traits.end_check = release.judges_at_step_end;
  traits.initial_values = release.initial_values;
  traits.node_level_never_holds = !release.node_level_holds;
  traits.swapped_tolerances = release.swaps_tolerances;
  traits.levels = release.levels;
  traits.named_constants = release.named_constants;
  traits.one_handshake = release.one_handshake;
  traits.nonfinite_in_extremes = release.nonfinite_in_extremes;
  traits.reloads_parameters = release.ascend || (release.keeps_previous && !first);
  traits.data_inputs = release.ascend || (!first && !since(1, 6));
  // 1.1 is held after the last operator and at the end of the step.
  traits.replaces_hold = since(1, 6) ? NodeStop::kAny : since(1, 2) ? NodeStop::kLast : NodeStop::kNone;
  traits.version_answer = traits.many_graphs = !first;
  traits.own_names = traits.handshake_per_run = traits.exits_at_once = first;
  traits.graph_details = since(1, 3);
  traits.line_in_brackets = !since(1, 10);
  traits.prefix_scopes = !since(1, 5);
  return traits;
}

}  // namespace msdbg::test
