// Shared by the tests of misbehaving peers and of limits.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "live/session_driver.h"

namespace msdbg::test {

using namespace std::chrono_literals;

class LiveFaults : public ::testing::Test {
 protected:
  void TearDown() override { clear_interrupt(); }

  static bool reaches(LiveSession& session, LiveState state) {
    for (int i = 0; i < 1000 && session.state() != state; ++i) std::this_thread::sleep_for(10ms);
    return session.state() == state;
  }
  static std::string events_of(LiveSession& session) {
    std::string text;
    for (const LiveEvent& event : session.take_events()) text += event.text + "\n";
    return text;
  }
  static Watchpoint watch(const std::string& selector, const std::string& condition, int id = 1) {
    Watchpoint w;
    w.id = id;
    w.on = *Selector::parse(selector);
    w.condition = *parse_condition(condition);
    w.rule = std::string(w.condition->spec->id);
    return w;
  }
};

/// Sets the interrupt flag while another thread waits.
class InterruptSoon {
 public:
  InterruptSoon() : thread_([] {
    std::this_thread::sleep_for(50ms);
    request_interrupt();
  }) {}
  ~InterruptSoon() { thread_.join(); }

 private:
  std::thread thread_;
};

}  // namespace msdbg::test
