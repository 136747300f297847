// Paths that are not dumps.
#include <gtest/gtest.h>

#include "msdbg/dump.h"
#include "dump/dump_support.h"

namespace msdbg::testing {
namespace {

constexpr const char* kAddFile = "Add.Default_Add-op0.0.0.5.output.0.DefaultFormat.Float32.npy";

std::string refusal(const std::string& path) {
  const auto session = open_dump(path);
  EXPECT_FALSE(session.ok());
  if (session.ok()) return "";
  EXPECT_EQ(session.status().code(), Code::kNotFound);
  return session.status().message();
}

TEST(NoDump, NamesTheNearestDumpBelow) {
  TempDir dir;
  dir.npy("run3/rank_0/Net/0/0/" + std::string(kAddFile), {1});
  EXPECT_EQ(refusal(dir.path()),
            dir.path() + ": no dump here: neither rank_<n> nor a known older layout below it. Nearest candidates: " +
                dir.at("run3/rank_0") + ". See: msdbg doctor " + dir.path());
}

TEST(NoDump, NamesOlderLayoutsAndAtMostThree) {
  TempDir dir;
  dir.text("a/old/Net/iteration_1/x_output_0_shape_1_Float32_ND.bin", "1234");
  for (int i = 0; i < 5; ++i) dir.npy("b" + std::to_string(i) + "/rank_0/Net/0/0/" + kAddFile, {1});
  const std::string text = refusal(dir.path());
  EXPECT_NE(text.find(dir.at("b0/rank_0")), std::string::npos) << text;
  EXPECT_EQ(text.find(dir.at("b3/rank_0")), std::string::npos) << text;
  EXPECT_NE(refusal(dir.at("a")).find("no dump here"), std::string::npos);
}

TEST(NoDump, SaysWhenThereIsNoneBelowEither) {
  TempDir dir;
  dir.directory("a/b/c/d/e");
  EXPECT_NE(refusal(dir.path()).find("No dump within three levels below it either"), std::string::npos);
}

TEST(NoDump, LinksInACircleEndTheSearch) {
  TempDir dir;
  dir.link("a/back", dir.path());
  dir.link("self", "self");
  EXPECT_NE(refusal(dir.path()).find("no dump here"), std::string::npos);
}

TEST(NoDump, MissingPathsAndFilesAreNamed) {
  TempDir dir;
  dir.text("file", "x");
  EXPECT_NE(refusal(dir.at("absent")).find("absent: No such file or directory"), std::string::npos);
  EXPECT_NE(refusal(dir.at("file")).find("this is a file"), std::string::npos);
}

}  // namespace
}  // namespace msdbg::testing
