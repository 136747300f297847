// The options that most commands share, as they are typed, and what they are parsed to.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "app/options.h"

namespace msdbg::app {

inline constexpr std::string_view kLookFormats = "table, json or jsonl";
inline constexpr std::string_view kCheckFormats = "table, json, jsonl, csv, markdown, junit or sarif";

/// Text options that are parsed after CLI11 is done, so our own messages are shown.
struct RawOptions {
  std::string format = "table", colour = "auto", semantics = "compat", steps = "all", ranks = "all", net, key, dec_mode = "auto";
  std::vector<std::string> on, when;
  Format last_format = Format::kJsonl;  // of the command that was given
  std::string formats = std::string(kLookFormats);
  int64_t graph = -1, port = 50051, history = 16;
  std::optional<double> timeout_s;
  double answer_timeout_s = 30;
};

/// `formats`: those that the command has, for the help; "" when it prints none.
void add_common(CLI::App* app, Options& o, RawOptions& raw, std::string_view formats);
void add_dump(CLI::App* app, Options& o);
void add_steps(CLI::App* app, RawOptions& raw);
/// Parses what was typed. Error: kInvalidArgument with the option, the value and what is accepted.
Status finish(const RawOptions& raw, Options& o);

}  // namespace msdbg::app
