// The options that most commands share, as typed, and their parsed form.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "app/command.h"

namespace msdbg::app {

/// Text options, parsed after CLI11 is done in order to report our own errors. "" means not given.
struct RawOptions {
  std::string format, colour, semantics, nan, steps, ranks, net, key, dec_mode;
  std::vector<std::string> on, when;
  int64_t graph = -1, port = 50051, history = 16, rank_count = 1;
  std::optional<double> timeout_s;
  double answer_timeout_s = 30;
};

/// Help group of the options that every command has.
inline constexpr const char* kCommonGroup = "Common options";

/// Adds --format and -o, and the options that every command has.
void add_common(const CommandEntry& entry, const Declaration& to);
/// --steps and --ranks.
void add_steps(const CommandEntry& entry, const Declaration& to);
void add_ranks(const Declaration& to, bool every_rank = false);
/// --rank of a command on one node.
void add_rank(const Declaration& to, std::optional<int>* rank);
/// --graph N.
void add_graph(const Declaration& to);
/// Adds a selector as the last word. Its terms need no quotes: `nodes op:MatMul and @gradient`.
void add_selector(CLI::App& app, std::string* into, const char* name, const char* help);
/// Lets an option be given several times, each time with one value.
void repeated(CLI::Option* option);
/// Parses what was typed. Error: kInvalidArgument with the option, the value and what is accepted.
Status finish(const CommandEntry& entry, const RawOptions& raw, Options& o);

}  // namespace msdbg::app
