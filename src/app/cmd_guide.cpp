// msdbg guide: the playbook for accuracy problems. The checklist itself is Lua (scripts/msdbg/guide.lua).
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "app/command.h"
#include "app/output.h"
#include "app/run.h"
#include "app/scripting.h"
#include "msdbg/html_report.h"

namespace msdbg::app {
namespace {

struct GuideOptions {
  std::string dump, format = "table", loss, reference_loss, report;
  bool yes = false;
};

constexpr std::string_view kProgram = R"(
-- A name without a file is a mistake of the person who typed it: no place in a script, no traceback.
local dump, ask, format, loss, reference_loss, report = ...
local function given(text) return text ~= "" and text or nil end
os.exit(require("msdbg.guide_main").main {
  dump = dump, ask = ask == "ask", format = format, loss = given(loss), reference_loss = given(reference_loss),
  report = given(report),
})
)";

int run_guide(const GuideOptions& guide, const Options& common) {
  if (!guide.report.empty()) {
    const auto form = page_form(guide.report);
    if (!form) return report_failure(Status(form.status().code(), "--report " + form.status().message()));
  }
  auto script = make_script(common);
  if (!script) return report_failure(script.status());
  // Nobody answers a program that reads JSON, or where there is no terminal.
  const bool ask = !guide.yes && guide.format == "table" && ::isatty(STDIN_FILENO) != 0;
  const ScriptOutcome outcome = (*script)->run_text(
      kProgram, "=prompt", {guide.dump, ask ? "ask" : "", guide.format, guide.loss, guide.reference_loss, guide.report});
  std::fflush(stdout);
  if (outcome.error.empty()) return outcome.exit_status;
  print(stderr, fmt::format("msdbg: {}\n", outcome.error));
  // The script is ours: what it did not expect is a defect of msdbg, everything else is about the dump or the files with losses.
  if (outcome.exit_status != kExitScript) return outcome.exit_status;
  return outcome.expected ? kExitInput : kExitInternal;
}

}  // namespace

Action declare_guide(CLI::App& app) {
  auto guide = std::make_shared<GuideOptions>();
  app.add_option("DUMP", guide->dump, "dump directory")->required();
  app.add_flag("-y,--yes", guide->yes, "ask nothing; what only a person can answer stays open, as it does without a terminal");
  app.add_option("--format", guide->format, "table or json; json asks nothing")
      ->capture_default_str()
      ->check(CLI::IsMember({"table", "json"}));
  auto* loss = app.add_option("--loss", guide->loss, "what the training printed: log or csv with its losses")->type_name("FILE");
  app.add_option("--reference-loss", guide->reference_loss, "the same of the run that it should be like")->type_name("FILE")->needs(loss);
  app.add_option("-o,--report", guide->report, "a page of it all: .html or .md; at a terminal you are asked")->type_name("FILE");
  return [guide](const Options& common) { return run_guide(*guide, common); };
}

}  // namespace msdbg::app
