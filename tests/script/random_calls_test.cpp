// Calls every public function with arguments of any type; tests/lua/random_calls.lua makes the calls.
#include <filesystem>
#include <fstream>

#include "script/support.h"
#include "support/temp_dir.h"

namespace msdbg::testing {
namespace {

namespace fs = std::filesystem;

class RandomCalls : public ::testing::TestWithParam<int> {};

TEST_P(RandomCalls, LeaveTheProgramStanding) {
  clear_interrupt();
  const test::TempDir temporary;  // some of the calls write files
  const fs::path before = fs::current_path();
  fs::create_directory(temporary.file("work"));
  fs::current_path(temporary.file("work"));
  auto options = small_options();
  options.listen = [](const ListenOptions&) -> Result<std::unique_ptr<LiveSession>> {
    return std::unique_ptr<LiveSession>(small_training());
  };
  auto script = Script::create(options);
  ASSERT_TRUE(script.ok()) << script.status().message();
  // With MSDBG_TELL_CALLS the last line of the file is the call that ended the program.
  const std::string text =
      "local calls, msdbg = dofile(arg[1]), require 'msdbg'\n"
      "local told\n"
      "local file = os.getenv 'MSDBG_TELL_CALLS' and io.open(os.getenv 'MSDBG_TELL_CALLS', 'w')\n"
      "if file then file:setvbuf 'no' told = function(text) file:write(text, '\\n') end end\n"
      "local sum = calls.run(calls.from_seed(tonumber(arg[2])), { count = 8000, before = told, sessions = {\n"
      "  function() return msdbg.open 'fake' end, function() return msdbg.listen {} end } })\n"
      "assert(sum.calls == 8000 and sum.functions > 300, sum.functions)\n"
      "assert(sum.raised > 2000 and sum.raised < 7000, 'raised: ' .. sum.raised)\n"
      "local s = msdbg.open 'fake'\n"
      "s:watch { on = '**', when = 'TO' }\n"
      "assert(#s:nodes '**' == 5 and #s:check { steps = 'all' }.hits == 2 and s:tensor('MatMul-op0'):view()[5] == -6)";
  ::testing::internal::CaptureStdout();
  const ScriptOutcome outcome =
      (*script)->run_text(text, "@calls.lua", {std::string(MSDBG_SOURCE_DIR) + "/tests/lua/random_calls.lua", std::to_string(GetParam())});
  script->reset();
  ::testing::internal::GetCapturedStdout();
  fs::current_path(before);
  EXPECT_EQ(outcome.error, "");
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomCalls, ::testing::Values(1, 2, 3, 4));

}  // namespace
}  // namespace msdbg::testing
