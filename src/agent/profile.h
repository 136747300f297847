// How the releases differ towards the debugger. Source: docs/live-protocol.md.
#pragma once

#include "msdbg/agent.h"

namespace msdbg::agent {

/// Where a suspension at the end of a step happens, and what it says.
enum class StepHold : uint8_t {
  kBeforeCounting,  ///< from 1.6: at the end of step k, which it calls k
  kAfterCounting,   ///< Ascend before 1.6: at the end of step k, which it calls k + 1
  kCountedAtStart,  ///< GPU 1.0 to 1.2: step k calls itself k + 1 from its first operator on
  kNextStart,       ///< GPU 1.3 to 1.5: when the next step begins, called k + 1
  kNever,           ///< Ascend 2.3: only the initial suspension
};

/// Which stop at an operator takes the place of the suspension at the end of the step.
enum class NodeStop : uint8_t { kAny, kLast, kNone };

struct Traits {
  bool ascend = false;
  StepHold hold = StepHold::kBeforeCounting;
  NodeStop replaces_hold = NodeStop::kAny;
  bool node_level_never_holds = false;  ///< 1.0: at level node there is no suspension at the end of a step
  bool version_answer = true;           ///< from 1.1: waits for version_matched and says its own version
  bool many_graphs = true;              ///< from 1.1: SendMultiGraphs
  bool params = true;                   ///< from 1.1: parameter lists, error codes, conditions 13 to 21
  bool own_names = false;               ///< 1.0: a hit says the tensor's name, not the one that was watched
  bool recheck = true;                  ///< from 1.1
  bool end_check = true;                ///< from 1.1: the end of a step judges what was not judged yet
  bool heartbeat = true;                ///< from 1.5
  bool levels = true;                   ///< from 1.5
  bool root_name = true;                ///< from 1.3
  bool source_lines = true;             ///< from 1.3
  bool line_in_brackets = false;        ///< up to 1.8: `path(12)/` instead of `path:12/`
  bool named_constants = true;          ///< from 1.6: constants are fetched by name, before they stand in the graph
  bool one_handshake = true;            ///< from 1.6: later graphs come without one
  bool handshake_per_run = false;       ///< 1.0: whenever another graph runs
  bool prefix_scopes = false;           ///< up to 1.4: a scope node matches every name that begins with it
  bool swapped_tolerances = false;      ///< 1.1 to 1.5: rtol and atol are read in the wrong order
  bool reloads_parameters = false;      ///< every step: GPU up to 1.6 (not 1.0), Ascend
  bool data_inputs = false;             ///< readable at step boundaries, not only as inputs of operators
  bool initial_values = true;           ///< from 1.1: weights are readable at the initial suspension
  bool exits_at_once = false;           ///< 1.0: `exit` does not wait for the end of the step
  bool nonfinite_in_extremes = false;   ///< 2.3: NaN and Inf enter max, min and mean
};

Traits traits_of(const Options& options);

}  // namespace msdbg::agent
