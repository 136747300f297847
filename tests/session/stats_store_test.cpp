// A session with further sources of statistics.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <mutex>
#include <tuple>

#include "msdbg/bits.h"
#include "session/check_support.h"

namespace msdbg {
namespace {

using testing::f32;
using testing::fake_graph;
using testing::FakeSession;
using testing::hits;
using testing::checked;
using testing::watch;

class MapStore : public StatsStore {
 public:
  std::optional<Ticket> find(const TensorId& id, bool previous, bool kept_before, std::string& entry) override {
    std::lock_guard lock(mutex_);
    asked.push_back(previous);
    asked_again += kept_before ? 1 : 0;
    const auto found = entries.find(id);
    entry = found == entries.end() ? std::string() : found->second;
    return keeps ? std::optional<Ticket>(Ticket{asked.size()}) : std::nullopt;
  }
  void put(const TensorId& id, const Ticket& ticket, const FileStamp* /*file*/, std::string_view entry) override {
    std::lock_guard lock(mutex_);
    EXPECT_GT(ticket.digest, 0u);
    entries[id] = entry;
  }

  std::map<TensorId, std::string> entries;
  int asked_again = 0;  ///< for what was put before
  std::vector<bool> asked;
  bool keeps = true;

 private:
  std::mutex mutex_;
};

struct TwoSteps : FakeSession {
  explicit TwoSteps(size_t kept = kKeptStats)
      : FakeSession(fake_graph({{"Default/w", "Parameter"}, {"Default/relu", "ReLU", {"Default/w"}}}), kept) {
    for (int64_t step = 0; step < 2; ++step) {
      put("Default/w", step, f32({1, 2, static_cast<double>(step)}));
      put("Default/relu", step, f32({1, NAN, 3}));
    }
  }
};

std::vector<Watchpoint> store_watches() {
  return {watch(1, "**/*", "tensor_overflow"), watch(2, "**/*", "WCL abs_mean_update_ratio_gt=1")};
}

auto counts(const CheckResult& result) {
  const Coverage& c = result.coverage;
  return std::tuple(result.total_hits, result.not_checked.size(), c.tensors, c.checked, c.verdicts, c.bytes, c.from_cache);
}

TEST(StatsStore, ASecondSessionReadsNothingAndAnswersTheSame) {
  const auto store = std::make_shared<MapStore>();
  TwoSteps first, second, alone;
  first.use_stats_store(store);
  second.use_stats_store(store);
  const auto want = counts(checked(alone, store_watches()));
  EXPECT_EQ(counts(checked(first, store_watches())), want);
  EXPECT_EQ(store->entries.size(), 4u);
  EXPECT_EQ(counts(checked(second, store_watches())), want);
  EXPECT_EQ(second.reads(), 0u);
  EXPECT_GT(first.reads(), 0u);
  // What it took from the store is its own from now on.
  EXPECT_EQ(counts(checked(second, store_watches())), counts(checked(alone, store_watches())));
}

TEST(StatsStore, AnEntryThatDoesNotSufficeIsExtended) {
  const auto store = std::make_shared<MapStore>();
  TwoSteps plain, changes, both;
  for (TwoSteps* session : {&plain, &changes, &both}) session->use_stats_store(store);
  checked(plain, {watch(1, "**/*", "tensor_overflow")});
  EXPECT_EQ(store->asked, std::vector<bool>(4, false));
  checked(changes, {store_watches()[1]});
  EXPECT_EQ(std::vector<bool>(store->asked.begin() + 4, store->asked.end()), std::vector<bool>(4, true));
  EXPECT_GT(changes.reads(), 0u);
  checked(both, store_watches());
  EXPECT_EQ(both.reads(), 0u);
}

TEST(StatsStore, TheStoreLearnsWhichTensorsItHasNotSeen) {
  // With a table that is too small, and with one that keeps everything.
  for (const size_t kept : {size_t{1}, size_t{1000}}) {
    const auto store = std::make_shared<MapStore>();
    TwoSteps session(kept);
    session.use_stats_store(store);
    checked(session, {watch(1, "**/*", "tensor_overflow")});
    EXPECT_EQ(store->asked.size(), 4u);
    EXPECT_EQ(store->asked_again, 0);
    // Now all of them need their previous values, too.
    checked(session, store_watches());
    EXPECT_EQ(store->asked.size(), 8u);
    EXPECT_EQ(store->asked_again, 4) << kept;
  }
}

TEST(StatsStore, ValuesThatTheStatisticsDecideAreNotStored) {
  const auto store = std::make_shared<MapStore>();
  const auto expressions = [](std::initializer_list<const char*> texts) {
    std::vector<Watchpoint> watches;
    for (const char* text : texts) {
      watches.push_back(watch(static_cast<int>(watches.size()) + 1, "**/*", "tensor_overflow"));
      watches.back().expression = *Expression::parse(text);
    }
    return watches;
  };
  TwoSteps first, second, alone;
  first.use_stats_store(store);
  second.use_stats_store(store);
  // NaN decides the second one in the ReLU; the third one needs the elements.
  const auto by_stats = expressions({"max(finite(x)) > 2.5", "mean(x) > 0"});
  const auto want = counts(checked(alone, by_stats));
  EXPECT_EQ(counts(checked(first, by_stats)), want);
  const size_t bytes = store->entries.begin()->second.size();
  for (const auto& [id, entry] : store->entries) EXPECT_EQ(entry.find("max("), std::string::npos);
  EXPECT_EQ(counts(checked(second, by_stats)), want);
  EXPECT_EQ(second.reads(), 0u);
  checked(second, expressions({"mean(x * x) > 1"}));
  const uint64_t reads = second.reads();
  EXPECT_GT(reads, 0u);
  EXPECT_GT(store->entries.begin()->second.size(), bytes);
  // What is stored and what the statistics decide go together.
  const auto mixed = expressions({"max(finite(x)) > 1.5", "mean(x * x) > 1", "mean(x) > 0"});
  TwoSteps anew;
  EXPECT_EQ(hits(second, checked(second, mixed)), hits(anew, checked(anew, mixed)));
  EXPECT_EQ(second.reads(), reads);
}

TEST(StatsStore, StatisticsOfOneTensorComeFromItToo) {
  const auto store = std::make_shared<MapStore>();
  TwoSteps first, second;
  first.use_stats_store(store);
  second.use_stats_store(store);
  const TensorId id = first.id("Default/relu", 1);
  ASSERT_TRUE(first.stats(id));
  const Result<Stats> again = second.stats(id);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->nan_count, 1u);
  EXPECT_EQ(second.reads(), 0u);
}

TEST(StatsStore, ADamagedEntryIsReadAnewAndReplaced) {
  const auto store = std::make_shared<MapStore>();
  TwoSteps session;
  session.use_stats_store(store);
  const TensorId id = session.id("Default/relu", 0);
  store->entries[id] = "\x01nonsense";
  EXPECT_EQ(session.stats(id)->nan_count, 1u);
  EXPECT_EQ(session.reads(), 1u);
  TwoSteps other;
  other.use_stats_store(store);
  EXPECT_EQ(other.stats(id)->nan_count, 1u);
  EXPECT_EQ(other.reads(), 0u);
}

TEST(StatsStore, WithoutATicketNothingIsKept) {
  const auto store = std::make_shared<MapStore>();
  store->keeps = false;
  TwoSteps session;
  session.use_stats_store(store);
  EXPECT_EQ(session.stats(session.id("Default/relu", 0))->nan_count, 1u);
  EXPECT_TRUE(store->entries.empty());
}

TEST(StatsStore, BitsAreKeptWithTheStatistics) {
  const auto store = std::make_shared<MapStore>();
  TwoSteps first, second, third;
  for (TwoSteps* session : {&first, &second, &third}) session->use_stats_store(store);
  EXPECT_EQ(first.stats(first.id("Default/relu", 0))->nan_count, 1u);
  const auto bits = [](TwoSteps& session, const std::string& node, int64_t step) {
    BitsRead read{session.id(node, step)};
    const auto bytes = read_bits(session, 1, std::span(&read, 1));
    EXPECT_EQ(bytes.value(), 12u);
    return read.bits;
  };
  // The entry without them is extended.
  const auto relu = bits(first, "Default/relu", 0);
  ASSERT_TRUE(relu);
  EXPECT_TRUE(relu->print.nan);
  EXPECT_EQ(relu->shape, (Shape{3}));
  EXPECT_EQ(first.reads(), 2u);
  EXPECT_EQ(bits(first, "Default/relu", 1)->print, relu->print);
  EXPECT_NE(bits(first, "Default/w", 0)->print, bits(first, "Default/w", 1)->print);
  const uint64_t reads = first.reads();
  EXPECT_EQ(bits(first, "Default/relu", 0)->print, relu->print);
  EXPECT_EQ(first.reads(), reads);
  // Another session reads nothing, and answers with what the index has.
  EXPECT_EQ(bits(second, "Default/relu", 0)->print, relu->print);
  EXPECT_EQ(second.stats(second.id("Default/relu", 0))->nan_count, 1u);
  EXPECT_EQ(second.reads(), 0u);
  // A check for other things keeps them.
  checked(third, store_watches());
  const uint64_t before = third.reads();
  EXPECT_EQ(bits(third, "Default/w", 1)->dtype, DType::kFloat32);
  EXPECT_EQ(third.reads(), before);
}

TEST(StatsStore, ACheckThatComparesBitsReadsOnce) {
  TwoSteps session;
  std::vector<Watchpoint> watches = store_watches();
  watches[0].compares_bits = true;
  checked(session, watches);
  // One rank has nothing to be compared with.
  BitsRead read{session.id("Default/w", 0)};
  const uint64_t before = session.reads();
  ASSERT_TRUE(read_bits(session, 1, std::span(&read, 1)));
  EXPECT_EQ(session.reads(), before + 1);
}

TEST(StatsStore, BitsOfWhatCannotBeReadSayWhy) {
  TwoSteps session;
  BitsRead reads[] = {{session.id("Default/w", 0)}, {session.id("Default/w", 7)}};
  const auto bytes = read_bits(session, 2, reads);
  ASSERT_TRUE(bytes);
  EXPECT_EQ(*bytes, 12u);
  EXPECT_TRUE(reads[0].bits);
  EXPECT_FALSE(reads[1].bits);
  EXPECT_FALSE(reads[1].problem.ok());
}

}  // namespace
}  // namespace msdbg
