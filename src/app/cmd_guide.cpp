// msdbg guide: the playbook for accuracy problems. The talk itself is Lua (scripts/msdbg/guide.lua).
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "app/command.h"
#include "app/output.h"
#include "app/run.h"
#include "app/scripting.h"

namespace msdbg::app {
namespace {

struct GuideOptions {
  std::string dump, format = "table";
  bool yes = false;
};

constexpr std::string_view kProgram = R"(
local dump, ask, format = ...
os.exit(require("msdbg.guide_main").main { dump = dump, ask = ask == "ask", format = format })
)";

int run_guide(const GuideOptions& guide, const Options& common) {
  auto script = make_script(common);
  if (!script) return report_failure(script.status());
  // Nobody answers a program that reads JSON.
  const bool ask = !guide.yes && guide.format == "table";
  const ScriptOutcome outcome = (*script)->run_text(kProgram, "guide", {guide.dump, ask ? "ask" : "", guide.format});
  std::fflush(stdout);
  if (!outcome.error.empty()) fmt::print(stderr, "msdbg: {}\n", outcome.error);
  return outcome.exit_status;
}

}  // namespace

Action declare_guide(CLI::App& app) {
  auto guide = std::make_shared<GuideOptions>();
  app.add_option("DUMP", guide->dump, "dump directory")->required();
  app.add_flag("-y,--yes", guide->yes, "ask nothing; questions that only a person can answer stay open");
  app.add_option("--format", guide->format, "table or json; json asks nothing")->capture_default_str()->check(CLI::IsMember({"table", "json"}));
  return [guide](const Options& common) { return run_guide(*guide, common); };
}

}  // namespace msdbg::app
