// A client also reports what it could not judge, with an error code instead of a measured value; that is not a hit.
#include <gtest/gtest.h>

#include <thread>

#include "live/session_driver.h"

namespace msdbg::test {
namespace {

using namespace std::chrono_literals;

const std::string kNode = "Default/net-Net/Add-op30";

/// The training sends one hit of our only watchpoint and is held, after kNode has run.
Result<RunResult> run_to_hit(Driver& d, const std::string& version, const std::string& condition, int error_code,
                             int step = 0) {
  d.connect(version);
  EXPECT_TRUE(d.session->wait_until_held(10s).ok());
  Watchpoint watch;
  watch.id = 3;
  watch.on = *Selector::parse("=" + kNode);
  watch.condition = *parse_condition(condition);
  watch.rule = std::string(watch.condition->spec->id);
  std::thread peer([&d, error_code, step] {
    const debugger::EventReply set = d.reply();
    d.hold(0, "");
    EXPECT_EQ(d.reply().run_cmd().run_level(), "step");
    debugger::WatchpointHit hit;
    hit.mutable_tensor()->set_node_name(kNode);
    hit.mutable_tensor()->set_slot("0");
    *hit.mutable_watch_condition() = set.set_cmd().watch_condition();
    hit.set_id(set.set_cmd().id());
    hit.set_error_code(error_code);
    EXPECT_TRUE(
        d.client->stream(live::Rpc::kSendWatchpointHits, std::vector<std::string>{hit.SerializeAsString()}).ok());
    d.hold(step, kNode);
  });
  const Status set = d.session->set_watchpoints({&watch, 1});
  EXPECT_TRUE(set.ok()) << set.message();
  RunRequest request;
  request.timeout = 20s;
  auto result = d.session->run(request);
  peer.join();
  return result;
}

class ErrorCodes : public testing::TestWithParam<int> {};

TEST_P(ErrorCodes, AreShownAsNotCheckedAndStop) {
  Driver d;
  const auto result = run_to_hit(d, "1.10.0", "TL max_gt=1", GetParam());
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_TRUE(result->held);
  EXPECT_EQ(result->reason, StopReason::kNotChecked);
  EXPECT_TRUE(result->check.hits.empty());
  ASSERT_EQ(result->check.not_checked.size(), 1u);
  const NotChecked& entry = result->check.not_checked[0];
  EXPECT_EQ(entry.watch_id, 3);
  EXPECT_EQ(entry.error_code, static_cast<uint32_t>(GetParam()));
  EXPECT_EQ(entry.abbr, "TL");
  EXPECT_EQ(d.session->node(entry.tensor).name, kNode);
  for (const std::string& text : error_texts(static_cast<uint32_t>(GetParam()))) {
    EXPECT_NE(entry.reason.find(text), std::string::npos) << entry.reason;
  }
}

INSTANTIATE_TEST_SUITE_P(NanAndInf, ErrorCodes, testing::Values(kErrorNan, kErrorInf, kErrorNan | kErrorInf));

TEST(ErrorCode, OfAMissingPreviousValueDoesNotStopTheCount) {
  Driver d;
  const auto result =
      run_to_hit(d, "1.5.0", "weight_change_too_large abs_mean_update_ratio_gt=0.1", kErrorNoPrevious, 1);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->reason, StopReason::kDone) << "it is so at every first step";
  EXPECT_EQ(result->steps_run, 1) << "though the last operator reads what the hit is about";
  ASSERT_EQ(result->check.not_checked.size(), 1u);
  EXPECT_EQ(result->check.not_checked[0].error_code, uint32_t{kErrorNoPrevious});
}

TEST(ErrorCode, OfOverflowIsNoneAndTheHitIsAHit) {
  Driver d;
  const auto result = run_to_hit(d, "1.10.0", "TO", 0);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->reason, StopReason::kHit);
  ASSERT_EQ(result->check.hits.size(), 1u);
  EXPECT_EQ(result->check.hits[0].abbr, "TO");
  EXPECT_TRUE(result->check.not_checked.empty());
}

}  // namespace
}  // namespace msdbg::test
