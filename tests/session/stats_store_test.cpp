// A session with further sources of statistics.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <mutex>
#include <tuple>

#include "session/check_support.h"

namespace msdbg {
namespace {

using testing::f32;
using testing::fake_graph;
using testing::FakeSession;
using testing::checked;
using testing::watch;

class MapStore : public StatsStore {
 public:
  void find(const TensorId& id, bool previous, std::string& entry) override {
    std::lock_guard lock(mutex_);
    asked.push_back(previous);
    const auto found = entries.find(id);
    entry = found == entries.end() ? std::string() : found->second;
  }
  void put(const TensorId& id, std::string_view entry) override {
    std::lock_guard lock(mutex_);
    entries[id] = entry;
  }

  std::map<TensorId, std::string> entries;
  std::vector<bool> asked;

 private:
  std::mutex mutex_;
};

struct TwoSteps : FakeSession {
  TwoSteps() : FakeSession(fake_graph({{"Default/w", "Parameter"}, {"Default/relu", "ReLU", {"Default/w"}}})) {
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
  first.add_stats_store(store);
  second.add_stats_store(store);
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
  for (TwoSteps* session : {&plain, &changes, &both}) session->add_stats_store(store);
  checked(plain, {watch(1, "**/*", "tensor_overflow")});
  EXPECT_EQ(store->asked, std::vector<bool>(4, false));
  checked(changes, {store_watches()[1]});
  EXPECT_EQ(std::vector<bool>(store->asked.begin() + 4, store->asked.end()), std::vector<bool>(4, true));
  EXPECT_GT(changes.reads(), 0u);
  checked(both, store_watches());
  EXPECT_EQ(both.reads(), 0u);
}

TEST(StatsStore, StatisticsOfOneTensorComeFromItToo) {
  const auto store = std::make_shared<MapStore>();
  TwoSteps first, second;
  first.add_stats_store(store);
  second.add_stats_store(store);
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
  session.add_stats_store(store);
  const TensorId id = session.id("Default/relu", 0);
  store->entries[id] = "\x01nonsense";
  EXPECT_EQ(session.stats(id)->nan_count, 1u);
  EXPECT_EQ(session.reads(), 1u);
  TwoSteps other;
  other.add_stats_store(store);
  EXPECT_EQ(other.stats(id)->nan_count, 1u);
  EXPECT_EQ(other.reads(), 0u);
}

TEST(StatsStore, AnEarlierStoreLearnsFromALaterOne) {
  const auto near = std::make_shared<MapStore>(), far = std::make_shared<MapStore>();
  TwoSteps first, second;
  first.add_stats_store(far);
  checked(first, store_watches());
  second.add_stats_store(near);
  second.add_stats_store(far);
  checked(second, store_watches());
  EXPECT_EQ(second.reads(), 0u);
  EXPECT_EQ(near->entries, far->entries);
}

}  // namespace
}  // namespace msdbg
