// What the command line said, after checking. The only file that knows CLI11 is options.cpp.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "msdbg/analysis.h"
#include "msdbg/checkpoint.h"
#include "msdbg/report.h"
#include "msdbg/session.h"

namespace msdbg::app {

/// The documented exit statuses.
enum ExitStatus : int {
  kExitClean = 0, kExitFindings = 1, kExitUsage = 2, kExitInput = 3, kExitIncomplete = 4, kExitScript = 5,
  kExitPeerLost = 6, kExitInternal = 7, kExitInterrupted = 130,
};
/// The exit status that a failed call ends in.
int exit_status_for(const Status& status);

enum class Command { kNone, kRepl, kRun, kCheck, kOrigin, kStats, kShow, kNodes, kDoctor, kDemo, kListen, kOther };
enum class Switch { kAuto, kAlways, kNever };

struct Options {
  Command command = Command::kNone;
  std::function<int(const Options&)> action;  ///< kOther: a command with a file of its own, see command.h

  std::vector<std::string> words;             ///< the command line as it was typed, without the program

  // common
  Format format = Format::kTable;
  std::string output_file;      ///< "" = standard output
  Switch colour = Switch::kAuto;
  Semantics semantics = Semantics::kCompat;
  uint64_t mem_limit_mb = 16384;
  unsigned threads = 0;
  IntSet steps = IntSet::all(), ranks = IntSet::all();
  std::optional<std::string> net;
  bool pager = true;            ///< long texts on a terminal go through one
  bool quiet = false, strict = false, wide = false, group = false;
  int verbose = 0;
  std::string log_file;

  CheckpointOptions checkpoint; ///< key and cipher of encrypted checkpoints
  std::string dump;             ///< path of the dump, checkpoint or recording
  std::string subject;          ///< selector or tensor name
  // check
  std::string rules = "default";
  bool rules_given = false;                                  ///< --rules was written, be it the default
  std::vector<std::string> rule_files;                       ///< --rule
  std::string profile;                                       ///< "" = none
  bool trust = false;                                        ///< read the rules of the project
  double rule_budget_s = 10;
  std::vector<std::pair<std::string, std::string>> watches;  ///< --on, --when
  std::vector<std::string> params;                           ///< rule.name=value
  std::string slots = "output";
  bool report_missing = false;
  size_t max_hits = SIZE_MAX;
  std::string baseline, bless, suppress;                     ///< files; "" = none
  bool baseline_steps = false;
  // origin
  std::string when = "nan or inf";
  // show
  std::optional<int> graph;
  uint32_t execution = 0;
  std::string slice;
  size_t bins = 0, rows = 20;
  // scripts
  std::string script;
  std::vector<std::string> arguments;
  std::vector<std::string> eval, files, script_path;
  bool batch = false;
  bool no_init = false;
  // listen
  int port = 50051, history = 16;
  std::string bind = "127.0.0.1", record;
  std::optional<double> timeout_s;  ///< for the training to come
  double answer_timeout_s = 30;
};

/// Outcome of parsing: options, or text that was to be printed (help, version, an error) and the exit status.
struct Parsed {
  Options options;
  bool done = false;
  int exit_status = kExitClean;
  std::string out, err;
};

Parsed parse_command_line(const std::vector<std::string>& words);

}  // namespace msdbg::app
