// Where a command runs, what it works on, and where its results go. A command never prints by itself.
#pragma once

#include <functional>
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

  /// The session that the command works on: opened from DUMP on the first call, or the prompt's session.
  virtual Result<Session*> session() = 0;
  /// The virtual machine that runs rules, with session() as its `s`: created on the first call, or the prompt's.
  virtual Result<Script*> script() = 0;

  /// Prompt only: its current step and rank, its watchpoints and the last result. The program has none of these.
  virtual std::optional<int64_t> current_step() { return std::nullopt; }
  virtual std::optional<int> current_rank() { return std::nullopt; }
  virtual std::vector<Watchpoint> watchpoints() { return {}; }
  virtual const CheckResult* last_result() { return nullptr; }
  /// Makes this the last result.
  virtual void keep(const CheckResult&, const std::string& /*asked*/, const std::vector<std::string>& /*names*/) {}

  /// The rows that the result lists, for `#3` at the prompt: `function` of scripts/msdbg/repl_rows.lua with its words.
  virtual void list_rows(const std::string& /*function*/, const std::vector<std::string>& /*words*/) {}

  /// The same for a list of its answer.
  virtual void list_rows(const AnswerRows&) {}

  ReportStyle style() const;
  /// How a command is typed here: `msdbg doctor dumps/lenet` or `doctor`.
  std::string typed(std::string_view command) const;
  /// Writes the result to -o FILE, standard output or the prompt.
  virtual Status write(std::string_view text) = 0;
  /// The same for a long result: `make` gives it to its argument, piece by piece.
  virtual Status write_pieces(const std::function<Status(const TextSink&)>& make);
  /// Prints a line for people in addition to the result; nothing with --quiet.
  virtual void note(std::string_view text) = 0;

 private:
  const Options& options_;
};

/// The program's context: results go to standard output, notes to standard error.
class ShellContext : public Context {
 public:
  using Context::Context;
  Result<Session*> session() override;
  Result<Script*> script() override;
  Status write(std::string_view text) override;
  Status write_pieces(const std::function<Status(const TextSink&)>& make) override;
  void note(std::string_view text) override;
  /// When the command is done and the program will end. Nothing may be asked of the context afterwards.
  void leave();

 private:
  std::unique_ptr<Script> script_;
  std::unique_ptr<Session> own_;  ///< until the script owns it
  Session* session_ = nullptr;
};

/// Opens another dump or checkpoint by its path. Error: a recording, which is played step by step.
Result<std::unique_ptr<Session>> open_other(Context& context, const std::string& path);

/// Runs a command of the program and returns its exit status. Errors are printed on standard error.
int run_in_shell(const Parsed& parsed);

}  // namespace msdbg::app
