#include "options.h"

#include <getopt.h>

#include <cstdio>
#include <limits>
#include <string_view>

namespace trainer {
namespace {

enum Letter : int {
  kSteps = 1, kSeed, kFault, kFaultStep, kWidth, kBatch, kLearningRate, kPrintLoss, kNoAgent, kRelease, kBackend, kHost,
  kPort, kExtraTensor, kSmallNodes, kGraphNodes, kStepSleep, kRetryUnit, kHeartbeat, kCompare,
  kRanks, kFaultRank, kHelp,
};

constexpr option kLongOptions[] = {
    {"steps", required_argument, nullptr, kSteps},
    {"seed", required_argument, nullptr, kSeed},
    {"fault", required_argument, nullptr, kFault},
    {"fault-step", required_argument, nullptr, kFaultStep},
    {"ranks", required_argument, nullptr, kRanks},
    {"fault-rank", required_argument, nullptr, kFaultRank},
    {"width", required_argument, nullptr, kWidth},
    {"batch", required_argument, nullptr, kBatch},
    {"learning-rate", required_argument, nullptr, kLearningRate},
    {"print-loss", no_argument, nullptr, kPrintLoss},
    {"no-agent", no_argument, nullptr, kNoAgent},
    {"release", required_argument, nullptr, kRelease},
    {"backend", required_argument, nullptr, kBackend},
    {"host", required_argument, nullptr, kHost},
    {"port", required_argument, nullptr, kPort},
    {"extra-tensor", required_argument, nullptr, kExtraTensor},
    {"small-nodes", required_argument, nullptr, kSmallNodes},
    {"graph-nodes", required_argument, nullptr, kGraphNodes},
    {"step-sleep-ms", required_argument, nullptr, kStepSleep},
    {"retry-unit-ms", required_argument, nullptr, kRetryUnit},
    {"heartbeat-ms", required_argument, nullptr, kHeartbeat},
    {"compare", no_argument, nullptr, kCompare},
    {"help", no_argument, nullptr, kHelp},
    {nullptr, 0, nullptr, 0},
};

/// Reads the argument of one option; keeps the first error.
class Argument {
 public:
  std::string name, text, problem;

  int64_t number(int64_t least, int64_t most = std::numeric_limits<int32_t>::max()) {
    const auto value = msdbg::parse_int(text);
    if (value && *value >= least && *value <= most) return *value;
    const bool open = most == std::numeric_limits<int64_t>::max();
    refuse("a whole number from " + std::to_string(least) + (open ? " on" : " to " + std::to_string(most)));
    return least;
  }
  float positive() {
    const auto value = msdbg::parse_double(text);
    if (value && *value > 0.0 && *value < 1e30) return static_cast<float>(*value);
    refuse("a positive number");
    return 1.0F;
  }
  Fault fault() {
    const auto value = fault_from_name(text);
    if (!value) refuse("none, exploding-rate, log-of-zero, dead-relu, frozen-layer, bad-batch, one-rank-bad-batch or bit-flip");
    return value.value_or(Fault::kNone);
  }
  std::string backend() {
    if (text != "GPU" && text != "Ascend") refuse("GPU or Ascend");
    return text;
  }

 private:
  void refuse(const std::string& accepted) {
    if (problem.empty()) problem = "--" + name + " takes " + accepted + ", not '" + text + "'";
  }
};

void apply(int letter, Argument& argument, Options& options, msdbg::agent::Options& agent, bool& no_agent) {
  using std::chrono::milliseconds;
  switch (letter) {
    case kSteps: options.steps = argument.number(0, std::numeric_limits<int64_t>::max()); break;
    case kSeed: options.net.seed = static_cast<uint64_t>(argument.number(0)); break;
    case kFault: options.fault = argument.fault(); break;
    case kFaultStep: options.fault_step = argument.number(0); break;
    case kRanks: options.ranks = static_cast<int>(argument.number(1, 64)); break;
    case kFaultRank: options.fault_rank = static_cast<int>(argument.number(0, 63)); break;
    case kWidth: options.net.width = static_cast<int>(argument.number(1, 100000)); break;
    case kBatch: options.net.batch = static_cast<int>(argument.number(1, 100000)); break;
    case kLearningRate: options.net.learning_rate = argument.positive(); break;
    case kPrintLoss: options.print_loss = true; break;
    case kCompare: options.compare = true; break;
    case kNoAgent: no_agent = true; break;
    case kRelease: agent.version = argument.text; break;
    case kBackend: agent.backend = argument.backend(); break;
    case kHost: agent.host = argument.text; agent.enabled = true; break;
    case kPort: agent.port = static_cast<int>(argument.number(1, 65535)); agent.enabled = true; break;
    case kExtraTensor: options.extra_megabytes = argument.number(1, 16384); break;
    case kSmallNodes: options.small_nodes = argument.number(0, 10000000); break;
    case kGraphNodes: options.padding_nodes = argument.number(0, 10000000); break;
    case kStepSleep: options.step_sleep = milliseconds(argument.number(0)); break;
    case kRetryUnit: agent.retry_unit = milliseconds(argument.number(1)); break;
    case kHeartbeat: agent.heartbeat_period = milliseconds(argument.number(1)); break;
    default: break;
  }
}

}  // namespace

std::string usage() {
  return R"(usage: msdbg_trainer [OPTION...]
Trains a network with three dense layers on generated points, and lets a debugger hold it.

training
  --steps N             number of steps (default 30); steps count from 0
  --ranks N             number of processes; each trains on its own samples, and they average their gradients (default 1)
  --width N             outputs of the hidden layers (default 64); 1 makes steps nearly empty
  --batch N             samples per batch (default 32)
  --learning-rate X     default 0.05
  --seed N              seed for the data and the weights (default 1)
  --print-loss          prints one line 'step K loss X' per step
  --step-sleep-ms N     sleeps in every step

faults
  --fault NAME          none, exploding-rate, log-of-zero, dead-relu, frozen-layer, bad-batch;
                        with --ranks also one-rank-bad-batch, bit-flip
  --fault-step K        the first step with the fault (default 5)
  --fault-rank R        the rank with one-rank-bad-batch or bit-flip (default 1)

debugger
  --no-agent            trains without a debugger
  --host A --port N     where the debugger listens (default: ENABLE_MS_DEBUGGER, MS_DEBUGGER_HOST and MS_DEBUGGER_PORT)
  --release V           the MindSpore release in the handshake (default 2.2.0)
  --backend NAME        GPU (can be held after every operator) or Ascend (only at the end of steps)
  --retry-unit-ms N     waits 1, 2, ... 5 times this long if the debugger does not answer (default 1000)
  --heartbeat-ms N      default 30000

for tests of debuggers
  --extra-tensor MB     adds a parameter 'extra.weight' and an operator that passes it on
  --small-nodes N       adds N operators that run in every step, each with an output of 16 numbers
  --graph-nodes N       describes N more operators that never run
  --compare             runs ten of every twenty steps without the agent and prints the median time of both kinds

exit status
  0  all steps are done, or the debugger ended the training
  1  the debugger disappeared while it held the training, or another rank ended early
  2  an option or environment variable is wrong
)";
}

ParseResult parse_options(int argc, char** argv) {
  const auto refused = [](const std::string& why) {
    std::fprintf(stderr, "msdbg_trainer: %s\n", why.c_str());
    return ParseResult{{}, kExitUsage};
  };
  auto agent = msdbg::agent::options_from_environment();
  Options options;
  msdbg::agent::Options from_arguments = agent ? *agent : msdbg::agent::Options{};
  bool no_agent = false;

  optind = 1;
  while (true) {
    int index = 0;
    const int letter = getopt_long(argc, argv, "", kLongOptions, &index);
    if (letter == -1) break;
    if (letter == '?') return {{}, kExitUsage};  // getopt has printed the error
    if (letter == kHelp) {
      std::fputs(usage().c_str(), stdout);
      return {{}, kExitOk};
    }
    Argument argument{kLongOptions[index].name, optarg == nullptr ? "" : optarg, ""};
    apply(letter, argument, options, from_arguments, no_agent);
    if (!argument.problem.empty()) return refused(argument.problem);
  }
  if (optind < argc) return refused(std::string("unknown argument '") + argv[optind] + "'; --help lists the options");
  if (is_of_one_rank(options.fault) && options.fault_rank >= options.ranks) {
    return refused("--fault-rank " + std::to_string(options.fault_rank) + " is none of the --ranks " + std::to_string(options.ranks) +
                   "; ranks count from 0");
  }
  if (!no_agent) {
    if (!agent) return refused(agent.status().message());
    options.agent = from_arguments;
  }
  return {options, std::nullopt};
}

}  // namespace trainer
