// Completion: the candidates for a line of the prompt.
#include <algorithm>

#include "script/name_index.h"
#include "script/support.h"

namespace msdbg::testing {
namespace {

class Completion : public ScriptTest {
 protected:
  std::vector<std::string> offered(const std::string& line) { return script->complete(line, line.size()); }
  bool offers(const std::string& line, const std::string& candidate) {
    const auto found = offered(line);
    return std::find(found.begin(), found.end(), candidate) != found.end();
  }
  using Names = std::vector<std::string>;
};

TEST_F(Completion, KnowsRulesWhereverTheyAreChosen) {
  EXPECT_EQ(offered("check --rules dead"), (Names{"dead-relu"}));
  EXPECT_EQ(offered("check --rules 'default and no"), (Names{"not"}));
  EXPECT_EQ(offered("check --rules \"default and not dead"), (Names{"dead-relu"}));
  EXPECT_EQ(offered("check --rules \"dead-relu or loss-e"), (Names{"loss-explosion"}));
  EXPECT_EQ(offered("rules in"), (Names{"info"}));
  EXPECT_EQ(offered("rules info dead"), (Names{"dead-relu"}));
  EXPECT_EQ(offered("s:check { rules = \"dead"), (Names{"dead-relu"}));
  EXPECT_EQ(offered("s:watch { rule = \"dead"), (Names{"dead-relu"}));
  EXPECT_EQ(offered("plot = require \"msdbg.pl"), (Names{"msdbg.plot"}));
}

TEST_F(Completion, KnowsCommandsAndTopics) {
  EXPECT_TRUE(offers("reche", "recheck"));
  EXPECT_TRUE(offers("help sel", "selectors"));
  EXPECT_TRUE(offers("help session.st", "session.step"));
  EXPECT_TRUE(offers("info b", "breakpoints"));
  EXPECT_TRUE(offered("zzz").empty());
}

TEST_F(Completion, KnowsOptionsAndTheirValues) {
  EXPECT_EQ(offered("stats --s"), (Names{"--slots", "--steps", "--semantics"}));
  EXPECT_EQ(offered("stats relu --slots inp"), (Names{"input"}));
  EXPECT_EQ(offered("stats relu --steps "), (Names{"0", "1"}));
  EXPECT_EQ(offered("check --sem"), (Names{"--semantics"}));
  EXPECT_EQ(offered("goto "), (Names{"0", "1"}));
}

TEST_F(Completion, GoesThroughNamesLevelByLevel) {
  EXPECT_EQ(offered("show De"), (Names{"Default/"}));
  EXPECT_EQ(offered("show Default/"), (Names{"Default/net/"}));
  EXPECT_EQ(offered("show Default/net/"), (Names{"Default/net/Log-op0", "Default/net/MatMul-op0", "Default/net/relu-ReLU/"}));
  EXPECT_EQ(offered("show default/net/l"), (Names{"default/net/Log-op0"}));
  EXPECT_EQ(offered("show relu-ReLU/"), (Names{"relu-ReLU/ReLU-op0"}));
  EXPECT_EQ(offered("show Log"), (Names{"Log-op0"}));
  EXPECT_EQ(offered("show og-op"), (Names{"Log-op0"}));  // no component starts with it
  EXPECT_EQ(offered("show "), (Names{"Default/", "Gradients/", "fc.weight"}));
}

TEST_F(Completion, KnowsSlotsOfANode) {
  EXPECT_EQ(offered("show Log-op0:"), (Names{"Log-op0:output:0", "Log-op0:input:0"}));
  EXPECT_EQ(offered("show Log-op0:in"), (Names{"Log-op0:input:0"}));
  EXPECT_TRUE(offered("show nothing-of-the-kind:").empty());
}

TEST_F(Completion, KnowsSelectors) {
  EXPECT_EQ(offered("nodes @gr"), (Names{"@gradient"}));
  EXPECT_EQ(offered("nodes op:Re"), (Names{"op:ReLU", "op:ReluGrad"}));
  EXPECT_EQ(offered("nodes scope:De"), (Names{"scope:Default/"}));
  EXPECT_EQ(offered("nodes rank:"), (Names{"rank:0"}));
  EXPECT_EQ(offered("nodes =Default/net/L"), (Names{"Default/net/Log-op0"}));
  EXPECT_TRUE(offers("nodes op:ReLU or o", "op:"));
}

TEST_F(Completion, KnowsConditionsAndTheirParameters) {
  EXPECT_TRUE(offers("watch @weight tensor_o", "tensor_overflow"));
  EXPECT_TRUE(offers("watch @weight W", "WCL"));
  EXPECT_EQ(offered("watch @weight WCL abs"), (Names{"abs_mean_update_ratio_gt="}));
  EXPECT_EQ(offered("s:watch { on = \"@weight\", when = \"WCL\", abs"), (Names{"abs_mean_update_ratio_gt"}));
  EXPECT_TRUE(offers("watch @weight perc", "percent("));
  EXPECT_TRUE(offers("s:watch { on = \"@weight\", when = \"tensor_o", "tensor_overflow"));
}

TEST_F(Completion, BehindASelectorStandConditionsAndNoNodes) {
  const Names all = offered("watch @gradient ");
  ASSERT_GT(all.size(), 2u);
  EXPECT_EQ(all[0], "operator_overflow");
  EXPECT_EQ(all[1], "OO");
  EXPECT_EQ(std::find(all.begin(), all.end(), "Default/"), all.end());
  EXPECT_EQ(offered("watch @gradient tensor_o"), (Names{"tensor_overflow"}));
  EXPECT_EQ(offered("watch @gradient wcl"), (Names{"WCL"}));
  EXPECT_TRUE(offered("watch @gradient MatM").empty());
  EXPECT_TRUE(offers("watch op:ReLU and not op:Log tensor_ov", "tensor_overflow"));
  EXPECT_TRUE(offers("bisect fc.weight --when tensor_ov", "tensor_overflow"));
}

TEST_F(Completion, SelectorsOfWatchGoOnBehindAnd) {
  EXPECT_EQ(offered("watch MatM"), (Names{"MatMul-op0"}));
  EXPECT_EQ(offered("watch @activation and MatM"), (Names{"MatMul-op0"}));
  EXPECT_EQ(offered("watch not op:Re"), (Names{"op:ReLU", "op:ReluGrad"}));
  EXPECT_TRUE(offers("watch @activation an", "and"));
}

TEST_F(Completion, ExpressionsOfWatchAreMadeOfFunctions) {
  EXPECT_EQ(offered("watch @gradient percent(abs(x) > 3*st"), (Names{"std(", "step"}));
  EXPECT_TRUE(offered("watch @weight WCL abs_mean_update_ratio_gt=").empty());
}

TEST_F(Completion, KnowsFieldsAndMethodsOfObjects) {
  EXPECT_TRUE(offers("s:wat", "s:watch"));
  EXPECT_TRUE(offers("x = s.cur", "s.current_step"));
  EXPECT_TRUE(offers("msdbg.o", "msdbg.open"));
  type("t = s:tensor 'Log-op0'");
  EXPECT_EQ(offered("t.stats.nan"), (Names{"t.stats.nan_count"}));
  EXPECT_EQ(offered("t:prev"), (Names{"t:previous"}));
  type("mine = { alpha = { beta = 1 } }");
  EXPECT_EQ(offered("mine.alpha.b"), (Names{"mine.alpha.beta"}));
  EXPECT_EQ(offered("?t:prev"), (Names{"?t:previous"}));
}

TEST_F(Completion, FollowsTypesThroughCallsWithoutMakingThem) {
  EXPECT_EQ(offered("s:tensor(\"Log-op0\", { step = 1 }).sta"), (Names{".stats"}));
  EXPECT_EQ(offered("s:tensor \"Log-op0\".stats.nan"), (Names{".stats.nan_count"}));
  EXPECT_EQ(offered("s:check().hits[1].nod"), (Names{".node"}));
  EXPECT_TRUE(offers("s:nodes(\"**\")[1].tra", ".trainable"));
  EXPECT_EQ(type("s.last_result"), "nil");  // the check did not run
}

TEST_F(Completion, KnowsOptionsOfCalls) {
  EXPECT_EQ(offered("s:check { ran"), (Names{"ranks"}));
  EXPECT_EQ(offered("s:watch { on = \"**\", opt"), (Names{"optional"}));
  EXPECT_EQ(offered("s:tensor(\"Log-op0\", { exe"), (Names{"execution"}));
}

TEST_F(Completion, KnowsNamesInsideStrings) {
  EXPECT_TRUE(offers("s:tensor \"Log", "Log-op0"));
  EXPECT_TRUE(offers("s:nodes('@wei", "@weight"));
}

TEST_F(Completion, KnowsFiles) {
  const std::string folder = ::testing::TempDir();
  run("local f = io.open('" + folder + "completion-sample.msdbg', 'w'); f:close()");
  EXPECT_EQ(offered("source " + folder + "completion-sa"), (Names{folder + "completion-sample.msdbg"}));
  EXPECT_EQ(offered("nodes > " + folder + "completion-sa"), (Names{folder + "completion-sample.msdbg"}));
  EXPECT_EQ(offered("where MatMul-op0 x > 3 >> " + folder + "completion-sa"), (Names{folder + "completion-sample.msdbg"}));
  EXPECT_EQ(offered("where MatMul-op0 x > isn"), (Names{"isnan("}));
  EXPECT_EQ(offered("msdbg.open \"" + folder + "completion-sa"), (Names{folder + "completion-sample.msdbg"}));
}

TEST_F(Completion, WithoutSessionNothingIsKnownOfNodes) {
  auto empty = Script::create(small_options());
  ASSERT_TRUE(empty.ok());
  EXPECT_TRUE((*empty)->complete("show Lo", 7).empty());
  EXPECT_FALSE((*empty)->complete("ms", 2).empty());
}

TEST(NameIndex, NumbersAreInTheirOrder) {
  const script::NameIndex index({fake_graph({{"a/op10", "X"}, {"a/op9", "X"}, {"a/op2/inner", "Y"}, {"a/op2", "Z"}})});
  EXPECT_EQ(index.complete("a/", 10), (std::vector<std::string>{"a/op2", "a/op2/", "a/op9", "a/op10"}));
  EXPECT_EQ(index.complete("a/", 2), (std::vector<std::string>{"a/op2", "a/op2/"}));
  EXPECT_EQ(index.op_types(), (std::vector<std::string>{"X", "Y", "Z"}));
}

// In an order in which few names follow a neighbour, and with more scopes than names: the index grows.
TEST(NameIndex, ManyNamesInAnyOrderAreFoundOnce) {
  constexpr int kNames = 5000;
  std::vector<FakeNode> names;
  for (int i = 0; i < kNames; ++i) {
    const int k = i * 1237 % kNames;  // coprime: each once
    names.push_back({"net/" + std::to_string(k % 7) + "-cell/op" + std::to_string(k), "X"});
  }
  for (int i = 0; i < kNames; ++i) {
    const std::string number = std::to_string(i);
    names.push_back({"deep/a" + number + "/b" + number + "/leaf" + number, "X"});
  }
  const std::vector<FakeNode> again{{"net/3-cell/op3", "X"}, {"net/3-cell", "Y"}, {"network/3-cell", "Y"}};
  const script::NameIndex index({fake_graph(names), fake_graph(again)});
  EXPECT_EQ(index.complete("op", 2 * kNames).size(), size_t{kNames});
  for (int cell = 0; cell < 7; ++cell) {
    std::vector<std::string> expected;
    for (int k = cell; k < kNames; k += 7) expected.push_back("net/" + std::to_string(cell) + "-cell/op" + std::to_string(k));
    EXPECT_EQ(index.complete("net/" + std::to_string(cell) + "-cell/", kNames), expected);
  }
  EXPECT_EQ(index.complete("leaf", 2 * kNames).size(), size_t{kNames});
  EXPECT_EQ(index.complete("a4321/", 10), (std::vector<std::string>{"a4321/b4321/"}));
  EXPECT_EQ(index.complete("net/3", 10), (std::vector<std::string>{"net/3-cell", "net/3-cell/"}));
  EXPECT_EQ(index.complete("ne", 10), (std::vector<std::string>{"net/", "network/"}));
}

TEST(NameIndex, OddNamesAreKept) {
  const script::NameIndex index({fake_graph({{"/leading", "X"}, {"double//slash", "X"}, {"trailing/", "X"}, {"\xd1\x84", "X"}})});
  EXPECT_EQ(index.complete("double/", 10), (std::vector<std::string>{"double//"}));
  EXPECT_EQ(index.complete("double//", 10), (std::vector<std::string>{"double//slash"}));
  EXPECT_EQ(index.complete("\xd1", 10), (std::vector<std::string>{"\xd1\x84"}));
  EXPECT_TRUE(index.complete("////", 10).empty());
}

}  // namespace
}  // namespace msdbg::testing
