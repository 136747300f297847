// Plans the comparison, runs it on threads, and draws the conclusions.
#include "msdbg/diff.h"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <set>

#include "analysis/diff_parts.h"
#include "analysis/shared_work.h"
#include "msdbg/log.h"

namespace msdbg {
namespace {

/// Compares entries on several threads; the calling thread reports progress.
Status compare_all(Session& a, Session& b, const DiffOptions& options, DiffResult& result) {
  const Stopwatch watch;
  std::vector<TensorDiff>& entries = result.tensors;
  std::atomic<size_t> done{0};
  std::atomic<uint64_t> bytes{0};
  auto last = std::chrono::steady_clock::now();
  const Status status = compare_entries(a, b, options, entries, done, bytes, [&] {
    if (!options.progress || std::chrono::steady_clock::now() - last < std::chrono::milliseconds(200)) return;
    last = std::chrono::steady_clock::now();
    options.progress(done, entries.size(), bytes);
  });
  result.bytes += bytes;
  if (log_wanted(LogLevel::kInfo)) {
    log(LogLevel::kInfo, fmt::format("compared {} of {} pairs of tensors, read {}", done.load(), entries.size(),
                                     format_reading(bytes, watch.seconds())));
  }
  return status;
}

void conclude(DiffResult& result) {
  std::set<NodeId> random;
  for (size_t i = 0; i < result.tensors.size(); ++i) {
    const TensorDiff& entry = result.tensors[i];
    switch (entry.state) {
      case DiffState::kEqual: ++result.equal; break;
      case DiffState::kClose: ++result.close; break;
      case DiffState::kDifferent: ++result.different; break;
      case DiffState::kReshaped: ++result.reshaped; break;
      case DiffState::kUncompared: ++result.uncompared; break;
    }
    if (entry.compared() && entry.evidence == DiffEvidence::kChecksum) ++result.by_checksum;
    if (entry.compared() && entry.evidence == DiffEvidence::kStatistics) ++result.by_statistics;
    if (entry.compared() && entry.dtype_a != entry.dtype_b) ++result.dtype_changes;
    const bool differs = entry.state == DiffState::kDifferent || entry.state == DiffState::kReshaped;
    if (differs && !result.first && !entry.behind_random) result.first = i;
    if (entry.role == DiffRole::kRandom && random.insert(entry.b.node).second) result.random.push_back(i);
  }
  if (!result.first && !result.random.empty()) result.first = result.random.front();
  if (!result.first) return;
  for (size_t i = *result.first; i < result.tensors.size(); ++i) {
    const TensorDiff& entry = result.tensors[i];
    if (entry.b.step == result.tensors[*result.first].b.step && entry.role == DiffRole::kCulprit) result.culprits.push_back(i);
  }
}

}  // namespace

std::string_view diff_state_name(DiffState state) {
  switch (state) {
    case DiffState::kEqual: return "equal";
    case DiffState::kClose: return "close";
    case DiffState::kDifferent: return "different";
    case DiffState::kReshaped: return "reshaped";
    case DiffState::kUncompared: return "uncompared";
  }
  return "uncompared";
}

std::string_view diff_evidence_name(DiffEvidence evidence) {
  switch (evidence) {
    case DiffEvidence::kElements: return "elements";
    case DiffEvidence::kChecksum: return "checksum";
    case DiffEvidence::kStatistics: return "statistics";
  }
  return "elements";
}

std::string_view diff_role_name(DiffRole role) {
  switch (role) {
    case DiffRole::kNone: return "";
    case DiffRole::kCulprit: return "culprit";
    case DiffRole::kVictim: return "victim";
    case DiffRole::kUnknown: return "unknown";
    case DiffRole::kRandom: return "random";
  }
  return "";
}

Result<DiffResult> diff_sessions(Session& a, Session& b, const DiffOptions& options) {
  DiffResult result;
  const auto plan = plan_diff(a, b, options, result);
  if (!plan) return plan.status();
  std::vector<size_t> part_of;
  for (size_t i = 0; i < plan->parts.size(); ++i) {
    auto entries = list_tensors(a, b, *plan, plan->parts[i], options);
    part_of.resize(part_of.size() + entries.size(), i);
    std::move(entries.begin(), entries.end(), std::back_inserter(result.tensors));
  }
  if (result.tensors.empty()) {
    return Status(Code::kNotFound, options.on
                                       ? "diff: no tensor that both sides have matches '" + options.on->text() + "'"
                                       : "diff: the two sides have no tensor in common; use a mapping file (--map) if the names differ");
  }
  Status status = compare_all(a, b, options, result);
  if (status.ok()) status = Blame(a, b, *plan, options, result, part_of).run();
  if (!status.ok() && status.code() != Code::kInterrupted) return status;
  result.interrupted = !status.ok();
  for (TensorDiff& entry : result.tensors) {
    if (result.interrupted && entry.state == DiffState::kUncompared && entry.reason.empty()) entry.reason = "interrupted";
  }
  conclude(result);
  return result;
}

}  // namespace msdbg
