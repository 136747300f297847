#include "app/raw_options.h"

#include <fmt/format.h>

#include <limits>

namespace msdbg::app {
namespace {

constexpr uint64_t kLeastMemLimitMb = 64, kMostMemLimitMb = 1'000'000'000;

}  // namespace

void add_common(CLI::App* app, Options& o, RawOptions& raw, std::string_view formats) {
  if (!formats.empty()) {
    app->add_option("--format", raw.format, std::string(formats))->capture_default_str()->type_name("FORMAT");
    app->add_option("-o,--output", o.output_file, "write there instead of standard output")->type_name("FILE");
  }
  app->add_option("--semantics", raw.semantics, "compat (as MindSpore: NaN and Inf suppress thresholds) or finite")
      ->capture_default_str()
      ->type_name("MODE");
  app->add_option("--mem-limit", o.mem_limit_mb, "memory for tensors, MB, at least 64")
      ->capture_default_str()
      ->type_name("MB")
      ->check(CLI::NonNegativeNumber);
  app->add_option("--threads", o.threads, "worker threads; 0 is one per processor")->capture_default_str()->type_name("N");
  app->add_option("--net", raw.net, "the net to open where a dump holds several")->type_name("NAME");
  app->add_option("--key", raw.key, "key of an encrypted checkpoint: hexadecimal digits, @FILE or env:NAME")->type_name("KEY");
  app->add_option("--dec-mode", raw.dec_mode, "its cipher: auto, gcm, cbc or sm4-cbc")->capture_default_str()->type_name("MODE");
  app->add_option("--color", raw.colour, "auto, always or never")->capture_default_str()->type_name("WHEN");
  app->add_flag("--no-pager{false}", o.pager, "do not show long output through a pager");
  app->add_flag("-q,--quiet", o.quiet, "no progress, no notes");
  app->add_flag("-v,--verbose", o.verbose, "say what is read and how long it takes; -vv: each file, too");
  app->add_option("--log", o.log_file, "append a complete log with times to FILE")->type_name("FILE");
}

void add_dump(CLI::App* app, Options& o) { app->add_option("DUMP", o.dump, "dump directory")->required(); }

void add_steps(CLI::App* app, RawOptions& raw) {
  app->add_option("--steps,--step", raw.steps, "steps: all, 3, 0:10 (both ends), 2:, 0,4,7:9")->capture_default_str()->type_name("STEPS");
  app->add_option("--ranks,--rank", raw.ranks, "ranks, written like steps")->capture_default_str()->type_name("RANKS");
}

Status finish(const RawOptions& raw, Options& o) {
  const auto format = parse_format(raw.format);
  if (!format) return format.status();
  o.format = *format;
  if (*format > raw.last_format) {
    return Status(Code::kInvalidArgument, fmt::format("--format {} is not for this command; use {}", raw.format, raw.formats));
  }
  if (o.baseline_steps && o.bless.empty()) {
    return Status(Code::kInvalidArgument,
                  "--baseline-steps says what --bless writes; add --bless FILE (a baseline with steps is recognised as it is)");
  }
  const auto semantics = parse_semantics(raw.semantics);
  if (!semantics) return semantics.status();
  o.semantics = *semantics;
  if (raw.colour == "auto") o.colour = Switch::kAuto;
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
    auto parsed = IntSet::parse(*text);
    if (!parsed) return Status(Code::kInvalidArgument, fmt::format("{}: {}", name, parsed.status().message()));
    *set = *parsed;
  }
  if (!raw.net.empty()) o.net = raw.net;
  if (!raw.key.empty()) {
    const Status read = read_checkpoint_key(raw.key, &o.checkpoint);
    if (!read.ok()) return Status(Code::kInvalidArgument, fmt::format("--key: {}", read.message()));
  }
  const auto cipher = parse_cipher_mode(raw.dec_mode);
  if (!cipher) return Status(Code::kInvalidArgument, fmt::format("--dec-mode: {}", cipher.status().message()));
  o.checkpoint.mode = *cipher;
  if (raw.graph > std::numeric_limits<int>::max()) {
    return Status(Code::kInvalidArgument, fmt::format("--graph {}: no graph has such an id; msdbg doctor lists them", raw.graph));
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
  for (const char* known : {"output", "input", "all"}) {
    if (o.slots == known) return Status();
  }
  return Status(Code::kInvalidArgument, fmt::format("--slots '{}' is not known; use output, input or all", o.slots));
}

}  // namespace msdbg::app
