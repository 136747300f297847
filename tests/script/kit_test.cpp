// Values that scripts pass to bindings are checked before use, and keep their meaning.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "script/support.h"
#include "support/temp_dir.h"

namespace msdbg::testing {
namespace {

namespace fs = std::filesystem;

using Kit = ScriptTest;

TEST_F(Kit, WhatIsNoListRaises) {
  const std::pair<const char*, const char*> kCalls[] = {
      {"core.memory_session('dump', 3)", "memory_session: tensors: a list is expected, not 3"},
      {"core.memory_session('dump', { 3 })", "a table of named options is expected, not 3"},
      {"core.memory_session('dump', { { node = 'a', shape = 3, values = { 1 } } })", "case: option 'shape': a list is expected, not 3"},
      {"core.memory_session('dump', { { node = 'a', inputs = 'b', values = { 1 } } })", "option 'inputs': a list is expected, not 'b'"},
      {"core.memory_session('dump', { { node = 'a', values = { 'x' } } })", "option 'values': element 1: a number is expected, not 'x'"},
      {"core.memory_session('dump', { { node = 'a', slot = 'output:5000', values = { 1 } } })", "a case has slots 0 to 999"},
      {"msdbg.series.compare({ steps = 3, values = { 1, 2 } }, { 1, 2 })", "series.compare: A: option 'steps': a list is expected, not 3"},
      {"msdbg.series.compare({ 1, 2 }, { steps = { 1 }, values = 'abc' })", "series.compare: B: option 'values': a list is expected"},
      {"msdbg.series.compare({ steps = { 1 }, values = { 1, 2 } }, { 1, 2 })", "1 steps, but 2 values"},
      {"core.run_rules(s, 3, {})", "run_rules: instances: a list is expected, not 3"},
      {"core.run_rules(s, {}, 'x')", "run_rules: problems: a list is expected, not 'x'"},
      {"core.run_rules(s, { 3 }, {})", "element 1: a table is expected, not 3"},
      {"core.nearest('x', 3)", "nearest: words: a list is expected, not 3"},
      {"msdbg.report(s, msdbg.origin(s)):html(nil, { guide = 3 })", "report: option 'guide': a list is expected, not 3"},
      {"msdbg.report(s, msdbg.origin(s)):html(nil, { guide = { 3 } })", "option 'guide': element 1: a table of named options is expected"},
      {"s:check { steps = { 1, 'x' } }", "option 'steps': element 2: a whole number is expected, not 'x'"},
  };
  for (const auto& [call, message] : kCalls) {
    EXPECT_TRUE(contains(failure(std::string("local core = require 'msdbg.core' ") + call), message)) << call;
  }
}

TEST_F(Kit, RulesWithoutAFunctionAreProblems) {
  run("local r = require('msdbg.core').run_rules(s, { { rule = 'empty', on = '**' }, { rule = 'nowhere' } }, {})\n"
      "assert(#r.rule_problems == 2 and r.rule_problems[1].reason:find(\"neither 'when' nor 'check'\"))\n"
      "assert(r.rule_problems[2].reason:find(\"field 'on' is missing\"))");
}

TEST_F(Kit, ARuleOnWholeStepsIsNotCalledForTensors) {
  run("local core, rule = require 'msdbg.core', require 'msdbg.rule'\n"
      "local ends = 0\n"
      "local made = rule { name = 'r', summary = 'a rule', step_end = function() ends = ends + 1 end }\n"
      "local instance = require('msdbg.rule_run').instance(s, made, {})\n"
      "assert(instance.check == nil)\n"
      "local r = core.run_rules(s, { instance }, {})\n"
      "assert(#r.rule_problems == 0 and #r.hits == 0 and #r.not_checked == 0 and ends == #s.steps, tostring(r))");
}

TEST_F(Kit, TensorsOfAnotherSessionAreNoPlacesInThisOne) {
  run("local core, other = require 'msdbg.core', msdbg.open 'fake'\n"
      "local t = other:tensor 'Log-op0'\n"
      "local function finish() return { { tensor = t } } end\n"
      "local r = core.run_rules(s, { { rule = 'x', on = '**', check = function() end, finish = finish } }, {})\n"
      "assert(#r.hits == 0 and r.rule_problems[1].reason:find 'another session', tostring(r))\n"
      "local ok, e = pcall(msdbg.propagation, s, t)\n"
      "assert(not ok and e.message:find 'another session', tostring(e))");
}

TEST_F(Kit, ACaseThatIsWrongFailsAndEndsNothing) {
  run("local cases = require 'msdbg.rule_cases'\n"
      "for _, case in ipairs { { x = { 1 }, shape = 3, expect = 'hit' }, { x = { 1 }, inputs = 'Default/conv', expect = 'hit' } } do\n"
      "  local made = require 'msdbg.rule' { name = 'r', summary = 'a rule', when = 'max(x) > 0', cases = { case } }\n"
      "  local report = cases.test(made)\n"
      "  assert(#report.failures == 1 and report.failures[1].actual:find 'a list is expected', report.failures[1].actual)\n"
      "end");
}

TEST_F(Kit, UnknownOptionsNameTheNearestAndTheFirstByName) {
  EXPECT_TRUE(contains(failure("s:tensor('Log-op0', { zzz = 1, stp = 1 })"), "tensor: unknown option 'stp' (did you mean 'step'?)"));
  EXPECT_TRUE(contains(failure("s:tensor('Log-op0', { 'step' })"), "tensor: options are named; 1 is not a name"));
  EXPECT_TRUE(contains(failure("s:tensor('Log-op0', { rank = -1 })"), "tensor: option 'rank': 0 to 2147483647 is expected, not -1"));
}

TEST_F(Kit, MetamethodsOfArgumentsDoNotRun) {
  run("local trap = setmetatable({}, { __index = function() error 'ran' end, __len = function() error 'ran' end })\n"
      "assert(s:tensor('Log-op0', trap).step == 0 and #s:nodes({ 'op:Log', trap and nil }) == 1)");
}

TEST_F(Kit, AnInvariantOfTheCoreBecomesAnErrorObject) {
  auto options = small_options();
  options.open = [](const std::string&, const DumpOptions&) -> Result<std::unique_ptr<Session>> {
    MSDBG_CHECK(std::getenv("PATH") == nullptr);
    return Status(Code::kNotFound, "no PATH");
  };
  auto other = Script::create(options);
  ASSERT_TRUE(other.ok());
  const auto outcome = (*other)->run_text(
      "for _ = 1, 3 do\n"
      "  local ok, e = pcall(msdbg.open, 'x') assert(not ok and e.code == 'internal' and e.message:find 'PATH', tostring(e))\n"
      "end",
      "@a.lua");
  EXPECT_EQ(outcome.error, "");
}

TEST_F(Kit, TablesWithOtherKeysAreNoArrays) {
  EXPECT_TRUE(contains(failure("require('msdbg.json').encode { [0] = 1, 2 }"), "exactly 1..n"));
  EXPECT_TRUE(contains(failure("local t = { nil, 2 } t[0] = 1 require('msdbg.json').encode(t)"), "exactly 1..n"));
  run("assert(require('msdbg.json').encode { 1, { 2, 3 } } == '[1,[2,3]]')");
}

// ---- node sets -----------------------------------------------------------------------------------------------------

TEST_F(Kit, NodeSetsKeepRankAndGraph) {
  std::vector<GraphPtr> graphs;
  for (int rank = 0; rank < 2; ++rank) graphs.push_back(fake_graph({{"Default/a-op0", "Log"}, {"Default/b-op0", "Relu"}}, rank));
  auto session = std::make_unique<FakeSession>(graphs);
  for (int rank = 0; rank < 2; ++rank) {
    for (const char* name : {"Default/a-op0", "Default/b-op0"}) session->put(session->id(name, 0, {}, 0, rank), f32({NAN, 1}));
  }
  script->set_session(std::move(session));
  run("local function of_one(n) return n.rank == 1 end\n"
      "local w = s:watch { on = s:nodes('**'):filter(of_one), when = 'TO' }\n"
      "assert(w.nodes == 2 and w.on == '(=Default/a-op0 and rank:1) or (=Default/b-op0 and rank:1)', w.on)\n"
      "local r = s:check()\n"
      "assert(#r.hits == 2 and r.hits[1].rank == 1 and r.hits[2].rank == 1, tostring(r))\n"
      "w:remove()\n"
      "w = s:watch { on = s:node('a-op0', { rank = 1 }), when = 'TO' }\n"
      "assert(w.nodes == 1 and s:check().hits[1].rank == 1)\n"
      "assert(#s:nodes(w.on) == 1 and s:nodes(w.on)[1].rank == 1)\n"
      "assert(#s:nodes { s:node('a-op0', { rank = 0 }), 'op:Relu' } == 3)\n"
      "assert(#s:nodes(s:nodes('**')) == 4 and #s:nodes('rank:0'):union(s:nodes('op:Log')) == 3)");
  run("local r = require('msdbg.core').run_rules(s, { { rule = 'x', when = 'TO', optional = true,\n"
      "  on = s:nodes('**'):filter(function(n) return n.rank == 0 end) } }, {})\n"
      "assert(#r.hits == 2 and r.hits[1].rank == 0 and r.hits[2].rank == 0)");
}

// ---- rules ---------------------------------------------------------------------------------------------------------

TEST_F(Kit, ANestedCallKeepsTheLimitOfTheOuterOne) {
  run("local core = require 'msdbg.core'\n"
      "local stop = core.seconds() + 60\n"
      "local function loop() while core.seconds() < stop do end return 'ran to its end' end\n"
      "local ok, why = core.limited(0.3, function() core.limited(30, function() end) return loop() end)\n"
      "assert(not ok and why:find 'stopped after 0.3 s', tostring(why))\n"
      "local inner, inner_why\n"
      "ok, why = core.limited(0.3, function() inner, inner_why = core.limited(50, loop) return loop() end)\n"
      "assert(not ok and why:find 'stopped after 0.3 s' and not inner and inner_why:find 'stopped after 0.3 s')\n"
      "ok, why = core.limited(50, function() return core.limited(0.1, loop) end)\n"
      "assert(ok and why == false)\n"
      "local n = 0 for i = 1, 1e6 do n = n + 1 end assert(n == 1e6)");
  EXPECT_TRUE(contains(failure("require('msdbg.core').limited(0/0, print)"), "0 or more is expected"));
  EXPECT_TRUE(contains(failure("require('msdbg.core').limited(1, 3)"), "a function is expected, not 3"));
}

TEST_F(Kit, AFindingStaysAsTheRuleMadeIt) {
  run("local finding = { node = 'Log-op0', step = 0, slot = 'output:0', rank = 0, message = 'm' }\n"
      "local instance = { rule = 'keeps', on = '**', check = function() end, finish = function() return { finding, finding } end }\n"
      "local r = require('msdbg.core').run_rules(s, { instance }, {})\n"
      "assert(#r.hits == 2 and r.hits[2].details.message == 'm' and r.hits[1].details.node == nil, tostring(r))\n"
      "assert(finding.node == 'Log-op0' and finding.step == 0 and finding.slot and finding.rank)");
}

// ---- where the library comes from ----------------------------------------------------------------------------------

class Environment {
 public:
  Environment(const char* name, const std::string& value) : name_(name) { ::setenv(name, value.c_str(), 1); }
  ~Environment() { ::unsetenv(name_); }

 private:
  const char* name_;
};

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

TEST_F(Kit, OtherCopiesOfTheLibraryAreNotRead) {
  const test::TempDir temporary;
  const fs::path directory = temporary.file("scripts");
  for (const char* place : {"beside", "variable", "option"}) write(directory / place / "msdbg/progress.lua", "error 'another copy'");
  write(directory / "variable/helper.lua", "return 42");
  write(directory / "beside/main.lua", "require 'msdbg.progress' assert(require 'helper' == 42)");
  const Environment variable("MSDBG_SCRIPT_PATH", (directory / "variable").string());
  auto options = small_options();
  options.search_path = {(directory / "option").string()};
  auto other = Script::create(options);
  ASSERT_TRUE(other.ok()) << other.status().message();
  EXPECT_EQ((*other)->run_file((directory / "beside/main.lua").string(), {}).error, "");
}

TEST_F(Kit, DevelopmentScriptsTakeTheirPlaceAndSaySo) {
  const test::TempDir temporary;
  const fs::path directory = temporary.file("scripts");
  write(directory / "msdbg/progress.lua", "return 'the copy in the directory'");
  write(directory / "rules/own.lua", "return require 'msdbg.rule' { name = 'own', summary = 'of the directory', when = 'max(x) > 1' }");
  std::vector<std::string> told;
  set_log_sink([&](LogLevel, std::string_view text) { told.emplace_back(text); });
  {
    const Environment variable("MSDBG_DEV_SCRIPTS", directory.string());
    auto other = Script::create(small_options());
    ASSERT_TRUE(other.ok()) << other.status().message();
    EXPECT_EQ((*other)->run_text("assert(require 'msdbg.progress' == 'the copy in the directory')\n"
                                 "assert(msdbg.rules.get('own').origin == 'MSDBG_DEV_SCRIPTS')", "@a.lua").error, "");
  }
  set_log_sink({});
  ASSERT_EQ(told.size(), 1u);
  EXPECT_TRUE(contains(told[0], directory.string() + " (MSDBG_DEV_SCRIPTS)"));
}

TEST_F(Kit, ALibraryOfAnotherVersionIsRefused) {
  const test::TempDir temporary;
  const fs::path directory = temporary.file("scripts");
  std::ifstream file(fs::path(MSDBG_SOURCE_DIR) / "scripts/msdbg/init.lua");
  std::stringstream text;
  text << file.rdbuf();
  std::string other = text.str();
  const size_t at = other.find(std::string(kVersion));
  ASSERT_NE(at, std::string::npos);
  other.replace(at, kVersion.size(), "9.8.7");
  write(directory / "msdbg/init.lua", other);
  const Environment variable("MSDBG_DEV_SCRIPTS", directory.string());
  const auto made = Script::create(small_options());
  ASSERT_FALSE(made.ok());
  EXPECT_TRUE(contains(made.status().message(), "the Lua library is that of msdbg 9.8.7, the program is msdbg " + std::string(kVersion)));
  EXPECT_TRUE(contains(made.status().message(), directory.string()));
}

TEST_F(Kit, AFunctionThatTheProgramLacksIsToldByName) {
  EXPECT_TRUE(contains(failure("require('msdbg.core').compare_everything()"), "msdbg.core of this program has no 'compare_everything'"));
}

}  // namespace
}  // namespace msdbg::testing
