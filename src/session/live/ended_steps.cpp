#include "session/live/ended_steps.h"

#include <algorithm>
#include <iterator>

namespace msdbg::live {
namespace {

// An exchange costs the training up to 2 ms, with cold caches; a pause waits for this long and the rest of a step.
constexpr uint32_t kAheadMs = 400;
constexpr size_t kMostBytesEach = 256;  ///< of the statistics of one tensor

bool answers(const debugger::EndedStep& ended, const debugger::Report& report) {
  return ended.number() == report.number() && ended.statistics_size() == report.tensors_size() &&
         ended.ByteSizeLong() <= kMostBytesEach * (static_cast<size_t>(report.tensors_size()) + 1);
}

}  // namespace

void allow_ahead(debugger::RunCMD& command, uint64_t ends) {
  if (ends < 2) return command.clear_ahead();
  command.mutable_ahead()->set_steps(static_cast<uint32_t>(std::min<uint64_t>(ends - 1, INT32_MAX)));
  command.mutable_ahead()->set_milliseconds(kAheadMs);
}

void take_ended(debugger::Metadata& metadata, const debugger::Report& report, std::vector<debugger::EndedStep>& into) {
  for (debugger::EndedStep& ended : *metadata.mutable_ended()) {
    if (answers(ended, report)) into.push_back(std::move(ended));
  }
  metadata.clear_ended();
  if (into.size() > report.keep()) into.erase(into.begin(), into.end() - static_cast<std::ptrdiff_t>(report.keep()));
}

}  // namespace msdbg::live
