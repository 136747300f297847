// The output of -v and --log.
#include <gtest/gtest.h>

#include <regex>

#include "msdbg/file.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace msdbg {
namespace {

using test::contains;
using test::Process;

const std::string kChecked = std::string(MSDBG_TEST_DATA) + "/dumps/lenet-2.7.1-ok";

std::string output_of(std::vector<std::string> words) {
  words.insert(words.begin(), MSDBG_PROGRAM);
  Process process(words);
  EXPECT_EQ(process.wait(), 0) << process.output();
  return process.output();
}

TEST(Log, LogsNothingByDefault) {
  const std::string plain = output_of({"check", kChecked});
  EXPECT_FALSE(contains(plain, "msdbg: ")) << plain;
}

TEST(Log, VerboseLogsWhatWasReadAndHowLongItTook) {
  const std::string said = output_of({"check", kChecked, "-v"});
  for (const char* part : {"msdbg: read graph ", "msdbg: opened ", "step directories listed", "msdbg: running ", "msdbg: checked ",
                           "MiB in ", "msdbg: ended with status 0 after "}) {
    EXPECT_TRUE(contains(said, part)) << part << "\n" << said;
  }
  EXPECT_FALSE(contains(said, ".npy")) << said;
}

TEST(Log, TwiceVerboseNamesEveryFile) {
  const std::string said = output_of({"check", kChecked, "-vv", "--no-index"});
  EXPECT_TRUE(contains(said, "msdbg: listed ")) << said;
  EXPECT_TRUE(std::regex_search(said, std::regex("msdbg: read [^\n]*\\.npy: [0-9.]+ [KMi]*B in "))) << said;
}

TEST(Log, FileHasEverythingWithTimes) {
  const test::TempDir dir;
  const std::string said = output_of({"check", kChecked, "--no-index", "--log", dir.file("log")});
  EXPECT_FALSE(contains(said, "msdbg: ")) << said;
  const auto log = read_text(dir.file("log"));
  ASSERT_TRUE(log) << log.status().message();
  const std::regex line("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}[+-][0-9]{2}:[0-9]{2} (debug|info) [^\n]+");
  size_t count = 0;
  for (const std::string_view each : split(trim(*log), '\n')) {
    EXPECT_TRUE(std::regex_match(std::string(each), line)) << each;
    ++count;
  }
  EXPECT_GT(count, 100u);
  EXPECT_TRUE(contains(*log, ".npy: ")) << *log;
}

}  // namespace
}  // namespace msdbg
