#include "app/raw_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "msdbg/live.h"

namespace msdbg::app {
namespace {

constexpr uint64_t kLeastMemLimitMb = 64, kMostMemLimitMb = 1'000'000'000;

}  // namespace

void add_common(const CommandEntry& entry, const Declaration& to) {
  CLI::App& app = to.app;
  Options& o = to.options;
  if (!entry.formats.empty()) {
    app.add_option("--format", to.raw.format, std::string(entry.formats))->default_str("table")->type_name("FORMAT");
    if (!entry.own_output) app.add_option("-o,--output", o.output_file, "write to FILE instead of printing")->type_name("FILE");
  }
  if (!entry.common) return;
  const bool shell = to.place == Place::kShell;
  app.add_option("--semantics", to.raw.semantics, "compat (as MindSpore: NaN and Inf suppress thresholds) or finite")
      ->default_str(std::string(semantics_name(o.semantics)))
      ->type_name("MODE")
      ->group(kCommonGroup);
  app.add_option("--mem-limit", o.mem_limit_mb, "memory for tensors, MB, at least 64")
      ->capture_default_str()
      ->type_name("MB")
      ->check(CLI::NonNegativeNumber)
      ->group(kCommonGroup);
  app.add_option("--threads", o.threads, "worker threads; 0 is one per processor")
      ->capture_default_str()
      ->type_name("N")
      ->group(kCommonGroup);
  app.add_option("--net", to.raw.net, "the net to open, if the dump has several")->type_name("NAME")->group(kCommonGroup);
  app.add_flag("--no-index{false}", o.index, "neither use nor write the index of the dump (docs/index.md)")->group(kCommonGroup);
  app.add_option("--key", to.raw.key, "key of an encrypted checkpoint: hexadecimal digits, @FILE or env:NAME")
      ->type_name("KEY")
      ->group(kCommonGroup);
  app.add_option("--dec-mode", to.raw.dec_mode, "its cipher: auto, gcm, cbc or sm4-cbc")
      ->default_str("auto")
      ->type_name("MODE")
      ->group(kCommonGroup);
  app.add_flag("-q,--quiet", o.quiet, "no progress, no notes")->group(kCommonGroup);
  // The options below belong to the program as a whole.
  if (!shell) return;
  app.add_option("--color", to.raw.colour, "auto, always or never")->default_str("auto")->type_name("WHEN")->group(kCommonGroup);
  app.add_flag("--no-pager{false}", o.pager, "do not show long output through a pager")->group(kCommonGroup);
  app.add_flag("-v,--verbose", o.verbose, "say what is read and how long it takes; -vv: every file too")->group(kCommonGroup);
  app.add_option("--log", o.log_file, "append a complete log with times to FILE")->type_name("FILE")->group(kCommonGroup);
}

void add_steps(const CommandEntry& entry, const Declaration& to) {
  const bool here = to.place == Place::kPrompt && entry.steps == StepsWord::kCurrent;
  to.app.add_option("--steps,--step", to.raw.steps, "steps: all, 3, 0:10 (both ends), 2:, 0,4,7:9")
      ->default_str(here ? "the current step" : "all")
      ->type_name("STEPS");
  add_ranks(to, entry.every_rank);
}

void add_ranks(const Declaration& to, bool every_rank) {
  const bool here = to.place == Place::kPrompt && !every_rank;
  to.app.add_option("--ranks,--rank", to.raw.ranks, "ranks, written like steps")
      ->default_str(here ? "the current rank" : "all")
      ->type_name("RANKS");
}

void add_rank(const Declaration& to, std::optional<int>* rank) {
  const bool here = to.place == Place::kPrompt;
  const char* const help = here ? "default: the current rank, else the first that has the node" : "default: the first that has the node";
  to.app.add_option("--rank", *rank, help)
      ->type_name("RANK")
      ->check(CLI::Range(0, 1000000000));
}

void add_graph(const Declaration& to) {
  to.app.add_option("--graph", to.raw.graph, "graph id, if several graphs have the node")->type_name("N")->check(CLI::Range(0, 1000000000));
}

void repeated(CLI::Option* option) { option->expected(1)->take_all()->allow_extra_args(false); }

void add_selector(CLI::App& app, std::string* into, const char* name, const char* help) {
  app.add_option_function<std::vector<std::string>>(
         name, [into](const std::vector<std::string>& words) { *into = fmt::format("{}", fmt::join(words, " ")); }, help)
      ->expected(-1);
}

Status finish(const CommandEntry& entry, const RawOptions& raw, Options& o) {
  if (entry.pictures && (raw.format == "svg" || raw.format == "dot")) {
    o.picture = raw.format;
  } else if (!raw.format.empty()) {
    const auto format = parse_format(raw.format);
    if (format) o.format = *format;
    if (!format || *format > entry.last_format) {
      return Status(Code::kInvalidArgument, fmt::format("--format {} is not for this command; use {}", raw.format, entry.formats));
    }
  }
  if (o.baseline_steps && o.bless.empty()) {
    return Status(Code::kInvalidArgument,
                  "--baseline-steps says what --bless writes; add --bless FILE (a baseline with steps is recognised as it is)");
  }
  if (!raw.nan.empty()) {
    const auto nan = parse_nan_verdict(raw.nan);
    if (!nan) return nan.status();
    o.nan = *nan;
  }
  if (!raw.semantics.empty()) {
    const auto semantics = parse_semantics(raw.semantics);
    if (!semantics) return semantics.status();
    o.semantics = *semantics;
  }
  if (raw.colour.empty() || raw.colour == "auto") o.colour = raw.colour.empty() ? o.colour : Switch::kAuto;
  else if (raw.colour == "always") o.colour = Switch::kAlways;
  else if (raw.colour == "never") o.colour = Switch::kNever;
  else return Status(Code::kInvalidArgument, fmt::format("--color '{}' is not known; use auto, always or never", raw.colour));
  if (o.mem_limit_mb < kLeastMemLimitMb) {
    return Status(Code::kInvalidArgument,
                  fmt::format("--mem-limit {} is too small; give at least {} (MB)", o.mem_limit_mb, kLeastMemLimitMb));
  }
  if (o.mem_limit_mb > kMostMemLimitMb) {
    return Status(Code::kInvalidArgument,
                  fmt::format("--mem-limit {} is too large; give at most {} (MB)", o.mem_limit_mb, kMostMemLimitMb));
  }
  if (o.threads > 1024) return Status(Code::kInvalidArgument, fmt::format("--threads {} is too many; give 0 to 1024", o.threads));
  for (auto [text, set, name] : {std::tuple{&raw.steps, &o.steps, "--steps"}, std::tuple{&raw.ranks, &o.ranks, "--ranks"}}) {
    if (text->empty()) continue;
    auto parsed = IntSet::parse(*text);
    if (!parsed) return Status(Code::kInvalidArgument, fmt::format("{}: {}", name, parsed.status().message()));
    *set = *parsed;
  }
  o.steps_given = !raw.steps.empty();
  o.ranks_given = !raw.ranks.empty();
  if (!raw.net.empty()) o.net = raw.net;
  if (!raw.key.empty()) {
    const Status read = read_checkpoint_key(raw.key, &o.checkpoint);
    if (!read.ok()) return Status(Code::kInvalidArgument, fmt::format("--key: {}", read.message()));
  }
  if (!raw.dec_mode.empty()) {
    const auto cipher = parse_cipher_mode(raw.dec_mode);
    if (!cipher) return Status(Code::kInvalidArgument, fmt::format("--dec-mode: {}", cipher.status().message()));
    o.checkpoint.mode = *cipher;
  }
  if (raw.graph >= 0) o.graph = static_cast<int>(raw.graph);
  if (raw.on.size() > raw.when.size()) {
    return Status(Code::kInvalidArgument, fmt::format("--on '{}' has no condition; add --when COND after it", raw.on.back()));
  }
  for (size_t i = 0; i < raw.when.size(); ++i) o.watches.emplace_back(i < raw.on.size() ? raw.on[i] : "", raw.when[i]);
  if (raw.port < 0 || raw.port > 65535) {
    return Status(Code::kInvalidArgument, fmt::format("--port {} is not a port; give 1 to 65535, or 0 for any free one", raw.port));
  }
  o.port = static_cast<int>(raw.port);
  if (raw.history < 0 || raw.history > 1000000) {
    return Status(Code::kInvalidArgument, fmt::format("--history {} is out of range; give 0 to 1000000 (steps)", raw.history));
  }
  o.history = static_cast<int>(raw.history);
  if (raw.rank_count < 1 || raw.rank_count > kMostLiveRanks) {
    return Status(Code::kInvalidArgument, fmt::format("--ranks {} is out of range; give the number of processes of the training, 1 to {}",
                                                      raw.rank_count, kMostLiveRanks));
  }
  o.rank_count = static_cast<int>(raw.rank_count);
  if (raw.timeout_s) {
    if (!(*raw.timeout_s >= 0 && *raw.timeout_s <= 1e9)) {
      return Status(Code::kInvalidArgument,
                    fmt::format("--timeout {} is out of range; give seconds, 0 to 1e9", format_double(*raw.timeout_s)));
    }
    o.timeout_s = raw.timeout_s;
  }
  if (!(raw.answer_timeout_s > 0 && raw.answer_timeout_s <= 1e6)) {
    return Status(Code::kInvalidArgument, fmt::format("--answer-timeout {} is out of range; give seconds, above 0 and up to 1e6",
                                                      format_double(raw.answer_timeout_s)));
  }
  o.answer_timeout_s = raw.answer_timeout_s;
  // run needs a script or code; so do the words after -- of listen.
  if (o.script.empty() && o.eval.empty() && entry.name == "run")
    return Status(Code::kInvalidArgument, "run: which script? msdbg run SCRIPT [ARGUMENTS], or msdbg run -e CODE");
  if (!o.arguments.empty() && o.script.empty() && entry.name != "run")
    return Status(Code::kInvalidArgument, fmt::format("'{}' after -- is for a script; name one with --script FILE", o.arguments.front()));
  for (const char* known : {"output", "input", "all"}) {
    if (o.slots == known) return Status();
  }
  return Status(Code::kInvalidArgument, fmt::format("--slots '{}' is not known; use output, input or all", o.slots));
}

}  // namespace msdbg::app
