// A check whose tensors several processes read gives the result of a check in one process.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "msdbg/shared.h"
#include "session/check_support.h"
#include "support/team_of_threads.h"

namespace msdbg {
namespace {

using testing::checked;
using testing::f32;
using testing::fake_graph;
using testing::FakeSession;
using testing::hits;
using testing::open_questions;
using testing::watch;

/// A weight and a relu in many steps; some values are bad, missing, unreadable or of another size than before.
struct ManySteps : FakeSession, SharedFiles {
  std::string location(const TensorId& id) override { return located ? session_tag + tensor_name(id) : ""; }
  bool located = true;
  static constexpr const char* session_tag = "many steps: ";

  explicit ManySteps(int64_t steps = 120) : FakeSession(fake_graph({{"Default/w", "Parameter"}, {"Default/relu", "ReLU", {"Default/w"}}})) {
    std::mt19937 random(5);
    for (int64_t step = 0; step < steps; ++step) {
      put("Default/w", step, f32({1, 2, static_cast<double>(random() % 3)}));
      if (step % 7 == 3) continue;
      if (step % 11 == 5) put("Default/relu", step, f32({NAN, INFINITY, 3}));
      else if (step % 13 == 6) put("Default/relu", step, f32({1}));
      else if (step % 17 == 7) put("Default/relu", step, f32({}));
      else put("Default/relu", step, f32({0, static_cast<double>(random() % 100), 3}));
    }
  }
};

std::vector<Watchpoint> many_watches() {
  std::vector<Watchpoint> watches = {watch(1, "**", "TO"), watch(2, "**", "WCL abs_mean_update_ratio_gt=0.1"),
                                     watch(3, "**", "TR range_start_inclusive=0 range_end_inclusive=2 range_percentage_gt=90")};
  Watchpoint expression;
  expression.id = 5;
  expression.on = Selector::parse("**").value();
  expression.expression = Expression::parse("percent(abs(x - prev) > 1) > 50").value();
  expression.rule = expression.expression->text();
  watches.push_back(expression);
  return watches;
}

auto everything(const Session& session, const CheckResult& result) {
  const Coverage& c = result.coverage;
  return std::tuple(hits(session, result), open_questions(session, result),
                    std::vector<uint64_t>{c.tensors, c.checked, c.not_checked, c.verdicts, c.bytes, c.from_cache});
}

struct SharedCheck : ::testing::Test {
  test::ThreadLink::Handlers handlers() {
    return {{std::string(kMeasureWork), measure_handler([this](const TensorId& id, std::string_view location) -> Result<OpenTensor> {
               if (files.tensor_name(id).empty() || !location.starts_with(ManySteps::session_tag))
                 return Status(Code::kNotFound, "no such file");
               return files.open(id);
             })}};
  }
  ManySteps files;
};

TEST_F(SharedCheck, GivesTheResultOfOneProcess) {
  ManySteps alone, shared;
  const auto expected = everything(alone, checked(alone, many_watches()));
  EXPECT_FALSE(std::get<0>(expected).empty());
  EXPECT_FALSE(std::get<1>(expected).empty());
  test::TeamOfThreads team(4, handlers());
  EXPECT_EQ(everything(shared, checked(shared, many_watches())), expected);
  EXPECT_GT(team.link.sent, 1000u) << "nothing was dealt out";
}

TEST_F(SharedCheck, ASecondCheckUsesWhatAllProcessesHaveRead) {
  ManySteps alone, shared;
  const std::vector<Watchpoint> first = {watch(1, "**", "TO")};
  const auto expected_first = everything(alone, checked(alone, first));
  const auto expected = everything(alone, checked(alone, many_watches()));
  const auto again = everything(alone, checked(alone, first));
  test::TeamOfThreads team(3, handlers());
  EXPECT_EQ(everything(shared, checked(shared, first)), expected_first);
  EXPECT_EQ(everything(shared, checked(shared, many_watches())), expected) << "statistics that must be extended";
  const uint64_t before = team.link.messages;
  EXPECT_EQ(everything(shared, checked(shared, first)), again);
  EXPECT_EQ(team.link.messages, before);
}

TEST_F(SharedCheck, TensorsWithoutALocationAreReadHere) {
  ManySteps alone, shared;
  shared.located = false;
  const auto expected = everything(alone, checked(alone, many_watches()));
  test::TeamOfThreads team(3, handlers());
  EXPECT_EQ(everything(shared, checked(shared, many_watches())), expected);
  EXPECT_EQ(team.link.messages, 0u);
}

TEST_F(SharedCheck, WhatOthersCannotOpenIsReadHere) {
  ManySteps alone, shared;
  const auto expected = everything(alone, checked(alone, many_watches()));
  test::TeamOfThreads team(3, {{std::string(kMeasureWork), measure_handler([](const TensorId&, std::string_view) -> Result<OpenTensor> {
                                  return Status(Code::kNotFound, "another file system");
                                })}});
  EXPECT_EQ(everything(shared, checked(shared, many_watches())), expected);
  EXPECT_TRUE(team.team.lost().ok());
}

TEST_F(SharedCheck, ALostProcessLeavesWhatWasMeasured) {
  ManySteps shared;
  test::TeamOfThreads team(3, handlers());
  ByteWriter lost;
  lost.byte(static_cast<unsigned>(TeamMessage::kLost));
  lost.text("ended by signal 9");
  team.link.forged.push_back({1, lost.take()});
  const CheckResult result = checked(shared, many_watches());
  EXPECT_TRUE(result.interrupted);
  EXPECT_FALSE(team.team.lost().ok());
}

/// Results of the right kind with any byte changed: refused or taken, but never a crash.
TEST_F(SharedCheck, DamagedResultsDoNotCrash) {
  std::mt19937 random(11);
  for (int i = 0; i < 100; ++i) {
    ManySteps shared(20);
      const auto damage = [&](std::string bytes) {
      if (!bytes.empty()) bytes[random() % bytes.size()] = static_cast<char>(random());
      return bytes;
    };
    test::ThreadLink::Handlers own = handlers();
    const SharedHandler honest = own.begin()->second;
    struct Liar : SharedJob {
      Liar(std::unique_ptr<SharedJob> inner, std::function<std::string(std::string)> change)
          : job(std::move(inner)), damage(std::move(change)) {}
      Result<std::string> run(std::string_view item, unsigned worker) override {
        Result<std::string> result = job->run(item, worker);
        const std::lock_guard lock(mutex);
        if (result) *result = damage(std::move(*result));
        return result;
      }
      std::unique_ptr<SharedJob> job;
      std::function<std::string(std::string)> damage;
      std::mutex mutex;
    };
    own.begin()->second = [&](std::string_view common, unsigned threads) -> Result<std::unique_ptr<SharedJob>> {
      auto job = honest(common, threads);
      if (!job) return job.status();
      return std::unique_ptr<SharedJob>(std::make_unique<Liar>(std::move(*job), damage));
    };
    test::TeamOfThreads team(2, std::move(own));
    CheckOptions options;
    options.threads = 1;
    (void)checked(shared, many_watches(), options);
  }
}

TEST(MeasureHandler, APreviousValueOfAnotherTensorIsRefused) {
  ManySteps files;
  const SharedHandler handler = measure_handler([&](const TensorId& id, std::string_view) { return files.open(id); });
  ByteWriter common;
  write_target(common);
  common.number(1);  // one set of watchpoints: no ranges, no tolerances, the change, no bits, the previous value, no expressions
  common.number(0);
  common.number(0);
  common.flag(true);
  common.flag(false);
  common.flag(true);
  common.number(0);
  const auto job = handler(common.take(), 1);
  ASSERT_TRUE(job.ok()) << job.status().message();
  const auto item = [&](const char* previous) {
    ByteWriter out;
    write(out, files.id("Default/w", 1));
    out.text("somewhere");
    out.number(0);  // the set
    out.number(2);  // the previous value is elsewhere
    write(out, files.id(previous, 0));
    out.text("somewhere");
    out.flag(false);
    return (*job)->run(out.take(), 0);
  };
  EXPECT_TRUE(item("Default/w").ok()) << item("Default/w").status().message();
  EXPECT_EQ(item("Default/relu").status().code(), Code::kCorrupt);
}

TEST(ExpectedBytes, ComeFromTheGraphAndElseFromTheMean) {
  ManySteps session;  // a graph without shapes
  const std::vector<TensorId> tensors = session.tensors({});
  EXPECT_EQ(expected_bytes(session, tensors), std::vector<uint64_t>(tensors.size()));
}

}  // namespace
}  // namespace msdbg
