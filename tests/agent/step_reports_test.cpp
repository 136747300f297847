// Steps that end without asking the debugger, and what it is told of them.
#include <gtest/gtest.h>

#include "agent/requests.h"
#include "agent/step_reports.h"
#include "agent/tensor_store.h"

namespace msdbg::test {
namespace {

/// A RunCMD that lets the training go on at so many ends of steps, and wants to know of w.
Answer run_ahead(uint32_t steps, uint32_t milliseconds, uint32_t keep = 2) {
  debugger::EventReply reply;
  debugger::RunCMD& run = *reply.mutable_run_cmd();
  run.set_run_level("step");
  run.mutable_ahead()->set_steps(steps);
  run.mutable_ahead()->set_milliseconds(milliseconds);
  run.mutable_report()->set_number(5);
  run.mutable_report()->set_keep(keep);
  for (const char* name : {"w", "nothing"}) run.mutable_report()->add_tensors()->set_node_name(name);
  for (auto& tensor : *run.mutable_report()->mutable_tensors()) tensor.set_slot("0");
  return Answer::of(reply);
}

TEST_F(Requests, StepsGoOnWithoutAskingAndAreTold) {
  begin({above(1, 1e9).leaf(kMul).answer(), run_ahead(3, 600000)});
  for (int step = 0; step < 5; ++step) {
    agent->node_done(0);  // its inputs can be read
    agent->end_step();
    EXPECT_EQ(server.calls("WaitCMD").size(), step < 3 ? 2u : step < 4 ? 3u : 4u) << step;
    agent->begin_step();
  }
  agent->finish();
  const debugger::Metadata told = server.calls("WaitCMD").at(2).metadata();
  EXPECT_EQ(told.cur_step(), 3);
  EXPECT_EQ(told.passed(), 3u);
  ASSERT_EQ(told.ended_size(), 2);  // the latest
  EXPECT_EQ(told.ended(0).step(), 2);
  EXPECT_EQ(told.ended(1).step(), 3);
  EXPECT_EQ(told.ended(1).number(), 5u);
  ASSERT_EQ(told.ended(1).statistics_size(), 2);
  EXPECT_EQ(told.ended(0).statistics(0).statistics().count(), net.w.size());
  EXPECT_EQ(told.ended(1).statistics(1).tensor_base().data_type(), 0);  // there is no such tensor
  // A command without them ends it.
  const debugger::Metadata after = server.calls("WaitCMD").at(3).metadata();
  EXPECT_EQ(after.passed(), 0u);
  EXPECT_EQ(after.ended_size(), 0);
}

TEST(StepReports, ParametersElsewhereAreFetchedSoRarelyThatTheTrainingIsNotSlow) {
  using std::chrono::milliseconds;
  agent::StepReports::Clock::time_point now{};
  agent::StepReports reports([&] { return now; });
  const agent::ReleaseTraits traits = agent::own_traits({});
  ChainNet net;
  auto made = agent::TensorStore::create(net.describe(), traits);
  ASSERT_TRUE(made.ok());
  const std::unique_ptr<agent::TensorStore> store = std::move(*made);
  milliseconds cost{1};
  int fetched = 0;
  const agent::Fetch fetch = [&](std::span<std::byte> into) {
    now += cost;
    return std::memset(into.data(), ++fetched, into.size()), true;
  };
  ASSERT_TRUE(store->set_parameter("w", std::nullopt, {4}, nullptr, {fetch, nullptr}).ok());
  debugger::RunCMD command;
  for (const char* name : {"w", "moments.w"}) command.mutable_report()->add_tensors()->set_node_name(name);
  for (auto& tensor : *command.mutable_report()->mutable_tensors()) tensor.set_slot("0");
  command.mutable_report()->set_keep(100);
  reports.begin(command);
  const auto steps = [&](int count) {
    for (int step = 0; step < count; ++step) {
      store->load_parameters(traits);
      reports.step_ended(step, *store, traits);
      store->drop();
      now += milliseconds(10);
    }
    return fetched;
  };
  EXPECT_EQ(steps(1), 1);
  EXPECT_EQ(steps(6), 1);  // 64 times 1 ms are not over
  EXPECT_EQ(steps(6), 2);
  cost = milliseconds(5000);  // no longer than a quarter of a second
  EXPECT_EQ(steps(7), 3);
  EXPECT_EQ(steps(18), 3);
  EXPECT_EQ(steps(3), 4);
  debugger::Metadata told;
  reports.tell(told);
  EXPECT_NE(told.ended(0).statistics(0).tensor_base().data_type(), 0);
  EXPECT_EQ(told.ended(1).statistics(0).tensor_base().data_type(), 0);
  EXPECT_NE(told.ended(1).statistics(1).tensor_base().data_type(), 0);
}

TEST_F(Requests, AStepThatPassesSaysSoWhenItBegins) {
  begin({run_ahead(4, 600000)});
  EXPECT_FALSE(agent->passes());  // how long a step takes is not known yet
  agent->end_step();
  const size_t asked = server.calls("WaitCMD").size();
  for (int step = 0; step < 3; ++step) {
    agent->begin_step();
    EXPECT_TRUE(agent->passes());
    agent->end_step();
    EXPECT_EQ(server.calls("WaitCMD").size(), asked);
  }
  EXPECT_FALSE(agent->passes());  // no step has begun
  agent->begin_step();
  EXPECT_FALSE(agent->passes());  // that was all
  agent->end_step();
  EXPECT_EQ(server.calls("WaitCMD").size(), asked + 1);
}

TEST_F(Requests, AStepThatPassesIsHeldIfItIsCutShort) {
  begin({run_ahead(100, 600000), run_ahead(100, 600000)});
  agent->passes(), agent->end_step(), agent->begin_step();
  ASSERT_TRUE(agent->passes());
  const size_t asked = server.calls("WaitCMD").size();
  agent->cut_short("an exception");
  agent->end_step();
  EXPECT_EQ(server.calls("WaitCMD").size(), asked + 1);
}

TEST_F(Requests, AStepThatIsWatchedDoesNotPass) {
  begin({above(1, 1e9).leaf(kMul).answer(), run_ahead(100, 600000)});
  agent->passes(), agent->end_step(), agent->begin_step();
  EXPECT_FALSE(agent->passes());
}

TEST(StepReports, OnlyAShortStepPassesForSure) {
  using std::chrono::milliseconds;
  agent::StepReports::Clock::time_point now{};
  agent::StepReports reports([&] { return now; });
  debugger::RunCMD command;
  command.mutable_ahead()->set_steps(100);
  command.mutable_ahead()->set_milliseconds(400);
  now += std::chrono::hours(1);
  reports.begin(command);
  EXPECT_FALSE(reports.commits());
  now += milliseconds(100);
  EXPECT_TRUE(reports.commits());
  now += milliseconds(1000);
  EXPECT_TRUE(reports.passes()) << "that step was longer";
  EXPECT_FALSE(reports.passes()) << "the time is over";
  reports.begin(command);
  EXPECT_FALSE(reports.commits()) << "another step of a second would end behind the time";
  reports.begin(command);
  now += milliseconds(250);
  EXPECT_FALSE(reports.commits());
  EXPECT_TRUE(reports.passes());
}

TEST_F(Requests, TimeAndHitsEndIt) {
  begin({above(1, 100).leaf(kMul).answer(), run_ahead(1000, 0), run_ahead(1000, 600000)});
  agent->end_step();  // no time at all
  EXPECT_EQ(server.calls("WaitCMD").size(), 3u);
  agent->begin_step(), agent->end_step();
  EXPECT_EQ(server.calls("WaitCMD").size(), 3u);
  agent->begin_step();
  net.mul[0] = 1000;
  agent->publish(0, 0, net.mul.data(), sizeof net.mul);
  agent->node_done(0);
  ASSERT_EQ(server.calls("WaitCMD").size(), 4u);
  EXPECT_EQ(server.calls("WaitCMD").back().metadata().passed(), 1u);
  EXPECT_EQ(server.calls("WaitCMD").back().metadata().ended_size(), 1);
}

TEST_F(Requests, FarewellTellsOfTheLastSteps) {
  begin({run_ahead(1000, 600000)});
  agent->end_step(), agent->begin_step(), agent->end_step();
  agent->finish();
  const debugger::Metadata farewell = server.calls().back().metadata();
  EXPECT_TRUE(farewell.training_done());
  EXPECT_EQ(farewell.cur_step(), 2);
  EXPECT_EQ(farewell.passed(), 2u);
  EXPECT_EQ(farewell.ended_size(), 2);
}

}  // namespace
}  // namespace msdbg::test
