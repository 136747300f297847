// The parsed and checked words of a command.
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
/// The exit status for a failed call.
int exit_status_for(const Status& status);

enum class Switch { kAuto, kAlways, kNever };

struct Options {
  Place place = Place::kShell;

  std::vector<std::string> words;             ///< the command line as typed, without the program

  // common
  Format format = Format::kTable;
  std::string output_file;      ///< "" = standard output
  std::string picture;          ///< --format svg or dot, where a command draws
  Switch colour = Switch::kAuto;
  Semantics semantics = Semantics::kCompat;
  uint64_t mem_limit_mb = 16384;
  unsigned threads = 0;
  IntSet steps = IntSet::all(), ranks = IntSet::all();
  bool steps_given = false, ranks_given = false;
  std::optional<std::string> net;
  bool index = true;            ///< of the statistics of dumps
  bool pager = true;            ///< show long texts in a pager on a terminal
  bool quiet = false, strict = false, wide = false, group = false, all = false;
  int verbose = 0;
  std::string log_file;

  CheckpointOptions checkpoint; ///< key and cipher of encrypted checkpoints
  std::string dump;             ///< path of the dump, checkpoint or recording
  bool prints_damage = true;     ///< when the dump is opened
  bool asks_at_once = false;    ///< the statistics of all the dump are wanted once it is open
  bool opens_all_ranks = false; ///< the dump's ranks do not depend on --ranks
  // check
  std::string rules = "default";
  bool rules_given = false;                                  ///< --rules was given, even with the default value
  std::vector<std::string> rule_files;                       ///< --rule
  std::string profile;                                       ///< "" = none
  bool trust = false;                                        ///< read the rules of the project
  double rule_budget_s = 10;
  std::vector<std::pair<std::string, std::string>> watches;  ///< --on, --when
  std::vector<std::string> params;                           ///< rule.name=value
  std::string slots = "output";
  bool slots_given = false;                                  ///< --slots was written, be it the default
  NanVerdict nan = NanVerdict::kNotChecked;
  bool report_missing = false;
  size_t max_hits = SIZE_MAX;
  std::string baseline, bless, suppress;                     ///< files; "" = none
  bool baseline_steps = false;
  std::optional<int> graph;     ///< --graph
  // scripts
  std::string script;
  std::vector<std::string> arguments;
  std::vector<std::string> eval, files, script_path;
  bool batch = false;
  bool no_init = false;
  // listen
  int port = 50051, history = 16;
  std::string bind = "127.0.0.1", record, graph_from;
  bool answer_only = false;
  int rank_count = 1;        ///< number of processes of the training
  std::vector<int> sockets;  ///< already listening, inherited from the process that started this one
  int ready = -1;            ///< descriptor on which the parent process waits until this one listens
  std::optional<double> timeout_s;  ///< until the training connects
  double answer_timeout_s = 30;
};

class Context;
struct CommandEntry;

/// The outcome of parsing: a command to run, or text to print (help, version, an error) and the exit status.
struct Parsed {
  const CommandEntry* entry = nullptr;
  Options options;
  std::function<Result<int>(Context&)> action;
  bool done = false;
  int exit_status = kExitClean;
  std::string out, err;
};

/// Parses the words of the program.
Parsed parse_command_line(const std::vector<std::string>& words);
/// Parses the words after the name of a command. `base`: values that hold unless the words override them.
Parsed parse_command(const CommandEntry& entry, const std::vector<std::string>& words, const Options& base);

}  // namespace msdbg::app
