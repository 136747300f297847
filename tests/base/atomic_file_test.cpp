// A file is replaced completely or not at all, including on disks that are full, read-only or broken.
#include "msdbg/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "msdbg/file.h"
#include "support/faulty_disk.h"
#include "support/temp_dir.h"

namespace msdbg {
namespace {

namespace fs = std::filesystem;
using test::FaultyDisk;

class AtomicFileTest : public testing::Test {
 protected:
  AtomicFileTest() { EXPECT_TRUE(write_file(path_, "the old text").ok()); }

  size_t files() const { return static_cast<size_t>(std::distance(fs::directory_iterator(dir_.file("")), {})); }
  static unsigned mode(const std::string& path) {
    struct stat info {};
    EXPECT_EQ(::stat(path.c_str(), &info), 0);
    return info.st_mode & 0777;
  }
  /// A failed write leaves the old text and no other file.
  void expect_untouched(const Status& status, const std::string& why) {
    EXPECT_EQ(status.code(), Code::kIoError);
    EXPECT_EQ(status.message(), path_ + ": cannot be written: " + why);
    EXPECT_EQ(*read_text(path_), "the old text");
    EXPECT_EQ(files(), 1u);
  }

  test::TempDir dir_;
  const std::string path_ = dir_.file("report.html");
};

TEST_F(AtomicFileTest, TheNewTextTakesThePlaceOfTheOldOne) {
  EXPECT_TRUE(write_file(path_, "new").ok());
  EXPECT_EQ(*read_text(path_), "new");
  EXPECT_EQ(files(), 1u);
}

TEST_F(AtomicFileTest, NothingHasHappenedBeforeCommit) {
  {
    Result<AtomicFile> file = AtomicFile::create(path_);
    ASSERT_TRUE(file);
    EXPECT_TRUE(file->append("half of the").ok());
    EXPECT_EQ(*read_text(path_), "the old text");
  }
  EXPECT_EQ(*read_text(path_), "the old text");
  EXPECT_EQ(files(), 1u);
}

TEST_F(AtomicFileTest, ShortWritesAndSignalsAreNoFaults) {
  {
    FaultyDisk disk;
    disk.most_bytes = 3;
    disk.interrupts = true;
    EXPECT_TRUE(write_file(path_, "a text of several writes").ok());
  }
  EXPECT_EQ(*read_text(path_), "a text of several writes");
}

TEST_F(AtomicFileTest, AFullDiskLeavesTheOldFile) {
  FaultyDisk disk;
  disk.room = 5;
  expect_untouched(write_file(path_, "longer than that"), "stopped after 5 B: No space left on device");
}

TEST_F(AtomicFileTest, ADiskThatIsFullOnlyAtTheEndLeavesTheOldFile) {
  FaultyDisk disk;
  disk.sync_error = ENOSPC;
  expect_untouched(write_file(path_, "new"), "the disk did not take it: No space left on device");
}

TEST_F(AtomicFileTest, APlaceThatCannotBeTakenLeavesTheOldFile) {
  FaultyDisk disk;
  disk.rename_error = EPERM;
  expect_untouched(write_file(path_, "new"), "the file there cannot be replaced: Operation not permitted");
}

TEST_F(AtomicFileTest, AReadOnlyDirectoryLeavesTheOldFile) {
  FaultyDisk disk;  // root may write into a directory without permissions: inject the refusal
  disk.open_error = EROFS;
  const Status status = write_file(path_, "new");
  disk.open_error = 0;
  expect_untouched(status, "no file can be made in " + fs::path(path_).parent_path().string() + ": Read-only file system");
}

TEST_F(AtomicFileTest, AMissingDirectoryIsNamed) {
  const std::string path = dir_.file("none/report.html");
  const Status status = write_file(path, "new");
  EXPECT_EQ(status.code(), Code::kIoError);
  EXPECT_EQ(status.message(), path + ": cannot be written: no file can be made in " + dir_.file("none") + ": No such file or directory");
  EXPECT_NE(write_file(dir_.file(""), "new").message().find("it is a directory; name a file in it"), std::string::npos);
}

TEST_F(AtomicFileTest, PermissionsAreThoseOfTheOldFileOrOfTheUmask) {
  fs::permissions(path_, fs::perms(0640));
  EXPECT_TRUE(write_file(path_, "new").ok());
  EXPECT_EQ(mode(path_), 0640u);
  const mode_t before = ::umask(027);
  EXPECT_TRUE(write_file(dir_.file("second"), "new").ok());
  ::umask(before);
  EXPECT_EQ(mode(dir_.file("second")), 0640u);
}

TEST_F(AtomicFileTest, ALinkStaysALink) {
  const std::string link = dir_.file("link");
  fs::create_symlink("report.html", link);
  EXPECT_TRUE(write_file(link, "through the link").ok());
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(*read_text(path_), "through the link");
}

TEST_F(AtomicFileTest, PipesAndDevicesTakeTheTextDirectly) {
  const std::string pipe = dir_.file("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::string seen;
  std::jthread reader([&] { std::getline(std::ifstream(pipe), seen); });
  EXPECT_TRUE(write_file(pipe, "into the pipe").ok());
  reader.join();
  EXPECT_EQ(seen, "into the pipe");
  const std::string link = dir_.file("device");
  fs::create_symlink("/dev/null", link);
  for (const std::string& device : {std::string("/dev/null"), link}) {
    Result<AtomicFile> file = AtomicFile::create(device);
    ASSERT_TRUE(file);
    EXPECT_TRUE(file->append("away").ok() && file->commit().ok());
    EXPECT_TRUE(fs::is_character_file(device)) << device;
  }
  EXPECT_EQ(write_file("/dev/full", "away").message(), "/dev/full: cannot be written: stopped after 0 B: No space left on device");
}

TEST_F(AtomicFileTest, LongNamesAndTwoWritersAreNoProblem) {
  const std::string path = dir_.file(std::string(255, 'n'));
  Result<AtomicFile> first = AtomicFile::create(path), second = AtomicFile::create(path);
  ASSERT_TRUE(first && second);
  EXPECT_TRUE(first->append("first").ok() && second->append("second").ok());
  EXPECT_TRUE(second->commit().ok() && first->commit().ok());
  EXPECT_EQ(*read_text(path), "first");
}

TEST_F(AtomicFileTest, AppendedTextStandsBehindTheOld) {
  EXPECT_TRUE(append_to_file(path_, " and more").ok());
  EXPECT_EQ(*read_text(path_), "the old text and more");
  EXPECT_TRUE(append_to_file(dir_.file("new"), "text").ok());
  EXPECT_EQ(*read_text(dir_.file("new")), "text");
  EXPECT_EQ(append_to_file(dir_.file("no/such"), "text").message(),
            dir_.file("no/such") + ": cannot be appended to: No such file or directory");
}

}  // namespace
}  // namespace msdbg
