// How the releases of MindSpore differ for a debugger. The only place that lists this: a new release is a row of the table in
// src/wire/release.cpp. What it means on the wire: docs/live-protocol.md.
#pragma once

#include <optional>
#include <string_view>
#include <utility>

namespace msdbg {

/// Where a training is held at the end of step k (counted from 0), and what it calls that step.
enum class StepHold : unsigned char {
  kBeforeCounting,  ///< at its end: k
  kAfterCounting,   ///< at its end: k + 1
  kCountedAtStart,  ///< at its end: k + 1, as its operators did before
  kNextStart,       ///< when the next step begins: k + 1, though its operators said k; not after the last step
  kNever,           ///< before the first step only
};

struct Release {
  int major = 0, minor = 0;
  bool ascend = false;
  StepHold step_hold = StepHold::kBeforeCounting;
  bool params = false;                 ///< conditions 13 to 21, lists of parameters, error codes
  bool recheck = false;                ///< without it, a recheck would run a step
  bool initial_values = false;         ///< weights can be read before the first step
  bool judges_at_step_end = false;     ///< parameters, and what was not judged yet, when the step ends
  bool node_level_holds = false;       ///< at level "node" the end of a step holds, unless an operator of that step did
  bool swaps_tolerances = false;       ///< reads rtol and atol in the wrong order
  bool levels = false;                 ///< sends statistics and shapes without the elements, and heartbeats
  bool named_constants = false;        ///< fetches tensor constants by name; before, their values are in the graph
  bool one_handshake = false;          ///< before, each new graph comes with a handshake and an empty table of watchpoints
  bool keeps_previous = false;         ///< the previous value of parameters
  bool wrong_means = false;            ///< the mean of a large tensor is that of its first block
  bool nonfinite_in_extremes = false;  ///< NaN and Inf enter max, min and mean
};

/// The first two numbers of the version that a training reports; suffixes such as rc1 are tolerated.
std::optional<std::pair<int, int>> release_number(std::string_view version);
/// A release without a row of its own behaves like the one before it.
Release release_of(int major, int minor, bool ascend);

}  // namespace msdbg
