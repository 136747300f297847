#include "app/manual.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "app/command.h"
#include "app/describe.h"
#include "app/help.h"
#include "app/output.h"

namespace msdbg::app {
namespace {

/// Text as the macros read it: a backslash, a hyphen and a leading period mean something there.
std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') out += "\\e";
    else if (c == '-') out += "\\-";
    else out += c;
  }
  size_t at = 0;
  while (at < out.size()) {
    if (out[at] == '.' || out[at] == '\'') out.insert(at, "\\&");
    at = out.find('\n', at);
    if (at == std::string::npos) break;
    ++at;
  }
  return out;
}

void heading(std::string& out, std::string_view name) { out += fmt::format(".SH {}\n", name); }

/// A table as it stands in the help.
void as_typed(std::string& out, std::string_view text) { out += fmt::format(".nf\n{}\n.fi\n", roff(trim(text))); }

void begin_page(std::string& out, std::string_view name, std::string_view summary) {
  std::string upper(name);
  std::transform(upper.begin(), upper.end(), upper.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  out += fmt::format(".TH {} 1 \"\" \"msdbg {}\" \"User Commands\"\n", upper, kVersion);
  heading(out, "NAME");
  out += fmt::format("{} \\- {}\n", roff(name), roff(summary));
}

void add_options(std::string& out, const CommandInfo& info) {
  for (const CommandInfo::Option& option : info.options) {
    std::string names;
    for (const std::string& name : option.names) names += (names.empty() ? "" : ", ") + fmt::format("\\fB{}\\fR", roff(name));
    const std::string value = option.value.empty() ? "" : fmt::format(" \\fI{}\\fR", roff(option.value));
    out += fmt::format(".TP\n{}{}\n{}\n", names, value, roff(option.help));
  }
}

void add_statuses(std::string& out) {
  heading(out, "EXIT STATUS");
  for (const auto& [number, meaning] : exit_statuses()) out += fmt::format(".TP\n.B {}\n{}\n", number, roff(meaning));
}

std::string main_page() {
  std::string out;
  begin_page(out, "msdbg", "scriptable debugger for MindSpore training");
  heading(out, "SYNOPSIS");
  out += ".B msdbg\n[\\fICOMMAND\\fR] [\\fIOPTIONS\\fR] [\\fIDUMP\\fR]\n";
  heading(out, "DESCRIPTION");
  out += roff("msdbg finds the first operator that went wrong in a training: in the dumps that it wrote, or while it runs. "
              "Without a command it opens the prompt. Every command has a manual page of its own: msdbg-COMMAND(1).") + "\n";
  heading(out, "COMMANDS");
  for (const CommandEntry& entry : command_table()) out += fmt::format(".TP\n.B {}\n{}\n", roff(entry.name), roff(entry.summary));
  add_statuses(out);
  return out;
}

std::string command_page(const CommandEntry& entry) {
  const CommandInfo info = describe(entry, Place::kShell);
  std::string out;
  begin_page(out, fmt::format("msdbg-{}", entry.name), entry.summary);
  heading(out, "SYNOPSIS");
  if (info.verbs.empty()) out += fmt::format(".B msdbg\n{}\n", roff(info.usage));
  for (const CommandInfo& verb : info.verbs) out += fmt::format(".B msdbg\n{}\n.br\n", roff(verb.usage));
  if (!info.words.empty()) heading(out, "ARGUMENTS");
  for (const CommandInfo::Word& word : info.words) out += fmt::format(".TP\n.I {}\n{}\n", roff(word.name), roff(word.help));
  for (const CommandInfo& verb : info.verbs) {
    out += fmt::format(".SH COMMAND {}\n{}\n", roff(verb.name), roff(verb.summary));
    for (const CommandInfo::Word& word : verb.words) out += fmt::format(".TP\n.I {}\n{}\n", roff(word.name), roff(word.help));
    add_options(out, verb);
  }
  heading(out, "OPTIONS");
  add_options(out, info);
  if (!info.details.empty()) {
    heading(out, "NOTES");
    out += roff(info.details) + "\n";
  }
  if (!info.examples.empty()) {
    heading(out, "EXAMPLES");
    for (const CommandInfo::Word& example : info.examples) {
      as_typed(out, example.name + (example.help.empty() ? "" : "   # " + example.help));
      out += ".PP\n";
    }
  }
  add_statuses(out);
  heading(out, "SEE ALSO");
  out += ".BR msdbg (1)\n";
  return out;
}

}  // namespace

Result<std::string> manual_page(std::string_view command) {
  if (command.empty()) return main_page();
  const CommandEntry* entry = find_command(command);
  if (entry == nullptr) return Status(Code::kInvalidArgument, fmt::format("no command '{}'; msdbg --help lists them", command));
  return command_page(*entry);
}

}  // namespace msdbg::app
