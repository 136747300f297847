#include "app/options.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "app/command.h"
#include "app/rules.h"
#include "msdbg/simd.h"

namespace msdbg::app {
namespace {

Parsed parse(std::initializer_list<std::string> words) { return parse_command_line(words); }

TEST(Options, CheckTakesItsWords) {
  const Parsed p = parse({"check", "d", "--rules", "TO,TZ", "--steps", "0:10", "--threads", "3", "--format", "json", "--strict"});
  ASSERT_FALSE(p.done) << p.err;
  EXPECT_EQ(p.entry->name, "check");
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

TEST(Options, ListenMayAnswerOnly) {
  const Parsed p = parse({"listen", "--answer-only", "--sockets", "3,4", "--ready", "5", "--graph-from", "a.rec"});
  ASSERT_FALSE(p.done) << p.err;
  EXPECT_TRUE(p.options.answer_only);
  EXPECT_EQ(p.options.sockets, (std::vector<int>{3, 4}));
  EXPECT_EQ(p.options.ready, 5);
  EXPECT_EQ(p.options.graph_from, "a.rec");
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

TEST(Options, VersionNamesWhatIsSupported) {
  const std::string text = parse({"--version"}).out;
  EXPECT_EQ(text.substr(0, text.find('\n')), "msdbg " + std::string(kVersion));  // scripts read the first line
  for (const char* part :
       {"MindSpore 1.0 to 2.10", "msprobe 1.2 to 26.2", "generations 1.0, 1.1, 1.3", "scalar", "index        version 2"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
  const auto json = nlohmann::json::parse(parse({"--version", "--format", "json"}).out);
  EXPECT_EQ(json["msdbg"], kVersion);
  EXPECT_EQ(json["dump_releases"], (nlohmann::json{{"first", "1.0"}, {"last", "2.10"}}));
  EXPECT_EQ(json["msprobe_releases"], (nlohmann::json{{"first", "1.2"}, {"last", "26.2"}}));
  EXPECT_EQ(json["protocol_generations"].front(), "1.0");
  EXPECT_EQ(json["simd"]["available"].front(), "scalar");
  EXPECT_EQ(json["simd"]["target"], simd_target());
  EXPECT_EQ(json["index_version"], 2);
  EXPECT_EQ(parse({"--version", "--format", "csv"}).exit_status, kExitUsage);
  EXPECT_EQ(parse({"--version", "dumps"}).exit_status, kExitUsage);
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
  EXPECT_EQ(p.entry->name, "repl");
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
                    BadWords{{"check", "d", "--slots", "both"}, "both"}, BadWords{{"source", "d"}, "msdbg list DUMP"},
                    BadWords{{"rules", "nonsense"}, "not one of list, info, test, new"},
                    BadWords{{"check", "d", "--semantics", "strict"}, "strict"}, BadWords{{"check", "d", "extra"}, "extra"},
                    BadWords{{"check", "d", "--threads", "-1"}, "threads"}));

TEST(Options, HelpOfEveryCommandHasExamplesAndStatuses) {
  for (const CommandEntry& command : command_table()) {
    const Parsed p = parse({std::string(command.name), "--help"});
    EXPECT_TRUE(p.done);
    EXPECT_EQ(p.exit_status, kExitClean);
    EXPECT_NE(p.out.find("Usage: msdbg " + std::string(command.name)), std::string::npos) << p.out;
    EXPECT_NE(p.out.find("Examples:"), std::string::npos) << command.name;
    EXPECT_NE(p.out.find("Exit status:"), std::string::npos) << command.name;
    EXPECT_LE(command.summary.size(), 60u) << command.name;
  }
}

TEST(Watchpoints, ConditionsGoWhereTheyAreMadeFor) {
  const auto list = watches_from(parse({"check", "d", "--when", "WNC", "--when", "GV abs_mean_lt=1e-9"}).options);
  ASSERT_TRUE(list) << list.status().message();
  EXPECT_EQ(list->at(0).on.text(), "@weight");
  EXPECT_EQ(list->at(1).on.text(), "@gradient");
  EXPECT_EQ(list->at(1).condition->param("abs_mean_lt"), 1e-9);
}

TEST(Options, WhatConcernsEveryCommandMayStandBeforeIt) {
  const Parsed p = parse({"-q", "-vv", "--log", "l.txt", "--color=never", "check", "d", "--steps", "3"});
  ASSERT_FALSE(p.done) << p.err;
  EXPECT_EQ(p.entry->name, "check");
  EXPECT_TRUE(p.options.quiet);
  EXPECT_EQ(p.options.verbose, 2);
  EXPECT_EQ(p.options.log_file, "l.txt");
  EXPECT_EQ(p.options.colour, Switch::kNever);
  EXPECT_EQ(parse({"-q", "/"}).entry->name, "repl");
  EXPECT_NE(parse({"--steps", "3", "check", "d"}).err.find("--steps cannot come before a command"), std::string::npos);
  EXPECT_NE(parse({"--log"}).err.find("--log needs a value"), std::string::npos);
}

TEST(Options, RunTakesCodeOrAScript) {
  const Parsed code = parse({"run", "-e", "print(...)", "a", "b", "--rules"});
  ASSERT_FALSE(code.done) << code.err;
  EXPECT_EQ(code.options.eval, std::vector<std::string>{"print(...)"});
  EXPECT_EQ(code.options.arguments, (std::vector<std::string>{"a", "b", "--rules"}));
  const Parsed script = parse({"run", "-q", "x.lua", "--", "-q", "--", "b"});
  ASSERT_FALSE(script.done) << script.err;
  EXPECT_EQ(script.options.script, "x.lua");
  EXPECT_EQ(script.options.arguments, (std::vector<std::string>{"-q", "--", "b"}));
  EXPECT_NE(parse({"run"}).err.find("which script"), std::string::npos);
}

TEST(Options, SelectorsNeedNoQuotes) {
  EXPECT_FALSE(parse({"nodes", "d", "op:MatMul", "and", "@gradient"}).done);
  EXPECT_FALSE(parse({"nodes", "d", "op:MatMul", "and", "@gradient", "--wide"}).done);
}

TEST(Options, ListenHasDefaults) {
  const Parsed p = parse({"listen"});
  ASSERT_FALSE(p.done) << p.err;
  EXPECT_EQ(p.entry->name, "listen");
  EXPECT_EQ(p.options.port, 50051);
  EXPECT_EQ(p.options.bind, "127.0.0.1");
  EXPECT_EQ(p.options.script, "");
  EXPECT_FALSE(p.options.timeout_s);
}

TEST(Options, ListenTakesItsWords) {
  const Parsed p = parse({"listen", "--port", "0", "--bind", "0.0.0.0", "--script", "a.lua", "--record", "r", "--mem-limit", "512",
                          "--timeout", "2.5", "--answer-timeout", "0.5", "--history", "4", "--ranks", "3", "--", "x", "--port", "7"});
  ASSERT_FALSE(p.done) << p.err;
  EXPECT_EQ(p.options.port, 0);
  EXPECT_EQ(p.options.bind, "0.0.0.0");
  EXPECT_EQ(p.options.script, "a.lua");
  EXPECT_EQ(p.options.record, "r");
  EXPECT_EQ(p.options.mem_limit_mb, 512u);
  EXPECT_EQ(p.options.timeout_s, 2.5);
  EXPECT_EQ(p.options.history, 4);
  EXPECT_EQ(p.options.rank_count, 3);
  EXPECT_EQ(p.options.answer_timeout_s, 0.5);
  EXPECT_EQ(p.options.arguments, (std::vector<std::string>{"x", "--port", "7"}));
}

TEST(Options, ListenRefusesWhatCannotBe) {
  EXPECT_NE(parse({"listen", "--port", "70000"}).err.find("--port 70000 is not a port"), std::string::npos);
  EXPECT_NE(parse({"listen", "--timeout", "-1"}).err.find("--timeout -1 is out of range"), std::string::npos);
  EXPECT_NE(parse({"listen", "--timeout", "-3"}).err.find("--timeout -3 is out of range"), std::string::npos);
  EXPECT_NE(parse({"listen", "--answer-timeout", "0"}).err.find("--answer-timeout 0 is out of range"), std::string::npos);
  for (const char* ranks : {"0", "257"})
    EXPECT_NE(parse({"listen", "--ranks", ranks}).err.find("is out of range; give the number of processes"), std::string::npos) << ranks;
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
  EXPECT_EQ(p.entry->name, "open");
  EXPECT_EQ(p.options.dump, "x.rec");
  EXPECT_EQ(p.options.eval, std::vector<std::string>{"step"});
  EXPECT_EQ(parse({"open"}).exit_status, kExitUsage);
}

}  // namespace
}  // namespace msdbg::app
