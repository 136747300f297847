#include "app/prompt_commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "app/context.h"
#include "app/describe.h"
#include "msdbg/atomic_file.h"

namespace msdbg::app {
namespace {

class PromptContext : public Context {
 public:
  // Within a command its --ranks alone decides: the rules and Lua modules that it calls see every rank.
  PromptContext(const Options& options, Script& script) : Context(options), script_(script), rank_(script.current_rank()) {
    script_.set_current_rank(std::nullopt);
  }
  ~PromptContext() override { script_.set_current_rank(rank_); }

  Result<Session*> session() override {
    Session* const open = script_.session();
    if (open == nullptr) return Status(Code::kInvalidArgument, "no session is open; open one with: open PATH, or s = msdbg.listen()");
    return open;
  }
  Result<Script*> script() override { return &script_; }
  std::optional<int64_t> current_step() override { return script_.current_step(); }
  std::optional<int> current_rank() override { return rank_; }
  std::vector<Watchpoint> watchpoints() override { return script_.watchpoints(); }
  const CheckResult* last_result() override { return script_.last_result(); }
  void keep(const CheckResult& result, const std::string& asked, const std::vector<std::string>& names) override {
    script_.keep(result, asked, names);
  }

  void list_rows(const std::string& function, const std::vector<std::string>& words) override {
    // Failing to keep the rows is no reason to withhold the result.
    (void)script_.call("msdbg.repl_rows", function, words);
  }

  void list_rows(const AnswerRows& rows) override { script_.list_rows(rows); }

  Status write(std::string_view text) override {
    if (!options().output_file.empty()) return write_file(options().output_file, text);
    // CSV ends lines with CRLF; a terminal needs LF.
    for (const char c : text) {
      if (c != '\r') text_ += c;
    }
    return Status();
  }
  void note(std::string_view text) override {
    if (!options().quiet) text_ += fmt::format("{}\n", text);
  }

  std::string take() {
    while (text_.ends_with('\n')) text_.pop_back();
    return std::move(text_);
  }

 private:
  Script& script_;
  const std::optional<int> rank_;
  std::string text_;
};

/// The program's options that also apply to commands.
Options base_options(const Options& options) {
  Options base;
  base.place = Place::kPrompt;
  base.colour = options.batch && options.colour == Switch::kAuto ? Switch::kNever : options.colour;
  base.semantics = options.semantics;
  base.mem_limit_mb = options.mem_limit_mb;
  base.threads = options.threads;
  base.net = options.net;
  base.index = options.index;
  base.checkpoint = options.checkpoint;
  base.quiet = options.quiet;
  return base;
}

/// Defaults of --steps and --ranks: the current step and rank of the prompt.
void stay_at_the_place(const CommandEntry& entry, Script& script, Options* options) {
  const auto rank = script.current_rank();
  if (!options->ranks_given && rank && !entry.every_rank) options->ranks = IntSet::of(*rank);
  const auto step = script.current_step();
  if (options->steps_given || !step) return;
  const bool training = dynamic_cast<LiveSession*>(script.session()) != nullptr;
  if (entry.steps == StepsWord::kCurrent || (entry.steps == StepsWord::kAllHeld && training)) options->steps = IntSet::of(*step);
}

/// Error: --ranks names none of the session's ranks.
Status ranks_exist(const Options& options, Script& script) {
  Session* const session = script.session();
  if (!options.ranks_given || session == nullptr) return {};
  const std::vector<int64_t> ranks(session->ranks().begin(), session->ranks().end());
  if (std::ranges::any_of(ranks, [&](int64_t rank) { return options.ranks.contains(rank); })) return {};
  return Status(Code::kNotFound, fmt::format("--ranks {}: no such rank (have {})", options.ranks.text(), numbers_text(ranks)));
}

Result<std::string> run(Script& script, const std::vector<std::string>& words, const Options& base) {
  const CommandEntry* const found = words.empty() ? nullptr : find_command(words.front());
  if (found == nullptr || found->readers != Readers::kBoth) return Status(Code::kInvalidArgument, "no such command of the prompt");
  const CommandEntry& entry = *found;
  Parsed parsed = parse_command(entry, {words.begin() + 1, words.end()}, base);
  if (parsed.done) {
    if (parsed.exit_status == kExitClean) return std::move(parsed.out);
    return Status(Code::kInvalidArgument, parsed.err);
  }
  parsed.options.words = words;
  if (const Status there = ranks_exist(parsed.options, script); !there.ok()) return there;
  stay_at_the_place(entry, script, &parsed.options);
  PromptContext context(parsed.options, script);
  const auto status = parsed.action(context);
  if (!status) return status.status();
  if (*status == kExitInterrupted) return Status(Code::kInterrupted, "interrupted");
  return context.take();
}

}  // namespace

PromptCommands prompt_commands(const Options& options) {
  PromptCommands commands;
  commands.describe = [] {
    std::vector<CommandInfo> list;
    for (const CommandEntry& entry : command_table()) {
      if (entry.readers == Readers::kBoth) list.push_back(describe(entry, Place::kPrompt));
    }
    return list;
  };
  commands.run = [base = std::make_shared<const Options>(base_options(options))](Script& script, const std::vector<std::string>& words) {
    return run(script, words, *base);
  };
  return commands;
}

}  // namespace msdbg::app
