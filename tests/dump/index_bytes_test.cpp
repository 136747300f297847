#include "session/dump/index_bytes.h"

#include <gtest/gtest.h>

namespace msdbg::dump {
namespace {

std::vector<DirectoryEntry> entries(std::initializer_list<const char*> names) {
  std::vector<DirectoryEntry> made;
  for (const char* name : names) made.push_back({name, std::string_view(name).find("dir") == 0, false});
  return made;
}

TEST(IndexBytes, AListingReturns) {
  const auto all = entries({"Add.Default_Add-op1.npy", "Add.Default_Add-op10.npy", "dir", "dir2", "x"});
  const std::string bytes = encode_listing(4711, all);
  EXPECT_LT(bytes.size(), 70u);
  EXPECT_EQ(stamp_of_listing(bytes), 4711u);
  const auto read = decode_listing(bytes);
  ASSERT_TRUE(read);
  ASSERT_EQ(read->entries.size(), all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(read->entries[i].name, all[i].name);
    EXPECT_EQ(read->entries[i].directory, all[i].directory);
  }
  EXPECT_TRUE(decode_listing(encode_listing(1, {}))->empty());
}

TEST(IndexBytes, NeighboursShareTheirStartsAndTheirEnds) {
  const auto all = entries({"a", "aa", "aaa", "aab.output.npy", "ab.output.npy", "b.output.npy", "bab.output.npy", "x", "xx.output.npy"});
  const auto read = decode_listing(encode_listing(1, all));
  ASSERT_TRUE(read);
  ASSERT_EQ(read->entries.size(), all.size());
  for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(read->entries[i].name, all[i].name);
  const size_t one = encode_listing(1, entries({"Add.op1.output.0.npy"})).size();
  EXPECT_LE(encode_listing(1, entries({"Add.op1.output.0.npy", "Add.op2.output.0.npy"})).size(), one + 4);
}

TEST(IndexBytes, WhatNoNameBeforeHasIsNotShared) {
  // The numbers of the second name "abd", behind "abc": the start with a bit, the end, what is its own.
  std::string bytes = encode_listing(1, entries({"abc", "abd"}));
  const std::string second{2 * 2, 0, 1, 'd'};
  ASSERT_TRUE(bytes.ends_with(second));
  const auto with = [&](std::string other) {
    std::string changed = bytes.substr(0, bytes.size() - second.size()) + other;
    const uint64_t sum = hash_of(std::string_view(changed).substr(8));
    for (int i = 0; i < 8; ++i) changed[i] = static_cast<char>(sum >> (8 * i) & 0xff);
    return decode_listing(changed);
  };
  ASSERT_TRUE(with(second));
  EXPECT_EQ(with({2 * 2, 1, 1, 'd'})->entries[1].name, "abdc");
  EXPECT_FALSE(with({2 * 2, 2, 1, 'd'})) << "start and end overlap";
  EXPECT_FALSE(with({2 * 4, 0, 1, 'd'}));
  EXPECT_FALSE(with({0, 4, 1, 'd'}));
  EXPECT_FALSE(with({0, 0, 2, 'd'}));
}

TEST(IndexBytes, ANameLeadsNowhereElse) {
  for (const char* name : {"../x", "a/b", "..", ".", ""}) EXPECT_FALSE(decode_listing(encode_listing(1, entries({name})))) << name;
  EXPECT_TRUE(decode_listing(encode_listing(1, entries({std::string(255, 'x').c_str()}))));
  EXPECT_FALSE(decode_listing(encode_listing(1, entries({std::string(256, 'x').c_str()})))) << "longer than a file's name can be";
}

TEST(IndexBytes, APartReturns) {
  const std::vector<IndexEntry> all = {{1, 100, 0, "first"}, {7, 200, 300, ""}, {UINT64_MAX, 400, 1, std::string_view("\0x", 2)}};
  const std::string bytes = encode_part(4, all);
  const auto part = decode_part(bytes);
  ASSERT_TRUE(part);
  EXPECT_EQ(part->parts, 4u);
  ASSERT_EQ(part->offsets.size(), 3u);
  for (size_t i = 0; i < all.size(); ++i) {
    const IndexEntry entry = entry_at(bytes, part->offsets[i]);
    EXPECT_EQ(entry.name, all[i].name);
    EXPECT_EQ(entry.digest, all[i].digest);
    EXPECT_EQ(entry.previous, all[i].previous);
    EXPECT_EQ(entry.bytes, all[i].bytes);
  }
}

TEST(IndexBytes, EveryCutAndEveryChangedByteIsNoticed) {
  const std::string listing = encode_listing(9, entries({"a", "ab", "dir"}));
  const std::string part = encode_part(1, std::vector<IndexEntry>{{1, 100, 0, "first"}, {2, 100, 0, "second"}});
  for (const std::string& good : {listing, part}) {
    const auto is_good = [&](const std::string& bytes) { return decode_listing(bytes).has_value() || decode_part(bytes).has_value(); };
    EXPECT_TRUE(is_good(good));
    for (size_t at = 0; at < good.size(); ++at) {
      EXPECT_FALSE(is_good(good.substr(0, at))) << at;
      std::string changed = good;
      changed[at] = static_cast<char>(changed[at] ^ 0x10);
      EXPECT_FALSE(is_good(changed)) << at;
    }
  }
}

TEST(IndexBytes, UnsortedOrOddPartsAreRefused) {
  EXPECT_FALSE(decode_part(encode_part(1, std::vector<IndexEntry>{{2, 100, 0, "a"}, {1, 100, 0, "b"}})));
  EXPECT_FALSE(decode_part(encode_part(1, std::vector<IndexEntry>{{2, 100, 0, "a"}, {2, 100, 0, "b"}})));
  EXPECT_FALSE(decode_part(encode_part(3, {})));
  EXPECT_FALSE(decode_part(encode_part(0, {})));
}

TEST(IndexBytes, EachPartOfAStampCounts) {
  const FileStamp stamp{1, 2, 3, 4};
  const uint64_t digest = digest_of(stamp);
  EXPECT_GE(digest, kFirstDigest);
  EXPECT_EQ(digest, digest_of({1, 2, 3, 4}));
  EXPECT_NE(digest, digest_of({2, 2, 3, 4}));
  EXPECT_NE(digest, digest_of({1, 3, 3, 4}));
  EXPECT_NE(digest, digest_of({1, 2, 4, 4}));
  EXPECT_NE(digest, digest_of({1, 2, 3, 5}));
  EXPECT_NE(digest, digest_of(stamp, 1));
}

}  // namespace
}  // namespace msdbg::dump
