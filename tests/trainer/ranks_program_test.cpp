// msdbg and a training of several processes, which really reduce their gradients.
#include <gtest/gtest.h>
#include <signal.h>

#include <optional>
#include <string>

#include "trainer/live_pair.h"

namespace msdbg::test {
namespace {

/// `msdbg listen` with entries of the prompt, and the trainer with the port that it chose.
struct RanksPair {
  RanksPair(const Words& listen_words, const Words& trainer_words)
      : listen(joined({MSDBG_PROGRAM, "listen", "--port", "0", "--batch", "--no-init"}, listen_words)) {
    const std::string mark = "listening on 127.0.0.1:";
    const auto line = listen.wait_for(mark);
    if (!line) {
      ADD_FAILURE() << "no line '" << mark << "' in:\n" << listen.output();
      return;
    }
    std::string port = line->substr(line->find(mark) + mark.size());
    port = port.substr(0, port.find_first_not_of("0123456789"));
    trainer.emplace(joined({MSDBG_TRAINER, "--port", port, "--retry-unit-ms", "50"}, trainer_words));
  }
  /// What msdbg printed, once both have ended.
  std::string text() {
    if (!trainer) return "";
    listen_status = listen.wait().value_or(-1);
    trainer_status = trainer->wait().value_or(-1);
    return listen.output();
  }

  Process listen;
  std::optional<Process> trainer;
  int listen_status = -1, trainer_status = -1;
};

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(RanksProgram, OriginNamesTheRankOfTheBadBatchOnce) {
  RanksPair pair({"--ranks", "3", "-e", "step 6", "-e", "origin"},
                 {"--ranks", "3", "--backend", "Ascend", "--fault", "one-rank-bad-batch", "--fault-rank", "2"});
  const std::string text = pair.text();
  EXPECT_EQ(count(text, "first bad"), 1U) << text;
  EXPECT_TRUE(contains(text, "step 5  rank 2  kernel_graph_1\n  first bad  #1 parameter inputs")) << text;
  EXPECT_TRUE(contains(text, "ranks 0-1 got it through AllReduce-op37:output:0")) << text;
  EXPECT_EQ(pair.trainer_status, 0) << pair.trainer->output();
}

TEST(RanksProgram, HitsBeginWithTheRankOfTheBadBatch) {
  RanksPair pair({"--ranks", "3", "-e", "watch @all TO", "-e", "continue", "-e", "hits 1", "-e", "check"},
                 {"--ranks", "3", "--backend", "Ascend", "--fault", "one-rank-bad-batch", "--fault-rank", "2"});
  const std::string text = pair.text();
  const std::string cause = "126 of 126 findings follow from inputs, step 5, rank 2: it came in with 64 NaN of 2048\n";
  EXPECT_TRUE(contains(text, "  " + cause + "  rank 2  inputs:output:0  TO  64 of 2048 NaN\n  ... 125 more: hits")) << text;
  EXPECT_TRUE(contains(text, "cause   inputs, step 5, rank 2: it came in with 64 NaN of 2048")) << text;
  EXPECT_TRUE(contains(text, "AllReduce-op37:output:0 --step 5 --rank 0")) << text;
  EXPECT_EQ(count(text, cause), 2U) << text;
  EXPECT_TRUE(contains(text, "First: step 5, rank 2, inputs:output:0.")) << text;
}

TEST(RanksProgram, HitsOfASoundRankFollowFromTheOther) {
  RanksPair pair({"--ranks", "3", "-e", "watch rank:0 TO", "-e", "continue", "-e", "step"},
                 {"--ranks", "3", "--backend", "Ascend", "--fault", "one-rank-bad-batch"});
  const std::string text = pair.text();
  const std::string cause = "30 of 30 findings follow from inputs, step 5, rank 1: it came in with 64 NaN of 2048";
  EXPECT_TRUE(contains(text, "  " + cause + "\n  ... 30 in all: hits")) << text;
  EXPECT_TRUE(contains(text, "65 of 65 findings follow from fc1.weight, step 5, rank 0: it already held 4096 NaN")) << text;
}

TEST(RanksProgram, OnceTheTrainingHasGoneOnNothingSaysWhatHitsFollowFrom) {
  const std::string show = "print(r, #r.hits, r.check.causes)";
  RanksPair pair({"--ranks", "3", "-e", "watch rank:0 TO", "-e", "r = s:continue()", "-e", "late = s:step()", "-e", show},
                 {"--ranks", "3", "--backend", "Ascend", "--fault", "one-rank-bad-batch"});
  const std::string text = pair.text();
  EXPECT_FALSE(contains(text, "follow from")) << text;
  EXPECT_TRUE(contains(text, "30\tnil")) << text;
}

TEST(RanksProgram, AWatchpointStopsTheRankOfTheBadBatchBeforeItsAllReduce) {
  RanksPair pair({"--ranks", "3", "-e", "watch @all TO", "-e", "continue", "-e", "info", "-e", "origin"},
                 {"--ranks", "3", "--fault", "one-rank-bad-batch"});
  const std::string text = pair.text();
  EXPECT_TRUE(contains(text, "rank 1    held in step 5, 5 completed, after Default/network-WithLossCell/")) << text;
  EXPECT_TRUE(contains(text, "rank 0    running in step 4, 5 completed")) << text;
  EXPECT_TRUE(contains(text, "  rank 1  MatMul-op1:output:0  TO  64 of 2048 NaN")) << text;
  EXPECT_EQ(count(text, "first bad"), 1U) << text;
  EXPECT_TRUE(contains(text, "step 5  rank 1  kernel_graph_1")) << text;
  EXPECT_EQ(pair.trainer_status, 0) << pair.trainer->output();
}

TEST(RanksProgram, ReplicasNamesTheFlippedBit) {
  RanksPair pair({"--ranks", "3", "-e", "step 6", "-e", "replicas", "-e", "step", "-e", "check --rules replica-differs"},
                 {"--ranks", "3", "--backend", "Ascend", "--fault", "bit-flip"});
  const std::string text = pair.text();
  EXPECT_TRUE(contains(text, "fc1.weight of rank 1 differs from the other replicas from step 5 on")) << text;
  EXPECT_TRUE(contains(text, "a single flipped bit: 24, in the exponent")) << text;
  EXPECT_TRUE(contains(text, "rank 1 differs from ranks 0, 2 in 1 of 4096 elements: [5,17]")) << text;
}

TEST(RanksProgram, AHealthyTrainingHasEqualReplicas) {
  RanksPair pair({"--ranks", "2", "-e", "step 3", "-e", "replicas", "-e", "detach"},
                 {"--ranks", "2", "--backend", "Ascend", "--steps", "5"});
  const std::string text = pair.text();
  EXPECT_TRUE(contains(text, "equal as far as statistics tell: ")) << text;
  EXPECT_EQ(pair.trainer_status, 0);
  EXPECT_EQ(count(pair.trainer->output(), "done: 5 steps"), 2U) << pair.trainer->output();
}

TEST(RanksProgram, WithoutRanksTheSecondProcessIsToldTheOption) {
  RanksPair pair({"-e", "continue"}, {"--ranks", "2", "--steps", "3"});
  const std::string text = pair.text();
  EXPECT_TRUE(contains(text, "refused a second training at 127.0.0.1:")) << text;
  EXPECT_TRUE(contains(text, "a training of several processes needs --ranks N")) << text;
  EXPECT_EQ(pair.trainer_status, 1) << pair.trainer->output();
}

TEST(RanksProgram, AKilledRankIsNamedAndTheOthersEndThemselves) {
  RanksPair pair({"--ranks", "3", "-e", "continue", "-e", "info"}, {"--ranks", "3", "--steps", "1000000", "--step-sleep-ms", "1"});
  ASSERT_TRUE(pair.trainer);
  const auto line = pair.trainer->wait_for("rank 1: process ");
  ASSERT_TRUE(line);
  ASSERT_TRUE(pair.listen.wait_for("connected: "));
  ::kill(std::stoi(line->substr(line->rfind(' ') + 1)), SIGKILL);
  const std::string text = pair.text();
  EXPECT_TRUE(contains(text, "rank 1: the connection to the training at 127.0.0.1:")) << text;
  EXPECT_TRUE(contains(text, "rank 1 is lost after ")) << text;
  EXPECT_EQ(pair.trainer_status, 1);
  EXPECT_EQ(count(pair.trainer->output(), "another rank has ended"), 2U) << pair.trainer->output();
}

TEST(RanksProgram, ARecordingIsReplayedWithAllRanks) {
  const ScratchDirectory directory;
  const std::string file = directory.file("training.rec");
  RanksPair pair({"--ranks", "2", "--record", file, "-e", "step 6", "-e", "replicas", "-e", "step"},
                 {"--ranks", "2", "--backend", "Ascend", "--fault", "bit-flip"});
  const std::string live = pair.text();
  Process replay({MSDBG_PROGRAM, file, "--batch", "--no-init", "-e", "step 6", "-e", "replicas"});
  EXPECT_TRUE(replay.wait());
  const auto from = [](const std::string& text) { return text.substr(std::min(text.find("fc1.weight "), text.size())).substr(0, 200); };
  EXPECT_FALSE(from(live).empty()) << live;
  EXPECT_EQ(from(replay.output()), from(live)) << replay.output();
}

}  // namespace
}  // namespace msdbg::test
