// Conversations that went through our server are recorded and replayed: the same session results.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <iterator>

#include "live/real_peers_table.h"
#include "msdbg/live.h"
#include "session/live/recorder.h"
#include "session/live/recording_format.h"
#include "session/live/recording_reader.h"
#include "support/recorded_commands.h"
#include "support/recorded_peer.h"
#include "support/temp_dir.h"

namespace msdbg::test {
namespace {

/// Performs the actions of a recorded server as calls of a session, and logs everything that the session shows.
class Walk {
 public:
  Walk(LiveSession& session, RecordedPeer& peer, bool playback) : session_(session), peer_(peer), playback_(playback) {}

  std::vector<std::string> lines() {
    for (const PeerHold& hold : peer_.holds()) {
      if (&hold == &peer_.holds().front() || hold.after_restart) {
        say("held: " + session_.wait_until_held(kLong).message());
      }
      if (session_.state() != LiveState::kHeld) break;
      // A suspension that the session passed by itself.
      if (session_.current_step() != hold.metadata.cur_step() || session_.current_node() != hold.metadata.cur_node())
        continue;
      show();
      for (const debugger::EventReply& command : hold.commands) obey(command);
      leave(hold);
    }
    settle();
    return std::move(lines_);
  }

 private:
  void say(std::string line) { lines_.push_back(std::move(line)); }

  void show() {
    say("step " + std::to_string(session_.current_step()) + " completed " + std::to_string(session_.completed_steps()) +
        " node " + session_.current_node() + " graphs " + std::to_string(session_.graphs().size()) + " version " +
        session_.peer().version);
  }

  void hits(const CheckResult& check) {
    for (const std::string& line : hit_lines(session_, check, {})) say("  " + line);
  }

  void obey(const debugger::EventReply& command) {
    if (command.has_set_cmd()) {
      const int id = command.set_cmd().id();
      armed_.erase(id);
      if (!command.set_cmd().delete_()) armed_[id] = rebuild(session_, command.set_cmd()).watch;
      std::vector<Watchpoint> watchpoints;
      for (const auto& [number, watch] : armed_) watchpoints.push_back(watch);
      say("set: " + session_.set_watchpoints(watchpoints).message());
    } else if (command.has_view_cmd()) {
      for (const debugger::TensorProto& asked : command.view_cmd().tensors()) look(asked, command.view_cmd().level());
    } else {
      const auto result = session_.recheck();
      say("recheck: " + result.status().message());
      if (result.ok()) hits(result->check);
    }
  }

  void look(const debugger::TensorProto& asked, debugger::ViewCMD::Level level) {
    const NodeRef ref = find_recorded(session_, asked.node_name());
    if (ref.node == kNoNode || !asked.iter().empty()) return;
    const TensorId id{0, ref.graph->id(), session_.current_step(), 0, ref.node, {}};
    const auto info = session_.describe(id);
    std::string line = "look at " + asked.node_name() + ": ";
    if (info.ok())
      line += std::string(dtype_name(info->dtype)) + shape_text(info->shape) + " " + std::to_string(info->bytes);
    else
      line += code_name(info.status().code());
    if (level == debugger::ViewCMD::statistics && info.ok()) {
      if (const auto stats = session_.given_statistics(id))
        line += " max " + format_double(stats->max) + " zeros " + std::to_string(stats->zero_count);
    }
    if (level == debugger::ViewCMD::value && info.ok()) {
      const auto tensor = session_.load(id);
      line +=
          tensor.ok()
              ? " hash " + std::to_string(std::hash<std::string_view>()(
                               {reinterpret_cast<const char*>((*tensor)->bytes().data()), (*tensor)->bytes().size()}))
              : " " + std::string(code_name(tensor.status().code()));
    }
    say(line);
  }

  void leave(const PeerHold& hold) {
    if (hold.dies) {
      if (playback_) {
        (void)session_.run({});  // the loss is noticed when the session moves on
        settle();
      } else {
        peer_.kill();
        settle();
        peer_.start_next();
      }
      return;
    }
    if (!hold.left || hold.left->has_exit()) {
      const auto ended = session_.terminate(kLong);
      say("terminate: " + (ended.ok() ? std::string(stop_reason_name(ended->reason)) : ended.status().message()));
      return;
    }
    RunRequest request;
    request.timeout = kLong;
    request.node = hold.left->run_cmd().node_name();
    if (hold.left->run_cmd().run_level() == "node") {
      const bool known = find_recorded(session_, request.node).node != kNoNode;
      request.kind = request.node.empty() ? RunKind::kNextNode : known ? RunKind::kToNode : RunKind::kStep;
    }
    const auto result = session_.run(request);
    if (!result.ok()) return say("run: " + result.status().message());
    say("run: " + std::string(stop_reason_name(result->reason)) + " steps " + std::to_string(result->steps_run));
    hits(result->check);
  }

  void settle() {
    const auto deadline = std::chrono::steady_clock::now() + kLong;
    const auto over = [this] { return session_.state() == LiveState::kEnded || session_.state() == LiveState::kLost; };
    while (!over() && std::chrono::steady_clock::now() < deadline) std::this_thread::sleep_for(milliseconds(1));
    say("then " + std::string(live_state_name(session_.state())));
  }

  LiveSession& session_;
  RecordedPeer& peer_;
  const bool playback_;
  std::map<int, Watchpoint> armed_;
  std::vector<std::string> lines_;
};

/// Lets the recorded client talk to our server, which writes the conversation to `file`.
std::vector<std::string> record(const char* name, const std::string& file, std::vector<LiveEvent>* events = nullptr) {
  auto conversation = load_conversation(kFolder, name);
  EXPECT_TRUE(conversation.ok());
  ListenOptions options;
  options.port = 0;
  options.record = file;
  auto session = listen(options);
  EXPECT_TRUE(session.ok()) << session.status().message();
  if (!conversation.ok() || !session.ok()) return {};
  RecordedPeer peer(*conversation);
  peer.start(port_of(**session));
  std::vector<std::string> lines = Walk(**session, peer, false).lines();
  EXPECT_TRUE(peer.join(kLong));
  if (events != nullptr) *events = (*session)->take_events();
  return lines;
}

class Replay : public testing::TestWithParam<RealPeer> {};

TEST_P(Replay, ShowsWhatTheLiveSessionShowed) {
  const TempDir dir;
  const std::vector<std::string> live = record(GetParam().name, dir.file("conversation"));
  ASSERT_TRUE(is_recording(dir.file("conversation")));
  const std::string_view holds = GetParam().holds;
  EXPECT_GT(live.size(), static_cast<size_t>(std::count(holds.begin(), holds.end(), '/')));
  auto session = open_recording(dir.file("conversation"));
  ASSERT_TRUE(session.ok()) << session.status().message();
  EXPECT_EQ((*session)->info().kind, SessionKind::kRecording);
  auto conversation = load_conversation(kFolder, GetParam().name);
  ASSERT_TRUE(conversation.ok());
  RecordedPeer script(*conversation);
  std::vector<std::string> played = Walk(**session, script, true).lines();
  if (GetParam().name == std::string_view("mi2.3.1-ref-odd-hits")) {
    // A replay also shows hits of watchpoints that are not its own, and these come between the last run and the end.
    EXPECT_EQ(std::count(played.begin(), played.end(), "run: hit steps 0"), 1);
    std::replace(played.begin(), played.end(), std::string("run: hit steps 0"), std::string("run: ended steps 0"));
    std::erase_if(played, [](const std::string& line) { return line.starts_with("  "); });
  }
  EXPECT_EQ(played, live);
}

INSTANTIATE_TEST_SUITE_P(All, Replay, testing::ValuesIn(real_peers().begin(), real_peers().end()),
                         [](const auto& instance) {
                           std::string name = instance.param.name;
                           for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
                           return name;
                         });

std::unique_ptr<LiveSession> play(const std::string& file) {
  auto session = open_recording(file);
  EXPECT_TRUE(session.ok()) << session.status().message();
  if (!session.ok()) return nullptr;
  EXPECT_TRUE((*session)->wait_until_held(kLong).ok());
  return std::move(*session);
}

TEST(ReplayOfHits, NeedsNoWatchpointsOfItsOwn) {
  const TempDir dir;
  record("mi1.5.0-ref-gpu-1.5", dir.file("a"));
  const auto session = play(dir.file("a"));
  ASSERT_NE(session, nullptr);
  RunRequest request;
  request.kind = RunKind::kContinue;
  const auto first = session->run(request);
  ASSERT_TRUE(first.ok()) << first.status().message();
  EXPECT_EQ(first->reason, StopReason::kHit);
  ASSERT_EQ(first->check.hits.size(), 1u);
  const Hit& hit = first->check.hits.front();
  EXPECT_EQ(hit.rule, "tensor_too_large");
  EXPECT_EQ(session->node(hit.tensor).last_component(), "ReLU-op78");
  ASSERT_EQ(hit.params.size(), 1u);
  EXPECT_EQ(hit.params[0].name, "max_gt");
  EXPECT_EQ(hit.params[0].threshold, 0.5);
  EXPECT_GT(hit.params[0].actual.value_or(0), 0.5);
  const auto second = session->run(request);
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second->reason, StopReason::kHit);
  EXPECT_EQ(second->completed_steps, 1);
  EXPECT_EQ(session->run(request)->reason, StopReason::kEnded);
  EXPECT_EQ(session->run(request).status().code(), Code::kUnsupported);
}

TEST(ReplayOfSteps, AStepOfSeveralGoesThroughThatManySuspensions) {
  const TempDir dir;
  record("mi2.3.1-ref-pause", dir.file("a"));
  const auto session = play(dir.file("a"));
  ASSERT_NE(session, nullptr);
  RunRequest request;
  request.count = 4;
  EXPECT_EQ(session->run(request)->completed_steps, 4);
  request.count = 1;
  EXPECT_EQ(session->run(request)->completed_steps, 5);
  EXPECT_TRUE(session->detach().ok());
  EXPECT_EQ(session->state(), LiveState::kEnded);
}

TEST(ReplayOfSteps, AStepPassesTheStopsThatWereMadeBehindOperators) {
  const TempDir dir;
  record("scripted-real-1.10.0-node-stepping", dir.file("a"));
  const auto session = play(dir.file("a"));
  ASSERT_NE(session, nullptr);
  RunRequest request;
  request.kind = RunKind::kToNode;
  request.node = "Default/net-Net/MatMul-op29";
  const auto there = session->run(request);
  ASSERT_TRUE(there.ok());
  EXPECT_EQ(there->node, request.node);
  EXPECT_EQ(there->reason, StopReason::kDone);
  request.kind = RunKind::kStep;
  const auto step = session->run(request);
  ASSERT_TRUE(step.ok());
  EXPECT_EQ(step->step, 1) << "the recording holds no end of step 0";
  EXPECT_EQ(step->completed_steps, 2);
}

TEST(ReplayOfTensors, AnswersWhatWasLookedAtAndSaysWhatWasNot) {
  const TempDir dir;
  record("scripted-real-1.10.0-view-7MB", dir.file("a"));
  const auto session = play(dir.file("a"));
  ASSERT_NE(session, nullptr);
  const auto id = [&](const std::string& name) {
    const NodeRef ref = find_recorded(*session, name);
    return TensorId{0, ref.graph->id(), session->current_step(), 0, ref.node, {}};
  };
  const auto tensor = session->load(id("fc1.weight"));
  ASSERT_TRUE(tensor.ok()) << tensor.status().message();
  EXPECT_EQ((*tensor)->shape(), (Shape{8, 218750}));
  const auto other = session->load(id("fc2.weight"));
  EXPECT_EQ(other.status().code(), Code::kNotFound);
  EXPECT_NE(other.status().message().find("not in the recording"), std::string::npos) << other.status().message();
  ASSERT_TRUE(session->run({}).ok());
  EXPECT_EQ(session->describe(id("fc1.weight")).status().code(), Code::kNotFound) << "nobody looked at it there";
}

TEST(ReplayOfDamage, PlaysUpToTheBreakAndReportsIt) {
  const TempDir dir;
  record("mi2.3.1-ref-pause", dir.file("a"));
  std::ifstream file(dir.file("a"), std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  std::ofstream(dir.file("cut"), std::ios::binary) << bytes.substr(0, bytes.size() - 300);
  const auto session = play(dir.file("cut"));
  ASSERT_NE(session, nullptr);
  RunRequest request;
  request.kind = RunKind::kContinue;
  const auto result = session->run(request);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->reason, StopReason::kLost);
  EXPECT_GT(result->completed_steps, 2);
  const std::vector<LiveEvent> events = session->take_events();
  const auto says = [&](std::string_view text) {
    return std::any_of(events.begin(), events.end(),
                       [&](const LiveEvent& event) { return event.text.find(text) != std::string::npos; });
  };
  EXPECT_TRUE(says("ends in the middle of a message"));
  EXPECT_TRUE(says("the recording ends here"));
  // No training will connect any more: waiting without a limit must end as well.
  const Status waited = session->wait_until_held({});
  EXPECT_EQ(waited.code(), Code::kPeerLost);
  EXPECT_NE(waited.message().find("at its end"), std::string::npos) << waited.message();
  EXPECT_FALSE(session->pause(milliseconds(60000))->held);
}

// A limit on file sizes simulates a full disk.
TEST(ReplayOfDamage, AFullDiskEndsTheRecordingNotTheSession) {
  const TempDir dir;
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 1000000;
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  std::vector<LiveEvent> events;
  const std::vector<std::string> lines = record("scripted-real-1.10.0-view-7MB", dir.file("a"), &events);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_EQ(lines.back(), "then ended");
  EXPECT_EQ(std::count_if(
                events.begin(), events.end(),
                [](const LiveEvent& event) { return event.text.find("the recording ends here") != std::string::npos; }),
            1);
  const auto session = play(dir.file("a"));
  ASSERT_NE(session, nullptr);
  EXPECT_EQ(session->run({})->reason, StopReason::kLost);
}

// Any bytes that form frames may be replayed: they end the session, but do not break it.
TEST(ReplayOfDamage, SurvivesChangedBytes) {
  const TempDir dir;
  record("scripted-real-1.10.0-views-prev-and-change", dir.file("a"));
  std::ifstream file(dir.file("a"), std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  uint32_t random = 7;
  const auto next = [&random] { return random = random * 1664525 + 1013904223, random >> 8; };
  for (int round = 0; round < 60; ++round) {
    std::string damaged = bytes;
    for (int k = 0; k < 3; ++k)
      damaged[live::kRecordingMagic.size() + 1 + next() % (bytes.size() - 9)] = static_cast<char>(next());
    std::ofstream(dir.file("b"), std::ios::binary | std::ios::trunc) << damaged;
    auto session = open_recording(dir.file("b"));
    ASSERT_TRUE(session.ok());
    for (int step = 0; step < 8 && (*session)->wait_until_held(milliseconds(0)).ok(); ++step) {
      for (const GraphPtr& graph : (*session)->graphs()) {
        for (const Node& node : graph->nodes()) {
          if (node.kind == NodeKind::kParameter)
            (void)(*session)->load({0, graph->id(), (*session)->current_step(), 0, node.id, {}});
        }
      }
      RunRequest request;
      request.timeout = milliseconds(5000);
      if (!(*session)->run(request).ok()) break;
    }
  }
}

TEST(ReplayOpening, RefusesWhatIsNoRecording) {
  const TempDir dir;
  EXPECT_FALSE(is_recording(dir.file("none")));
  EXPECT_EQ(open_recording(dir.file("none")).status().code(), Code::kNotFound);
  std::ofstream(dir.file("text")) << "hello";
  EXPECT_FALSE(is_recording(dir.file("text")));
  EXPECT_EQ(open_recording(dir.file("text")).status().code(), Code::kCorrupt);
}

}  // namespace
}  // namespace msdbg::test
