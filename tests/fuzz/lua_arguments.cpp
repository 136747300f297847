// Calls the public functions of the Lua library with arguments of any type: lua_arguments.lua creates them from the input.
#include <unistd.h>

#include <filesystem>

#include "fuzz/input.h"
#include "script/support.h"

using namespace msdbg;

namespace {

std::unique_ptr<Script> make_script() {
  ScriptOptions options = msdbg::testing::small_options();
  options.listen = [](const ListenOptions&) -> Result<std::unique_ptr<LiveSession>> {
    return std::unique_ptr<LiveSession>(msdbg::testing::small_training());
  };
  options.interruptible = false;
  options.check_defaults.threads = 1;
  auto script = Script::create(std::move(options));
  fuzz::require(fuzz::good(script), "no script");
  return std::move(*script);
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  // Functions with file names find only files that they wrote themselves.
  std::string path = (std::filesystem::temp_directory_path() / "msdbg-fuzz-XXXXXX").string();
  fuzz::require(::mkdtemp(path.data()) != nullptr && ::chdir(path.c_str()) == 0, "no directory to work in");
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::unique_ptr<Script> script = make_script();
  script->set_session(msdbg::testing::small_session());
  const ScriptOutcome outcome = script->run_file(MSDBG_FUZZ_ARGUMENTS, {std::string(fuzz::Input(data, size).rest())});
  fuzz::require(outcome.error.empty(), outcome.error.c_str());
  return 0;
}
