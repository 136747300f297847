// A Script with a session in memory: two steps of a small network with a broken operator.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>

#include "app/prompt_commands.h"
#include "msdbg/script.h"
#include "support/fake_live_session.h"
#include "support/fake_session.h"

namespace msdbg::testing {

inline std::unique_ptr<FakeSession> small_session() {
  const double inf = std::numeric_limits<double>::infinity();
  auto session = std::make_unique<FakeSession>(fake_graph({
      {"fc.weight", "Parameter"},
      {"Default/net/MatMul-op0", "MatMul", {"fc.weight"}, 1, {{"train.py", 12, "y = self.fc(x)"}}},
      {"Default/net/relu-ReLU/ReLU-op0", "ReLU", {"Default/net/MatMul-op0"}},
      {"Default/net/Log-op0", "Log", {"Default/net/relu-ReLU/ReLU-op0"}},
      {"Gradients/Default/net/ReluGrad-op0", "ReluGrad", {"Default/net/Log-op0"}},
  }));
  for (int step = 0; step < 2; ++step) {
    const double s = step;
    session->put("fc.weight", step, f32({2, 1}, std::vector<double>{1 + s / 10, -1 - s / 10}));
    session->put("Default/net/MatMul-op0", step, f32({2, 3}, std::vector<double>{1, -2, 3, -4, 5, -6}));
    session->put("Default/net/relu-ReLU/ReLU-op0", step, f32({2, 3}, std::vector<double>{1, 0, 3, 0, 5, 0}));
    session->put("Default/net/Log-op0", step,
                 f32({2, 3}, std::vector<double>{0, -inf, std::log(3), -inf, std::log(5), -inf}));
    session->put("Gradients/Default/net/ReluGrad-op0", step, f32({0.5 + s, -0.25, 100, 1e-3}));
  }
  return session;
}

inline ScriptOptions small_options() {
  ScriptOptions options;
  options.commands = app::prompt_commands({});
  options.open = [](const std::string& path, const DumpOptions&) -> Result<std::unique_ptr<Session>> {
    if (path == "throw") throw std::runtime_error("a defect");
    if (path != "fake") return Status(Code::kNotFound, path + ": no dump here");
    return std::unique_ptr<Session>(small_session());
  };
  return options;
}

/// Three steps of the same kind of network; in the third one the gradient is not finite.
inline std::unique_ptr<FakeLiveSession> small_training() {
  auto training = std::make_unique<FakeLiveSession>(fake_graph({
      {"fc.weight", "Parameter"},
      {"Default/net/MatMul-op0", "MatMul", {"fc.weight"}, 1, {{"train.py", 12, "y = self.fc(x)"}}},
      {"Default/net/relu-ReLU/ReLU-op0", "ReLU", {"Default/net/MatMul-op0"}},
      {"Gradients/Default/net/ReluGrad-op0", "ReluGrad", {"Default/net/relu-ReLU/ReLU-op0"}},
  }));
  training->start({{"fc.weight", f32({1, -1})}});
  for (int step = 0; step < 3; ++step) {
    const double s = step;
    training->step({{"Default/net/MatMul-op0", f32({1 + s, -2, 3})},
                    {"Default/net/relu-ReLU/ReLU-op0", f32({1 + s, 0, 3})},
                    {"Gradients/Default/net/ReluGrad-op0", f32({step == 2 ? NAN : 0.5, -0.25})},
                    {"fc.weight", f32({1 + (s + 1) / 10, -1 - (s + 1) / 10})}});
  }
  return training;
}

class ScriptTest : public ::testing::Test {
 protected:
  void SetUp() override {
    clear_interrupt();
    auto made = Script::create(small_options());
    ASSERT_TRUE(made.ok()) << made.status().message();
    script = std::move(*made);
    script->set_session(small_session());
  }
  void TearDown() override { clear_interrupt(); }

  /// Runs a script that must succeed.
  void run(const std::string& text) {
    const ScriptOutcome outcome = script->run_text(text, "@test.lua");
    EXPECT_EQ(outcome.error, "") << text;
    EXPECT_EQ(outcome.exit_status, 0) << text;
  }
  /// The error text of a script that must fail.
  std::string failure(const std::string& text) {
    const ScriptOutcome outcome = script->run_text(text, "@test.lua");
    EXPECT_EQ(outcome.exit_status, 5) << text;
    return outcome.error;
  }
  std::string type(const std::string& line) { return script->eval(line).output; }

  std::unique_ptr<Script> script;
};

inline ::testing::AssertionResult contains(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "'" << part << "' is not in: " << text;
}

}  // namespace msdbg::testing
