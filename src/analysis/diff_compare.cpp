// One tensor against its counterpart.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/diff_parts.h"

namespace msdbg {
namespace {

/// Elements read at a time; a multiple of the pass's block, so that results do not depend on it.
constexpr uint64_t kAtATime = 16 * ComparePass::kBlock;

std::string why_not(const TensorInfo& info) {
  if (info.availability == Availability::kStatisticsOnly) return "only statistics were dumped";
  if (!info.problem.ok()) return info.problem.message();
  if (!is_evaluable(info.dtype)) return fmt::format("{} has no number for an element", dtype_name(info.dtype));
  return "";
}

Result<Comparison> walk(Session& a, Session& b, const TensorDiff& entry, CloseRequest tolerance, DiffBuffers& buffers, uint64_t* bytes) {
  auto left = a.read(entry.a);
  if (!left) return Status(left.status().code(), "A: " + left.status().message());
  auto right = b.read(entry.b);
  if (!right) return Status(right.status().code(), "B: " + right.status().message());
  const uint64_t count = (*left)->count();
  if ((*right)->count() != count || (*left)->dtype() != entry.dtype_a || (*right)->dtype() != entry.dtype_b) {
    return Status(Code::kIoError, "a file changed while it was read");
  }
  const size_t item_a = item_size(entry.dtype_a), item_b = item_size(entry.dtype_b);
  ComparePass pass(entry.dtype_a, entry.dtype_b, tolerance);
  for (uint64_t first = 0; first < count; first += kAtATime) {
    if (interrupt_requested()) return Status(Code::kInterrupted, "diff: interrupted");
    const size_t n = static_cast<size_t>(std::min(kAtATime, count - first));
    buffers.a.resize(std::max(buffers.a.size(), n * item_a));
    buffers.b.resize(std::max(buffers.b.size(), n * item_b));
    if (const Status status = (*left)->read(first, std::span(buffers.a).first(n * item_a)); !status.ok()) return status;
    if (const Status status = (*right)->read(first, std::span(buffers.b).first(n * item_b)); !status.ok()) return status;
    pass.update(buffers.a.data(), buffers.b.data(), n);
    *bytes += n * (item_a + item_b);
  }
  return pass.finish();
}

}  // namespace

Status compare_entry(Session& a, Session& b, const DiffOptions& options, TensorDiff& entry, DiffBuffers& buffers, uint64_t* bytes) {
  const auto info_a = a.describe(entry.a), info_b = b.describe(entry.b);
  if (info_a) {
    entry.dtype_a = info_a->dtype;
    entry.shape_a = info_a->shape;
  }
  if (info_b) {
    entry.dtype_b = info_b->dtype;
    entry.shape_b = info_b->shape;
  }
  if (!entry.reason.empty()) return Status();
  if (!info_a || !info_b) {
    entry.reason = !info_a ? "A: " + info_a.status().message() : "B: " + info_b.status().message();
    return Status();
  }
  if (std::string why = why_not(*info_a); !why.empty()) entry.reason = "A: " + why;
  else if (why = why_not(*info_b); !why.empty()) entry.reason = "B: " + why;
  if (!entry.reason.empty()) return Status();
  if (info_a->count != info_b->count) {
    entry.state = DiffState::kReshaped;
    entry.reason = fmt::format("{} elements against {}", info_a->count, info_b->count);
    return Status();
  }

  const bool given = options.rtol || options.atol;
  const CloseRequest relative = default_tolerance(entry.dtype_a, entry.dtype_b, entry.path);
  entry.tolerance = given ? CloseRequest{options.rtol.value_or(0), options.atol.value_or(0)} : CloseRequest{relative.rtol, 0};
  auto measured = walk(a, b, entry, entry.tolerance, buffers, bytes);
  if (measured && !given && relative.rtol > 0 && !measured->bit_equal && measured->pairs > 0) {
    // How large a small value's error may be depends on the values around it: those that were added up for it. Their
    // size is known after the first pass; only tensors that it did not settle are read again.
    entry.tolerance.atol = relative.atol * measured->norm_b / std::sqrt(static_cast<double>(measured->pairs));
    measured->tolerance = entry.tolerance;
    if (!measured->all_within()) measured = walk(a, b, entry, entry.tolerance, buffers, bytes);
  }
  if (!measured) {
    if (measured.status().code() == Code::kInterrupted) return measured.status();
    entry.reason = measured.status().message();
    return Status();
  }
  entry.measures = std::move(*measured);
  entry.state = entry.measures.bit_equal ? DiffState::kEqual : entry.measures.all_within() ? DiffState::kClose : DiffState::kDifferent;
  return Status();
}

}  // namespace msdbg
