// msdbg list: the user's program with findings and statistics next to its lines.
#include "app/follow_command.h"
#include "app/rules.h"

namespace msdbg::app {
namespace {

struct ListWords {
  SourceOptions source;
  size_t context = 2;
  bool all = false;
};

Result<int> run_list(const ListWords& words, Context& context) {
  const auto opened = context.session();
  if (!opened) return opened.status();
  Session& session = **opened;
  if (const Status known = find_source(session, words.source); !known.ok()) return known;
  const auto result = findings(context, "checking");
  if (!result) return result.status();
  const auto files = annotate_source(session, *result, words.source);
  if (!files) return files.status();
  const std::string text = source_report(session, *files, *result, context.style(), words.all ? SIZE_MAX : words.context);
  if (const Status written = context.write(text); !written.ok()) return written;
  if (result->interrupted) return kExitInterrupted;
  for (const SourceFile& file : *files) {
    if (file.findings > 0) return kExitFindings;
  }
  return is_damaged(session) ? kExitInput : kExitClean;
}

Action declare_list(const Declaration& to) {
  auto words = std::make_shared<ListWords>();
  CLI::App& app = to.app;
  app.add_option("FILE", words->source.file, "end of the path of a file, e.g. train.py; default: every file of the program");
  app.add_option("--root", words->source.root, "directory that holds the files now")->type_name("DIR");
  declare_rules_choice(app, to.options);
  declare_rule_files(app, to.options);
  app.add_option("--context", words->context, "lines around those with operators")->capture_default_str()->type_name("N");
  app.add_flag("--all", words->all, "every line of the file");
  app.add_flag("--framework", words->source.framework, "files inside the framework, too");
  app.add_flag("--wide", to.options.wide, "long lines in full");
  return [words](Context& context) { return run_list(*words, context); };
}

}  // namespace

CommandEntry list_command() {
  return {.name = "list",
          .also = {"l"},
          .group = kFollowGroup,
          .summary = "your program with findings and statistics next to its lines",
          .details = "At the prompt the findings are those of the last check, unless rules are named here.",
          .examples = {{"train.py --root ~/lenet"}, {"--rules TO,TZ --steps 0"}},
          .declare = declare_list,
          .steps = StepsWord::kAllHeld,
          .formats = "table, json, jsonl or markdown",
          .last_format = Format::kMarkdown,
          .complete = "file"};
}

}  // namespace msdbg::app
