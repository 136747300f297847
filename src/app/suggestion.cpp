#include "app/suggestion.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "msdbg/base.h"

namespace msdbg::app {

// CLI11 reports the unknown word; we add the closest option of the command.
std::string with_suggestion(const CLI::App& app, const CLI::ParseError& error) {
  std::string message = error.what();
  const CLI::App* at = &app;
  for (const CLI::App* sub : app.get_subcommands()) at = sub;
  // `ckpt shw FILE`: CLI11 reports the missing subcommand and leaves the unknown word over.
  std::vector<std::string> verbs;
  for (const CLI::App* verb : at->get_subcommands([](const CLI::App*) { return true; })) verbs.push_back(verb->get_name());
  const std::vector<std::string> left = at->remaining();
  const auto word = std::find_if(left.begin(), left.end(), [](const std::string& each) { return !each.starts_with('-'); });
  const bool unknown = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
  if (!verbs.empty() && (word != left.end() || !unknown)) {
    if (word == left.end()) return fmt::format("{} needs one of {}", at->get_name(), fmt::join(verbs, ", "));
    const auto near = nearest(*word, verbs, 1);
    return near.empty() ? fmt::format("'{}' is not one of {}", *word, fmt::join(verbs, ", "))
                        : fmt::format("'{}' is not one of {}; did you mean '{}'?", *word, fmt::join(verbs, ", "), near[0]);
  }
  if (!unknown) return message;
  std::vector<std::string> names;
  for (const CLI::App* with : {&app, at}) {
    for (const CLI::Option* option : with->get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
  }
  for (const std::string& each : left) {
    if (!each.starts_with('-')) return fmt::format("'{}' is one word too many", each);
    const std::string bare = each.substr(0, each.find('='));
    const auto near = nearest(bare, names, 1);
    return near.empty() ? fmt::format("no option '{}'", bare) : fmt::format("no option '{}'; did you mean '{}'?", bare, near[0]);
  }
  return message;
}

}  // namespace msdbg::app
