// Sessions, nodes, tensors, watchpoints and checks, as scripts see them.
#include <cstdio>
#include <fstream>

#include "script/support.h"

namespace msdbg::testing {
namespace {

using Library = ScriptTest;

TEST_F(Library, SessionFieldsAreThere) {
  run("assert(s.kind == 'dump' and s.state == 'open' and s.current_step == 0 and #s.steps == 2 and s.ranks[1] == 0)\n"
      "assert(s.graphs[1].name == 'kernel_graph0' and s.info.framework_version == '2.7.1' and s.can.step == false)");
}

TEST_F(Library, NodeSetsCountFilterMapAndJoin) {
  run("local all = s:nodes '**'\nassert(#all == 5)\n"
      "assert(#s:nodes { 'op:ReLU', 'op:Log' } == 2 and #s:nodes(s:node 'Log-op0') == 1)\n"
      "local names = all:map(function(n) return n.op end)\nassert(#names == 5)\n"
      "assert(#all:filter(function(n) return n.op == 'Log' end) == 1)\n"
      "assert(#s:nodes('op:ReLU'):union(s:nodes 'op:ReLU or op:Log') == 2)\n"
      "assert(#all:first(2) == 2 and all[5].name and all[6] == nil and all[1] == all:first(1)[1])\n"
      "local n = 0 for node in all:each() do n = n + #node.name end assert(n > 20)\n"
      "assert(tostring(all):find 'Log%-op0')");
}

TEST_F(Library, NodesKnowTheirNeighbours) {
  run("local n = s:node 'relu-ReLU/ReLU-op0'\n"
      "assert(n.op == 'ReLU' and n.kind == 'operator' and n.scope == 'Default/net/relu-ReLU' and n.rank == 0)\n"
      "assert(n.inputs[1].node.op == 'MatMul' and n.inputs[1].slot == 'output:0')\n"
      "assert(n.users[1].node.op == 'Log' and n.users[1].slot == 'input:0')\n"
      "assert(s:node('MatMul-op0').stack[1].line == 12 and s:node 'fc.weight'.kind == 'parameter')");
  EXPECT_TRUE(contains(failure("s:node 'Log-op9'"), "Log-op0"));
  EXPECT_TRUE(contains(failure("s:node('Log-op0'):value()"), "node:output(0)"));
}

TEST_F(Library, ValuesOfOtherStepsAreReached) {
  run("local w = s:node 'fc.weight'\nlocal now, before = w:value { step = 1 }, w:value { step = 0 }\n"
      "assert(now.step == 1 and math.abs(now:change_ratio(before) - 0.1) < 1e-6)\n"
      "assert(now:previous().step == 0 and before:previous() == nil)\n"
      "local none, why = w:value { step = -1 } assert(none == nil and why:find 'not dumped')");
}

TEST_F(Library, StatisticsFollowTheDesign) {
  run("local t = s:tensor 'Log-op0:0'\nlocal st = t.stats\n"
      "assert(st.count == 6 and st.neg_inf_count == 3 and st.nan_count == 0 and st.min == 0)\n"
      "assert(st.first_bad[1] == 0 and st.first_bad[2] == 1 and st.zero_percentage > 16)\n"
      "assert(s:tensor('ReLU-op0').stats.first_bad == nil)");
}

/// Describes each tensor as 100 x 100 doubles, whatever it contains when opened: like a training before it sends the value, or a
/// file that was rewritten.
struct Promising : FakeSession {
  Promising() : FakeSession(fake_graph({{"Add-op0", "Add"}})) {
    put("Add-op0", 0, make_tensor(DType::kFloat16, {2}, std::vector<double>{1.5, -2}));
  }
  Result<TensorInfo> describe(const TensorId& id) override {
    TensorInfo info = open(id).value().info;
    info.dtype = DType::kFloat64;
    info.shape = {100, 100};
    info.count = 10000;
    info.bytes = 80000;
    return info;
  }
};

TEST_F(Library, ElementsAreThoseThatAreThereNotThoseThatWerePromised) {
  script->set_session(std::make_unique<Promising>());
  run("local t = s:tensor 'Add-op0'\n"
      "assert(t:at(1) == -2)\n"
      "local v = t:view() assert(v.n == 2 and v[1] == -2 and #v.shape == 1)\n"
      "assert(t:slice('1:').size == 1 and t:eval 'sum(x)' == -0.5 and #t:where 'x < 0' == 1)\n"
      "assert(t.stats.count == 2 and t.stats.min == -2)");
  EXPECT_TRUE(contains(failure("s:tensor('Add-op0'):at(50, 50)"), "1 coordinate expected for shape [2], 2 given"));
  EXPECT_TRUE(contains(failure("s:tensor('Add-op0'):at(2)"), "coordinate 1: 2 is outside 0 to 1"));
}

/// Returns elements that do not match their description, which only a defect of msdbg can cause.
struct Defective : FakeSession {
  Defective() : FakeSession(fake_graph({{"Add-op0", "Add"}, {"Mul-op0", "Mul"}})) {
    for (const char* name : {"Add-op0", "Mul-op0"}) put(name, 0, f32({1, 2}));
  }
  Result<OpenTensor> open(const TensorId& id) override {
    Result<OpenTensor> opened = FakeSession::open(id);
    if (node(id).op == "Mul") return opened;
    opened->info.dtype = DType::kFloat64;
    return OpenTensor(std::move(opened->info), std::move(opened->reader));
  }
};

TEST_F(Library, ADefectEndsTheCallNotTheSession) {
  script->set_session(std::make_unique<Defective>());
  run("local t = s:tensor 'Add-op0'\n"
      "for _, ask in ipairs { function() return t:at(0) end, function() return t:view() end, function() return t.stats.max end } do\n"
      "  local ok, e = pcall(ask)\n"
      "  assert(not ok and e.code == 'internal' and tostring(e):find 'internal error: .*please report it', tostring(e))\n"
      "end\n"
      "assert(s:tensor('Mul-op0'):at(1) == 2)\n"
      "s:watch { on = '**', when = 'TL max_gt=1' }\n"
      "local r = s:check() assert(#r.hits == 1 and #r.not_checked == 1 and r.not_checked[1].reason:find 'internal error')");
}

TEST_F(Library, ElementsAreReadByCoordinateSliceAndView) {
  run("local t = s:tensor 'MatMul-op0'\n"
      "assert(t:at(0, 2) == 3 and t:at(1, 0) == -4)\n"
      "local row = t:slice '1,:'\nassert(row.size == 3 and #row.shape == 1 and row:at(1) == 5 and row.stats.min == "
      "-6)\n"
      "assert(tostring(row):find('MatMul-op0:output:0[1,:]', 1, true), tostring(row))\n"
      "local v = t:view() local sum = 0 for i = 0, v.n - 1 do sum = sum + v[i] end assert(sum == -3)");
  EXPECT_TRUE(contains(failure("s:tensor('MatMul-op0'):at(2, 0)"), "coordinate 1: 2 is outside 0 to 1"));
  EXPECT_TRUE(contains(failure("s:tensor('MatMul-op0'):at(1)"), "2 coordinates expected"));
  EXPECT_TRUE(contains(failure("return s:tensor('MatMul-op0'):view()[6]"), "index 6 is outside 0 to 5"));
  EXPECT_TRUE(contains(failure("s:tensor('MatMul-op0'):view()[0] = 1"), "elements cannot be assigned"));
}

TEST_F(Library, WhereFindsByWordComparisonAndFunction) {
  run("local t = s:tensor 'Log-op0'\n"
      "assert(#t:where 'isinf(x)' == 3 and #t:where 'inf' == 3 and #t:where 'bad' == 3 and #t:where 'nan' == 0)\n"
      "local w = t:where 'x > 1' assert(#w == 2 and w[1][1] == 0 and w[1][2] == 2 and w[1].index == 2)\n"
      "assert(#s:tensor('MatMul-op0'):where 'abs(x) >= 5' == 2 and #t:where 'x == 0' == 1 and #t:where('zero') == 1)\n"
      "local places, total = s:tensor('MatMul-op0'):where('x ~= 0', { limit = 2 }) assert(#places == 2 and total == "
      "6)\n"
      "local f = t:where(function(x) return x ~= x or x < -1 end) assert(#f == 3 and f[1][2] == 1 and f[3][1] == 1)");
  EXPECT_TRUE(contains(failure("s:tensor('Log-op0'):where 'mean(x) > 3'"), "a truth value for each element is needed"));
}

TEST_F(Library, WorstQuantileAndHistogramAnswer) {
  run("local w = s:tensor('Log-op0'):worst(4)\n"
      "assert(#w == 4 and w[1].value == -math.huge and w[1][2] == 1 and math.abs(w[4].value - math.log(5)) < 1e-6)\n"
      "local m = s:tensor 'MatMul-op0'\n"
      "assert(m:worst(1)[1].value == -6 and m:quantile(0) == -6 and m:quantile(1) == 5 and m:quantile(0.5) == -0.5)\n"
      "local h = m:histogram { bins = 4 } assert(#h.counts == 4 and #h.edges == 5 and h.nonfinite == 0 and "
      "#tostring(h) > 10)\n"
      "assert(s:tensor('Log-op0'):histogram().nonfinite == 3)");
}

TEST_F(Library, SaveWritesAWholeFileOrNothing) {
  const std::string path = ::testing::TempDir() + "msdbg_saved.npy";
  std::remove(path.c_str());
  run("s:tensor('MatMul-op0'):save '" + path + "'");
  std::ifstream file(path, std::ios::binary);
  std::string magic(6, '\0');
  file.read(magic.data(), 6);
  EXPECT_EQ(magic, "\x93NUMPY");
  EXPECT_TRUE(contains(failure("s:tensor('MatMul-op0'):save '/no/such/folder/x.npy'"), "cannot be written"));
}

TEST_F(Library, HitsArePlainTables) {
  run("local w = s:watch { on = '@activation', when = 'TZ', zero_percentage_ge = 50, name = 'dead' }\n"
      "assert(w.id == 1 and w.name == 'dead' and w.on == '@activation' and w.enabled)\n"
      "local r = s:check()\nassert(#r.hits == 2 and r.hits == r.hits and #r.not_checked == 0)\n"
      "local h = r.hits[1]\n"
      "assert(h.watch == 1 and h.rule == 'tensor_all_zero' and h.rank == 0 and h.graph == 'kernel_graph0' and h.step "
      "== 0)\n"
      "assert(h.node == 'Default/net/relu-ReLU/ReLU-op0' and h.slot == 'output:0' and h.dtype == 'float32' and "
      "h.shape[2] == 3)\n"
      "assert(h.params[1].name == 'zero_percentage_ge' and h.params[1].threshold == 50 and h.params[1].actual == 50 "
      "and h.params[1].hit)\n"
      "assert(h.stats.zero_count == 3 and type(h.advice) == 'string' and "
      "h.stack)\n"
      "assert(r.coverage.tensors == 2 and r.coverage.checked == 2 and not r.interrupted and tostring(r):find '2 "
      "hits')");
}

TEST_F(Library, RecheckReadsNothing) {
  auto session = small_session();
  FakeSession* fake = session.get();
  script->set_session(std::move(session));
  type("w = s:watch { on = '@activation', when = 'TZ', zero_percentage_ge = 50 }");
  EXPECT_EQ(type("#s:check().hits"), "2");
  fake->reset_counters();
  type("w:set { zero_percentage_ge = 60 }");
  EXPECT_EQ(type("#s:recheck().hits"), "0");
  EXPECT_EQ(fake->reads(), 0u);
  EXPECT_EQ(type("s.last_result.coverage.from_cache"), "2");
}

TEST_F(Library, FunctionsDecideAndExplain) {
  run("s:watch { name = 'mostly dead', on = 'op:ReLU', when = function(t, ctx)\n"
      "  assert(ctx.step == t.step and ctx.watch.name == 'mostly dead' and ctx.session == s and ctx.rank == 0)\n"
      "  return t.stats.zero_percentage > 40 and { actual = t.stats.zero_percentage, note = 'dead' }\n"
      "end }\n"
      "local r = s:check { steps = 1 }\n"
      "assert(#r.hits == 1 and r.hits[1].rule == 'mostly dead' and r.hits[1].details.note == 'dead')");
}

TEST_F(Library, AFailingFunctionIsNotCheckedAndOthersGoOn) {
  run("s:watch { on = 'op:ReLU', when = function(t)\n  return t.nothing\nend }\n"
      "s:watch { on = 'op:Log', when = 'TO' }\n"
      "s:watch { on = 'op:Log', when = function() return 'yes' end }\n"
      "local r = s:check { steps = 0 }\n"
      "assert(#r.hits == 1 and #r.not_checked == 2)\n"
      "assert(r.not_checked[1].reason:find \"^rule error: test.lua:2: tensor has no field 'nothing'\", "
      "r.not_checked[1].reason)\n"
      "assert(r.not_checked[2].reason:find 'true, false, nil or a table is expected')\n"
      "assert(r.coverage.not_checked == 2)");
}

TEST_F(Library, FunctionsMayReadElementsAndMakeTensors) {
  run("s:watch { on = '**', when = function(t) local v = t:view() local p = t:previous() return v[0] == 1 and p ~= nil "
      "end }\n"
      "local r = s:check() assert(#r.hits == 2 and #r.not_checked == 0, tostring(r))");
}

TEST_F(Library, FunctionsCannotPullTheSessionAway) {
  run("s:watch { on = 'op:Log', when = function() s:close() end }\n"
      "s:watch { on = 'op:ReLU', when = function() s:check() end }\n"
      "local r = s:check { steps = 0 } assert(#r.not_checked == 2 and s.state == 'open')\n"
      "assert(r.not_checked[1].reason:find 'a check runs' and r.not_checked[2].reason:find 'a check runs')");
}

TEST_F(Library, FunctionsMayRemoveTheirWatchpoint) {
  run("local w w = s:watch { on = 'op:Log', when = function() w:remove() collectgarbage() return true end }\n"
      "assert(#s:check().hits == 2 and #s:watches() == 0)");
}

TEST_F(Library, CheckInsideACoroutineWorks) {
  run("local co = coroutine.wrap(function()\n"
      "  s:watch { on = 'op:Log', when = function(t) return t.stats.neg_inf_count > 0 end }\n"
      "  return #s:check().hits\nend)\nassert(co() == 2)");
}

TEST_F(Library, WatchpointsAreEditedAsAWhole) {
  run("local w = s:watch { on = 'op:Log', when = 'TO' }\n"
      "assert(tostring(w) == 'watch 1: tensor_overflow on op:Log (1 node)', tostring(w))\n"
      "assert(not pcall(w.set, w, { on = 'op:ReLU', when = 'nonsense' }) and w.on == 'op:Log')\n"
      "w:disable() assert(not w.enabled) w:enable() assert(w.enabled)\n"
      "assert(#s:watches() == 1) w:remove() w:remove() assert(#s:watches() == 0)\n"
      "assert(s:watch { on = 'op:Log', when = 'TO' }.id == 2)\n"
      "assert(s:watch { on = 'nothing_like_it', when = 'TO', optional = true }.nodes == 0)");
  EXPECT_TRUE(contains(failure("s:watch { on = 'nothing_like_it', when = 'TO' }"), "nothing_like_it"));
  EXPECT_TRUE(contains(failure("s:watch { when = 'TO' }"), "'on' is missing"));
  EXPECT_TRUE(contains(failure("s:watch { on = '**' }"), "'when' is missing"));
  EXPECT_TRUE(contains(failure("s:watch { on = '**', when = 'TO', slots = 'inputs' }"), "'inputs'"));
}

TEST_F(Library, CheckWithoutWatchpointsRunsTheDefaultRules) {
  run("assert(#s:check().hits == 2 and s.last_result.from_rules)");  // without a watchpoint: the default rules
}

TEST_F(Library, OriginNamesTheOperator) {
  run("local o = msdbg.origin(s)\nassert(#o.origins == 2)\n"
      "local first = o.origins[1]\n"
      "assert(first.node == 'Default/net/Log-op0' and first.step == 0 and first.kind == 'operator' and "
      "first.first[1][2] == 1)\n"
      "assert(first.inputs[1].node == 'Default/net/relu-ReLU/ReLU-op0' and first.inputs[1].stats.zero_count == 3)\n"
      "assert(tostring(o):find 'Log%-op0' and o.steps[2].step == 1)");
  run("local o = msdbg.origin(s, { when = function(t) return t.stats.max and t.stats.max > 50 end, steps = 0 })\n"
      "assert(o.origins[1].node == 'Gradients/Default/net/ReluGrad-op0')");
  EXPECT_TRUE(contains(failure("msdbg.origin(s, { when = 'rubbish' })"), "rubbish"));
}

TEST_F(Library, ReportsAreTexts) {
  run("s:watch { on = 'op:Log', when = 'TO' }\nlocal r = s:check()\n"
      "local json = msdbg.report(s, r):json()\nassert(json:find '\"hits\"' and json:find 'tensor_overflow')\n"
      "assert(msdbg.report(s, r):table():find 'Log%-op0' and msdbg.report(s, msdbg.origin(s)):json():find "
      "'\"origins\"')");
}

TEST_F(Library, EachStepMovesTheSession) {
  run("local seen = {} for step in s:each_step() do seen[#seen + 1] = s.current_step assert(s:tensor('Log-op0').step "
      "== step) end\n"
      "assert(seen[1] == 0 and seen[2] == 1)");
}

TEST_F(Library, OpenTakesOptions) {
  run("local o = msdbg.open('fake', { semantics = 'finite', threads = 1, mem_limit = 64 })\n"
      "o:watch { on = '**', when = 'TO' } assert(o:check().semantics == 'finite')");
  EXPECT_TRUE(contains(failure("msdbg.open('fake', { mem_limit = 3 })"), "64 MB or more"));
  EXPECT_TRUE(contains(failure("msdbg.open('fake', { semantics = 'loose' })"), "loose"));
}

}  // namespace
}  // namespace msdbg::testing
