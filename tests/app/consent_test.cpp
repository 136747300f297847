// Project rules are read only after the user at the terminal has agreed.
#include "app/terminal.h"

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

}  // namespace
}  // namespace msdbg
