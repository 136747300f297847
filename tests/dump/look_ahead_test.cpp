// The files of a directory that are looked at while a dump opens.
#include "session/dump/look_ahead.h"

#include "dump/index_support.h"
#include "msdbg/hash.h"

namespace msdbg::testing {
namespace {

using dump::LookAhead;
using dump::SeenFiles;

constexpr int64_t kSecond = 1'000'000'000;

dump::Listing listing_of(const std::string& path) {
  Result<dump::Listing> listing = dump::list_directory(path);
  return std::move(*listing);
}

TEST(LookAhead, FilesAreSeenAsTheyAre) {
  TempDir directory;
  directory.text("a.npy", "12345");
  directory.text("b.npy", "");
  directory.text("inner/c.npy", "1");
  SeenFiles seen(listing_of(directory.path()));
  EXPECT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen.find(hash_of("a.npy"), dump::file_clock()), nullptr);  // not looked at yet
  seen.look(directory.path(), false);
  const FileStamp* stamp = seen.find(hash_of("a.npy"), seen.when());
  ASSERT_NE(stamp, nullptr);
  EXPECT_EQ(dump::digest_of(*stamp), dump::digest_of(FileStamp::of(status_of(directory.at("a.npy")))));
  EXPECT_NE(seen.find(hash_of("b.npy"), seen.when()), nullptr);
  EXPECT_EQ(seen.find(hash_of("c.npy"), seen.when()), nullptr);
  EXPECT_EQ(seen.find(hash_of("inner"), seen.when()), nullptr);
}

TEST(LookAhead, WhatWasSeenLongAgoIsNotTold) {
  TempDir directory;
  directory.text("a.npy", "12345");
  SeenFiles seen(listing_of(directory.path()));
  seen.look(directory.path(), false);
  EXPECT_NE(seen.find(hash_of("a.npy"), seen.when() + kSecond), nullptr);
  EXPECT_EQ(seen.find(hash_of("a.npy"), seen.when() + kSecond + 1), nullptr);
  EXPECT_EQ(seen.find(hash_of("a.npy"), seen.when() - 1), nullptr);  // the clock was set back
}

TEST(LookAhead, FilesThatAreGoneAreNotSeen) {
  TempDir directory;
  directory.text("a.npy", "1");
  directory.text("b.npy", "1");
  SeenFiles seen(listing_of(directory.path()));
  std::filesystem::remove(directory.at("a.npy"));
  seen.look(directory.path(), false);
  EXPECT_EQ(seen.find(hash_of("a.npy"), seen.when()), nullptr);
  EXPECT_NE(seen.find(hash_of("b.npy"), seen.when()), nullptr);
  SeenFiles nowhere(listing_of(directory.path()));
  nowhere.look(directory.at("none"), false);
  EXPECT_EQ(nowhere.find(hash_of("b.npy"), dump::file_clock()), nullptr);
}

TEST(LookAhead, StopsWhereItIs) {
  TempDir directory;
  for (int i = 0; i < 1000; ++i) directory.text("file" + std::to_string(i), "1");
  const dump::Listing listing = listing_of(directory.path());
  LookAhead ahead;
  ahead.add(directory.path(), listing);
  ahead.add(directory.path(), listing);  // once is enough
  ahead.stop();
  ahead.add(directory.at("later"), listing);
  EXPECT_EQ(ahead.find(directory.at("later")), nullptr);
  const SeenFiles* seen = ahead.find(directory.path());
  ASSERT_NE(seen, nullptr);
  // In the order of the listing, up to where it was stopped.
  bool ended = false;
  for (const dump::DirectoryEntry& entry : listing) {
    const bool found = seen->find(hash_of(entry.name), dump::file_clock()) != nullptr;
    EXPECT_FALSE(found && ended) << entry.name;
    ended = ended || !found;
  }
}

}  // namespace
}  // namespace msdbg::testing
