// Whatever is wrong in an answer with several values, no value is confused with another.
#include "live/small_training.h"

namespace msdbg::test {
namespace {

TEST_F(FetchedTogether, AnswerThatEndsEarlyCostsTheRest) {
  SmallTraining training;
  training.once([](SliceList& slices) { slices.resize(slices.size() - 5); });
  const Verdict verdict = check_all(training.session());
  EXPECT_EQ(verdict.wrong, 0u);
  EXPECT_EQ(verdict.not_checked.size(), 5u);
  EXPECT_EQ(verdict.say("the training announced float32[4] and sent float32[0]"), 5u);
  // Each is requested again, because the answer to another question may be better.
  const Verdict again = check_all(training.session());
  EXPECT_EQ(again.right, verdict.right + 5);
  EXPECT_TRUE(again.not_checked.empty());
}

TEST_F(FetchedTogether, AnswerInAnotherOrderIsNotMixedUp) {
  SmallTraining training;
  training.once([](SliceList& slices) { std::swap(slices[7], slices[8]); });
  Verdict verdict = check_all(training.session());
  EXPECT_EQ(verdict.wrong, 0u);
  EXPECT_EQ(verdict.not_checked.size(), 1u);
  EXPECT_EQ(verdict.say("its slices came after those of a tensor that was requested later"), 1u);

  SmallTraining reversed;
  reversed.once([](SliceList& slices) { std::reverse(slices.begin(), slices.end()); });
  verdict = check_all(reversed.session());
  EXPECT_EQ(verdict.wrong, 0u);
  EXPECT_EQ(verdict.right, 1u);
}

TEST_F(FetchedTogether, SlicesOfSomethingElseCostTheValueInWhosePlaceTheyCome) {
  SmallTraining training;
  training.once([](SliceList& slices) { slices[3].set_node_name("something else"); });
  const Verdict verdict = check_all(training.session());
  EXPECT_EQ(verdict.wrong, 0u);
  ASSERT_EQ(verdict.not_checked.size(), 1u);
  EXPECT_EQ(verdict.not_checked.begin()->second, "the value of " + training.asked_last()[3] + ":0: it answered with something else:0");
}

TEST_F(FetchedTogether, ValueThatTheTrainingDoesNotHaveIsMissedAlone) {
  SmallTraining training;
  training.once([](SliceList& slices) {
    slices[4].clear_data_type();
    slices[4].clear_dims();
    slices[4].clear_tensor_content();
  });
  const Verdict verdict = check_all(training.session());
  EXPECT_EQ(verdict.wrong, 0u);
  ASSERT_EQ(verdict.not_checked.size(), 1u);
  EXPECT_EQ(verdict.say("not available: "), 1u);
}

TEST_F(FetchedTogether, ValueOfAnotherTypeOrShapeIsRefusedAlone) {
  SmallTraining training;
  training.once([](SliceList& slices) {
    slices[1].set_data_type(12);
    slices[2].set_dims(0, 5);
  });
  const Verdict verdict = check_all(training.session());
  EXPECT_EQ(verdict.wrong, 0u);
  EXPECT_EQ(verdict.not_checked.size(), 2u);
}

TEST_F(FetchedTogether, ValueThatIsTooLargeEndsTheAnswerThere) {
  SmallTraining training;
  training.once([](SliceList& slices) { slices[10].set_tensor_content(std::string(17, 'x')); });
  const Verdict verdict = check_all(training.session());
  const size_t asked = training.asked_last().size();
  const std::string name = training.asked_last()[10];
  EXPECT_EQ(verdict.wrong, 0u);
  EXPECT_EQ(verdict.right, 10u);
  EXPECT_EQ(verdict.not_checked.size(), asked - 10);
  EXPECT_EQ(verdict.say("the value of " + name + ":0: more than the 16 B that the tensor has"), 1u);
  EXPECT_EQ(verdict.say("the answer ended at " + name + ":0: more than the 16 B that the tensor has"), asked - 11);
}

TEST_F(FetchedTogether, StreamThatIsBrokenOffCostsThatQuestion) {
  SmallTraining training;
  training.instead([&](const SliceList& slices) {
    std::vector<std::string> messages;
    for (size_t i = 0; i < 6; ++i) messages.push_back(slices[i].SerializeAsString());
    EXPECT_TRUE(training.driver().client->begin_stream(live::Rpc::kSendTensors, messages));
    training.driver().client->cancel_streams();
    training.driver().hold(0, "");
  });
  const Verdict verdict = check_all(training.session());
  const size_t asked = training.asked_last().size();
  EXPECT_EQ(verdict.right + verdict.wrong, 0u);
  EXPECT_EQ(verdict.say("the training asked again without an answer"), asked);
  EXPECT_EQ(training.asked_together().size(), 1u);
  EXPECT_EQ(check_all(training.session()).right, asked);
}

TEST_F(FetchedTogether, ProcessThatCameMeanwhileIsNotAsked) {
  SmallTraining training;
  LiveSession& session = training.session();
  const std::vector<TensorId> ids = session.tensors({});
  training.instead([&](const SliceList&) {
    Driver& driver = training.driver();
    driver.client->drop();
    driver.wait.reset();
    for (int i = 0; i < 1000; ++i) {
      driver.client = RawClient::connect(driver.port());
      if (driver.client->unary(live::Rpc::kSendMetadata, driver.metadata("1.10.0").SerializeAsString()).ok()) break;
      std::this_thread::sleep_for(10ms);
    }
    driver.hold(0, "");
  });
  session.check_begins({});
  EXPECT_NE(session.open(ids[0]).status().message().find("the training went away before it answered"), std::string::npos);
  std::string said;
  for (int i = 0; i < 1000 && said.find("is held again") == std::string::npos; ++i) {
    const auto opened = session.open(ids[1]);
    ASSERT_FALSE(opened.ok()) << "the value is that of another process";
    said = opened.status().message();
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_NE(said.find("the training went away and is held again; look at its new suspension"), std::string::npos) << said;
  EXPECT_FALSE(session.graphs().empty());
  session.check_ends();
  EXPECT_EQ(session.state(), LiveState::kHeld);
  EXPECT_TRUE(session.graphs().empty()) << "the new process has sent none";
  EXPECT_EQ(training.asked_together().size(), 1u);
}

}  // namespace
}  // namespace msdbg::test
