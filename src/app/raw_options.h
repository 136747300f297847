// The options that most commands share, as they are typed, and what they are parsed to.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "app/command.h"

namespace msdbg::app {

/// Text options that are parsed after CLI11 is done, so that our own messages are shown. "" was not given.
struct RawOptions {
  std::string format, colour, semantics, steps, ranks, net, key, dec_mode;
  std::vector<std::string> on, when;
  int64_t graph = -1, port = 50051, history = 16;
  std::optional<double> timeout_s;
  double answer_timeout_s = 30;
};

/// The group of the options that every command takes, in its help.
inline constexpr const char* kCommonGroup = "Common options";

/// --format and -o, and the options of every command.
void add_common(const CommandEntry& entry, const Declaration& to);
/// --steps and --ranks.
void add_steps(StepsWord word, const Declaration& to);
void add_ranks(const Declaration& to);
/// --graph N.
void add_graph(const Declaration& to);
/// A selector as the last word: its terms need no quotes, `nodes op:MatMul and @gradient`.
void add_selector(CLI::App& app, std::string* into, const char* name, const char* help);
/// An option that may be given several times, each time with one value.
void repeated(CLI::Option* option);
/// Parses what was typed. Error: kInvalidArgument with the option, the value and what is accepted.
Status finish(const CommandEntry& entry, const RawOptions& raw, Options& o);

}  // namespace msdbg::app
