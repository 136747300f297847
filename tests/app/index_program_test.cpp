// The index through the program: the same bytes without it, with a new one, and from it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <regex>
#include <string>

#include "support/copy_dump.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace msdbg::app {
namespace {

using test::Process;

constexpr const char* kIndex = "/.msdbg-index.sqlite";

/// What a shell command prints; $0 is the program. Leaves out how much was read: that depends on whether a rule in one thread asks for a
/// value before another thread judges it.
std::string printed(const std::string& command) {
  Process process({"sh", "-c", command + " 2>&1; echo status $?", MSDBG_PROGRAM});
  process.wait();
  static const std::regex kRead(R"("bytes": ?\d+,\s*"from_cache": ?\d+)");
  return std::regex_replace(process.output(), kRead, "(read)");
}

class IndexProgram : public ::testing::TestWithParam<const char*> {
 protected:
  IndexProgram() : dump_(dir_.file(GetParam())) {
    test::copy_dump(std::string(MSDBG_TEST_DATA "/dumps/") + GetParam(), dump_);
  }
  bool has_index() const { return std::filesystem::exists(dump_ + kIndex); }

  test::TempDir dir_;
  const std::string dump_;
};

TEST_P(IndexProgram, PrintsTheSameBytesWithAndWithoutIt) {
  const std::vector<std::string> commands = {
      "check DUMP",
      "check DUMP --format json",
      "check DUMP --rules tensor_overflow,weight_change_too_small --format jsonl",
      "check DUMP --on '**/*' --when 'mean(abs(x - mean(x))) > 0'",
      "stats DUMP",
      "stats DUMP --format json",
      "stats DUMP --slots all --format csv",
      "stats DUMP --format markdown",
      "trend DUMP max --format json",
      "origin DUMP --format json",
      "layers DUMP",
      "doctor DUMP --format json",
      "nodes DUMP --format csv",
      "diff DUMP DUMP",
      "list DUMP"};
  std::vector<std::string> without;
  const auto words = [&](std::string command, const std::string& more) {
    for (size_t at; (at = command.find("DUMP")) != std::string::npos;) command.replace(at, 4, dump_);
    return "\"$0\" " + command + more;
  };
  for (const std::string& command : commands) {
    without.push_back(printed(words(command, " --no-index")));
    EXPECT_EQ(without.back().find("status 2"), std::string::npos) << without.back();
  }
  EXPECT_FALSE(has_index());
  ::usleep(2'100'000);  // files that changed a moment ago are not kept
  for (size_t i = 0; i < commands.size(); ++i) EXPECT_EQ(printed(words(commands[i], "")), without[i]) << commands[i];
  EXPECT_TRUE(has_index());
  for (size_t i = 0; i < commands.size(); ++i) EXPECT_EQ(printed(words(commands[i], "")), without[i]) << commands[i];
}

INSTANTIATE_TEST_SUITE_P(Dumps, IndexProgram, ::testing::Values("lenet-2.7.1-explode", "lenet-2.7.1-lognan"),
                         [](const auto& info) { return "Dump" + std::to_string(info.index); });

}  // namespace
}  // namespace msdbg::app
