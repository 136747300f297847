// Small values that a check reads are fetched in batches. Whatever is wrong in an answer, no value is confused with another.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <numeric>
#include <thread>

#include "live/faults.h"
#include "support/temp_dir.h"

namespace msdbg::test {
namespace {

using SliceList = std::vector<debugger::TensorProto>;

/// The training's value under a name: a number that other names rarely share.
float value_of(const std::string& name) { return static_cast<float>(std::hash<std::string>()(name) % 100000); }

/// A held training. Each of its tensors has four numbers, all value_of() its name.
class SmallTraining {
 public:
  explicit SmallTraining(const std::string& version = "1.10.0", ListenOptions options = {}) : driver_(std::move(options)) {
    driver_.connect(version);
    EXPECT_TRUE(driver_.session->wait_until_held(10s).ok());
    peer_ = std::thread([this] { serve(); });
  }
  ~SmallTraining() {
    driver_.session.reset();  // tells it to exit
    peer_.join();
  }

  LiveSession& session() { return *driver_.session; }
  Driver& driver() { return driver_; }
  std::vector<int> asked_together() {
    std::lock_guard lock(mutex_);
    return asked_together_;
  }

  std::vector<int> summarized_together() {
    std::lock_guard lock(mutex_);
    return summarized_together_;
  }

  /// Modifies the answer to the next view of values.
  void once(std::function<void(SliceList&)> change) {
    std::lock_guard lock(mutex_);
    change_ = std::move(change);
  }
  /// Replaces the answer to that view, up to the next WaitCMD.
  void instead(std::function<void(const SliceList&)> answer) {
    std::lock_guard lock(mutex_);
    instead_ = std::move(answer);
  }
  /// Gives that tensor 100000 numbers.
  void make_large(const std::string& name) {
    std::lock_guard lock(mutex_);
    large_ = name;
  }
  /// The nodes in the last view of values.
  std::vector<std::string> asked_last() {
    std::lock_guard lock(mutex_);
    return asked_last_;
  }

 private:
  int64_t count_of(const std::string& name) {
    std::lock_guard lock(mutex_);
    return name == large_ ? 100000 : 4;
  }

  void serve() {
    for (;;) {
      const debugger::EventReply reply = driver_.reply();
      if (!reply.has_view_cmd() && !reply.has_run_cmd() && !reply.has_set_cmd()) return;
      if (reply.has_view_cmd() && !answer(reply.view_cmd())) continue;
      if (reply.has_run_cmd()) ++steps_;
      driver_.hold(std::max(0, steps_ - 1), "");
    }
  }
  bool answer(const debugger::ViewCMD& view) {
    if (view.level() == debugger::ViewCMD::base) return send_bases(view);
    return view.level() == debugger::ViewCMD::statistics ? send_statistics(view) : send_values(view);
  }
  bool send_statistics(const debugger::ViewCMD& view) {
    std::vector<std::string> messages;
    for (const debugger::TensorProto& asked : view.tensors()) {
      debugger::TensorSummary summary;
      summary.mutable_tensor_base()->set_data_type(11);
      summary.mutable_statistics()->set_count(4);
      summary.mutable_statistics()->set_max_value(value_of(asked.node_name()));
      summary.mutable_statistics()->set_min_value(value_of(asked.node_name()));
      messages.push_back(summary.SerializeAsString());
    }
    {
      std::lock_guard lock(mutex_);
      summarized_together_.push_back(view.tensors_size());
    }
    EXPECT_TRUE(driver_.client->stream(live::Rpc::kSendTensorStats, messages).ok());
    return true;
  }
  bool send_bases(const debugger::ViewCMD& view) {
    std::vector<std::string> messages;
    for (const debugger::TensorProto& asked : view.tensors()) {
      debugger::TensorBase base;
      base.set_data_type(11);
      base.add_shape(count_of(asked.node_name()));
      base.set_data_size(4 * count_of(asked.node_name()));
      messages.push_back(base.SerializeAsString());
    }
    EXPECT_TRUE(driver_.client->stream(live::Rpc::kSendTensorBase, messages).ok());
    return true;
  }
  bool send_values(const debugger::ViewCMD& view) {
    SliceList slices;
    for (const debugger::TensorProto& asked : view.tensors()) {
      debugger::TensorProto slice = asked;
      slice.set_data_type(11);
      slice.add_dims(count_of(asked.node_name()));
      const std::vector<float> numbers(static_cast<size_t>(count_of(asked.node_name())), value_of(asked.node_name()));
      slice.set_tensor_content(std::string(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(float)));
      slice.set_finished(true);
      slices.push_back(std::move(slice));
    }
    std::function<void(SliceList&)> change;
    std::function<void(const SliceList&)> instead;
    {
      std::lock_guard lock(mutex_);
      asked_together_.push_back(static_cast<int>(slices.size()));
      asked_last_.clear();
      for (const debugger::TensorProto& slice : slices) asked_last_.push_back(slice.node_name());
      std::swap(change, change_);
      std::swap(instead, instead_);
    }
    if (instead) return instead(slices), false;
    if (change) change(slices);
    std::vector<std::string> messages;
    for (const debugger::TensorProto& slice : slices) messages.push_back(slice.SerializeAsString());
    (void)driver_.client->stream(live::Rpc::kSendTensors, messages);  // refused if it is too much
    return true;
  }

  Driver driver_;
  int steps_ = 0;  ///< number of steps run
  std::mutex mutex_;
  std::function<void(SliceList&)> change_;
  std::function<void(const SliceList&)> instead_;
  std::vector<int> asked_together_, summarized_together_;
  std::vector<std::string> asked_last_;
  std::string large_;
  std::thread peer_;
};

class FetchedTogether : public LiveFaults {
 protected:
  /// The outcome of a check of every tensor: how many had the training's values, and why others were not judged.
  struct Verdict {
    size_t right = 0, wrong = 0;
    std::map<std::string, std::string> not_checked;  ///< by name
    /// How many of the reasons contain `words`.
    size_t say(std::string_view words) const {
      return static_cast<size_t>(std::count_if(not_checked.begin(), not_checked.end(),
                                               [&](const auto& each) { return each.second.find(words) != std::string::npos; }));
    }
  };

  /// With one thread, the order of reads and therefore of requests is always the same.
  static Verdict check_all(LiveSession& session, std::function<void()> during = nullptr, unsigned threads = 1) {
    Verdict verdict;
    Watchpoint w;
    w.id = 1;
    w.rule = "function";
    w.on = Selector::parse("**").value();
    w.script = [&](const CheckedTensor& tensor) {
      if (during) during();
      const float wanted = value_of(session.node(tensor.id).name);
      ++(tensor.stats->max == wanted && tensor.stats->min == wanted ? verdict.right : verdict.wrong);
      return ScriptVerdict{};
    };
    CheckOptions options;
    options.steps = IntSet::of(session.current_step());
    options.threads = threads;
    const auto result = check(session, {&w, 1}, options);
    EXPECT_TRUE(result.ok()) << result.status().message();
    if (!result) return verdict;
    for (const NotChecked& each : result->not_checked) verdict.not_checked[session.tensor_name(each.tensor)] = each.reason;
    EXPECT_EQ(verdict.right + verdict.wrong + result->not_checked.size(), result->coverage.tensors);
    return verdict;
  }
  static constexpr size_t kMost = 256;
};

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
