#include "support/old_releases.h"

namespace msdbg::test {

using agent::Habits;
using agent::NodeStop;

// The debugger has to know what the table tells; the rest it meets without knowing.
Habits habits_of_release(const agent::Options& options) {
  const auto number = release_number(options.version).value_or(std::pair(1, 0));
  const Release release = release_of(number.first, number.second, options.backend == "Ascend");
  const auto since = [&number](int major, int minor) { return number >= std::pair(major, minor); };
  const bool first = !since(1, 1);
  Habits habits;
  habits.ascend = release.ascend;
  habits.hold = release.step_hold;
  habits.params = release.params;
  habits.recheck = release.recheck;
  habits.end_check = release.judges_at_step_end;
  habits.initial_values = release.initial_values;
  habits.node_level_never_holds = !release.node_level_holds;
  habits.swapped_tolerances = release.swaps_tolerances;
  habits.levels = release.levels;
  habits.named_constants = release.named_constants;
  habits.one_handshake = release.one_handshake;
  habits.nonfinite_in_extremes = release.nonfinite_in_extremes;
  habits.reloads_parameters = release.ascend || (release.keeps_previous && !first);
  habits.data_inputs = release.ascend || (!first && !since(1, 6));
  // 1.1 is held behind the last operator and at the end of the step.
  habits.replaces_hold = since(1, 6) ? NodeStop::kAny : since(1, 2) ? NodeStop::kLast : NodeStop::kNone;
  habits.version_answer = habits.many_graphs = !first;
  habits.own_names = habits.handshake_per_run = habits.exits_at_once = first;
  habits.graph_details = since(1, 3);
  habits.line_in_brackets = !since(1, 10);
  habits.prefix_scopes = !since(1, 5);
  return habits;
}

}  // namespace msdbg::test
