// msdbg run: a Lua script.
#include <fmt/format.h>

#include <cstdio>

#include "app/output.h"
#include "app/run.h"
#include "app/scripting.h"

namespace msdbg::app {

Result<std::unique_ptr<Script>> make_script(const Options& options) {
  ScriptOptions script_options;
  script_options.open = [](const std::string& path, const DumpOptions& dump) { return open_dump(path, dump); };
  script_options.search_path = options.script_path;
  script_options.check_defaults.semantics = options.semantics;
  script_options.check_defaults.mem_limit_bytes = options.mem_limit_mb << 20;
  script_options.check_defaults.threads = options.threads;
  return Script::create(std::move(script_options));
}

int run_script(const Options& options) {
  auto script = make_script(options);
  if (!script) return report_failure(script.status());
  const ScriptOutcome outcome = (*script)->run_file(options.script, options.arguments);
  std::fflush(stdout);
  if (!outcome.error.empty()) fmt::print(stderr, "msdbg: {}\n", outcome.error);
  return outcome.exit_status;
}

}  // namespace msdbg::app
