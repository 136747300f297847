// Command lines of the prompt. The first byte selects the session: a dump in memory or a training. Each line is a byte for the
// command and its words; excludes commands that run Lua, write files or wait for a user. Also completes each line.
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "fuzz/input.h"
#include "fuzz/prompt_commands.h"
#include "script/support.h"

using namespace msdbg;

namespace {

/// Commands with file names find only files that they wrote themselves.
void enter_empty_directory() {
  std::string path = (std::filesystem::temp_directory_path() / "msdbg-fuzz-XXXXXX").string();
  fuzz::require(::mkdtemp(path.data()) != nullptr && ::chdir(path.c_str()) == 0, "no directory to work in");
}

/// Whether the line may send the output to a file or a program.
bool may_redirect(const std::string& line) {
  for (size_t i = 1; i < line.size(); ++i) {
    if ((line[i] == '|' || line[i] == '>') && std::isspace(static_cast<unsigned char>(line[i - 1])) != 0) return true;
  }
  return false;
}

/// Words that name a file to write.
bool writes(const std::string& word) {
  if (word.starts_with("--")) return word.starts_with("--output") || word.starts_with("--bless") || word.starts_with("--report");
  return word.starts_with('-') && word.find('o') != std::string::npos;
}

PromptCommands commands_that_only_read() {
  PromptCommands commands = app::prompt_commands({});
  const auto run = commands.run;
  commands.run = [run](Script& script, const std::vector<std::string>& words) -> Result<std::string> {
    if (std::any_of(words.begin(), words.end(), writes)) return Status(Code::kInvalidArgument, "not here");
    return run(script, words);
  };
  return commands;
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  enter_empty_directory();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  ScriptOptions options = msdbg::testing::small_options();
  options.colour = true;
  options.commands = commands_that_only_read();
  options.interruptible = false;
  options.check_defaults.threads = 1;
  auto script = Script::create(std::move(options));
  fuzz::require(fuzz::good(script), "no script");
  if (input.byte() % 2 == 0) (*script)->set_session(msdbg::testing::small_session());
  else (*script)->set_session(msdbg::testing::small_training());
  for (int lines = 0; lines < 8 && !input.empty(); ++lines) {
    const std::string command(fuzz::kCommands[input.below(std::size(fuzz::kCommands))]);
    const std::string line = command + " " + std::string(input.line());
    // A line of Lua could do anything.
    if (line.find_first_of("({\"'[") != std::string::npos && (command == "display" || command == "x")) continue;
    if (may_redirect(line)) continue;
    const Script::Eval eval = (*script)->eval(line);
    // An answer may quote the line.
    const bool quoted = line.find("internal error") != std::string::npos;
    fuzz::require(quoted || eval.output.find("internal error") == std::string::npos, eval.output.c_str());
    (void)(*script)->complete(line, line.size());
    if (eval.state == Script::EvalState::kExit) break;
    (void)(*script)->prompt();
  }
  return 0;
}
