// A graph whose names, source lines and attributes try to control the terminal, with every command of the prompt that prints them.
#include <set>
#include <utility>
#include <vector>

#include "script/support.h"
#include "support/hostile_names.h"

namespace msdbg::testing {
namespace {

const std::string kMatMul = "Default/" + kHostile + "/MatMul-op1", kRelu = "Default/net/" + kHostile + "-op2", kLog = "Default/net/Log-op3",
                  kWeight = kHostile + ".weight";

std::vector<FakeNode> hostile_nodes() {
  const std::vector<StackFrame> stack = {{"/home/" + kHostile + ".py", 12, "y = " + kHostile}};
  return {{kWeight, "Parameter"},
          {"fc.bias", "Parameter"},
          {kMatMul, "Mat" + kHostile, {kWeight, "fc.bias"}, 1, stack},
          {kRelu, "ReLU", {kMatMul}, 1, stack},
          {kLog, "Log", {kRelu}, 1, stack},
          {"Default/net/Mul-op4", "Mul", {kLog, kRelu}, 1, stack},
          {"Gradients/Default/net/" + kHostile + "/Grad-op5", "Grad", {kLog}, 1, stack}};
}

std::unique_ptr<FakeSession> hostile_session() {
  auto session = std::make_unique<FakeSession>(fake_graph(hostile_nodes()));
  for (int step = 0; step < 3; ++step) {
    const double s = step;
    session->put(kWeight, step, f32({2, 1}, std::vector<double>{1 + s / 10, -1 - s / 10}));
    session->put("fc.bias", step, f32({1, 2, step == 2 ? NAN : 1}));
    session->put(kMatMul, step, f32({2, 3}, std::vector<double>{1, -2, 3, -4, 5, -6}));
    session->put(kRelu, step, f32({2, 3}, std::vector<double>{1, 0, 3, 0, 5, 0}));
    session->put(kLog, step, f32({2, 3}, std::vector<double>{0, -INFINITY, 1, step == 1 ? NAN : -2, 3, -INFINITY}));
    session->put("Default/net/Mul-op4", step, f32({0, -INFINITY, NAN}));
    session->set_problem(session->id("Gradients/Default/net/" + kHostile + "/Grad-op5", step),
                         Status(Code::kCorrupt, "damaged " + printable(kHostile)));
  }
  SessionInfo& info = session->mutable_info();
  for (std::string* text : {&info.source, &info.short_name, &info.framework_version, &info.device_target, &info.layout, &info.epoch}) {
    *text = kHostile;
  }
  info.nets = {kHostile};
  return session;
}

std::unique_ptr<FakeLiveSession> hostile_training() {
  auto training = std::make_unique<FakeLiveSession>(fake_graph(hostile_nodes()));
  training->start({{kWeight, f32({1, -1})}});
  for (int step = 0; step < 4; ++step) {
    training->step({{kMatMul, f32({1, -2, 3})},
                    {kRelu, f32({1, 0, 3})},
                    {kLog, f32({step == 2 ? NAN : 0.5, -0.25})},
                    {kWeight, f32({1, -1})}});
  }
  return training;
}

class HostileNames : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    clear_interrupt();
    ScriptOptions options = small_options();
    options.colour = GetParam();
    options.open = [](const std::string&, const DumpOptions&) -> Result<std::unique_ptr<Session>> {
      return std::unique_ptr<Session>(hostile_session());
    };
    auto made = Script::create(std::move(options));
    ASSERT_TRUE(made.ok()) << made.status().message();
    script_ = std::move(*made);
  }

  void enter(const std::string& entry) {
    ::testing::internal::CaptureStdout();
    const Script::Eval result = script_->eval(entry);
    const std::string printed = ::testing::internal::GetCapturedStdout() + result.output;
    expect_harmless(printed, "'" + entry + "'");
    expect_harmless(script_->prompt(), "the prompt after '" + entry + "'");
    EXPECT_EQ(script_->prompt().find('\n'), std::string::npos);
    entered_.insert(entry.substr(0, entry.find(' ')));
    seen_ += printed;
  }

  std::unique_ptr<Script> script_;
  std::set<std::string> entered_;
  std::string seen_;
};

TEST_P(HostileNames, NoCommandOfTheDumpLetsThemActOnTheTerminal) {
  script_->set_session(hostile_session());
  const std::string bad = "MatMul-op1";
  for (const std::string& entry : std::vector<std::string>{"info",
                                                           "info graphs",
                                                           "info steps",
                                                           "nodes",
                                                           "node " + bad,
                                                           "node Log-op3",
                                                           "node fc.bias",
                                                           "inputs " + bad,
                                                           "inputs Log-op3",
                                                           "inputs Mul-op4 --depth 3",
                                                           "outputs " + bad,
                                                           "outputs fc.bias --depth 4",
                                                           "tensors",
                                                           "tensors --steps all --slots all",
                                                           "stats",
                                                           "show " + bad,
                                                           "show Log-op3",
                                                           "show Log-op3 --previous",
                                                           "hist " + bad,
                                                           "heatmap " + bad,
                                                           "worst Log-op3",
                                                           "where " + bad + " x > 1",
                                                           "watch ** TO",
                                                           "watch @all max(abs(x)) > 3",
                                                           "watches",
                                                           "check",
                                                           "check --rules default",
                                                           "recheck",
                                                           "hits",
                                                           "hits 1",
                                                           "info hits",
                                                           "origin",
                                                           "origin --when nan",
                                                           "bt",
                                                           "bt Log-op3",
                                                           "bt Mul-op4",
                                                           "bt Grad-op5",
                                                           "bisect @all --when TO",
                                                           "trend max @all",
                                                           "trend max " + bad,
                                                           "layers",
                                                           "layers --by-layer",
                                                           "replicas",
                                                           "repro Log-op3 -o nowhere/bundle",
                                                           "convert Log-op3 -o nowhere/converted",
                                                           "propagation Log-op3:0",
                                                           "propagation Mul-op4:0 --up",
                                                           "why Log-op3:0",
                                                           "why " + bad + ":input:0",
                                                           "why Grad-op5:0",
                                                           "list",
                                                           "list --rules TO",
                                                           "diff other",
                                                           "diff other @all --wide",
                                                           "explain max(x) > 1",
                                                           "rules",
                                                           "ckpt show /dev/null",
                                                           "plan",
                                                           "plan @all --describe",
                                                           "doctor",
                                                           "goto 1",
                                                           "rank",
                                                           "rank 0",
                                                           "rank all",
                                                           "s:settings()",
                                                           "doctor --values",
                                                           "disable 1",
                                                           "enable 1",
                                                           "unwatch all",
                                                           "display stats @all",
                                                           "display s:nodes('@all')[2]",
                                                           "goto 2",
                                                           "undisplay all",
                                                           "p s:nodes('@all')",
                                                           "p s.graphs",
                                                           "help nodes",
                                                           "apropos nan",
                                                           "s",
                                                           "s.info",
                                                           "s.graphs",
                                                           "s.graphs[1]",
                                                           "s:nodes('@all')[2]",
                                                           "n = s:node '" + bad + "'",
                                                           "n",
                                                           "n.inputs",
                                                           "n.inputs[1]",
                                                           "n.outputs",
                                                           "n.users",
                                                           "n.stack",
                                                           "n.stack[1]",
                                                           "n.attrs",
                                                           "s:nodes('@all'):names()",
                                                           "s:tensors{}",
                                                           "s:tensor('" + bad + "')",
                                                           "s:check{ rules = 'default' }",
                                                           "s.last_result.hits",
                                                           "s.last_result.hits[1]",
                                                           "s.last_result.not_checked",
                                                           "?n",
                                                           "?s",
                                                           "?n.name",
                                                           "msdbg.origin(s, {}).origins",
                                                           "msdbg.origin(s, {}).origins[1]",
                                                           "msdbg.origin(s, {}).origins[1].chains",
                                                           "s:trend('abs_mean', '@all').series",
                                                           "msdbg.diff(s, msdbg.open 'other')",
                                                           "msdbg.diff(s, msdbg.open 'other').tensors",
                                                           "s:tensor('" + bad + "'):diff(s:tensor 'Log-op3')",
                                                           "require 'msdbg.table'.of({ 'a', 'b' }, { { n.name, 1 } })",
                                                           "require 'msdbg.table'.of({ 'a' }, { { n.name } }):print()",
                                                           "require 'msdbg.plot'.bars({ n.name }, { 1 })",
                                                           "{ n.name, [n.name] = n.name }",
                                                           "n:value()",
                                                           "n:output(7)",
                                                           "s:node 'nothing'",
                                                           "s:nodes 'nothing'",
                                                           "s:watch{ on = n, when = 'TO', name = n.name }",
                                                           "print(s, n, s.graphs[1], n.stack[1])",
                                                           "s:tensor('" + bad + "'):show()",
                                                           "s:tensor('" + bad + "'):previous():show()",
                                                           "s:tensor('" + bad + "'):spark()",
                                                           "require 'msdbg.steps'.series(s, '" + bad + ":0', 'max')",
                                                           "require 'msdbg.guide'.run(s, { say = print })",
                                                           "save /dev/null",
                                                           "source /dev/null",
                                                           "set pager off",
                                                           "guide",
                                                           "report -o nowhere/page.html",
                                                           "report -o /dev/null",
                                                           "open other",
                                                           "close",
                                                           "open other",
                                                           "step",
                                                           "next",
                                                           "continue",
                                                           "run",
                                                           "run_to Log-op3",
                                                           "pause",
                                                           "wait",
                                                           "terminate",
                                                           "detach",
                                                           "finish",
                                                           "attach",
                                                           "tbreak " + bad + " TO",
                                                           "ignore 1 1",
                                                           "commands 1 info",
                                                           "msdbg.fail(tostring(n))",
                                                           "s:report():markdown()"}) {
    enter(entry);
  }
  // The report's full text is visible, with control characters escaped.
  EXPECT_NE(seen_.find("training step 9 held > forged"), std::string::npos);
  const std::string names = script_->eval("local t = {} for _, c in ipairs(require 'msdbg.repl_registry'.list()) do t[#t + 1] = c.name end "
                                          "return table.concat(t, ' ')").output;
  for (const std::string_view name : split(names, ' ')) {
    EXPECT_TRUE(name == "quit" || entered_.contains(std::string(name))) << "no entry of this test tries the command " << name;
  }
}

TEST_P(HostileNames, ScriptsSeeTheNamesAsTheyAre) {
  script_->set_session(hostile_session());
  script_->eval("name = s:node('MatMul-op1').name");
  EXPECT_EQ(script_->eval("#name").output, std::to_string(kMatMul.size()));
}

TEST_P(HostileNames, CompletionDoesNotProposeThem) {
  script_->set_session(hostile_session());
  for (const std::string line : {"node Default/", "node Default/net/", "nodes op:Mat", "show x"}) {
    for (const std::string& candidate : script_->complete(line, line.size())) EXPECT_EQ(printable(candidate), candidate) << line;
  }
}

TEST_P(HostileNames, NoCommandOfATrainingLetsThemActOnTheTerminal) {
  auto training = hostile_training();
  ASSERT_TRUE(training->wait_until_held({}).ok());
  training->take_events();
  script_->set_session(std::move(training));
  for (const std::string& entry : std::vector<std::string>{
           "info", "s.info", "s.info.peer", "s.can", "next", "info", "next", "run_to Log-op3", "step", "watch ** TO",
           "watch @all max(x) > 2", "continue", "hits", "hits 1", "s", "info watches", "s:on('hit', function(h) print(h) end)",
           "continue", "recheck", "terminate", "s", "info"}) {
    enter(entry);
  }
}

INSTANTIATE_TEST_SUITE_P(Colours, HostileNames, ::testing::Bool(), [](const auto& chosen) { return chosen.param ? "on" : "off"; });

}  // namespace
}  // namespace msdbg::testing
