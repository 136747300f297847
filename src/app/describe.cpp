#include "app/describe.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "app/help.h"
#include "app/raw_options.h"

namespace msdbg::app {
namespace {

constexpr std::string_view kSampleDump = "dumps/lenet";

void read_options(const CLI::App& app, CommandInfo* info) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) {
      info->words.push_back({option->get_name(), option->get_description()});
      const bool many = option->get_expected_max() > 1;
      const std::string word = option->get_name() + (many ? "..." : "");
      info->usage += option->get_required() ? " " + word : fmt::format(" [{}]", word);
      continue;
    }
    if (option->get_group().empty()) continue;  // internal: passed between two msdbg processes
    CommandInfo::Option one;
    for (const std::string& name : option->get_snames()) one.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) one.names.push_back("--" + name);
    if (one.names.empty() || one.names.back() == "--help") continue;
    if (option->get_type_size() > 0) one.value = option->get_type_name().substr(0, option->get_type_name().find(':'));
    one.help = option->get_description();
    if (!option->get_default_str().empty() && !one.value.empty()) one.help += fmt::format(" [{}]", option->get_default_str());
    one.common = option->get_group() == kCommonGroup;
    info->options.push_back(std::move(one));
  }
}

}  // namespace

CommandInfo describe(const CommandEntry& entry, const CLI::App& app, Place place) {
  CommandInfo info;
  info.name = entry.name;
  info.also.assign(entry.also.begin(), entry.also.end());
  info.group = entry.group;
  info.summary = entry.summary;
  info.details = entry.details;
  info.complete = entry.complete;
  read_options(app, &info);
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    CommandInfo verb;
    verb.name = sub->get_name();
    verb.summary = sub->get_description();
    read_options(*sub, &verb);
    verb.usage = fmt::format("{} {}{}", entry.name, verb.name, verb.usage);
    info.verbs.push_back(std::move(verb));
  }
  const std::string_view verb = info.verbs.empty() ? "" : app.get_require_subcommand_min() == 0 ? " [COMMAND]" : " COMMAND";
  info.usage = fmt::format("{}{}{}{}", entry.name, verb, info.options.empty() ? "" : " [OPTIONS]", info.usage);
  const bool shell = place == Place::kShell;
  for (const Example& example : entry.examples) {
    std::string text(shell ? "msdbg " : "");
    text += entry.name;
    if (shell && entry.first != FirstWord::kNone) text += fmt::format(" {}", kSampleDump);
    if (!example.words.empty()) text += fmt::format(" {}", example.words);
    info.examples.push_back({std::move(text), std::string(example.comment)});
  }
  return info;
}

CommandInfo describe(const CommandEntry& entry, Place place) {
  Options options;
  options.place = place;
  RawOptions raw;
  CLI::App app;
  declare_command(entry, Declaration{app, options, raw, place});
  return describe(entry, app, place);
}

Action declare_command(const CommandEntry& entry, const Declaration& to) {
  CLI::App& app = to.app;
  app.name(std::string(entry.name));
  app.set_help_flag("-h,--help", "this text");
  if (entry.first != FirstWord::kNone && to.place == Place::kShell) {
    app.add_option("DUMP", to.options.dump, std::string(entry.first_help))->required(entry.first == FirstWord::kDump);
  }
  Action action = entry.declare(to);
  if (entry.steps != StepsWord::kNone) add_steps(entry, to);
  add_common(entry, to);
  for (CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) verb->set_help_flag("-h,--help", "this text");
  return action;
}

void Declaration::add_dump(CLI::App& verb) const {
  if (place == Place::kShell) verb.add_option("DUMP", options.dump, "dump directory")->required();
}

}  // namespace msdbg::app
