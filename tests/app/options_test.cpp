#include "app/options.h"

#include <gtest/gtest.h>

#include "app/run.h"

namespace msdbg::app {
namespace {

Parsed parse(std::initializer_list<std::string> words) { return parse_command_line(words); }

TEST(Options, CheckTakesItsWords) {
  const Parsed p = parse({"check", "d", "--rules", "TO,TZ", "--steps", "0:10", "--threads", "3", "--format", "json", "--strict"});
  ASSERT_FALSE(p.done) << p.err;
  EXPECT_EQ(p.options.command, Command::kCheck);
  EXPECT_EQ(p.options.dump, "d");
  EXPECT_EQ(p.options.rules, "TO,TZ");
  EXPECT_TRUE(p.options.steps.contains(10));
  EXPECT_FALSE(p.options.steps.contains(11));
  EXPECT_EQ(p.options.threads, 3u);
  EXPECT_EQ(p.options.format, Format::kJson);
  EXPECT_TRUE(p.options.strict);
}

TEST(Options, SeveralConditionsPairWithTheirSelectors) {
  const Parsed p = parse({"check", "d", "--on", "@weight", "--when", "WNC", "--on", "relu", "--when", "TZ 50"});
  ASSERT_FALSE(p.done) << p.err;
  ASSERT_EQ(p.options.watches.size(), 2u);
  EXPECT_EQ(p.options.watches[1].first, "relu");
  EXPECT_EQ(p.options.watches[1].second, "TZ 50");
}

TEST(Options, ScriptArgumentsAreLeftAlone) {
  const Parsed p = parse({"run", "x.lua", "dump", "--format", "json", "-q"});
  ASSERT_FALSE(p.done) << p.err;
  EXPECT_EQ(p.options.script, "x.lua");
  EXPECT_EQ(p.options.arguments, (std::vector<std::string>{"dump", "--format", "json", "-q"}));
}

TEST(Options, NumbersDoNotWrapAround) {
  for (const char* limit : {"-5", "99999999999999999999", "17592186044416"}) {
    EXPECT_EQ(parse({"check", "d", "--mem-limit", limit}).exit_status, kExitUsage) << limit;
  }
  for (const char* option : {"--rows", "--bins", "--execution"}) {
    EXPECT_EQ(parse({"show", "d", "t", option, "-1"}).exit_status, kExitUsage) << option;
  }
  EXPECT_EQ(parse({"show", "d", "t", "--graph", "4294967296"}).exit_status, kExitUsage);
}

TEST(Options, HelpIsAWord) {
  for (const auto& words : {std::vector<std::string>{"help"}, {"help", "check"}}) {
    const Parsed p = parse_command_line(words);
    EXPECT_TRUE(p.done);
    EXPECT_EQ(p.exit_status, kExitClean);
    EXPECT_NE(p.out.find(words.size() == 1 ? "Examples:" : "--rules"), std::string::npos) << p.out;
  }
  EXPECT_EQ(parse({"help", "nothing"}).exit_status, kExitUsage);
}

TEST(Options, DirectoryAloneOpensThePrompt) {
  const Parsed p = parse({"/"});
  ASSERT_FALSE(p.done) << p.err;
  EXPECT_EQ(p.options.command, Command::kRepl);
  EXPECT_EQ(p.options.dump, "/");
}

struct BadWords {
  std::vector<std::string> words;
  std::string said;
};
class UsageError : public testing::TestWithParam<BadWords> {};

TEST_P(UsageError, EndsWithStatusTwoAndNamesTheWord) {
  const Parsed p = parse_command_line(GetParam().words);
  EXPECT_TRUE(p.done);
  EXPECT_EQ(p.exit_status, kExitUsage);
  EXPECT_NE(p.err.find(GetParam().said), std::string::npos) << p.err;
  EXPECT_EQ(p.err.rfind("msdbg: ", 0), 0u);
}

INSTANTIATE_TEST_SUITE_P(
    Options, UsageError,
    testing::Values(BadWords{{"chekc", "d"}, "did you mean 'check'"}, BadWords{{"check"}, "DUMP"},
                    BadWords{{"check", "d", "--stpes", "3"}, "did you mean '--steps'"},
                    BadWords{{"check", "d", "--steps", "x"}, "--steps: 'x'"}, BadWords{{"check", "d", "--format", "yaml"}, "yaml"},
                    BadWords{{"check", "d", "--mem-limit", "5"}, "at least 64"}, BadWords{{"check", "d", "--color", "blue"}, "blue"},
                    BadWords{{"stats", "d", "--format", "sarif"}, "--format sarif is not for this command; use table"},
                    BadWords{{"check", "d", "--baseline-steps"}, "--bless"}, BadWords{{"check", "d", "--on", "x"}, "--when"},
                    BadWords{{"check", "d", "--slots", "both"}, "both"}, BadWords{{"check", "d", "--semantics", "strict"}, "strict"},
                    BadWords{{"check", "d", "extra"}, "extra"}, BadWords{{"check", "d", "--threads", "-1"}, "threads"}));

TEST(Options, HelpOfEveryCommandHasExamplesAndStatuses) {
  for (const char* command : {"check", "origin", "stats", "show", "nodes", "doctor", "run", "repl", "demo"}) {
    const Parsed p = parse({command, "--help"});
    EXPECT_TRUE(p.done);
    EXPECT_EQ(p.exit_status, kExitClean);
    EXPECT_NE(p.out.find("Examples:"), std::string::npos) << command;
    EXPECT_NE(p.out.find("Exit status:"), std::string::npos) << command;
  }
  EXPECT_EQ(parse({"--version"}).out, "msdbg 0.1.0\n");
}

TEST(Watchpoints, DefaultRulesLookAtEverything) {
  const auto list = watchpoints_from(parse({"check", "d"}).options);
  ASSERT_TRUE(list) << list.status().message();
  ASSERT_EQ(list->size(), 1u);
  EXPECT_EQ(list->front().rule, "tensor_overflow");
  EXPECT_EQ(list->front().on.text(), "@all");
}

TEST(Watchpoints, ConditionsGoWhereTheyAreMadeFor) {
  const auto list = watchpoints_from(parse({"check", "d", "--rules", "WNC,GV", "--param", "GV.abs_mean_lt=1e-9"}).options);
  ASSERT_TRUE(list) << list.status().message();
  EXPECT_EQ(list->at(0).on.text(), "@weight");
  EXPECT_EQ(list->at(1).on.text(), "@gradient");
  EXPECT_EQ(list->at(1).condition->param("abs_mean_lt"), 1e-9);
}

TEST(Watchpoints, RecommendedSetParses) {
  const auto list = watchpoints_from(parse({"check", "d", "--rules", "recommended"}).options);
  ASSERT_TRUE(list) << list.status().message();
  EXPECT_EQ(list->size(), 9u);
}

TEST(Watchpoints, MistakesNameTheWord) {
  const auto said = [](std::initializer_list<std::string> words) {
    const auto list = watchpoints_from(parse_command_line(words).options);
    EXPECT_FALSE(list);
    return list ? std::string() : list.status().message();
  };
  EXPECT_NE(said({"check", "d", "--rules", "TX"}).find("TX"), std::string::npos);
  EXPECT_NE(said({"check", "d", "--rules", "TO,,TZ"}).find("empty"), std::string::npos);
  EXPECT_NE(said({"check", "d", "--rules", "TL"}).find("abs_mean_gt"), std::string::npos);
  EXPECT_NE(said({"check", "d", "--param", "TL.max_gt=3"}).find("not among"), std::string::npos);
  EXPECT_NE(said({"check", "d", "--param", "TL"}).find("RULE.NAME=VALUE"), std::string::npos);
  EXPECT_NE(said({"check", "d", "--when", "TZ", "--param", "TZ.zero_percentage_ge=3"}).find("--when"), std::string::npos);
}

TEST(Options, ListenHasDefaults) {
  const Parsed p = parse({"listen"});
  ASSERT_FALSE(p.done) << p.err;
  EXPECT_EQ(p.options.command, Command::kListen);
  EXPECT_EQ(p.options.port, 50051);
  EXPECT_EQ(p.options.bind, "127.0.0.1");
  EXPECT_EQ(p.options.script, "");
  EXPECT_FALSE(p.options.timeout_s);
}

TEST(Options, ListenTakesItsWords) {
  const Parsed p = parse({"listen", "--port", "0", "--bind", "0.0.0.0", "--script", "a.lua", "--record", "r", "--mem-limit", "512",
                          "--timeout", "2.5", "--answer-timeout", "0.5", "--history", "4", "--", "x", "--port", "7"});
  ASSERT_FALSE(p.done) << p.err;
  EXPECT_EQ(p.options.port, 0);
  EXPECT_EQ(p.options.bind, "0.0.0.0");
  EXPECT_EQ(p.options.script, "a.lua");
  EXPECT_EQ(p.options.record, "r");
  EXPECT_EQ(p.options.mem_limit_mb, 512u);
  EXPECT_EQ(p.options.timeout_s, 2.5);
  EXPECT_EQ(p.options.history, 4);
  EXPECT_EQ(p.options.answer_timeout_s, 0.5);
  EXPECT_EQ(p.options.arguments, (std::vector<std::string>{"x", "--port", "7"}));
}

TEST(Options, ListenRefusesWhatCannotBe) {
  EXPECT_NE(parse({"listen", "--port", "70000"}).err.find("--port 70000 is not a port"), std::string::npos);
  EXPECT_NE(parse({"listen", "--timeout", "-1"}).err.find("--timeout -1 is out of range"), std::string::npos);
  EXPECT_NE(parse({"listen", "--timeout", "-3"}).err.find("--timeout -3 is out of range"), std::string::npos);
  EXPECT_NE(parse({"listen", "--answer-timeout", "0"}).err.find("--answer-timeout 0 is out of range"), std::string::npos);
  EXPECT_NE(parse({"listen", "--history", "-1"}).err.find("--history -1 is out of range"), std::string::npos);
  EXPECT_NE(parse({"listen", "--", "x"}).err.find("'x' after -- is for a script"), std::string::npos);
  EXPECT_NE(parse({"listen", "--prot", "1"}).err.find("did you mean '--port'?"), std::string::npos);
  EXPECT_EQ(parse({"listen", "stray"}).exit_status, kExitUsage);
}

TEST(Options, ListenHelpWarnsOfTheNetwork) {
  const Parsed p = parse({"listen", "--help"});
  EXPECT_EQ(p.exit_status, kExitClean);
  EXPECT_NE(p.out.find("neither encryption nor login"), std::string::npos);
  EXPECT_NE(p.out.find("--mem-limit"), std::string::npos);
}

TEST(Options, OpenIsThePromptOnAPath) {
  const Parsed p = parse({"open", "x.rec", "-e", "step", "--batch"});
  ASSERT_FALSE(p.done) << p.err;
  EXPECT_EQ(p.options.command, Command::kRepl);
  EXPECT_EQ(p.options.dump, "x.rec");
  EXPECT_EQ(p.options.eval, std::vector<std::string>{"step"});
  EXPECT_EQ(parse({"open"}).exit_status, kExitUsage);
}

}  // namespace
}  // namespace msdbg::app
