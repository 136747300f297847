// msdbg rules: lists, explains and tests rules, and creates new ones.
#include <fmt/format.h>

#include "app/follow_command.h"
#include "app/rules.h"

namespace msdbg::app {
namespace {

struct RulesWords {
  std::string verb = "list";
  std::vector<std::string> names;
};

std::string_view format_word(Format format) { return format == Format::kJson ? "json" : format == Format::kJsonl ? "jsonl" : "table"; }

Result<int> run_rules(const RulesWords& words, Context& context) {
  const Options& options = context.options();
  const auto script = context.script();
  if (!script) return script.status();
  std::vector<std::string> arguments{"verb=" + words.verb, fmt::format("format={}", format_word(options.format)),
                                     fmt::format("budget={}", options.rule_budget_s)};
  for (const std::string& name : words.names) arguments.push_back("name=" + name);
  for (const std::string& file : options.rule_files) arguments.push_back("file=" + file);
  if (options.rules_given) arguments.push_back("rules=" + options.rules);
  if (context.at_prompt() ? options.trust : trusts_project_rules(options.trust)) arguments.emplace_back("trust=1");
  // A new rule file must not exist yet.
  const bool makes = words.verb == "new" && !options.output_file.empty();
  if (makes) arguments.push_back("output=" + options.output_file);
  if (!context.style().colour) arguments.emplace_back("plain=1");
  if (const size_t width = context.style().columns(); width != ReportStyle::kAnyWidth) arguments.push_back(fmt::format("width={}", width));
  const auto answer = (*script)->call("msdbg.rule_commands", "main", arguments);
  if (!answer) {
    // A wrong name is a usage error.
    const Status& why = answer.status();
    return why.code() == Code::kNotFound ? Status(Code::kInvalidArgument, why.message()) : why;
  }
  for (const std::string& note : answer->notes) context.note(note);
  if (makes) return answer->exit_status;
  if (const Status written = context.write(answer->text); !written.ok()) return written;
  return answer->exit_status;
}

Action declare_rules(const Declaration& to) {
  auto words = std::make_shared<RulesWords>();
  to.app.require_subcommand(0, 1);
  to.app.fallthrough();
  to.app.add_option("--rules", to.options.rules, "list: only those, e.g. 'default and not slow'")
      ->type_name("EXPR")
      ->each([&options = to.options](const std::string&) { options.rules_given = true; });
  declare_rule_files(to.app, to.options);
  const auto verb = [&to, words](const char* name, const char* summary) {
    CLI::App* sub = to.app.add_subcommand(name, summary);
    sub->fallthrough();
    sub->callback([words, name] { words->verb = name; });
    return sub;
  };
  verb("list", "names, tags, summaries, and where the rules come from");
  verb("info", "all about one rule")->add_option("NAME", words->names, "rule")->required()->expected(1);
  verb("test", "run the cases of rules; status 1 when one fails")
      ->add_option("NAMES", words->names, "rules, rule files or directories; default: all");
  verb("new", "write a commented rule to start from")->add_option("NAME", words->names, "what it will be called")->required()->expected(1);
  return [words](Context& context) { return run_rules(*words, context); };
}

}  // namespace

CommandEntry rules_command() {
  return {.name = "rules",
          .group = kFollowGroup,
          .summary = "the rules that check can run: list, info, test, new",
          .examples = {{"", "all of them"},
                       {"list --rules 'default and not slow'"},
                       {"info dead-relu"},
                       {"new my-rule -o my-rule.lua"}},
          .declare = declare_rules,
          .first = FirstWord::kNone,
          .complete = "rule"};
}

}  // namespace msdbg::app
