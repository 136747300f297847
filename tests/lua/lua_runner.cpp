// Runs one Lua file with arguments, like `msdbg run`, without the rest of the program. msdbg.listen returns a training in memory.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "msdbg/dump.h"
#include "script/support.h"

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: lua_runner FILE ARGS...\n");
    return 2;
  }
  msdbg::ScriptOptions options;
  options.open = [](const std::string& path, const msdbg::DumpOptions& dump) { return msdbg::open_dump(path, dump); };
  options.listen = [](const msdbg::ListenOptions&) -> msdbg::Result<std::unique_ptr<msdbg::LiveSession>> {
    return std::unique_ptr<msdbg::LiveSession>(msdbg::testing::small_training());  // three steps, NaN in the third
  };
  auto script = msdbg::Script::create(std::move(options));
  if (!script) {
    std::fprintf(stderr, "%s\n", script.status().message().c_str());
    return 3;
  }
  const msdbg::ScriptOutcome outcome = (*script)->run_file(argv[1], std::vector<std::string>(argv + 2, argv + argc));
  std::fflush(stdout);
  if (!outcome.error.empty()) std::fprintf(stderr, "%s\n", outcome.error.c_str());
  // Without its last line, a test file always succeeds.
  std::ifstream file(argv[1]);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (text.find("describe(") != std::string::npos && text.find("test.finish()") == std::string::npos) {
    std::fprintf(stderr, "%s does not end with: return test.finish()\n", argv[1]);
    return 1;
  }
  return outcome.exit_status;
}
