// What the agent does towards the debugger, and what it would do if it were another release of MindSpore. It has the habits that are
// written here; only tests of debuggers have others (tests/support/old_releases.h).
#pragma once

#include "msdbg/agent.h"
#include "msdbg/release.h"

namespace msdbg::agent {

/// Which stop at an operator takes the place of the suspension at the end of the step.
enum class NodeStop : uint8_t { kAny, kLast, kNone };

struct Habits {
  bool ascend = false;
  StepHold hold = StepHold::kBeforeCounting;
  NodeStop replaces_hold = NodeStop::kAny;
  bool node_level_never_holds = false;  ///< at level node there is no suspension at the end of a step
  bool version_answer = true;           ///< waits for version_matched and says its own version
  bool many_graphs = true;              ///< SendMultiGraphs
  bool params = true;                   ///< parameter lists, error codes, conditions 13 to 21
  bool own_names = false;               ///< a hit says the tensor's name, not the one that was watched
  bool recheck = true;
  bool end_check = true;                ///< the end of a step judges what was not judged yet
  bool levels = true;                   ///< heartbeats, and views of statistics and shapes
  bool graph_details = true;            ///< names of root graphs and source lines
  bool line_in_brackets = false;        ///< `path(12)/` instead of `path:12/`
  bool named_constants = true;          ///< constants are fetched by name; otherwise they stand in the graph
  bool one_handshake = true;            ///< later graphs come without one
  bool handshake_per_run = false;       ///< one whenever another graph runs
  bool prefix_scopes = false;           ///< a scope node matches every name that begins with it
  bool swapped_tolerances = false;      ///< rtol and atol are read in the wrong order
  bool reloads_parameters = false;      ///< every step, so that there is a previous value
  bool data_inputs = false;             ///< readable at step boundaries, not only as inputs of operators
  bool initial_values = true;           ///< weights are readable at the initial suspension
  bool exits_at_once = false;           ///< `exit` does not wait for the end of the step
  bool nonfinite_in_extremes = false;   ///< NaN and Inf enter max, min and mean

  bool operator==(const Habits&) const = default;
};

inline Habits own_habits(const Options& options) {
  Habits habits;
  habits.ascend = habits.reloads_parameters = habits.data_inputs = options.backend == "Ascend";
  return habits;
}
/// Those of the next agent. Tests put another function here.
inline Habits (*habits_for)(const Options& options) = &own_habits;

}  // namespace msdbg::agent
