// Completion in shells and manual pages: both come from the commands' declarations.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <set>
#include <sstream>

#include "app/command.h"
#include "app/describe.h"
#include "app/help.h"
#include "app/manual.h"
#include "app/shell_completion.h"
#include "support/temp_dir.h"

namespace msdbg::app {
namespace {

std::set<std::string> candidates(const std::vector<std::string>& words) {
  std::set<std::string> out;
  std::istringstream lines(complete_words(words));
  for (std::string line; std::getline(lines, line);) out.insert(line.substr(0, line.find('\t')));
  return out;
}

using Words = std::set<std::string>;

TEST(Completion, KnowsEveryCommandAndItsOptions) {
  const Words commands = candidates({""});
  for (const CommandEntry& entry : command_table()) {
    EXPECT_TRUE(commands.count(std::string(entry.name))) << entry.name;
    const Words options = candidates({std::string(entry.name), "-"});
    for (const auto& option : describe(entry, Place::kShell).options) {
      for (const std::string& name : option.names) EXPECT_TRUE(options.count(name)) << entry.name << " " << name;
    }
  }
  EXPECT_EQ(candidates({"ori"}), (Words{"origin", ":files"}));
  EXPECT_EQ(candidates({"check", "--base"}), (Words{"--baseline", "--baseline-steps"}));
}

TEST(Completion, ListsTheValuesThatAnOptionTakes) {
  EXPECT_EQ(candidates({"check", "dump", "--format", ""}), (Words{"csv", "json", "jsonl", "junit", "markdown", "sarif", "table"}));
  EXPECT_EQ(candidates({"check", "--semantics", ""}), (Words{"compat", "finite"}));
  EXPECT_EQ(candidates({"check", "--color", "a"}), (Words{"always", "auto"}));
  EXPECT_EQ(candidates({"check", "--nan", ""}), (Words{"clean", "hit"}));
  EXPECT_EQ(candidates({"check", "--slots", ""}), (Words{"all", "input", "output"}));
  EXPECT_EQ(candidates({"check", "--dec-mode", ""}), (Words{"auto", "cbc", "gcm", "sm4-cbc"}));
  EXPECT_EQ(candidates({"check", "--baseline", ""}), Words{":files"});
}

TEST(Completion, KnowsTheCommandsOfACommand) {
  const Words verbs = candidates({"ckpt", ""});
  EXPECT_TRUE(verbs.count("diff") && verbs.count("show"));
  EXPECT_FALSE(verbs.count(":files"));
  EXPECT_TRUE(candidates({"ckpt", "diff", "a.ckpt", "--"}).count("--key"));
  EXPECT_TRUE(candidates({"help", "or"}).count("origin"));
  EXPECT_EQ(candidates({"check", "dumps/"}), Words{":files"});
}

TEST(Completion, HasAScriptForEachShell) {
  for (const char* shell : {"bash", "zsh", "fish"})
    EXPECT_NE(completion_script(shell).value().find("--complete"), std::string::npos) << shell;
  const Status refused = completion_script("tcsh").status();
  EXPECT_EQ(refused.code(), Code::kInvalidArgument);
  EXPECT_NE(refused.message().find("'tcsh'"), std::string::npos);
}

TEST(Completion, WorksInBash) {
  const test::TempDir directory;
  std::ofstream(directory.file("session.sh")) << completion_script("bash").value() << R"(
touch 'a file' afile
COMP_WORDS=(")" << MSDBG_PROGRAM << R"(" check --sem)
COMP_CWORD=2
_msdbg; printf '%s;' "${COMPREPLY[@]}"
COMP_WORDS[2]=a
_msdbg; printf '%s;' "${COMPREPLY[@]}"
)";
  const std::string command = "cd '" + directory.file("") + "' && bash session.sh";
  FILE* pipe = popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string out;
  for (int c; (c = std::fgetc(pipe)) != EOF;) out += static_cast<char>(c);
  EXPECT_EQ(pclose(pipe), 0);
  EXPECT_TRUE(out == "--semantics;a file;afile;" || out == "--semantics;afile;a file;") << out;
}

TEST(Manual, HasAPageForEachCommand) {
  const std::string main = manual_page("").value();
  EXPECT_EQ(main.find(".TH MSDBG 1"), 0u);
  for (const CommandEntry& entry : command_table()) {
    EXPECT_NE(main.find(entry.summary.substr(0, entry.summary.find('-'))), std::string::npos) << entry.name;
    const std::string page = manual_page(entry.name).value();
    for (const auto& option : describe(entry, Place::kShell).options) {
      std::string name = option.names.front();
      for (size_t at = 0; (at = name.find('-', at)) != std::string::npos; at += 2) name.insert(at, "\\");
      EXPECT_NE(page.find("\\fB" + name + "\\fR"), std::string::npos) << entry.name << " " << name;
    }
    // A line of text that begins with a period would be a macro.
    std::istringstream lines(page);
    for (std::string line; std::getline(lines, line);) {
      const Words macros = {".TH", ".SH", ".TP", ".B", ".I", ".BR", ".PP", ".nf", ".fi", ".br"};
      if (line.starts_with('.')) {
        EXPECT_TRUE(macros.count(line.substr(0, line.find(' ')))) << line;
      }
    }
  }
  EXPECT_EQ(manual_page("no-such").status().code(), Code::kInvalidArgument);
}

TEST(Manual, ListsEveryExitStatus) {
  const auto statuses = exit_statuses();
  ASSERT_EQ(statuses.size(), 9u);
  EXPECT_EQ(statuses.front(), (std::pair<std::string, std::string>("0", "clean")));
  EXPECT_EQ(statuses.back(), (std::pair<std::string, std::string>("130", "interrupted")));
}

}  // namespace
}  // namespace msdbg::app
