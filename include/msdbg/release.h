// How MindSpore releases differ for a debugger. This is the only list: a new release is a row of the table in src/wire/release.cpp.
// docs/live-protocol.md describes the effects on the wire.
#pragma once

#include <optional>
#include <string_view>
#include <utility>

namespace msdbg {

/// Where a training is held at the end of step k (counted from 0), and the number it reports.
enum class StepHold : unsigned char {
  kBeforeCounting,  ///< at its end: k
  kAfterCounting,   ///< at its end: k + 1
  kCountedAtStart,  ///< at its end: k + 1, as during its operators
  kNextStart,       ///< when the next step begins: k + 1, although its operators reported k; not after the last step
  kNever,           ///< before the first step only
};

struct Release {
  int major = 0, minor = 0;
  bool ascend = false;
  StepHold step_hold = StepHold::kBeforeCounting;
  bool params = false;                 ///< conditions 13 to 21, lists of parameters, error codes
  bool recheck = false;                ///< without it, a recheck would run a step
  bool initial_values = false;         ///< weights can be read before the first step
  bool judges_at_step_end = false;     ///< judges parameters, and tensors not judged yet, at the end of the step
  bool node_level_holds = false;       ///< at level "node", holds at the end of a step unless held at an operator of that step
  bool swaps_tolerances = false;       ///< reads rtol and atol in the wrong order
  bool levels = false;                 ///< sends statistics and shapes without the elements, and heartbeats
  bool named_constants = false;        ///< fetches tensor constants by name; earlier releases have their values in the graph
  bool one_handshake = false;          ///< earlier releases send a handshake for each new graph, with an empty table of watchpoints
  bool keeps_previous = false;         ///< keeps the previous value of parameters
  bool wrong_means = false;            ///< the mean of a large tensor is that of its first block
  bool nonfinite_in_extremes = false;  ///< max, min and mean include NaN and Inf
};

/// The first two numbers of the version that a training reports; suffixes such as rc1 are allowed.
std::optional<std::pair<int, int>> release_number(std::string_view version);
/// A release without its own row behaves like the previous one.
Release release_of(int major, int minor, bool ascend);

}  // namespace msdbg
