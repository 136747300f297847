// Steps that end without asking the debugger, and what it is told of them.
#pragma once

#include <chrono>
#include <deque>
#include <functional>

#include "agent/release_traits.h"
#include "debug_grpc.pb.h"

namespace msdbg::agent {

class TensorStore;

class StepReports {
 public:
  using Clock = std::chrono::steady_clock;

  explicit StepReports(std::function<Clock::time_point()> now = Clock::now) : now_(std::move(now)) {}
  /// A command that runs a step. It answers what tell() told.
  void begin(const debugger::RunCMD& command);
  /// The end of step number `step`: computes the statistics that the debugger wants to know.
  void step_ended(int32_t step, TensorStore& store, const ReleaseTraits& traits);
  /// Whether a step that begins will end without asking the debugger: then it does, even if its time is over by then.
  bool commits();
  /// Whether the step that ends does so without asking the debugger; counts it.
  bool passes();
  /// Adds to a WaitCMD or a farewell what the debugger does not know yet.
  void tell(debugger::Metadata& metadata) const;

 private:
  bool may_pass(Clock::time_point end) const;

  std::function<Clock::time_point()> now_;
  debugger::Ahead ahead_;
  debugger::Report report_;
  Clock::time_point until_;
  uint32_t passed_ = 0;  // since the last WaitCMD
  bool committed_ = false;
  Clock::time_point began_;  // the last step of which commits() was asked
  std::deque<debugger::EndedStep> ended_;
  size_t bytes_ = 0;     // of these
  Clock::time_point fetches_again_;  // parameters that are elsewhere
};

}  // namespace msdbg::agent
