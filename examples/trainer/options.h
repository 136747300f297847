// The command line.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "faults.h"
#include "msdbg/agent.h"
#include "net.h"

namespace trainer {

enum ExitStatus : int {
  kExitOk = 0,        ///< all steps done, or the debugger ended the training
  kExitGivenUp = 1,   ///< the debugger disconnected while it held the training
  kExitUsage = 2,     ///< an invalid option or environment variable
};

struct Options {
  NetOptions net;
  int64_t steps = 30;
  Fault fault = Fault::kNone;
  int64_t fault_step = 5;
  int ranks = 1, fault_rank = 1;
  bool print_loss = false;
  bool compare = false;        ///< ten steps with the agent, ten without, alternating
  int64_t extra_megabytes = 0;
  int64_t small_nodes = 0, padding_nodes = 0;
  std::chrono::milliseconds step_sleep{0};
  std::optional<msdbg::agent::Options> agent;  ///< none: --no-agent
};

std::string usage();

/// Error: the exit status, after a message on standard error (or the help on standard output).
struct ParseResult {
  Options options;
  std::optional<int> exit_status;
};
ParseResult parse_options(int argc, char** argv);

}  // namespace trainer
