// One command, described once for its two readers: the program (`msdbg check DUMP`) and the prompt (`check`).
//
// To add one, write cmd_<name>.cpp with a <name>_command() and list it in commands.cpp. The readers (options.cpp) declare DUMP and
// the options that many commands share (--format, -o, --steps, --ranks, --semantics, ...).
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "app/options.h"

namespace CLI {
class App;
}

namespace msdbg::app {

class Context;
struct RawOptions;

/// Runs the command; called once, after all its words were parsed. Returns the exit status, or the reason why there is no result.
using Action = std::function<Result<int>(Context& context)>;

/// What a command adds its words to.
struct Declaration {
  CLI::App& app;
  Options& options;  ///< read when the action runs
  RawOptions& raw;
  Place place;

  /// DUMP of a verb such as `ckpt match`. Does nothing at the prompt, which has a session.
  void add_dump(CLI::App& verb) const;
};

/// Who reads the command.
enum class Readers : uint8_t { kBoth, kProgram };
/// What the first word names. A command with a dump works on Context::session().
enum class FirstWord : uint8_t { kNone, kDump, kMaybeDump };
/// What a missing --steps means. kCurrent: all in the program, the current step at the prompt. kAllHeld: all, but only the current
/// step of a live training.
enum class StepsWord : uint8_t { kNone, kAll, kAllHeld, kCurrent };

struct Example {
  std::string_view words;  ///< after the command and its dump
  std::string_view comment = "";
};

struct CommandEntry {
  std::string_view name;
  std::vector<std::string_view> also = {};  ///< short names at the prompt
  std::string_view group, summary;
  std::string_view details = "";            ///< below the options
  std::vector<Example> examples;
  /// Adds the command's own words. The action owns the variables they are read into (a shared_ptr in its capture).
  Action (*declare)(const Declaration& to);
  Readers readers = Readers::kBoth;
  FirstWord first = FirstWord::kDump;
  std::string_view first_help = "dump directory or checkpoint";
  StepsWord steps = StepsWord::kNone;
  std::string_view formats = "table, json or jsonl";  ///< "" without --format and -o
  Format last_format = Format::kJsonl;                ///< the formats after it are refused
  bool own_output = false;                            ///< its -o is its own: a directory
  bool pictures = false;                              ///< --format also accepts svg and dot
  bool every_rank = false;                            ///< compares ranks: all of them, even where the prompt has a current one
  bool selectors = false;                             ///< the help shows the forms of a selector
  bool common = true;                                 ///< accepts the options that every command has
  bool passes_words = false;                          ///< words after `--` are passed to a script
  std::string_view complete = "";                     ///< kind of the first word, for completion at the prompt
};

/// The groups of the help; groups that only the prompt has are in scripts/msdbg.
inline constexpr std::string_view kLookGroup = "graph and lists of tensors", kTensorGroup = "one tensor", kWrongGroup = "what is wrong",
                                  kFollowGroup = "rules, other runs, tracing a value", kResultGroup = "the result",
                                  kStartGroup = "getting started";

/// In the order in which the help lists them.
std::span<const CommandEntry> command_table();
/// The command of exactly this name, or nullptr.
const CommandEntry* find_command(std::string_view name);

}  // namespace msdbg::app
