// A Script over a training process in memory, held before its first step.
#pragma once

#include "script/support.h"

namespace msdbg::testing {

class LiveScriptTest : public ScriptTest {
 protected:
  void SetUp() override {
    clear_interrupt();
    auto options = small_options();
    options.on_event = [this](const LiveEvent& event) { told.push_back(event.text); };
    options.listen = [this](const ListenOptions& asked) { return listen(asked); };
    auto made = Script::create(options);
    ASSERT_TRUE(made.ok()) << made.status().message();
    script = std::move(*made);
    use(small_training());
  }
  void TearDown() override {
    script.reset();
    ScriptTest::TearDown();
  }

  /// Makes `made` the session `s` in held state.
  FakeLiveSession& use(std::unique_ptr<FakeLiveSession> made) {
    training = made.get();
    EXPECT_TRUE(training->wait_until_held({}).ok());
    training->calls.clear();
    script->set_session(std::move(made));
    script->report_events();
    told.clear();
    return *training;
  }

  Result<std::unique_ptr<LiveSession>> listen(const ListenOptions& asked) {
    listened = asked;
    if (asked.port == 1) return Status(Code::kIoError, "port 1 of 127.0.0.1 cannot be opened: permission denied");
    auto made = small_training();
    if (asked.port == 2) made->nobody_comes();
    if (asked.port == 3) made->nobody_comes(Status(Code::kUnsupported, "MindSpore 2.4.0 was refused"));
    training = made.get();
    return std::unique_ptr<LiveSession>(std::move(made));
  }

  FakeLiveSession* training = nullptr;
  ListenOptions listened;
  std::vector<std::string> told;
};

}  // namespace msdbg::testing
