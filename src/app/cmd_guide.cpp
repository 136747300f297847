// msdbg guide: a guided checklist of the usual causes. The checklist itself is Lua (scripts/msdbg/guide.lua).
#include <fmt/format.h>
#include <unistd.h>

#include "app/follow_command.h"
#include "msdbg/html_report.h"

namespace msdbg::app {
namespace {

struct GuideWords {
  std::string loss, reference_loss, report;
  bool yes = false;
};

Result<int> run_guide(const GuideWords& words, Context& context) {
  const Options& options = context.options();
  if (!words.report.empty()) {
    const auto form = page_form(words.report);
    if (!form) return Status(form.status().code(), "--report " + form.status().message());
  }
  const auto script = context.script();
  if (!script) return script.status();
  if (const auto session = context.session(); !session) return session.status();
  // A program that reads JSON cannot answer, nor can anyone without a terminal.
  const bool json = options.format != Format::kTable;
  const bool ask = !words.yes && !json && !context.at_prompt() && ::isatty(STDIN_FILENO) != 0;
  std::vector<std::string> asked{"again=" + context.typed("guide"), "dump=" + options.dump};
  if (ask) asked.emplace_back("ask=1");
  if (json) asked.emplace_back(options.format == Format::kJsonl ? "format=jsonl" : "format=json");
  for (const auto& [key, value] : {std::pair("loss=", &words.loss), std::pair("reference_loss=", &words.reference_loss),
                                   std::pair("report=", &words.report)}) {
    if (!value->empty()) asked.push_back(key + *value);
  }
  const auto answer = (*script)->call("msdbg.guide_main", "main", asked);
  if (!answer) return answer.status();
  if (const Status written = context.write(answer->text); !written.ok()) return written;
  return answer->exit_status;
}

Action declare_guide(const Declaration& to) {
  auto words = std::make_shared<GuideWords>();
  CLI::App& app = to.app;
  app.add_flag("-y,--yes", words->yes, "ask nothing; what only a person can answer stays open, as it does without a terminal");
  app.add_option("--format", to.raw.format, "table, json or jsonl; only a table asks questions")
      ->default_str("table")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"table", "json", "jsonl"}));
  auto* loss = app.add_option("--loss", words->loss, "what the training printed: log or csv with its losses")->type_name("FILE");
  app.add_option("--reference-loss", words->reference_loss, "the same of the run that it should be like")->type_name("FILE")->needs(loss);
  app.add_option("-o,--report", words->report, "a page of it all: .html or .md; at a terminal you are asked")->type_name("FILE");
  return [words](Context& context) { return run_guide(*words, context); };
}

}  // namespace

CommandEntry guide_command() {
  return {.name = "guide",
          .group = kResultGroup,
          .summary = "it trains but does not learn: a checklist of usual causes",
          .details = "At the prompt it asks nothing: what only a person knows stays open.",
          .examples = {{""}, {"--loss train.log --reference-loss good.log"}, {"--yes --report guide.html"}},
          .declare = declare_guide,
          .formats = "",
          .last_format = Format::kJsonl};
}

}  // namespace msdbg::app
