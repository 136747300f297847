// A directory appears complete or not at all.
#include "msdbg/atomic_directory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "support/temp_dir.h"

namespace msdbg {
namespace {

namespace fs = std::filesystem;

class AtomicDirectoryTest : public testing::Test {
 protected:
  size_t entries() const { return static_cast<size_t>(std::distance(fs::directory_iterator(dir_.file("")), {})); }
  static void fill(const AtomicDirectory& directory) { std::ofstream(directory.path() + "/a.txt") << "text"; }

  test::TempDir dir_;
  const std::string path_ = dir_.file("made");
};

TEST_F(AtomicDirectoryTest, AppearsWhenItIsComplete) {
  auto directory = AtomicDirectory::create(path_ + "/");
  ASSERT_TRUE(directory.ok()) << directory.status().message();
  fill(*directory);
  EXPECT_FALSE(fs::exists(path_));
  EXPECT_TRUE(directory->commit().ok());
  EXPECT_TRUE(fs::exists(path_ + "/a.txt"));
  EXPECT_EQ(entries(), 1u);
}

TEST_F(AtomicDirectoryTest, LeavesNothingWithoutCommit) {
  { fill(*AtomicDirectory::create(path_)); }
  EXPECT_EQ(entries(), 0u);
}

TEST_F(AtomicDirectoryTest, ReplacesOnlyAnEmptyDirectory) {
  fs::create_directory(path_);
  auto directory = AtomicDirectory::create(path_);
  ASSERT_TRUE(directory.ok());
  fill(*directory);
  ASSERT_TRUE(directory->commit().ok());
  const auto again = AtomicDirectory::create(path_);
  EXPECT_EQ(again.status().code(), Code::kInvalidArgument);
  EXPECT_NE(again.status().message().find("not an empty directory"), std::string::npos);
  EXPECT_EQ(AtomicDirectory::create("").status().code(), Code::kInvalidArgument);
  EXPECT_EQ(AtomicDirectory::create(dir_.file("no/such/parent")).status().code(), Code::kIoError);
}

TEST_F(AtomicDirectoryTest, DoesNotReplaceWhatAppearedMeanwhile) {
  auto directory = AtomicDirectory::create(path_);
  ASSERT_TRUE(directory.ok());
  fill(*directory);
  fs::create_directory(path_);
  std::ofstream(path_ + "/other.txt") << "other";
  EXPECT_EQ(directory->commit().code(), Code::kIoError);
  EXPECT_FALSE(fs::exists(path_ + "/a.txt"));
}

}  // namespace
}  // namespace msdbg
