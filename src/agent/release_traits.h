// How the agent behaves toward the debugger, and how other releases of MindSpore behave. The defaults are its own behaviour; only
// tests of debuggers use others (tests/support/old_releases.h).
#pragma once

#include "msdbg/agent.h"
#include "msdbg/release.h"

namespace msdbg::agent {

/// Which stop at an operator replaces the suspension at the end of the step.
enum class NodeStop : uint8_t { kAny, kLast, kNone };

struct ReleaseTraits {
  bool ascend = false;
  StepHold hold = StepHold::kBeforeCounting;
  NodeStop replaces_hold = NodeStop::kAny;
  bool node_level_never_holds = false;  ///< at level node there is no suspension at the end of a step
  bool version_answer = true;           ///< waits for version_matched and sends its own version
  bool many_graphs = true;              ///< SendMultiGraphs
  bool params = true;                   ///< parameter lists, error codes, conditions 13 to 21
  bool own_names = false;               ///< a hit has the tensor's own name, not the watched one
  bool recheck = true;
  bool end_check = true;                ///< the end of a step judges tensors not judged before
  bool levels = true;                   ///< heartbeats, and views of statistics and shapes
  bool graph_details = true;            ///< names of root graphs and source lines
  bool line_in_brackets = false;        ///< `path(12)/` instead of `path:12/`
  bool named_constants = true;          ///< constants are fetched by name; otherwise their values are in the graph
  bool one_handshake = true;            ///< later graphs arrive without a handshake
  bool handshake_per_run = false;       ///< one handshake whenever another graph runs
  bool prefix_scopes = false;           ///< a scope node matches every name with that prefix
  bool swapped_tolerances = false;      ///< reads rtol and atol in the wrong order
  bool reloads_parameters = false;      ///< in every step, which provides a previous value
  bool parameters_alone = false;        ///< weights are readable at the end of every step, even if nothing that uses them is read
  bool data_inputs = false;             ///< readable at step boundaries, not only as inputs of operators
  bool initial_values = true;           ///< weights are readable at the initial suspension
  bool exits_at_once = false;           ///< `exit` does not wait for the end of the step
  bool nonfinite_in_extremes = false;   ///< max, min and mean include NaN and Inf

  bool operator==(const ReleaseTraits&) const = default;
};

inline ReleaseTraits own_traits(const Options& options) {
  ReleaseTraits traits;
  traits.ascend = traits.reloads_parameters = traits.data_inputs = options.backend == "Ascend";
  // A program knows where its weights are: a watch on them needs no operator, and none must be traced for it.
  traits.parameters_alone = true;
  return traits;
}
/// The traits of the next agent. Tests install another function here.
inline ReleaseTraits (*traits_for)(const Options& options) = &own_traits;

}  // namespace msdbg::agent
