// The Lua side: one lua_State, the `msdbg` library, scripts and the evaluator of the prompt.
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

/// What is done, of how many, and the bytes read for it; its end is the end of the work.
using ProgressCallback = std::function<void(uint64_t done, uint64_t total, uint64_t bytes)>;

/// What help and completion say of a command that the application gives to the prompt.
struct CommandInfo {
  struct Word {
    std::string name, help;
  };
  struct Option {
    std::vector<std::string> names;  ///< `--output`, `-o`
    std::string value, help;         ///< value: "" for a switch
    bool common = false;             ///< every command takes it
  };
  std::string name, group, usage, summary, details;
  std::vector<std::string> also;     ///< short names
  std::vector<Word> words;           ///< that stand in their places
  std::vector<Option> options;
  std::vector<Word> examples;        ///< each with a comment, or ""
  std::vector<CommandInfo> verbs;    ///< `ckpt show`, `ckpt diff`: what is said of each
  std::string complete;              ///< the kind of its first word: node, tensor, selector, file, ...
};

class Script;

/// Commands that the application adds to the prompt. Both functions are called inside Script::eval(), on its thread.
struct PromptCommands {
  std::function<std::vector<CommandInfo>()> describe;
  /// Runs a command: its name and its words. The text that the prompt shows, or the mistake.
  std::function<Result<std::string>(Script& script, const std::vector<std::string>& words)> run;
};

struct ScriptOptions {
  /// Makes sessions for `msdbg.open`; the application registers it, and tests can pass a fake.
  std::function<Result<std::unique_ptr<Session>>(const std::string& path, const DumpOptions&)> open;
  /// The same for `msdbg.listen`.
  std::function<Result<std::unique_ptr<LiveSession>>(const ListenOptions&)> listen;
  /// Receives what live sessions report, on the thread that owns the Script: after each of their commands, and by
  /// Script::report_events(). Without it events are dropped.
  std::function<void(const LiveEvent&)> on_event;
  /// Shows how far an entry of the prompt is that does `what` with each `unit` ("checking", "tensor"). Empty: nothing is shown.
  std::function<ProgressCallback(std::string_view what, std::string_view unit)> progress;
  /// Shows how far a running training is, in one line; "" takes it away. Empty: nothing is shown.
  std::function<void(const std::string& text)> on_run_status;
  bool pager = false;                    ///< what Eval::pager is until `set pager` changes it
  PromptCommands commands;
  std::vector<std::string> search_path;  ///< directories of modules, before MSDBG_SCRIPT_PATH
  std::optional<bool> colour;            ///< --color; without it a terminal has colour unless NO_COLOR is set
  CheckOptions check_defaults;           ///< semantics, threads, memory
  bool interruptible = true;             ///< compiled loops obey Ctrl-C; costs up to 1.7x on the tightest loops
};

/// How a script ended.
struct ScriptOutcome {
  int exit_status = 0;     ///< os.exit(n), or 0, or 5 after an error, 6 when a training was gone that it sent a command, 130 after Ctrl-C
  std::string error;       ///< "" or the message, with a traceback unless it was the user's mistake (msdbg.fail)
  bool usage = false;      ///< the error is about words that the library was given (code invalid_argument or not_found)
  bool expected = false;   ///< a mistake of the user or in the data, shown without a traceback; else a defect of the script
};

/// Which rules, as the command line says it.
struct RuleChoice {
  std::optional<std::string> rules;        ///< `default and not slow`; without it the files' own rules, else the profile's, else `default`
  std::vector<std::string> files;          ///< rule files and directories, searched first
  std::vector<std::string> params;         ///< RULE.NAME=VALUE
  std::string profile;                     ///< "" or a Lua file
  std::string slots;                       ///< "" or instead of what the rules say
  bool trust = false;                      ///< read the rules of the project, too
  double budget_s = 10;                    ///< longest time that one call of a rule's function may take
};
struct ChosenRules {
  std::vector<std::string> names, notes;
  std::string asked;                       ///< what was chosen, for people: "the default rules", "TO,TZ"
};

class Script {
 public:
  static Result<std::unique_ptr<Script>> create(ScriptOptions options);
  ~Script();

  /// Runs a file ("-" is standard input) in an environment of its own; `args` arrive as `...` and `arg`.
  ScriptOutcome run_file(const std::string& path, const std::vector<std::string>& args);
  /// Whether the file can be read and is Lua; nothing of it runs.
  ScriptOutcome check_file(const std::string& path);
  ScriptOutcome run_text(std::string_view text, const std::string& chunk_name, const std::vector<std::string>& args = {});

  /// Makes an open session the global `s` of the prompt; it lives as long as the Script.
  Session& set_session(std::unique_ptr<Session> session);

  /// Reads rule files and checks the choice and all parameters; no function of a rule is called.
  /// Error: kInvalidArgument naming the word that is wrong and the nearest known one.
  Result<ChosenRules> choose_rules(const RuleChoice& choice);
  /// A function of a module of the library that makes a text: function(session or nil, words...) -> text, exit status, notes.
  struct Answer {
    std::string text;
    int exit_status = 0;
    std::vector<std::string> notes;
  };
  Result<Answer> call(const std::string& module, const std::string& function, const std::vector<std::string>& words);
  /// check() on the session of a command; functions of watchpoints run on this thread.
  Result<CheckResult> check(const std::vector<Watchpoint>& watchpoints, const CheckOptions& options);
  /// Runs the chosen rules on the session of a command, in one pass with `also`. Rules that break are in the result.
  /// Error: that of check().
  Result<CheckResult> check_rules(std::vector<Watchpoint> also, const CheckOptions& options);

  // The session that the command which runs at the prompt works on, null when none is open, and what belongs to it.
  Session* session();
  std::optional<int64_t> current_step();
  std::vector<Watchpoint> watchpoints();
  const CheckResult* last_result();
  /// Makes a result the session's last one. `asked` is for people ("the default rules"), `names` are the rules that ran.
  void keep(const CheckResult& result, const std::string& asked, const std::vector<std::string>& names);

  enum class EvalState : uint8_t { kDone, kIncomplete, kError, kExit };
  struct Eval {
    EvalState state = EvalState::kDone;
    std::string output;    ///< printed values or the error text, without a final newline
    int exit_status = 0;
    bool pager = false;    ///< a long output may go through a pager
  };
  /// A training process that waits for commands of a session of this Script. Ends with the session.
  struct Training {
    LiveSession* session;
    bool detached;  ///< detached by the script; it keeps running as long as this process answers it
  };
  std::vector<Training> trainings();
  /// Hands the events of all live sessions to ScriptOptions::on_event.
  void report_events();
  /// For poll(): readable when report_events() may have news.
  std::vector<int> event_descriptors();

  /// One entry of the prompt: a plain command (`check`, `nodes fc2`), a Lua expression (printed), or statements.
  /// kIncomplete asks for another line.
  Eval eval(const std::string& text);
  /// What the prompt shows now, e.g. `lenet step 1/3 > `.
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

/// `.msdbg/rules` of the working directory or the nearest directory above that has one; "" without. Its rules are read only with
/// consent, since they are programs written by others.
std::string project_rule_directory();

/// What a person needs to know while `session` listens on `bind`: the variables to set on the training side and, where
/// others can reach the port, a warning. Several lines, without a final newline.
std::string listening_text(const LiveSession& session, const std::string& bind);

}  // namespace msdbg
