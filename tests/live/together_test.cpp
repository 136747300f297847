// Small values that a check reads are fetched in batches.
#include "live/small_training.h"

namespace msdbg::test {
namespace {

TEST_F(FetchedTogether, OneQuestionBringsThemAll) {
  SmallTraining training;
  const Verdict verdict = check_all(training.session());
  EXPECT_GT(verdict.right, 15u);
  EXPECT_LT(verdict.right, kMost);
  EXPECT_EQ(verdict.wrong, 0u);
  EXPECT_TRUE(verdict.not_checked.empty());
  EXPECT_EQ(training.asked_together(), std::vector<int>{static_cast<int>(verdict.right)});
  EXPECT_EQ(check_all(training.session()).right, verdict.right);
  EXPECT_EQ(training.asked_together().size(), 1u) << "what is kept was asked for again";
}

TEST_F(FetchedTogether, ThreadsNeverAskForAValueTwice) {
  constexpr unsigned kThreads = 4;
  SmallTraining training;
  const Verdict verdict = check_all(training.session(), nullptr, kThreads);
  EXPECT_GT(verdict.right, 15u);
  EXPECT_EQ(verdict.wrong, 0u);
  EXPECT_TRUE(verdict.not_checked.empty());
  const std::vector<int> asked = training.asked_together();
  EXPECT_EQ(static_cast<size_t>(std::accumulate(asked.begin(), asked.end(), 0)), verdict.right);
  EXPECT_LE(asked.size(), kThreads) << "each thread may be the first with a value in front of the others' batches";
}

TEST_F(FetchedTogether, LargeOnesAndThoseOfUnknownSizeAreAskedForAlone) {
  SmallTraining training;
  training.make_large("fc1.weight");
  const Verdict verdict = check_all(training.session());
  EXPECT_EQ(verdict.wrong, 0u);
  EXPECT_TRUE(verdict.not_checked.empty());
  const std::vector<int> asked = training.asked_together();
  EXPECT_EQ(asked.size(), 2u);
  EXPECT_EQ(std::count(asked.begin(), asked.end(), 1), 1);
  SmallTraining old("1.3.0");
  const size_t right = check_all(old.session()).right;
  EXPECT_GT(right, 15u);
  EXPECT_EQ(old.asked_together(), std::vector<int>(right, 1));
}

TEST_F(FetchedTogether, TheyTakeAShareOfTheMemoryLimit) {
  ListenOptions options;
  options.mem_limit_bytes = 4096;
  SmallTraining training("1.10.0", options);
  const Verdict verdict = check_all(training.session());
  EXPECT_GT(verdict.right, 15u);
  EXPECT_EQ(verdict.wrong, 0u);
  EXPECT_TRUE(verdict.not_checked.empty());
  for (const int count : training.asked_together()) EXPECT_LE(16 * count, 4096 / 8);
}

TEST_F(FetchedTogether, StatisticsComeTogetherToo) {
  SmallTraining training;
  LiveSession& session = training.session();
  size_t right = 0, wrong = 0;
  Watchpoint w;
  w.id = 1;
  w.rule = "function";
  w.on = Selector::parse("**").value();
  w.needs_elements = false;
  w.script = [&](const CheckedTensor& tensor) {
    const float wanted = value_of(session.node(tensor.id).name);
    ++(tensor.stats->max == wanted && tensor.stats->min == wanted ? right : wrong);
    return ScriptVerdict{};
  };
  ASSERT_TRUE(session.set_watchpoints({&w, 1}).ok());
  for (int step = 0; step < 2; ++step) {
    ASSERT_TRUE(session.run({}).ok());
    EXPECT_GT(right, 15u);
    EXPECT_EQ(wrong, 0u);
    EXPECT_EQ(training.summarized_together(), std::vector<int>(static_cast<size_t>(step) + 1, static_cast<int>(right)));
    EXPECT_TRUE(training.asked_together().empty());
    right = 0;
  }
}

/// A node of the training by name, in step `step`.
TensorId tensor_of(LiveSession& session, const std::string& name, int64_t step) {
  const auto found = find_node(session.graphs(), name);
  EXPECT_TRUE(found.ok()) << found.status().message();
  return found ? TensorId{0, found->graph->id(), step, 0, found->node, {Io::kOutput, 0}} : TensorId{};
}

TEST_F(FetchedTogether, HistoryKeepsStatisticsOfEachStep) {
  ListenOptions options;
  options.history_tensors = kHistoryTensors;
  options.history_steps = 3;
  SmallTraining training("1.10.0", options);
  LiveSession& session = training.session();
  const LiveHistory history = session.history();
  EXPECT_EQ(history.steps, 3);
  EXPECT_GT(history.weights, 0u);
  EXPECT_EQ(history.weights, history.all_weights);
  ASSERT_TRUE(session.run({RunKind::kStep, 5, {}, {}, {}}).ok());
  EXPECT_EQ(training.summarized_together(), std::vector<int>(5, static_cast<int>(history.tensors)));
  EXPECT_TRUE(training.asked_together().empty());
  EXPECT_EQ(session.steps(), (std::vector<int64_t>{2, 3, 4}));
  const Result<Stats> stats = session.stats(tensor_of(session, "fc1.weight", 3));
  ASSERT_TRUE(stats.ok()) << stats.status().message();
  EXPECT_EQ(stats->max, value_of("fc1.weight"));
  EXPECT_FALSE(session.stats(tensor_of(session, "fc1.weight", 1)).ok());
  TensorQuery query;
  query.steps = IntSet::of(2);
  EXPECT_EQ(session.tensors(query).size(), history.tensors);
}

TEST_F(FetchedTogether, HistoryHasAMost) {
  ListenOptions options;
  options.history_tensors = 2;
  SmallTraining training("1.10.0", options);
  ASSERT_TRUE(training.session().run({}).ok());
  EXPECT_EQ(training.summarized_together(), std::vector<int>{2});
  EXPECT_EQ(training.session().history().tensors, 2u);
  EXPECT_LT(training.session().history().weights, training.session().history().all_weights);
}

TEST_F(FetchedTogether, WithoutHistoryNothingIsAskedFor) {
  SmallTraining training;
  ASSERT_TRUE(training.session().run({RunKind::kStep, 3, {}, {}, {}}).ok());
  EXPECT_TRUE(training.summarized_together().empty());
  EXPECT_EQ(training.session().history().tensors, 0u);
  EXPECT_EQ(training.session().steps(), std::vector<int64_t>{2});
}

TEST_F(FetchedTogether, RecordingHasTheHistory) {
  const TempDir directory;
  ListenOptions options;
  options.history_tensors = kHistoryTensors;
  options.record = directory.file("history.msdbg");
  {
    SmallTraining training("1.10.0", options);
    ASSERT_TRUE(training.session().run({RunKind::kStep, 3, {}, {}, {}}).ok());
  }
  Result<std::unique_ptr<LiveSession>> played = open_recording(options.record);
  ASSERT_TRUE(played.ok()) << played.status().message();
  ASSERT_TRUE((*played)->wait_until_held(10s).ok());
  ASSERT_TRUE((*played)->run({RunKind::kStep, 3, {}, {}, {}}).ok());
  const Result<Stats> stats = (*played)->stats(tensor_of(**played, "fc1.weight", 1));
  ASSERT_TRUE(stats.ok()) << stats.status().message();
  EXPECT_EQ(stats->max, value_of("fc1.weight"));
}

TEST_F(FetchedTogether, RecordingHasThem) {
  const TempDir directory;
  for (const bool together : {true, false}) {
    ListenOptions options;
    options.record = directory.file(together ? "together.msdbg" : "alone.msdbg");
    size_t right = 0;
    {
      SmallTraining training("1.10.0", options);
      if (!together) {
        for (const TensorId& id : training.session().tensors({})) EXPECT_TRUE(training.session().load(id).ok());
      } else {
        training.once([](SliceList& slices) { std::swap(slices[7], slices[8]); });
      }
      const Verdict verdict = check_all(training.session());
      right = verdict.right;
      EXPECT_EQ(verdict.not_checked.size(), together ? 1u : 0u);
      EXPECT_EQ(training.asked_together().size() == 1, together);
    }
    Result<std::unique_ptr<LiveSession>> played = open_recording(options.record);
    ASSERT_TRUE(played.ok()) << played.status().message();
    ASSERT_TRUE((*played)->wait_until_held(10s).ok());
    const Verdict verdict = check_all(**played);
    EXPECT_EQ(verdict.wrong, 0u);
    EXPECT_EQ(verdict.right, together ? right + 1 : right);  // each value has its name there
    EXPECT_TRUE(verdict.not_checked.empty());
  }
}

TEST_F(FetchedTogether, FunctionsOfACheckChangeNothing) {
  SmallTraining training;
  LiveSession& session = training.session();
  const Graph* graph = session.graphs()[0].get();
  const size_t listed = session.tensors({}).size();
  debugger::Chunk chunk;
  chunk.set_buffer(Driver::graph_bytes());
  bool sent = false;
  const Verdict verdict = check_all(session, [&] {
    // The training reports another graph now.
    if (!std::exchange(sent, true)) {
      EXPECT_TRUE(training.driver().client->stream(live::Rpc::kSendGraph, std::vector<std::string>{chunk.SerializeAsString()}).ok());
    }
    EXPECT_EQ(session.tensors({}).size(), listed);
    EXPECT_EQ(session.state(), LiveState::kHeld);
    (void)session.take_events();
    EXPECT_EQ(session.graphs()[0].get(), graph);
  });
  EXPECT_TRUE(sent);
  EXPECT_EQ(verdict.wrong, 0u);
  EXPECT_TRUE(verdict.not_checked.empty());
  (void)session.state();
  EXPECT_NE(session.graphs()[0].get(), graph) << "it is taken in when the check is over";
}

}  // namespace
}  // namespace msdbg::test
