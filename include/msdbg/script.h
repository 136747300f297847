// The Lua side: one lua_State, the `msdbg` library, scripts and the prompt's evaluator.
//
// The thread that created the Script owns it and every session it opened. No Lua type appears here.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "msdbg/check.h"
#include "msdbg/dump.h"
#include "msdbg/live.h"

namespace msdbg {

/// Units done, total units, and bytes read; its destruction ends the progress display.
using ProgressCallback = std::function<void(uint64_t done, uint64_t total, uint64_t bytes)>;

/// A command of the application at the prompt, as shown by help and completion.
struct CommandInfo {
  struct Word {
    std::string name, help;
  };
  struct Option {
    std::vector<std::string> names;  ///< `--output`, `-o`
    std::string value, help;         ///< value: "" for a switch
    bool common = false;             ///< every command has it
  };
  std::string name, group, usage, summary, details;
  std::vector<std::string> also;     ///< short names
  std::vector<Word> words;           ///< positional arguments
  std::vector<Option> options;
  std::vector<Word> examples;        ///< each with a comment, or ""
  std::vector<CommandInfo> verbs;    ///< `ckpt show`, `ckpt diff`: the description of each
  std::string complete;              ///< the kind of its first word: node, tensor, selector, file, ...
};

class Script;
struct AnswerRows;  // msdbg/answers.h

/// Commands that the application adds to the prompt. Script::eval() calls both functions on its thread.
struct PromptCommands {
  std::function<std::vector<CommandInfo>()> describe;
  /// Runs a command: its name and its words. Returns the text to show, or the error.
  std::function<Result<std::string>(Script& script, const std::vector<std::string>& words)> run;
};

struct ScriptOptions {
  /// Makes sessions for `msdbg.open`; the application registers it, and tests can pass a fake.
  std::function<Result<std::unique_ptr<Session>>(const std::string& path, const DumpOptions&)> open;
  /// The same for `msdbg.listen`.
  std::function<Result<std::unique_ptr<LiveSession>>(const ListenOptions&)> listen;
  /// Receives events of live sessions on the thread that owns the Script: after each of their commands, and during
  /// Script::report_events(). Without it events are discarded.
  std::function<void(const LiveEvent&)> on_event;
  /// Shows the progress of an entry of the prompt that does `what` with each `unit` ("checking", "tensor"). Empty: shows nothing.
  std::function<ProgressCallback(std::string_view what, std::string_view unit)> progress;
  /// Shows the progress of a running training in one line; "" removes it. Empty: shows nothing.
  std::function<void(const std::string& text)> on_run_status;
  bool pager = false;                    ///< the value of Eval::pager until `set pager` changes it
  PromptCommands commands;
  std::vector<std::string> search_path;  ///< module directories searched before MSDBG_SCRIPT_PATH
  std::optional<bool> colour;            ///< --color; by default a terminal has colour unless NO_COLOR is set
  CheckOptions check_defaults;           ///< semantics, threads, memory
  bool interruptible = true;             ///< compiled loops obey Ctrl-C; costs up to 1.7x on the tightest loops
};

/// The outcome of a script.
struct ScriptOutcome {
  int exit_status = 0;     ///< os.exit(n), or 0; 5 after an error, 6 after a command to a training that had disconnected, 130 after Ctrl-C
  std::string error;       ///< "" or the message, with a traceback unless it is a user error (msdbg.fail)
  bool usage = false;      ///< the error is about arguments passed to the library (code invalid_argument or not_found)
  bool expected = false;   ///< a mistake of the user or in the data, shown without a traceback; otherwise a defect of the script
};

/// The choice of rules on the command line.
struct RuleChoice {
  std::optional<std::string> rules;        ///< `default and not slow`; by default the files' own rules, else the profile's, else `default`
  std::vector<std::string> files;          ///< rule files and directories, searched first
  std::vector<std::string> params;         ///< RULE.NAME=VALUE
  std::string profile;                     ///< "" or a Lua file
  std::string slots;                       ///< "" or an override of the rules' own slots
  bool trust = false;                      ///< also read the rules of the project
  double budget_s = 10;                    ///< time limit for one call of a rule's function
};
struct ChosenRules {
  std::vector<std::string> names, notes;
  std::string asked;                       ///< a description of the choice: "the default rules", "TO,TZ"
};

class Script {
 public:
  static Result<std::unique_ptr<Script>> create(ScriptOptions options);
  ~Script();

  /// Stops its timers, for a program that ends without destroying it: nothing runs in it afterwards, finalizers included.
  void before_exit();

  /// Runs a file ("-" is standard input) in its own environment; `args` are available as `...` and `arg`.
  ScriptOutcome run_file(const std::string& path, const std::vector<std::string>& args);
  /// Whether the file can be read and compiles as Lua; runs nothing.
  ScriptOutcome check_file(const std::string& path);
  ScriptOutcome run_text(std::string_view text, const std::string& chunk_name, const std::vector<std::string>& args = {});

  /// Sets the global `s` of the prompt to an open session, which lives as long as the Script.
  Session& set_session(std::unique_ptr<Session> session);

  /// Reads rule files and checks the choice and all parameters; calls no function of a rule.
  /// Error: kInvalidArgument with the wrong word and the nearest known one.
  Result<ChosenRules> choose_rules(const RuleChoice& choice);
  /// Calls a module function of the library that returns a text: function(session or nil, words...) -> text, exit status, notes.
  struct Answer {
    std::string text;
    int exit_status = 0;
    std::vector<std::string> notes;
  };
  Result<Answer> call(const std::string& module, const std::string& function, const std::vector<std::string>& words);
  /// check() on the session of a command; functions of watchpoints run on this thread.
  Result<CheckResult> check(const std::vector<Watchpoint>& watchpoints, const CheckOptions& options);
  /// Runs the chosen rules on the session of a command, in one pass with `also`. The result includes rules that failed.
  /// Error: that of check().
  Result<CheckResult> check_rules(std::vector<Watchpoint> also, const CheckOptions& options);

  // The session of the running prompt command, with its state; null if none is open.
  Session* session();
  std::optional<int64_t> current_step();
  /// nullopt: all ranks.
  std::optional<int> current_rank();
  void set_current_rank(std::optional<int> rank);
  std::vector<Watchpoint> watchpoints();
  const CheckResult* last_result();
  /// Stores a result as the session's last one. `asked` describes it ("the default rules"), `names` are the rules that ran.
  void keep(const CheckResult& result, const std::string& asked, const std::vector<std::string>& names);

  /// The rows that the running command lists, for `#3` and `_`.
  void list_rows(const AnswerRows& rows);

  enum class EvalState : uint8_t { kDone, kIncomplete, kError, kExit };
  struct Eval {
    EvalState state = EvalState::kDone;
    std::string output;    ///< printed values or the error text, without a final newline
    int exit_status = 0;
    bool pager = false;    ///< a long output may be shown in a pager
  };
  /// A training process that waits for commands of a session of this Script. Valid as long as the session.
  struct Training {
    LiveSession* session;
    bool detached;  ///< the script detached it; it runs on as long as this process answers it
  };
  std::vector<Training> trainings();
  /// Passes the events of all live sessions to ScriptOptions::on_event.
  void report_events();
  /// For poll(): readable when report_events() may have news.
  std::vector<int> event_descriptors();

  /// Evaluates one entry of the prompt: a plain command (`check`, `nodes fc2`), a Lua expression (printed), or statements.
  /// kIncomplete asks for another line.
  Eval eval(const std::string& text);
  /// The current prompt, e.g. `lenet step 1/3 > `.
  std::string prompt();
  /// Candidates for the word that ends at `cursor`.
  std::vector<std::string> complete(const std::string& line, size_t cursor);

  Script(const Script&) = delete;
  Script& operator=(const Script&) = delete;

 private:
  Script();
  struct State;
  std::unique_ptr<State> state_;
};

/// `.msdbg/rules` in the working directory or the nearest parent directory that has one; "" if none. Its rules are read only with
/// consent, because they are programs written by others.
std::string project_rule_directory();

/// Instructions for the user while `session` listens on `bind`: the variables to set on the training side, and a warning if others
/// can reach the port. Several lines, without a final newline.
std::string listening_text(const LiveSession& session, const std::string& bind);

}  // namespace msdbg
