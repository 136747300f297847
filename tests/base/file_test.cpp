// Reading files on working and on broken disks.
#include "msdbg/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <thread>

#include "support/faulty_disk.h"
#include "support/temp_dir.h"

namespace msdbg {
namespace {

using test::FaultyDisk;

class FileTest : public testing::Test {
 protected:
  std::string make(const std::string& name, const std::string& text) {
    const std::string path = dir_.file(name);
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  static std::span<std::byte> room(std::string& text) { return std::as_writable_bytes(std::span(text.data(), text.size())); }

  test::TempDir dir_;
  const std::string digits_ = "0123456789";
};

TEST_F(FileTest, BytesComeFromTheirOffsets) {
  const Result<File> file = File::open(make("a", digits_));
  ASSERT_TRUE(file);
  EXPECT_EQ(file->size(), 10u);
  std::string part(4, '\0');
  EXPECT_TRUE(file->read(3, room(part)).ok());
  EXPECT_EQ(part, "3456");
  EXPECT_EQ(*file->text(10), digits_);
}

TEST_F(FileTest, WhatIsNoFileIsRefusedAtOnce) {
  EXPECT_EQ(File::open(dir_.file("none")).status().code(), Code::kNotFound);
  EXPECT_EQ(File::open(dir_.file("none")).status().message(), dir_.file("none") + ": cannot be opened: No such file or directory");
  EXPECT_EQ(File::open(dir_.file("")).status().message(), dir_.file("") + ": cannot be read: it is a directory, not a file");
  const std::string pipe = dir_.file("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(File::open(pipe).status().message(), pipe + ": cannot be read: it is not a regular file");
}

TEST_F(FileTest, ShortReadsAndSignalsAreNoFaults) {
  const std::string path = make("a", digits_);
  FaultyDisk disk;
  disk.most_bytes = 3;
  disk.interrupts = true;
  EXPECT_EQ(*read_text(path), digits_);
  EXPECT_EQ(disk.reads, 8u) << "four short reads, each interrupted once";
}

TEST_F(FileTest, ABadBlockIsNamedWithItsPlace) {
  const std::string path = make("a", digits_);
  FaultyDisk disk;
  disk.most_bytes = 4;
  disk.bad_from = 6;
  const Status status = read_text(path).status();
  EXPECT_EQ(status.code(), Code::kIoError);
  EXPECT_EQ(status.message(), path + ": cannot be read at byte 4: Input/output error");
}

TEST_F(FileTest, AFileThatShrinksIsAnError) {
  const std::string path = make("a", digits_);
  const Result<File> file = File::open(path);
  ASSERT_TRUE(file);
  FaultyDisk disk;
  disk.ends_at = 7;
  const Status status = file->text(10).status();
  EXPECT_EQ(status.code(), Code::kIoError);
  EXPECT_EQ(status.message(),
            path + ": shrank while it was read: it had 10 bytes and ends at byte 7 now; is it still being written? Open it again");
}

TEST_F(FileTest, AnInterruptEndsALongReadButNotAShortOne) {
  const std::string path = make("a", digits_);
  FaultyDisk disk;
  request_interrupt();
  const Result<std::string> whole = read_text(path);
  disk.most_bytes = 1;
  const Status status = read_text(path).status();
  clear_interrupt();
  EXPECT_TRUE(whole.ok());
  EXPECT_EQ(status.code(), Code::kInterrupted);
}

TEST_F(FileTest, AFileThatCannotBeOpenedSaysWhy) {
  const std::string path = make("a", digits_);
  FaultyDisk disk;
  disk.open_error = EMFILE;
  EXPECT_EQ(File::open(path).status().message(), path + ": cannot be opened: Too many open files");
}

TEST_F(FileTest, TextsHaveALimit) {
  const std::string path = make("a", digits_);
  EXPECT_TRUE(read_text(path, 10));
  const Status status = read_text(path, 9).status();
  EXPECT_EQ(status.code(), Code::kCorrupt);
  EXPECT_EQ(status.message(), path + ": is longer than 9 B, which makes no sense for this file");
}

TEST_F(FileTest, PipesAreReadOnlyWhereTheyAreWelcome) {
  const std::string pipe = dir_.file("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(read_text(pipe).status().code(), Code::kIoError);
  std::jthread writer([&] { std::ofstream(pipe) << digits_; });
  EXPECT_EQ(*read_input(pipe, 10), digits_);
  writer = std::jthread([&] { std::ofstream(pipe) << digits_; });
  EXPECT_EQ(read_input(pipe, 9).status().code(), Code::kCorrupt);
}

TEST_F(FileTest, LinesLoseTheirEnds) {
  EXPECT_EQ(*read_lines(make("a", "one\r\n\ntwo")), (std::vector<std::string>{"one", "", "two"}));
  EXPECT_EQ(*read_lines(make("b", "one\n")), std::vector<std::string>{"one"});
  EXPECT_EQ(*read_lines(make("c", "")), std::vector<std::string>{});
}

TEST_F(FileTest, ThePathCanBeTakenOff) {
  EXPECT_EQ(without_path(Status(Code::kIoError, "a/b: gone"), "a/b").message(), "gone");
  EXPECT_EQ(without_path(Status(Code::kIoError, "a/bc: gone"), "a/b").message(), "a/bc: gone");
}

// ---- temporary files ---------------------------------------------------------------------------------------------

class TemporaryFile : public FileTest {
 protected:
  TemporaryFile() {
    const char* before = std::getenv("TMPDIR");
    before_ = before != nullptr ? before : "";
    ::setenv("TMPDIR", dir_.file("").c_str(), 1);
  }
  ~TemporaryFile() override { before_.empty() ? ::unsetenv("TMPDIR") : ::setenv("TMPDIR", before_.c_str(), 1); }
  static std::span<const std::byte> bytes(const std::string& text) { return std::as_bytes(std::span(text.data(), text.size())); }

 private:
  std::string before_;
};

TEST_F(TemporaryFile, KeepsWhatIsAppendedAndLeavesNothingBehind) {
  Result<File> file = File::temporary("w.ckpt");
  ASSERT_TRUE(file);
  EXPECT_TRUE(std::filesystem::is_empty(dir_.file("")));
  EXPECT_TRUE(file->append(bytes(digits_)).ok());
  EXPECT_TRUE(file->append(bytes(digits_)).ok());
  EXPECT_TRUE(file->truncate(12).ok());
  EXPECT_EQ(*file->text(100), "012345678901");
  struct stat info {};
  EXPECT_EQ(::fstat(file->descriptor(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u) << "nobody else may read what was decrypted";
}

TEST_F(TemporaryFile, RoomIsReservedOnTheDisk) {
  Result<File> file = File::temporary("w.ckpt");
  ASSERT_TRUE(file);
  EXPECT_TRUE(file->reserve(1 << 20).ok());
  struct stat info {};
  EXPECT_EQ(::fstat(file->descriptor(), &info), 0);
  EXPECT_EQ(info.st_size, 1 << 20);
  EXPECT_EQ(file->size(), 1u << 20);
}

TEST_F(TemporaryFile, AFullDiskIsAHintAtTMPDIR) {
  Result<File> file = File::temporary("w.ckpt");
  ASSERT_TRUE(file);
  FaultyDisk disk;
  disk.room = 15;
  EXPECT_TRUE(file->append(bytes(digits_)).ok());
  const Status status = file->append(bytes(digits_));
  EXPECT_EQ(status.code(), Code::kIoError);
  EXPECT_EQ(status.message(), "w.ckpt: the temporary file in " + dir_.file("") +
                                  " cannot grow beyond 15 B: No space left on device; set TMPDIR to another directory");
}

TEST_F(TemporaryFile, AMissingDirectoryIsAHintAtTMPDIR) {
  ::setenv("TMPDIR", "/nowhere/at/all", 1);
  EXPECT_EQ(File::temporary("w.ckpt").status().message(),
            "w.ckpt: the temporary file in /nowhere/at/all cannot be made: No such file or directory; set TMPDIR to another directory");
}

// ---- a window for parsers ----------------------------------------------------------------------------------------

TEST_F(FileTest, AWindowGivesTheSameBytesWhereverTheParserJumps) {
  std::string text(5000, '\0');
  std::iota(text.begin(), text.end(), '\0');
  const Result<File> file = File::open(make("a", text));
  ASSERT_TRUE(file);
  FileWindow window(*file, 64);
  uint32_t state = 1;
  for (int round = 0; round < 2000; ++round) {
    state = state * 1664525 + 1013904223;
    const size_t offset = (state >> 8) % text.size();
    std::string part(std::min<size_t>(state >> 25, text.size() - offset), '\0');
    ASSERT_TRUE(window.read(offset, room(part)).ok());
    ASSERT_EQ(part, text.substr(offset, part.size())) << offset;
  }
}

TEST_F(FileTest, AWindowReadsSmallThingsTogetherAndLargeOnesDirectly) {
  const Result<File> file = File::open(make("a", std::string(1000, 'x')));
  ASSERT_TRUE(file);
  FaultyDisk disk;
  FileWindow window(*file, 100);
  std::string one(1, '\0'), many(500, '\0');
  for (uint64_t at = 0; at < 200; ++at) ASSERT_TRUE(window.read(at, room(one)).ok());
  EXPECT_EQ(disk.reads, 2u);
  ASSERT_TRUE(window.read(200, room(many)).ok());
  EXPECT_EQ(disk.reads, 3u);
  ASSERT_TRUE(window.read(800, room(one)).ok());
  ASSERT_TRUE(window.read(780, room(one)).ok()) << "a little before the place of the jump";
  EXPECT_EQ(disk.reads, 4u);
}

TEST_F(FileTest, AFieldReaderReportsTheFileThatFailed) {
  std::string message;
  WireWriter(message).field(1, std::string(100, 'x'));
  const std::string path = make("a", message);
  const Result<File> file = File::open(path);
  ASSERT_TRUE(file);
  FaultyDisk disk;
  disk.bad_from = 50;
  FileWindow window(*file, 16);
  WireReader reader(window, 0, window.size());
  WireField field;
  std::string text;
  ASSERT_TRUE(reader.next(field));
  EXPECT_FALSE(reader.text(field, 1000, text));
  EXPECT_EQ(reader.status().message(), path + ": cannot be read at byte 2: Input/output error");
}

}  // namespace
}  // namespace msdbg
