#include "msdbg/session.h"

#include <fmt/format.h>

#include "session/pass.h"
#include "session/stats_cache.h"

namespace msdbg {
namespace {

/// Why the elements of `info` cannot be reduced; ok when they can.
Status evaluable(const Session& session, const TensorInfo& info) {
  if (!info.problem.ok()) return info.problem;
  if (info.availability == Availability::kUnreadable) {
    return Status(Code::kCorrupt, fmt::format("{} cannot be read", session.tensor_name(info.id)));
  }
  if (info.availability == Availability::kElements && !is_evaluable(info.dtype)) {
    return Status(Code::kUnsupported, fmt::format("{} is {}: no statistics are defined for this type",
                                                  session.tensor_name(info.id), dtype_name(info.dtype)));
  }
  return {};
}

}  // namespace

Session::Session() : stats_cache_(std::make_unique<StatsCache>()) {}
Session::~Session() = default;

const Graph* Session::graph(int rank, int id) const {
  for (const GraphPtr& graph : graphs()) {
    if (graph->rank() == rank && graph->id() == id) return graph.get();
  }
  return nullptr;
}

const Node& Session::node(const TensorId& id) const {
  const Graph* owner = graph(id.rank, id.graph);
  MSDBG_CHECK(owner && id.node < owner->nodes().size());
  return owner->node(id.node);
}

std::string Session::tensor_name(const TensorId& id) const {
  const Graph* owner = graph(id.rank, id.graph);
  if (!owner || id.node >= owner->nodes().size()) return fmt::format("?:{}", slot_name(id.slot));
  return fmt::format("{}:{}", owner->node(id.node).name, slot_name(id.slot));
}

Result<TensorPtr> Session::load(const TensorId& id, uint64_t mem_limit_bytes) {
  Result<TensorInfo> info = describe(id);
  if (!info) return info.status();
  if (!info->problem.ok()) return info->problem;
  if (info->bytes > mem_limit_bytes) {
    return Status(Code::kOutOfMemory,
                  fmt::format("{} has {}, the limit is {}: raise --mem-limit or ask for its statistics only",
                              tensor_name(id), format_bytes(info->bytes), format_bytes(mem_limit_bytes)));
  }
  Result<std::unique_ptr<ElementReader>> reader = read(id);
  if (!reader) return reader.status();
  const size_t size = item_size((*reader)->dtype());
  if (size == 0) {
    return Status(Code::kUnsupported, fmt::format("{} is {}: its elements have no fixed size", tensor_name(id),
                                                  dtype_name((*reader)->dtype())));
  }
  const uint64_t count = (*reader)->count();
  std::vector<std::byte> bytes(count * size);
  for (uint64_t first = 0; first < count; first += kElementsPerBlock) {
    if (interrupt_requested())
      return Status(Code::kInterrupted, fmt::format("interrupted while reading {}", tensor_name(id)));
    const uint64_t n = std::min(kElementsPerBlock, count - first);
    Status status = (*reader)->read(first, std::span(bytes).subspan(first * size, n * size));
    if (!status.ok()) return status;
  }
  return TensorBuffer::create((*reader)->dtype(), std::move(info->shape), std::move(bytes));
}

Result<Stats> Session::stats(const TensorId& id) {
  if (KeptStatsPtr kept = stats_cache_->find(id)) return kept->stats;
  Result<TensorInfo> info = describe(id);
  if (!info) return info.status();
  if (Status status = evaluable(*this, *info); !status.ok()) return status;
  if (info->availability == Availability::kStatisticsOnly) {
    if (std::optional<Stats> given = given_statistics(id)) return *given;
    return Status(Code::kNoData, fmt::format("{} has no elements and no statistics", tensor_name(id)));
  }
  Result<std::unique_ptr<ElementReader>> reader = read(id);
  if (!reader) return reader.status();
  PassBuffers buffers;
  Result<Stats> stats = run_pass(**reader, nullptr, {}, buffers, nullptr);
  if (!stats) return stats.status();
  KeptStats kept;
  kept.info = std::move(*info);
  kept.stats = *stats;
  stats_cache_->put(std::make_shared<const KeptStats>(std::move(kept)));
  return stats;
}

Result<Stats> Session::stats(const TensorId& id, const TensorId& previous, const StatsRequest& request) {
  // The caller's order of ranges and tolerances is the order of the counts, so kept statistics of a merged request do
  // not serve here; comparisons of two chosen tensors are rare enough to be computed each time.
  for (const TensorId& side : {id, previous}) {
    Result<TensorInfo> info = describe(side);
    if (!info) return info.status();
    if (Status status = evaluable(*this, *info); !status.ok()) return status;
  }
  Result<std::unique_ptr<ElementReader>> reader = read(id);
  if (!reader) return reader.status();
  Result<std::unique_ptr<ElementReader>> other = read(previous);
  if (!other) return other.status();
  if ((*reader)->count() != (*other)->count()) {
    return Status(Code::kInvalidArgument,
                  fmt::format("{} has {} elements, {} has {}: they cannot be compared", tensor_name(id),
                              (*reader)->count(), tensor_name(previous), (*other)->count()));
  }
  PassBuffers buffers;
  return run_pass(**reader, other->get(), request, buffers, nullptr);
}

void Session::forget_stats(const std::function<bool(const TensorId&)>& gone) { stats_cache_->erase_if(gone); }

std::vector<TensorId> Session::tensors_with_stats() const { return stats_cache_->ids(); }

std::optional<TensorInfo> Session::info_of_kept(const TensorId& id) const {
  const KeptStatsPtr kept = stats_cache_->find(id);
  if (!kept) return std::nullopt;
  return kept->info;
}

}  // namespace msdbg
