// Errors, environments, lifetimes: the border between the core and Lua.
#include <cstdio>
#include <fstream>

#include "msdbg/abi.h"
#include "script/support.h"

namespace msdbg::testing {
namespace {

using Border = ScriptTest;

TEST_F(Border, StructSizesAgreeWithTheCompiler) {
  run("local elements = require 'msdbg.tensor_elements'; local ffi = require 'ffi'\n"
      "assert(ffi.sizeof 'struct msdbg_abi' == " +
      std::to_string(sizeof(msdbg_abi)) +
      ")\n"
      "assert(ffi.sizeof 'msdbg_view' == " +
      std::to_string(sizeof(msdbg_view)) +
      ")\n"
      "assert(ffi.sizeof 'msdbg_stats' == " +
      std::to_string(sizeof(msdbg_stats)) +
      ")\n"
      "assert(ffi.offsetof('msdbg_view', 'shape') == " +
      std::to_string(offsetof(msdbg_view, shape)) + ")");
}

TEST_F(Border, OtherAbiVersionIsRefused) {
  const std::string error = failure(
      "local elements = require 'msdbg.tensor_elements'; local ffi = require 'ffi'\n"
      "local other = ffi.new('struct msdbg_abi', { version = 99, size = ffi.sizeof 'struct msdbg_abi' })\n"
      "elements.check_abi(other)");
  EXPECT_TRUE(contains(error, "ABI version 99"));
}

TEST_F(Border, OtherAbiSizeIsRefused) {
  EXPECT_TRUE(contains(failure("local elements = require 'msdbg.tensor_elements'; local ffi = require 'ffi'\n"
                               "elements.check_abi(ffi.new('struct msdbg_abi', { version = 1, size = 8 }))"),
                       "of 8 bytes"));
}

TEST_F(Border, ExceptionOfTheCoreBecomesAnErrorObject) {
  run("local ok, e = pcall(msdbg.open, 'throw')\n"
      "assert(not ok and e.code == 'internal' and e.message == 'a defect', tostring(e))");
}

TEST_F(Border, StatusOfTheCoreKeepsItsCode) {
  run("local ok, e = pcall(msdbg.open, 'nowhere')\n"
      "assert(not ok and e.code == 'not_found' and e.message == 'nowhere: no dump here', tostring(e))\n"
      "assert(e.where == 'test.lua:1', e.where)");
}

TEST_F(Border, ExpectedFailureShowsNoTraceback) {
  EXPECT_EQ(failure("msdbg.open 'nowhere'"), "test.lua:1: nowhere: no dump here");
  EXPECT_EQ(failure("\nmsdbg.fail 'no gradients here'"), "test.lua:2: no gradients here");
}

TEST_F(Border, ErrorIsABugAndShowsItsTraceback) {
  const std::string error =
      failure("local function inner() error 'bad luck' end\nlocal function outer() inner() end\nouter()");
  EXPECT_TRUE(contains(error, "test.lua:1: bad luck\n"));
  EXPECT_TRUE(contains(error, "test.lua:2"));
}

TEST_F(Border, ErrorValuesOfAnyTypeAreShown) {
  EXPECT_TRUE(contains(failure("error { code = 7 }"), "a table"));
  EXPECT_TRUE(contains(failure("error(setmetatable({}, { __tostring = function() return 'from a table' end }))"),
                       "from a table"));
  EXPECT_TRUE(contains(failure("error()"), "nil"));
}

TEST_F(Border, SyntaxErrorNamesFileAndLine) {
  EXPECT_TRUE(contains(failure("local a = 1\nlocal b = = 2"), "test.lua:2:"));
}

TEST_F(Border, UndefinedGlobalRaisesWithTheNearestName) {
  EXPECT_TRUE(contains(failure("prnt(1)"), "test.lua:1: undefined name 'prnt' (did you mean 'print'?)"));
}

TEST_F(Border, AssigningAGlobalRaises) { EXPECT_TRUE(contains(failure("oops = 1"), "assignment to global 'oops'")); }

TEST_F(Border, ScriptsDoNotSeeEachOther) {
  run("rawset(getfenv(1), 'mine', 1)");
  EXPECT_TRUE(contains(failure("print(mine)"), "undefined name 'mine'"));
}

TEST_F(Border, UnknownFieldNamesTheNearest) {
  EXPECT_TRUE(contains(failure("s:wach {}"), "session has no field 'wach' (did you mean 'watch'?)"));
  EXPECT_TRUE(contains(failure("return s:tensor('Log-op0').stat"), "tensor has no field 'stat'"));
  EXPECT_TRUE(contains(failure("return s:tensor('Log-op0').stats.abs_max"), "statistics have no field 'abs_max'"));
  EXPECT_TRUE(contains(failure("return msdbg.opne"), "msdbg has no field 'opne' (did you mean 'open'?)"));
}

TEST_F(Border, ADumpSaysThatItCannotStep) { EXPECT_TRUE(contains(failure("s:step()"), "a dump cannot be driven")); }

TEST_F(Border, UnknownOptionNamesTheNearest) {
  EXPECT_TRUE(
      contains(failure("s:tensor('Log-op0', { stp = 1 })"), "tensor: unknown option 'stp' (did you mean 'step'?)"));
  EXPECT_TRUE(contains(failure("s:watch { on = '**', when = 'TZ', zero_percentage_gt = 3 }"),
                       "did you mean 'zero_percentage_ge'?"));
  EXPECT_TRUE(contains(failure("s:check { step = 0 }"), "did you mean 'steps'?"));
}

TEST_F(Border, WrongTypesNameArgumentAndValue) {
  EXPECT_TRUE(contains(failure("s:tensor(12)"), "tensor: name: a string is expected, not 12"));
  EXPECT_TRUE(
      contains(failure("s:tensor('Log-op0', { step = 'x' })"), "option 'step': a whole number is expected, not 'x'"));
  EXPECT_TRUE(contains(failure("s.nodes('x')"), "a session is expected before ':', not 'x'"));
  EXPECT_TRUE(contains(failure("local t = s:tensor 'Log-op0'; t.step = 3"), "tensor: fields cannot be assigned"));
}

TEST_F(Border, ClosedSessionRefusesEverything) {
  run("local o = msdbg.open 'fake'; local t, n = o:tensor 'Log-op0', o:node 'Log-op0'\n"
      "local w = o:watch { on = '**', when = 'TO' }\n"
      "o:close() o:close()\n"
      "assert(o.state == 'closed' and o.kind == 'dump')\n"
      "for _, f in ipairs { function() return o.steps end, function() return o:nodes() end, function() return t.stats "
      "end,\n"
      "    function() return t.node end, function() return n:output(0) end, function() w:disable() end, function() "
      "o:check() end } do\n"
      "  local ok, e = pcall(f)\n"
      "  assert(not ok and e.message == 'session is closed' and e.code == 'closed', tostring(e))\n"
      "end\n"
      "assert(t.dtype == 'float32' and tostring(o):find 'closed')");
}

TEST_F(Border, ViewOutlivesTensorAndSession) {
  run("local o = msdbg.open 'fake'; local v = o:tensor('MatMul-op0'):view(); o:close(); o = nil\n"
      "collectgarbage() collectgarbage()\n"
      "assert(v[0] == 1 and v[5] == -6 and v.n == 6)");
}

TEST_F(Border, ReleaseLeavesViewsAlone) {
  run("local t = s:tensor 'MatMul-op0'; local v = t:view(); t:release(); collectgarbage()\n"
      "assert(v[4] == 5 and t:at(1, 1) == 5)");
}

TEST_F(Border, ViewsBeyondTheMemoryLimitAreRefusedAndCollectedOnesAreNot) {
  auto options = small_options();
  options.open = [](const std::string&, const DumpOptions&) -> Result<std::unique_ptr<Session>> {
    auto session = std::make_unique<FakeSession>(fake_graph({{"Default/Big-op0", "MatMul"}}));
    session->put("Default/Big-op0", 0, make_tensor(DType::kFloat32, {5 << 20}, std::vector<double>(5 << 20, 1.0)));
    return std::unique_ptr<Session>(std::move(session));
  };
  auto other = Script::create(options);
  ASSERT_TRUE(other.ok());
  const auto dropped = (*other)->run_text(
      "local t = msdbg.open('big', { mem_limit = 64 }):tensor 'Big-op0'; for _ = 1, 50 do t:view() end", "@a.lua");
  EXPECT_EQ(dropped.error, "");
  const auto kept = (*other)->run_text(
      "local t, all = msdbg.open('big', { mem_limit = 64 }):tensor 'Big-op0', {}\n"
      "for i = 1, 50 do all[i] = t:view() end",
      "@b.lua");
  EXPECT_TRUE(contains(kept.error, "live views hold"));
}

TEST_F(Border, AFinalizerCannotBeReached) { run("assert(getmetatable(s) == 'session')"); }

TEST_F(Border, ErrorsInCallbacksKeepTheirPlace) {
  const std::string error = failure("local function f(n)\n  error 'in a callback'\nend\ns:nodes('**'):filter(f)");
  EXPECT_TRUE(contains(error, "test.lua:2: in a callback"));
}

TEST_F(Border, CallbacksMayFailAndThePcallAroundSeesTheObject) {
  run("local ok, e = pcall(function() s:nodes('**'):map(function(n) return n.nmae end) end)\n"
      "assert(not ok and e.message:find(\"did you mean 'name'\", 1, true), tostring(e))");
}

TEST_F(Border, NilMessageCodeForATensorThatWasNotDumped) {
  run("local t, why, code = s:tensor('Log-op0', { step = 7 })\n"
      "assert(t == nil and why:find '^not dumped' and code == 'not_found', tostring(why))");
}

// ---- scripts ---------------------------------------------------------------------------------------------------------

TEST_F(Border, ArgumentsArriveTwice) {
  const auto outcome = script->run_text(
      "local a, b = ...; assert(a == 'one' and b == 'two' and arg[1] == 'one' and arg[2] == 'two'\n"
      "and arg[0] == 'test.lua' and #arg == 2)",
      "@test.lua", {"one", "two"});
  EXPECT_EQ(outcome.error, "");
}

TEST_F(Border, ExitStatusIsTheScripts) {
  EXPECT_EQ(script->run_text("os.exit(7)", "@test.lua").exit_status, 7);
  EXPECT_EQ(script->run_text("os.exit()", "@test.lua").exit_status, 0);
  EXPECT_EQ(script->run_text("os.exit(false)", "@test.lua").exit_status, 1);
  EXPECT_EQ(script->run_text("os.exit(7)", "@test.lua").error, "");
}

TEST_F(Border, PcallDoesNotSwallowExit) {
  EXPECT_EQ(
      script->run_text("for i = 1, 3 do pcall(function() os.exit(3) end) end os.exit(4)", "@test.lua").exit_status, 3);
  EXPECT_EQ(
      script->run_text("local f = coroutine.wrap(function() while true do pcall(os.exit, 6) end end) f()", "@test.lua")
          .exit_status,
      6);
}

TEST_F(Border, ScriptRunsAfterAnExit) {
  EXPECT_EQ(script->run_text("os.exit(3)", "@test.lua").exit_status, 3);
  run("local n = 0; for i = 1, 1000 do n = n + i end; assert(n == 500500)");
}

TEST_F(Border, ExitOutsideTheRangeIsRefused) { EXPECT_TRUE(contains(failure("os.exit(1000)"), "0 to 255")); }

TEST_F(Border, MissingScriptIsAnError) {
  const auto outcome = script->run_file("no-such-file.lua", {});
  EXPECT_EQ(outcome.exit_status, 5);
  EXPECT_TRUE(contains(outcome.error, "no-such-file.lua"));
}

TEST_F(Border, ModulesBesideTheScriptComeFirst) {
  const std::string directory = ::testing::TempDir() + "msdbg_modules";
  std::system(("mkdir -p " + directory).c_str());
  std::ofstream(directory + "/helper.lua") << "local M = {}\nfunction M.answer() return 42 end\nreturn M\n";
  std::ofstream(directory + "/sloppy.lua") << "leak = 1\n";
  std::ofstream(directory + "/main.lua")
      << "#!/usr/bin/env -S msdbg run\nlocal h = require 'helper'\nassert(h.answer() == 42)\n"
         "local ok, e = pcall(require, 'sloppy')\nassert(not ok and tostring(e):find 'sloppy.lua:1')\n";
  const auto outcome = script->run_file(directory + "/main.lua", {});
  EXPECT_EQ(outcome.error, "");
  EXPECT_TRUE(contains(failure("require 'helper2'"), "helper2"));
}

TEST_F(Border, BytecodeIsRefused) {
  run("local text = string.dump(function() return 1 end)\n"
      "local f = assert(io.open(os.tmpname(), 'w')) f:close()");
  const std::string bytecode = "\x1bLJ\x02";
  EXPECT_EQ(script->run_text(bytecode, "@test.lua").exit_status, 5);
}

}  // namespace
}  // namespace msdbg::testing
