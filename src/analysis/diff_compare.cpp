// One tensor against its counterpart.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/diff_parts.h"

namespace msdbg {
namespace {

/// Elements read at a time; a multiple of the pass's block, so results do not depend on it.
constexpr uint64_t kElementsAtATime = 16 * ComparePass::kBlock;

Result<Comparison> walk(ElementReader& a, ElementReader& b, CloseRequest tolerance, DiffBuffers& buffers, uint64_t* bytes) {
  const size_t item_a = item_size(a.dtype()), item_b = item_size(b.dtype());
  ComparePass pass(a.dtype(), b.dtype(), tolerance);
  for (uint64_t first = 0; first < a.count(); first += kElementsAtATime) {
    if (interrupt_requested()) return Status(Code::kInterrupted, "diff: interrupted");
    const size_t n = static_cast<size_t>(std::min(kElementsAtATime, a.count() - first));
    buffers.a.resize(std::max(buffers.a.size(), n * item_a));
    buffers.b.resize(std::max(buffers.b.size(), n * item_b));
    if (const Status status = a.read(first, std::span(buffers.a).first(n * item_a)); !status.ok()) return status;
    if (const Status status = b.read(first, std::span(buffers.b).first(n * item_b)); !status.ok()) return status;
    pass.update(buffers.a.data(), buffers.b.data(), n);
    *bytes += n * (item_a + item_b);
  }
  return pass.finish();
}

/// Notes the type and shape of one side in the entry.
Result<OpenTensor> open_side(Session& session, const TensorId& id, std::string_view side, DType& dtype, Shape& shape) {
  Result<OpenTensor> opened = session.open(id);
  if (!opened) return Status(opened.status().code(), fmt::format("{}: {}", side, opened.status().message()));
  dtype = opened->info.dtype;
  shape = opened->info.shape;
  return opened;
}

/// Why one of the sides has no elements; "" if both have.
std::string without_elements(const OpenTensor& a, const OpenTensor& b) {
  for (const auto& [opened, side] : {std::pair(&a, "A"), std::pair(&b, "B")}) {
    if (opened->reader) continue;
    const bool statistics = opened->info.availability == Availability::kStatisticsOnly && opened->info.problem.ok();
    return fmt::format("{}: {}", side, statistics ? "only statistics were dumped" : opened->info.elements().message());
  }
  return "";
}

}  // namespace

Status compare_entry(Session& a, Session& b, const DiffOptions& options, TensorDiff& entry, DiffBuffers& buffers, uint64_t* bytes) {
  auto side_a = open_side(a, entry.a, "A", entry.dtype_a, entry.shape_a);
  auto side_b = open_side(b, entry.b, "B", entry.dtype_b, entry.shape_b);
  if (!entry.reason.empty()) return Status();
  if (!side_a || !side_b) {
    entry.reason = (side_a ? side_b : side_a).status().message();
    return Status();
  }
  if (side_a->info.count != side_b->info.count) {
    entry.state = DiffState::kReshaped;
    entry.reason = fmt::format("{} elements against {}", side_a->info.count, side_b->info.count);
    return Status();
  }

  if (std::string reason = without_elements(*side_a, *side_b); !reason.empty()) {
    if (!compare_facts(a, b, options, entry)) entry.reason = std::move(reason);
    return Status();
  }
  const bool given = options.rtol || options.atol;
  const CloseRequest relative = default_tolerance(entry.dtype_a, entry.dtype_b, entry.path);
  entry.tolerance = given ? CloseRequest{options.rtol.value_or(0), options.atol.value_or(0)} : CloseRequest{relative.rtol, 0};
  auto measured = walk(*side_a->reader, *side_b->reader, entry.tolerance, buffers, bytes);
  if (measured && !given && relative.rtol > 0 && !measured->bit_equal && measured->pairs > 0) {
    // The error that a small value may have depends on the values that were summed for it. Their size is known after the
    // first pass; only tensors that are still undecided are read again.
    entry.tolerance.atol = relative.atol * measured->norm_b / std::sqrt(static_cast<double>(measured->pairs));
    measured->tolerance = entry.tolerance;
    if (!measured->all_within()) measured = walk(*side_a->reader, *side_b->reader, entry.tolerance, buffers, bytes);
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
