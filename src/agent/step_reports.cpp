#include "agent/step_reports.h"

#include <algorithm>
#include <utility>

#include "agent/uploads.h"

namespace msdbg::agent {
namespace {

// A debugger accepts small messages of 1 MiB.
constexpr size_t kMostBytes = size_t{1} << 18;
// Parameters in a GPU are fetched so rarely that a training is not slower by more than one in this many.
constexpr int kFetchShare = 64;
constexpr auto kLongestPause = std::chrono::milliseconds(250);

}  // namespace

void StepReports::begin(const debugger::RunCMD& command) {
  ahead_ = command.ahead();
  report_ = command.report();
  until_ = now_() + std::chrono::milliseconds(ahead_.milliseconds());
  passed_ = 0;
  committed_ = false;
  ended_.clear();
  bytes_ = 0;
}

void StepReports::step_ended(int32_t step, TensorStore& store, const ReleaseTraits& traits) {
  if (report_.tensors().empty()) return;
  debugger::EndedStep& ended = ended_.emplace_back();
  ended.set_step(step);
  ended.set_number(report_.number());
  const auto begin = now_();
  const bool fetches = begin >= fetches_again_;
  bool fetched = false;
  for (const debugger::TensorProto& wanted : report_.tensors()) {
    const bool remote = store.is_remote_parameter(wanted.node_name());
    fetched = fetched || remote;
    *ended.add_statistics() = summary_of(remote && !fetches ? nullptr : &store, wanted, traits);
  }
  if (const auto end = now_(); fetches && fetched) {
    fetches_again_ = end + std::min<Clock::duration>(kFetchShare * (end - begin), kLongestPause);
  }
  bytes_ += ended.ByteSizeLong();
  while (ended_.size() > std::max(report_.keep(), 1U)) {
    bytes_ -= ended_.front().ByteSizeLong();
    ended_.pop_front();
  }
}

bool StepReports::may_pass(Clock::time_point end) const { return ahead_.steps() > passed_ && bytes_ <= kMostBytes && end < until_; }

bool StepReports::commits() {
  const auto now = now_();
  const auto last = now - std::exchange(began_, now);
  committed_ = last < until_ - now && may_pass(now);  // a pause must not wait for a second long step
  return committed_;
}

bool StepReports::passes() {
  if (!std::exchange(committed_, false) && !may_pass(now_())) return false;
  ++passed_;
  return true;
}

void StepReports::tell(debugger::Metadata& metadata) const {
  metadata.set_passed(passed_);
  for (const debugger::EndedStep& ended : ended_) *metadata.add_ended() = ended;
}

}  // namespace msdbg::agent
