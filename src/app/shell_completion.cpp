#include "app/shell_completion.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "app/command.h"
#include "app/describe.h"

namespace msdbg::app {
namespace {

constexpr std::string_view kBash =
    R"(# Completion of msdbg in bash: source this file, or put it into /usr/share/bash-completion/completions.
_msdbg() {
  local line files=0
  COMPREPLY=()
  while IFS= read -r line; do
    if [ "$line" = :files ]; then files=1; else COMPREPLY+=("${line%%$'\t'*}"); fi
  done < <("${COMP_WORDS[0]}" --complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  if [ "$files" = 1 ]; then
    compopt -o filenames 2>/dev/null
    while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "${COMP_WORDS[COMP_CWORD]}")
  fi
}
complete -F _msdbg msdbg
)";

constexpr std::string_view kZsh = R"(#compdef msdbg
# Completion of msdbg in zsh: put this file as _msdbg into a directory of $fpath.
_msdbg() {
  local line files=0
  local -a found
  while IFS= read -r line; do
    if [[ $line == :files ]]; then files=1; else found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}"); fi
  done < <("${words[1]}" --complete "${(@)words[2,CURRENT]}" 2>/dev/null)
  (( $#found )) && _describe msdbg found
  (( files )) && _files
  return 0
}
if [[ $funcstack[1] == _msdbg ]]; then _msdbg "$@"; else compdef _msdbg msdbg; fi
)";

constexpr std::string_view kFish = R"(# Completion of msdbg in fish: put this file into a directory of $fish_complete_path.
function __msdbg_complete
    set -l words (commandline -opc) (commandline -ct)
    for line in ($words[1] --complete $words[2..-1] 2>/dev/null)
        if test "$line" = :files
            __fish_complete_path (commandline -ct)
        else
            echo $line
        end
    end
end
complete -c msdbg -f -a '(__msdbg_complete)'
)";

class Candidates {
 public:
  explicit Candidates(std::string_view prefix) : prefix_(prefix) {}

  void add(std::string_view word, std::string_view description = "") {
    if (word.substr(0, prefix_.size()) == prefix_) text_ += fmt::format("{}\t{}\n", word, description);
  }
  void add_files() { files_ = true; }
  std::string text() const { return text_ + (files_ ? ":files\n" : ""); }

 private:
  std::string_view prefix_;
  std::string text_;
  bool files_ = false;
};

/// Without remarks in parentheses.
std::string plain(std::string_view help) {
  std::string out;
  int depth = 0;
  for (const char c : help) {
    depth += c == '(' ? 1 : 0;
    if (depth == 0) out += c;
    depth -= c == ')' && depth > 0 ? 1 : 0;
  }
  return out;
}

/// The words of "table, json or jsonl".
std::vector<std::string> choices(std::string_view help) {
  std::vector<std::string> out;
  for (std::string_view part : split(help.substr(0, help.find('[')), ',')) {
    while (!part.empty()) {
      part.remove_prefix(std::min(part.find_first_not_of(' '), part.size()));
      const std::string_view word = part.substr(0, part.find(' '));
      if (!word.empty() && word != "or") out.emplace_back(word);
      const size_t next = part.find(" or ");
      if (word != "or" && next == std::string_view::npos) break;
      part.remove_prefix(word == "or" ? word.size() : next + 4);
    }
  }
  return out;
}

const CommandInfo::Option* find_option(const CommandInfo& info, std::string_view name) {
  for (const CommandInfo::Option& option : info.options) {
    if (std::find(option.names.begin(), option.names.end(), name) != option.names.end()) return &option;
  }
  return nullptr;
}

/// Values that an option takes from a fixed list; the help names them.
bool has_choices(const CommandInfo::Option& option) {
  return option.value == "FORMAT" || option.value == "WHEN" || option.value == "MODE" || option.value == "VERDICT" ||
         option.value == "WHICH" || option.value == "SHELL";
}

void add_value(const CommandInfo::Option& option, Candidates& found) {
  if (!has_choices(option)) return found.add_files();
  const std::string text = plain(option.help);
  std::string_view help = text;
  // "its cipher: auto, gcm": the list comes after the colon; "hit or clean: the verdict": before it.
  if (const size_t colon = help.find(": "); colon != std::string_view::npos) {
    const bool after = choices(help.substr(0, colon)).size() < 2;
    help = after ? help.substr(colon + 2) : help.substr(0, colon);
  }
  for (const std::string& word : choices(help.substr(0, help.find(';')))) found.add(word);
}

}  // namespace

Result<std::string> completion_script(std::string_view shell) {
  if (shell == "bash") return std::string(kBash);
  if (shell == "zsh") return std::string(kZsh);
  if (shell == "fish") return std::string(kFish);
  return Status(Code::kInvalidArgument, fmt::format("no completion for the shell '{}': bash, zsh and fish have one", shell));
}

std::string complete_words(const std::vector<std::string>& words) {
  const std::string prefix = words.empty() ? "" : words.back();
  Candidates found(prefix);
  if (words.size() < 2) {
    for (const CommandEntry& entry : command_table()) found.add(entry.name, entry.summary);
    found.add("help", "the commands, or the options of one");
    for (const std::string_view option : {"--help", "--version"}) {
      if (!prefix.empty()) found.add(option);
    }
    found.add_files();
    return found.text();
  }
  if (words[0] == "help") {
    for (const CommandEntry& entry : command_table()) found.add(entry.name, entry.summary);
    return found.text();
  }
  const CommandEntry* named = find_command(words[0]);
  const CommandEntry& entry = named != nullptr ? *named : *find_command("repl");
  CommandInfo info = describe(entry, Place::kShell);
  for (const CommandInfo& verb : info.verbs) {
    if (verb.name == words[1] && words.size() > 2) info.options.insert(info.options.end(), verb.options.begin(), verb.options.end());
    if (words.size() == 2) found.add(verb.name, verb.summary);
  }
  const CommandInfo::Option* option = find_option(info, words[words.size() - 2]);
  if (option != nullptr && !option->value.empty()) {
    add_value(*option, found);
  } else if (prefix.starts_with('-')) {
    for (const CommandInfo::Option& each : info.options) {
      for (const std::string& name : each.names) found.add(name, each.help);
    }
    found.add("--help", "the options and examples of this command");
  } else if (info.verbs.empty() || words.size() > 2) {
    found.add_files();
  }
  return found.text();
}

}  // namespace msdbg::app
