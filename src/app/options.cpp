// Parses the command line. The prompt's parser is prompt_commands.cpp; both end in parse_command().
#include "app/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>

#include "app/command.h"
#include "app/help.h"
#include "app/manual.h"
#include "app/raw_options.h"
#include "app/shell_completion.h"
#include "app/suggestion.h"
#include "app/version.h"
#include "msdbg/terminal.h"

namespace msdbg::app {
namespace {

Parsed usage_error(const std::string& message, Place place = Place::kShell) {
  Parsed parsed;
  parsed.done = true;
  parsed.exit_status = kExitUsage;
  parsed.err = place == Place::kShell ? fmt::format("msdbg: {}\n", message) : message;
  return parsed;
}

std::string laid_out(const std::string& text) {
  const std::optional<size_t> width = layout_width();
  return width ? wrapped(text, *width) : text;
}

Parsed printed(std::string text) {
  Parsed parsed;
  parsed.done = true;
  parsed.out = std::move(text);
  return parsed;
}

std::string type_help(const CommandEntry& entry, Place place) {
  return place == Place::kPrompt ? fmt::format("; help {} shows what is possible", entry.name)
                                 : fmt::format("\nmsdbg {} --help shows what is possible", entry.name);
}

// -q, -v, -vv, ...
bool is_leading_flag(const std::string& word) {
  return word == "-q" || word == "--quiet" || word == "--verbose" || word == "--no-pager" ||
         (word.size() > 1 && word[0] == '-' && word.find_first_not_of('v', 1) == std::string::npos);
}

// Options may precede the command, as in msdbg -q check; their words are moved behind it.
Result<std::vector<std::string>> take_leading_options(std::vector<std::string>* words) {
  std::vector<std::string> taken;
  size_t at = 0;
  for (; at < words->size() && words->at(at).starts_with('-'); ++at) {
    const std::string& word = words->at(at);
    const std::string bare = word.substr(0, word.find('='));
    const bool valued = bare == "--log" || bare == "--color";
    if (!is_leading_flag(word) && !valued) {
      const std::vector<std::string> known{"--quiet", "--verbose", "--log", "--color", "--no-pager", "--help", "--version"};
      const auto near = nearest(bare, known, 1);
      const std::string hint = near.empty() ? "" : fmt::format("; did you mean '{}'?", near[0]);
      return Status(Code::kInvalidArgument, fmt::format("{} cannot come before a command{}; see msdbg --help", bare, hint));
    }
    taken.push_back(word);
    if (!valued || bare != word) continue;
    if (++at == words->size()) return Status(Code::kInvalidArgument, fmt::format("{} needs a value", bare));
    taken.push_back(words->at(at));
  }
  words->erase(words->begin(), words->begin() + static_cast<std::ptrdiff_t>(at));
  return taken;
}

// --version [--format table|json]
Parsed version_words(std::vector<std::string> words) {
  if (words.size() == 1 && words[0].starts_with("--format=")) words = {"--format", words[0].substr(words[0].find('=') + 1)};
  if (words.empty() || words == std::vector<std::string>{"--format", "table"}) return printed(version_text());
  if (words == std::vector<std::string>{"--format", "json"}) return printed(version_json());
  return usage_error("--version takes only --format table or --format json");
}

Parsed unknown_command(const std::string& word) {
  if (word == "source")
    return usage_error("'source' runs a file of entries at the prompt; msdbg list DUMP shows the program with findings");
  std::vector<std::string> known;
  for (const CommandEntry& entry : command_table()) known.emplace_back(entry.name);
  const auto near = nearest(word, known, 1);
  return usage_error(near.empty() ? fmt::format("'{}' is neither a command nor a dump directory; see msdbg --help", word)
                                  : fmt::format("'{}' is neither a command nor a dump directory; did you mean '{}'?", word, near[0]));
}

}  // namespace

int exit_status_for(const Status& status) {
  switch (status.code()) {
    case Code::kOk: return kExitClean;
    case Code::kInvalidArgument: return kExitUsage;
    case Code::kInterrupted: return kExitInterrupted;
    case Code::kPeerLost: return kExitPeerLost;
    case Code::kInternal: return kExitInternal;
    default: return kExitInput;
  }
}

Parsed parse_command(const CommandEntry& entry, const std::vector<std::string>& raw_words, const Options& base) {
  std::vector<std::string> words = raw_words, behind;
  if (entry.passes_words) {
    const auto divider = std::find(words.begin(), words.end(), "--");
    if (divider != words.end()) {
      behind.assign(divider + 1, words.end());
      words.erase(divider, words.end());
    }
  }
  Parsed parsed;
  parsed.entry = &entry;
  parsed.options = base;
  Options& o = parsed.options;
  RawOptions raw;
  CLI::App app;
  parsed.action = declare_command(entry, Declaration{app, o, raw, base.place});
  std::vector<std::string> reversed(words.rbegin(), words.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    return printed(laid_out(command_help(entry, app, base.place)));
  } catch (const CLI::ParseError& failure) {
    const bool prompt = base.place == Place::kPrompt;
    const std::string why = with_suggestion(app, failure) + type_help(entry, base.place);
    return usage_error(prompt ? fmt::format("{}: {}", entry.name, why) : why, base.place);
  }
  if (entry.passes_words) {
    o.arguments = app.remaining();
    // With -e there is no script: the first word is an ordinary argument.
    if (!o.eval.empty() && !o.script.empty() && entry.name == "run") o.arguments.insert(o.arguments.begin(), std::exchange(o.script, ""));
    o.arguments.insert(o.arguments.end(), behind.begin(), behind.end());
  }
  if (const Status status = finish(entry, raw, o); !status.ok()) return usage_error(status.message(), base.place);
  return parsed;
}

Parsed parse_command_line(const std::vector<std::string>& raw_words) {
  std::vector<std::string> words = raw_words;
  if (words.size() == 1 && words[0] == "--dump-commands") return printed(commands_json());
  if (!words.empty() && words[0] == "--complete") return printed(complete_words({words.begin() + 1, words.end()}));
  if (!words.empty() && words[0] == "--man" && words.size() <= 2) {
    const Result<std::string> page = manual_page(words.size() == 2 ? words[1] : "");
    return page ? printed(*page) : usage_error(page.status().message());
  }
  if (!words.empty() && words[0] == "--version") return version_words({words.begin() + 1, words.end()});
  if (!words.empty() && (words[0] == "--help" || words[0] == "-h")) return printed(laid_out(program_help()));
  const auto leading = take_leading_options(&words);
  if (!leading) return usage_error(leading.status().message());
  // `msdbg DUMP` and plain `msdbg` start the prompt; any other unknown word is a typo.
  const CommandEntry* entry = words.empty() ? nullptr : find_command(words[0]);
  std::error_code ignored;
  if (entry == nullptr && !words.empty() && !std::filesystem::exists(words[0], ignored)) {
    // `msdbg help` and `msdbg help check`, as in other programs.
    if (words[0] != "help" || words.size() > 2) return unknown_command(words[0]);
    if (words.size() == 1) return printed(laid_out(program_help()));
    entry = find_command(words[1]);
    if (entry == nullptr) return unknown_command(words[1]);
    words = {words[1], "--help"};
  }
  if (entry != nullptr) words.erase(words.begin());
  else entry = find_command("repl");
  words.insert(words.begin(), leading->begin(), leading->end());
  return parse_command(*entry, words, {});
}

}  // namespace msdbg::app
