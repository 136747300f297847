// Where a command runs, what it works on, and where its results go: a command never prints by itself.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/options.h"
#include "msdbg/report.h"
#include "msdbg/script.h"

namespace msdbg::app {

class Context {
 public:
  explicit Context(const Options& options) : options_(options) {}
  virtual ~Context() = default;
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const Options& options() const { return options_; }
  bool at_prompt() const { return options_.place == Place::kPrompt; }

  /// The session that the command works on: opened from DUMP at the first call, or the one of the prompt.
  virtual Result<Session*> session() = 0;
  /// The virtual machine that rules run in, with session() as its `s`: made at the first call, or the one of the prompt.
  virtual Result<Script*> script() = 0;

  /// Of the prompt: its current step, its watchpoints, and what was found last. The program has none of these.
  virtual std::optional<int64_t> current_step() { return std::nullopt; }
  virtual std::vector<Watchpoint> watchpoints() { return {}; }
  virtual const CheckResult* last_result() { return nullptr; }
  /// Makes a result the last one.
  virtual void keep(const CheckResult&, const std::string& /*asked*/, const std::vector<std::string>& /*names*/) {}

  /// What the result lists, for `#3` at the prompt: `function` of scripts/msdbg/repl_rows.lua with its words.
  virtual void list_rows(const std::string& /*function*/, const std::vector<std::string>& /*words*/) {}

  ReportStyle style() const;
  /// How a command is typed here: `msdbg doctor dumps/lenet` or `doctor`.
  std::string typed(std::string_view command) const;
  /// The result: to -o FILE, standard output, or the prompt.
  virtual Status write(std::string_view text) = 0;
  /// A line for people beside the result; nothing with --quiet.
  virtual void note(std::string_view text) = 0;

 private:
  const Options& options_;
};

/// The program's: results go to standard output, notes to standard error.
class ShellContext : public Context {
 public:
  using Context::Context;
  Result<Session*> session() override;
  Result<Script*> script() override;
  Status write(std::string_view text) override;
  void note(std::string_view text) override;

 private:
  std::unique_ptr<Script> script_;
  std::unique_ptr<Session> own_;  ///< until the script has it
  Session* session_ = nullptr;
};

/// Another dump or checkpoint, which the caller names. Error: it is a recording, which is played step by step.
Result<std::unique_ptr<Session>> open_other(Context& context, const std::string& path);

/// Runs a command of the program to its exit status. What went wrong is told on standard error.
int run_in_shell(const Parsed& parsed);

}  // namespace msdbg::app
