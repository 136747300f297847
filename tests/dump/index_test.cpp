// The index of a dump: what it saves, and that it changes no answer.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "dump/index_support.h"
#include "msdbg/bits.h"
#include "session/dump/index_place.h"

namespace msdbg::testing {
namespace {

TEST(Index, ASecondRunReadsNoTensorAndListsNoDirectory) {
  const IndexedDump dump;
  const Answer want = truth(dump.path());
  EXPECT_FALSE(dump.has_index());
  EXPECT_EQ(answer(dump.path()), want);
  EXPECT_TRUE(dump.has_index());

  const OpenedFiles opened;
  LogLines log;
  EXPECT_EQ(answer(dump.path()), want);
  EXPECT_EQ(opened.count(), 0u);
  const std::vector<std::string> listed = log.with("listed " + dump.path(), LogLevel::kDebug);
  ASSERT_EQ(listed.size(), 1u);
  EXPECT_TRUE(listed[0].starts_with("listed " + dump.path() + " in")) << listed[0];
}

// Its listing has more than 1 MiB and waits in a file before it is written.
TEST(Index, AVeryLargeDirectoryIsNotListedAgain) {
  const IndexedDump dump;
  const std::filesystem::path directory = std::filesystem::path(dump.at(dump.activation(1))).parent_path();
  for (int i = 0; i < 5500; ++i) std::ofstream(directory / fmt::format("{:0>200}.txt", i));
  const Answer want = truth(dump.path());
  EXPECT_EQ(answer(dump.path()), want);
  LogLines log;
  EXPECT_EQ(answer(dump.path()), want);
  const std::vector<std::string> listed = log.with("listed " + dump.path(), LogLevel::kDebug);
  ASSERT_EQ(listed.size(), 1u);
  EXPECT_TRUE(listed[0].starts_with("listed " + dump.path() + " in")) << listed[0];
}

TEST(Index, OtherThresholdsAndStatisticsOfOneTensorReadNothing) {
  const IndexedDump dump;
  answer(dump.path());
  const OpenedFiles opened;
  const auto session = open(dump.path(), with_index());
  const TensorId id = id_of(*session, "Default_relu_ReLU-op3", 2);
  EXPECT_EQ(session->stats(id)->max, 4);
  EXPECT_EQ(session->describe(id)->shape, (Shape{3}));
  EXPECT_EQ(session->describe(id)->source, dump.at(dump.activation(2)));
  const Result<CheckResult> result = check(*session, std::vector{watchpoint(1, "TL max_gt=3.5")}, {});
  EXPECT_EQ(result->total_hits, 2u);
  EXPECT_EQ(opened.count(), 0u);
}

TEST(Index, WhatItLacksIsReadAndAdded) {
  const IndexedDump dump;
  {
    const auto session = open(dump.path(), with_index());
    EXPECT_TRUE(check(*session, std::vector{watchpoint(1, "tensor_overflow")}, {}));
  }
  const Answer want = truth(dump.path());
  {
    const OpenedFiles opened;
    EXPECT_EQ(answer(dump.path()), want);
    EXPECT_GT(opened.count(), 0u);
  }
  const OpenedFiles opened;
  EXPECT_EQ(answer(dump.path()), want);
  EXPECT_EQ(opened.count(), 0u);
}

TEST(Index, EachCheckOfASessionAddsToIt) {
  const IndexedDump dump;
  {
    const auto session = open(dump.path(), with_index());
    for (const char* on : {"fc.weight", "*ReLU*"}) {
      Watchpoint watch = watchpoint(1, "tensor_overflow");
      watch.on = *Selector::parse(on);
      EXPECT_TRUE(check(*session, std::vector{watch}, {}));
    }
  }
  const auto session = open(dump.path(), with_index());
  const OpenedFiles opened;
  EXPECT_TRUE(check(*session, std::vector{watchpoint(1, "tensor_overflow")}, {}));
  EXPECT_EQ(opened.count(), 0u);
}

TEST(Index, ACheckAtThePromptIsKeptBeforeTheSessionEnds) {
  const IndexedDump dump;
  const auto first = open(dump.path(), with_index());
  const Answer want = check_all(*first);
  // The file appears before its contents, and they in several transactions: it is done when nothing has changed for a while.
  uintmax_t size = 0;
  for (int quiet = 0, wait = 0; quiet < 20 && wait < 500; ++wait) {
    ::usleep(20'000);
    const uintmax_t before = size;
    size = dump.has_index() ? std::filesystem::file_size(dump.index()) : 0;
    const bool busy = size == 0 || std::filesystem::exists(dump.index() + "-journal");
    quiet = size == before && !busy ? quiet + 1 : 0;
  }
  const OpenedFiles opened;
  EXPECT_EQ(answer(dump.path()), want);
  EXPECT_EQ(opened.count(), 0u);
}

TEST(Index, WithoutItNothingIsWritten) {
  const IndexedDump dump;
  truth(dump.path());
  EXPECT_FALSE(dump.has_index());
  // And what changed a moment ago is not kept.
  DumpOptions options = with_index();
  options.settled = DumpOptions().settled;
  answer(dump.path(), options);
  EXPECT_FALSE(dump.has_index());
}

TEST(Index, OneRankOrNetLeavesTheRestInPlace) {
  const IndexedDump dump;
  const IndexedDump other;
  std::filesystem::copy(other.at("rank_0"), dump.at("rank_1"), std::filesystem::copy_options::recursive);
  answer(dump.path());
  dump.add_step(3);
  DumpOptions options = with_index();
  options.ranks = IntSet::of(0);
  answer(dump.path(), options);
  const OpenedFiles opened;
  answer(dump.path());
  EXPECT_EQ(opened.count(), 0u);
}

std::vector<BitsRead> all_bits(Session& session) {
  std::vector<BitsRead> reads;
  for (const TensorId& id : session.tensors({})) reads.push_back({id});
  EXPECT_TRUE(read_bits(session, 2, reads));
  return reads;
}

TEST(Index, ACheckOfSeveralRanksReadsEachTensorOnceAndKeepsItsBits) {
  const IndexedDump dump;
  const IndexedDump other;
  std::filesystem::copy(other.at("rank_0"), dump.at("rank_1"), std::filesystem::copy_options::recursive);
  {
    const auto session = open(dump.path(), with_index());
    std::vector watches = {watchpoint(1, "tensor_overflow")};
    watches[0].compares_bits = true;
    const OpenedFiles opened;
    const Result<CheckResult> result = check(*session, watches, {});
    ASSERT_TRUE(result);
    EXPECT_EQ(result->coverage.tensors, 12u);
    all_bits(*session);
    EXPECT_EQ(opened.count(), 12u);
  }
  const auto session = open(dump.path(), with_index());
  {
    const OpenedFiles opened;
    const std::vector<BitsRead> reads = all_bits(*session);
    EXPECT_EQ(opened.count(), 0u);
    ASSERT_EQ(reads.size(), 12u);
    for (const BitsRead& a : reads) {
      for (const BitsRead& b : reads) {
        const bool same = a.tensor.node == b.tensor.node && a.tensor.step == b.tensor.step;
        EXPECT_EQ(a.bits.value().print == b.bits.value().print, same);
      }
    }
  }
  // One element of one rank changes.
  dump.npy("rank_1" + dump.weight(1).substr(6), {1, 4, 3});
  const auto later = open(dump.path(), with_index());
  const OpenedFiles opened;
  const std::vector<BitsRead> reads = all_bits(*later);
  EXPECT_EQ(opened.count(), 1u);
  const auto print_on = [&](int rank) {
    const auto at = std::ranges::find_if(reads, [&](const BitsRead& read) {
      return read.tensor.rank == rank && read.tensor.step == 1 && later->node(read.tensor).kind == NodeKind::kParameter;
    });
    return at->bits.value().print;
  };
  EXPECT_NE(print_on(0), print_on(1));
}

TEST(Index, ARankOpenedByItselfUsesTheIndexOfTheDump) {
  const IndexedDump dump;
  answer(dump.at("rank_0"));
  EXPECT_TRUE(dump.has_index());
  const OpenedFiles opened;
  answer(dump.path() + "/");
  EXPECT_EQ(opened.count(), 0u);
}

TEST(Index, StaysSmall) {
  const IndexedDump dump(200);
  answer(dump.path());
  EXPECT_LT(std::filesystem::file_size(dump.index()), 400u * 500u);
}

/// Sets a variable of the environment for its lifetime.
class Environment {
 public:
  Environment(std::string name, const std::string& value) : name_(std::move(name)) {
    if (const char* before = std::getenv(name_.c_str())) before_ = before;
    ::setenv(name_.c_str(), value.c_str(), 1);
  }
  ~Environment() { before_ ? ::setenv(name_.c_str(), before_->c_str(), 1) : ::unsetenv(name_.c_str()); }

 private:
  std::string name_;
  std::optional<std::string> before_;
};

TEST(IndexPlace, ADirectoryOfTensorsGetsItsIndexInTheCacheOfTheUser) {
  const TempDir cache, plain;
  const Environment environment("XDG_CACHE_HOME", cache.path());
  plain.npy("a.npy", {1, 2, 3});
  DumpOptions options = with_index();
  const Answer want = truth(plain.path());
  answer(plain.path(), options);
  EXPECT_FALSE(std::filesystem::exists(plain.at(kIndexFile)));
  ASSERT_TRUE(std::filesystem::exists(cache.at("msdbg")));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(cache.at("msdbg")), {}), 1);
  const OpenedFiles opened;
  EXPECT_EQ(answer(plain.path(), options), want);
  EXPECT_EQ(opened.count(), 0u);
}

TEST(IndexPlace, ADumpThatMayNotBeWrittenGetsItInTheCache) {
  const TempDir cache;
  const IndexedDump dump;
  const Answer want = truth(dump.path());
  std::filesystem::permissions(dump.path(), std::filesystem::perms(0555));
  std::filesystem::permissions(cache.path(), std::filesystem::perms(0777));
  const pid_t child = ::fork();
  if (child == 0) {
    const bool ready = ::getuid() != 0 || ::setuid(65534) == 0;  // root may write everywhere
    ::setenv("XDG_CACHE_HOME", cache.path().c_str(), 1);
    const bool same = answer(dump.path()) == want;
    size_t count = 0;
    {
      const OpenedFiles opened;
      answer(dump.path());
      count = opened.count();
    }
    ::_exit(ready && same && count == 0 && !dump.has_index() ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(std::filesystem::exists(cache.at("msdbg")));
  std::filesystem::permissions(dump.path(), std::filesystem::perms(0755));
}

TEST(IndexPlace, WithoutAHomeThereIsNone) {
  const Environment cache("XDG_CACHE_HOME", ""), home("HOME", "");
  const TempDir plain;
  EXPECT_FALSE(dump::new_index(plain.path(), true));
  EXPECT_TRUE(dump::new_index(plain.path(), false)->beside);
}

}  // namespace
}  // namespace msdbg::testing
