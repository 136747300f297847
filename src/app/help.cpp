#include "app/help.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/describe.h"
#include "app/output.h"
#include "app/raw_options.h"
#include "msdbg/terminal.h"

namespace msdbg::app {
namespace {

constexpr std::string_view kStatuses =
    "\nExit status:\n"
    "  0 clean   1 findings   2 usage   3 input or data error\n"
    "  4 incomplete: --strict, and something was not checked\n"
    "  5 script error   6 training process lost   7 bug in msdbg\n"
    "  130 interrupted\n";

constexpr std::string_view kSelectors =
    "\nSelectors (SEL):\n"
    "  relu                 nodes whose name contains it\n"
    "  'Default/**/Conv2D*' glob: * stops at /, ** does not\n"
    "  =NAME                exactly this node\n"
    "  '/conv[12]/'         regular expression\n"
    "  @weight @gradient @activation @parameter @constant @optimizer @loss @from_weights @scaled @all\n"
    "  op:MatMul  dtype:float16  scope:Default/network  stack:train.py:70\n"
    "  rank:0  graph:0\n"
    "  joined by and, or, not, ( )\n";

constexpr std::string_view kStart =
    "\nExamples:\n"
    "  msdbg origin dumps/lenet            which operator broke first, and why\n"
    "  msdbg check dumps/lenet             is anything wrong in any step\n"
    "  msdbg dumps/lenet                   the prompt\n"
    "  msdbg listen                        hold, step and watch a training process\n"
    "  msdbg demo                          a two-minute tour of a sample dump\n"
    "\nmsdbg COMMAND --help shows the options and examples of a command. -q, -v, --log FILE and --color WHEN may come before it.\n";

constexpr size_t kMostIndent = 30;
constexpr size_t kWidth = 120;  // in a pipe or a file

size_t help_width() { return std::min(layout_width().value_or(kWidth), kWidth); }

using Rows = std::vector<std::pair<std::string, std::string>>;

/// Two columns; long texts continue below their first line.
std::string columns(const Rows& rows, size_t most_indent = kMostIndent) {
  const size_t width = help_width();
  size_t indent = 0;
  for (const auto& [name, text] : rows) indent = std::max(indent, std::min(name.size() + 4, most_indent));
  std::string out;
  for (const auto& [name, text] : rows) {
    std::string line = "  " + name;
    if (text.empty()) {
      out += line + "\n";
      continue;
    }
    if (line.size() + 2 > indent) {
      out += line + "\n";
      line.clear();
    }
    bool begins = true;
    for (std::string_view word : split(text, ' ')) {
      if (!begins && line.size() + 1 + word.size() > width) {
        out += line + "\n";
        line.clear();
        begins = true;
      }
      if (begins) line.resize(std::max(line.size(), indent), ' ');
      line += (begins ? "" : " ") + std::string(word);
      begins = false;
    }
    out += line + "\n";
  }
  return out;
}

std::string option_text(const CommandInfo::Option& option) {
  return fmt::format("{}{}{}", fmt::join(option.names, ", "), option.value.empty() ? "" : " ", option.value);
}

std::string sections(const CommandInfo& info) {
  std::string out;
  Rows words, own, common;
  for (const auto& word : info.words) words.emplace_back(word.name, word.help);
  for (const auto& option : info.options) (option.common ? common : own).emplace_back(option_text(option), option.help);
  if (!words.empty()) out += "\n" + columns(words);
  if (!own.empty()) out += "\nOptions:\n" + columns(own);
  if (!info.verbs.empty()) {
    Rows verbs;
    for (const CommandInfo& verb : info.verbs) verbs.emplace_back(verb.usage.substr(verb.usage.find(' ') + 1), verb.summary);
    out += "\nCommands:\n" + columns(verbs);
  }
  if (!common.empty()) out += "\nCommon options:\n" + columns(common);
  return out;
}

}  // namespace

std::string command_help(const CommandEntry& entry, const CLI::App& app, Place place) {
  CommandInfo info = describe(entry, app, place);
  std::string usage = info.usage, summary = info.summary;
  for (const CLI::App* verb : app.get_subcommands()) {
    for (const CommandInfo& each : info.verbs) {
      if (each.name != verb->get_name()) continue;
      usage = each.usage, summary = each.summary;
      info.words = each.words;
      info.options.insert(info.options.begin(), each.options.begin(), each.options.end());
      info.verbs.clear();
      break;
    }
  }
  const bool shell = place == Place::kShell;
  std::string out = fmt::format("{}\n\nUsage: {}{}\n{}", summary, shell ? "msdbg " : "", usage, sections(info));
  if (!info.examples.empty()) {
    Rows rows;
    for (const auto& [text, comment] : info.examples) rows.emplace_back(text, comment);
    out += "\nExamples:\n" + columns(rows, help_width() / 2);
  }
  if (!info.details.empty()) out += "\n" + info.details + "\n";
  if (entry.selectors) out += kSelectors;
  if (shell) out += kStatuses;
  return out;
}

std::string program_help() {
  std::string out = "msdbg: the scriptable debugger for MindSpore training\n\nUsage: msdbg [COMMAND] [OPTIONS] [DUMP]\n";
  std::vector<std::string_view> groups;
  for (const CommandEntry& entry : command_table()) {
    if (std::find(groups.begin(), groups.end(), entry.group) == groups.end()) groups.push_back(entry.group);
  }
  for (const std::string_view group : groups) {
    Rows rows;
    for (const CommandEntry& entry : command_table()) {
      if (entry.group == group) rows.emplace_back(entry.name, entry.summary);
    }
    out += fmt::format("\n{}:\n{}", group, columns(rows));
  }
  return out + std::string(kStart) + std::string(kStatuses);
}

std::vector<std::pair<std::string, std::string>> exit_statuses() {
  std::vector<std::pair<std::string, std::string>> out;
  std::string_view rest = kStatuses.substr(kStatuses.find(':') + 1);
  while (!(rest = trim(rest)).empty()) {
    const std::string_view entry = rest.substr(0, std::min(rest.find("   "), rest.find('\n')));
    const size_t space = entry.find(' ');
    out.emplace_back(entry.substr(0, space), trim(entry.substr(space)));
    rest.remove_prefix(entry.size());
  }
  return out;
}

namespace {

nlohmann::ordered_json json_of(const CommandInfo& info) {
  nlohmann::ordered_json out{{"name", info.name}, {"usage", info.usage}, {"summary", info.summary}};
  auto words = nlohmann::ordered_json::array(), options = words, examples = words, verbs = words;
  for (const auto& word : info.words) words.push_back({{"name", word.name}, {"help", word.help}});
  for (const auto& option : info.options) {
    options.push_back({{"names", option.names}, {"value", option.value}, {"help", option.help}, {"common", option.common}});
  }
  for (const auto& example : info.examples) examples.push_back({{"words", example.name}, {"comment", example.help}});
  for (const auto& verb : info.verbs) verbs.push_back(json_of(verb));
  out["words"] = words;
  out["options"] = options;
  if (!examples.empty()) out["examples"] = examples;
  if (!verbs.empty()) out["verbs"] = verbs;
  return out;
}

}  // namespace

std::string commands_json() {
  auto list = nlohmann::ordered_json::array();
  for (const CommandEntry& entry : command_table()) {
    nlohmann::ordered_json one = json_of(describe(entry, Place::kShell));
    one["group"] = entry.group;
    one["details"] = entry.details;
    one["also"] = entry.also;
    one["prompt"] = entry.readers == Readers::kBoth ? json_of(describe(entry, Place::kPrompt)) : nlohmann::ordered_json();
    list.push_back(std::move(one));
  }
  return list.dump(1) + "\n";
}

}  // namespace msdbg::app
