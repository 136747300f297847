#include "session/dump/fresh_stats.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <thread>

#include "dump/dump_support.h"
#include "session/dump/parts_update.h"

namespace msdbg::dump {
namespace {

using testing::TempDir;

constexpr uint64_t kSpread = 0x9e3779b97f4a7c15u;  // names are hashes

Seen seen(uint64_t digest) { return {digest, 0, 0, 1}; }
bool all(const Seen&) { return true; }

std::string text(uint64_t i) { return "statistics " + std::to_string(i) + std::string(i % 100, '.'); }

/// Moves this thread to another CPU, where there are several: entries are kept by CPU.
void next_cpu() {
  const int all = static_cast<int>(std::thread::hardware_concurrency());
  for (int further = 1; further < all; ++further) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((::sched_getcpu() + further) % all, &one);
    if (::sched_setaffinity(0, sizeof one, &one) == 0) return;
  }
}

std::map<uint64_t, std::string> collected(const FreshStats& fresh, const SpillFile& file, uint64_t first = 0, uint64_t last = UINT64_MAX,
                                          const std::function<bool(const Seen&)>& wanted = all) {
  std::string storage;
  // A part at a time, as divided() gives them.
  const size_t parts = UINT64_MAX / (last - first);
  const auto in_memory = fresh.divided(parts, wanted);
  const auto entries = fresh.collect(file, first, last, in_memory[part_of(first, parts)], wanted, storage);
  std::map<uint64_t, std::string> found;
  if (!entries) {
    ADD_FAILURE() << "the file cannot be read";
    return found;
  }
  for (size_t i = 0; i < entries->size(); ++i) {
    const IndexEntry& entry = (*entries)[i];
    EXPECT_TRUE(i == 0 || (*entries)[i - 1].name < entry.name);
    EXPECT_EQ(entry.digest, entry.name + 1);
    found[entry.name] = entry.bytes;
  }
  return found;
}

/// Of the directory "d", by name; each in the part where it belongs.
std::map<uint64_t, std::string> written(const std::string& path) {
  IndexFile file(path);
  const size_t parts = file.parts("d");
  std::map<uint64_t, std::string> found;
  for (size_t part = 0; part < parts; ++part) {
    const std::optional<std::string> bytes = file.row("d", static_cast<int64_t>(part) + 1);
    const std::optional<IndexPart> decoded = bytes ? decode_part(*bytes) : std::nullopt;
    if (!decoded || decoded->parts != parts) {
      ADD_FAILURE() << "part " << part;
      continue;
    }
    for (const uint32_t offset : decoded->offsets) {
      const IndexEntry entry = entry_at(*bytes, offset);
      EXPECT_EQ(part_of(entry.name, parts), part);
      found[entry.name] = entry.bytes;
    }
  }
  return found;
}

void write(const std::string& path, const FreshStats& fresh, const SpillFile& spill, std::vector<uint64_t> files, IndexFile* old = nullptr) {
  Result<IndexWriter> writer = IndexWriter::begin(path, false);
  ASSERT_TRUE(writer) << writer.status().message();
  int written = 0;
  const auto update = std::make_shared<PartsUpdate>(
      *writer, old, PartsUpdate::What{"d", fresh, spill, all, [&] { return files; }, [&] { ++written; }});
  ASSERT_TRUE(write_rows([&] { return update->next(); }).ok());
  EXPECT_EQ(written, 1);
  ASSERT_TRUE(writer->commit().ok());
}

TEST(FreshStats, WhatIsInTheFileAndInMemoryIsFoundByName) {
  const TempDir place;
  SpillFile file(place.path());
  FreshStats fresh;
  std::map<uint64_t, std::string> want;
  std::string before;
  for (uint64_t i = 0; i < 5000; ++i) {
    // Every tenth one is added again later, maybe on another CPU: the last one counts.
    const uint64_t name = (i % 10 == 0 ? i / 2 : i) * kSpread;
    EXPECT_EQ(fresh.find(file, name, before).has_value(), want.contains(name));
    if (i % 20 == 0) next_cpu();
    fresh.add(name, seen(name + 1), text(i));
    want[name] = text(i);
    if (i % 1500 == 1499) {
      EXPECT_TRUE(fresh.move_to(file));
    }
  }
  EXPECT_TRUE(fresh.in_file());
  EXPECT_GT(fresh.memory(), 0u);
  EXPECT_EQ(fresh.count(), 5000u);
  EXPECT_EQ(collected(fresh, file), want);
  std::map<uint64_t, std::string> joined;
  for (uint64_t part = 0; part < 16; ++part) joined.merge(collected(fresh, file, part << 60, (part << 60) | (UINT64_MAX >> 4)));
  EXPECT_EQ(joined, want);
  EXPECT_TRUE(std::filesystem::is_empty(place.path())) << "the file has no name";
}

TEST(FreshStats, TheLastOfAName) {
  TempDir directory;
  SpillFile file(directory.path());
  FreshStats fresh;
  std::string bytes;
  EXPECT_FALSE(fresh.find(file, kSpread, bytes));
  constexpr uint64_t kMany = 3000;
  // Two runs in the file, the rest in memory; every tenth entry comes again in each.
  for (const uint64_t round : {0, 1, 2}) {
    for (uint64_t i = 0; i < kMany; ++i) {
      const uint64_t name = (i % 10 == 0 ? i : i + round * kMany) * kSpread;
      fresh.add(name, seen(name + 1 + round), text(i) + std::to_string(round));
    }
    if (round < 2) {
      EXPECT_TRUE(fresh.move_to(file));
    }
    // Between two questions there are more entries.
    EXPECT_TRUE(fresh.find(file, 0, bytes));
    EXPECT_EQ(bytes, text(0) + std::to_string(round));
  }
  EXPECT_EQ(fresh.count(), 3 * kMany);
  for (uint64_t i = 0; i < kMany; ++i) {
    for (const uint64_t round : {0, 1, 2}) {
      const uint64_t name = (i + round * kMany) * kSpread, last = i % 10 == 0 ? 2 : round;
      if (i % 10 == 0 && round > 0) continue;
      const std::optional<Seen> found = fresh.find(file, name, bytes);
      ASSERT_TRUE(found) << i << " " << round;
      EXPECT_EQ(found->digest, name + 1 + last);
      EXPECT_EQ(bytes, text(i) + std::to_string(last));
    }
  }
  for (uint64_t i = 0; i < kMany; ++i) EXPECT_FALSE(fresh.find(file, (3 * kMany + i) * kSpread, bytes));
  fresh.clear();
  EXPECT_EQ(fresh.count(), 0u);
  EXPECT_FALSE(fresh.find(file, 0, bytes));
}

TEST(FreshStats, OfSeveralThreadsTheLastEntryOfEachNameCounts) {
  TempDir directory;
  SpillFile file(directory.path());
  FreshStats fresh;
  constexpr uint64_t kMany = 2000, kThreads = 4;
  std::map<uint64_t, std::string> want;
  std::atomic<size_t> grown{0};
  // Each name moves from thread to thread; whoever adds a better entry has found the one before.
  for (uint64_t round = 0; round < 3; ++round) {
    std::vector<std::jthread> threads;
    for (uint64_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        std::string bytes;
        for (uint64_t i = (t + round) % kThreads; i < kMany; i += kThreads) {
          EXPECT_EQ(fresh.find(file, i * kSpread, bytes).has_value(), round > 0) << i;
          grown += fresh.add(i * kSpread, seen(i * kSpread + 1), text(i) + std::to_string(round));
        }
      });
    }
  }
  for (uint64_t i = 0; i < kMany; ++i) want[i * kSpread] = text(i) + "2";
  EXPECT_EQ(collected(fresh, file), want);
  EXPECT_EQ(fresh.memory(), grown);
  std::string bytes;
  for (uint64_t i = 0; i < kMany; ++i) {
    ASSERT_TRUE(fresh.find(file, i * kSpread, bytes));
    EXPECT_EQ(bytes, text(i) + "2");
  }
  EXPECT_TRUE(fresh.move_to(file));
  EXPECT_EQ(collected(fresh, file), want);
}

TEST(FreshStats, NobodyAddsWhileOneIsAlone) {
  FreshStats fresh;
  std::atomic<bool> ended{false};
  std::atomic<size_t> added{0};
  std::vector<std::thread> threads;
  for (uint64_t thread = 0; thread < 3; ++thread) {
    threads.emplace_back([&, thread] {
      for (uint64_t i = 0; !ended; ++i, ++added) fresh.add((thread << 32 | i) * kSpread, seen(i + kFirstDigest), "entry");
    });
  }
  for (int turn = 0; turn < 50; ++turn) {
    for (const size_t before = added; added == before;) std::this_thread::yield();
    const FreshStats::Alone alone(fresh);
    const size_t count = fresh.count();
    EXPECT_EQ(fresh.divided(1, all).front().size(), count);
    fresh.clear();
    EXPECT_EQ(fresh.count(), 0u);
  }
  ended = true;
  for (std::thread& thread : threads) thread.join();
}

TEST(FreshStats, OnlyWhatIsWantedIsCollected) {
  const TempDir place;
  SpillFile file(place.path());
  FreshStats fresh;
  for (uint64_t name = 1; name <= 100; ++name) fresh.add(name, seen(name + 1), text(name));
  const auto even = [](const Seen& at) { return at.digest % 2 == 0; };
  const auto none = [](const Seen&) { return false; };
  EXPECT_EQ(collected(fresh, file, 0, UINT64_MAX, even).size(), 50u);
  EXPECT_TRUE(fresh.any(even));
  EXPECT_FALSE(fresh.any(none));
  EXPECT_TRUE(fresh.move_to(file));
  EXPECT_EQ(collected(fresh, file, 0, UINT64_MAX, even).size(), 50u);
  EXPECT_TRUE(fresh.any(none)) << "those in the file are looked at when they are collected";
}

TEST(FreshStats, WithoutAPlaceForTheFileTheyAreForgotten) {
  const TempDir place;
  SpillFile file(place.path() + "/missing");
  FreshStats fresh;
  fresh.add(1, seen(2), "x");
  EXPECT_FALSE(fresh.move_to(file));
  EXPECT_EQ(fresh.count(), 0u);
  EXPECT_EQ(fresh.memory(), 0u);
  fresh.add(3, seen(4), "y");
  EXPECT_EQ(collected(fresh, file), (std::map<uint64_t, std::string>{{3, "y"}}));
}

/// Numbers of entries before and after: into more parts, as many, and fewer.
TEST(PartsUpdate, ADirectoryIsDividedAnewAndKeepsItsEntries) {
  for (const auto& [before, after] : std::vector<std::pair<uint64_t, uint64_t>>{{10, 20}, {3000, 40000}, {17000, 50000}, {9000, 9100}}) {
    const TempDir place;
    const std::string path = std::filesystem::canonical(place.path()).string() + "/index";
    SpillFile spill(place.path());
    std::map<uint64_t, std::string> want;
    std::vector<uint64_t> files;
    const auto add = [&](FreshStats& fresh, uint64_t i) {
      fresh.add(i * kSpread, seen(i * kSpread + 1), text(i));
      want[i * kSpread] = text(i);
    };
    for (uint64_t i = 0; i < after; ++i) files.push_back(i * kSpread);
    FreshStats first;
    for (uint64_t i = 0; i < before; ++i) add(first, i);
    write(path, first, spill, files);
    EXPECT_EQ(written(path), want);
    FreshStats second;
    for (uint64_t i = before / 2; i < after; ++i) {
      add(second, i);
      if (i == after - 5) {
        EXPECT_TRUE(second.move_to(spill));
      }
    }
    write(path, second, spill, files);
    EXPECT_EQ(written(path), want) << before << " to " << after;
    // Most files are gone.
    FreshStats third;
    add(third, 1);
    std::erase_if(want, [&](const auto& entry) { return entry.first != 0 && entry.first != kSpread; });
    write(path, third, spill, {0, kSpread});
    EXPECT_EQ(written(path), want);
    EXPECT_EQ(IndexFile(path).parts("d"), 1u);
  }
}

TEST(PartsUpdate, EntriesOfAnIndexElsewhereComeAlong) {
  const TempDir place;
  const std::string root = std::filesystem::canonical(place.path()).string();
  SpillFile spill(root);
  FreshStats first, second;
  first.add(1, seen(2), "old");
  first.add(2, seen(3), "older");
  write(root + "/elsewhere", first, spill, {1, 2, 3});
  second.add(2, seen(3), "new");
  IndexFile elsewhere(root + "/elsewhere");
  write(root + "/index", second, spill, {1, 2, 3}, &elsewhere);
  EXPECT_EQ(written(root + "/index"), (std::map<uint64_t, std::string>{{1, "old"}, {2, "new"}}));
}

}  // namespace
}  // namespace msdbg::dump
