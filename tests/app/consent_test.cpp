// Project rules are read only after the user at the terminal has agreed.
#include "app/terminal.h"

#include <cstdio>
#include <fstream>

namespace msdbg {
namespace {

using testing::Terminal;

/// A project directory with one rule, above the working directory.
class Consent : public ::testing::Test {
 protected:
  Consent() {
    const std::filesystem::path project = Terminal::home() + "-project";
    std::filesystem::create_directories(project / ".msdbg/rules");
    inside_ = (project / "a/b").string();
    std::filesystem::create_directories(inside_);
    // Reading the file leaves a trace.
    trace_ = (project / "was-read").string();
    std::filesystem::remove(trace_);
    std::ofstream(project / ".msdbg/rules/ours.lua")
        << "io.open('" << trace_ << "', 'w'):close()\n"
        << "return require 'msdbg.rule' { name = 'ours', summary = 'of the project', when = 'max(x) > 0' }\n";
  }
  bool was_read() const { return std::filesystem::exists(trace_); }

  std::string inside_, trace_;
};

TEST_F(Consent, YesReadsTheRules) {
  Terminal t({"rules", "list"}, inside_);
  ASSERT_TRUE(t.see("/.msdbg/rules holds rules.")) << t.screen();
  ASSERT_TRUE(t.see("Read them? [y/N] ")) << t.screen();
  EXPECT_FALSE(was_read());
  t.type("y\r");
  EXPECT_EQ(t.wait_for_exit(), 0) << t.screen();
  EXPECT_TRUE(was_read());
  EXPECT_NE(t.screen().find("of the project"), std::string::npos) << t.screen();
}

TEST_F(Consent, AnythingElseLeavesThemOutAndSaysHowToReadThem) {
  for (const char* answer : {"n\r", "\r", "maybe\r", "\004"}) {
    Terminal t({"rules", "list"}, inside_);
    ASSERT_TRUE(t.see("Read them? [y/N] ")) << t.screen();
    t.type(answer);
    EXPECT_EQ(t.wait_for_exit(), 0) << t.screen();
    EXPECT_FALSE(was_read()) << t.screen();
    EXPECT_NE(t.screen().find("were left out; --trust reads them"), std::string::npos) << t.screen();
    EXPECT_EQ(t.screen().find("of the project"), std::string::npos) << t.screen();
  }
}

TEST_F(Consent, IsNotAskedForWithTrust) {
  Terminal t({"rules", "list", "--trust"}, inside_);
  EXPECT_EQ(t.wait_for_exit(), 0) << t.screen();
  EXPECT_EQ(t.screen().find("Read them?"), std::string::npos) << t.screen();
  EXPECT_TRUE(was_read());
}

TEST_F(Consent, ThePromptAsksOnceWhenItStarts) {
  Terminal t({"repl"}, inside_);
  ASSERT_TRUE(t.see("/.msdbg/rules holds rules.")) << t.screen();
  ASSERT_TRUE(t.see("Read them? [y/N] ")) << t.screen();
  EXPECT_FALSE(was_read());
  t.type("y\r");
  ASSERT_TRUE(t.see("> ")) << t.screen();
  t.type("rules info ours\r");
  ASSERT_TRUE(t.see("of the project")) << t.screen();
  EXPECT_EQ(t.screen().find("Read them?", t.screen().find("Read them?") + 1), std::string::npos) << t.screen();
}

TEST_F(Consent, ThePromptLeavesThemOutWithoutAYes) {
  Terminal t({"repl"}, inside_);
  ASSERT_TRUE(t.see("Read them? [y/N] ")) << t.screen();
  t.type("\r");
  ASSERT_TRUE(t.see("> ")) << t.screen();
  t.type("rules list\r");
  ASSERT_TRUE(t.see("were left out; --trust reads them")) << t.screen();
  EXPECT_FALSE(was_read());
}

TEST_F(Consent, NobodyIsAskedWithoutATerminal) {
  const std::string command = "cd '" + inside_ + "' && echo 'rules list' | " MSDBG_PROGRAM " repl 2>&1";
  FILE* pipe = ::popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string said;
  char block[4096];
  for (size_t n; (n = std::fread(block, 1, sizeof block, pipe)) > 0;) said.append(block, n);
  EXPECT_EQ(::pclose(pipe), 0);
  EXPECT_EQ(said.find("Read them?"), std::string::npos) << said;
  EXPECT_NE(said.find("were left out; --trust reads them"), std::string::npos) << said;
  EXPECT_FALSE(was_read());
}

}  // namespace
}  // namespace msdbg
