#include "msdbg/session.h"

#include <fmt/format.h>

#include <algorithm>

#include "session/answer.h"
#include "session/check_tensor.h"
#include "session/pass.h"
#include "session/stats_cache.h"

namespace msdbg {

Session::Session(size_t kept_stats) : stats_cache_(std::make_unique<StatsCache>(kept_stats)) {}
Session::~Session() = default;

const Graph* Session::graph(int rank, int id) const {
  for (const GraphPtr& graph : graphs()) {
    if (graph->rank() == rank && graph->id() == id) return graph.get();
  }
  return nullptr;
}

int64_t Session::steps_between(const TensorId& from, const TensorId& to) const {
  const std::vector<int64_t> all = steps();
  const auto used = std::lower_bound(all.begin(), all.end(), to.step) - std::upper_bound(all.begin(), all.end(), from.step);
  return std::max<int64_t>(1, to.step - from.step - used);
}

const Node& Session::node(const TensorId& id) const {
  const Graph* owner = graph(id.rank, id.graph);
  MSDBG_CHECK(owner && id.node < owner->nodes().size());
  return owner->node(id.node);
}

std::string Session::tensor_name(const TensorId& id) const {
  const Graph* owner = graph(id.rank, id.graph);
  std::string name(owner && id.node < owner->nodes().size() ? owner->node(id.node).name : "?");
  return name.append(1, ':').append(slot_name(id.slot));
}

Result<TensorInfo> Session::describe(const TensorId& id) {
  if (stats_cache_->store) {
    if (const StatsCache::Found found = stats_cache_->recall(*this, id); found.kept) return found.kept->info;
  }
  Result<OpenTensor> tensor = open(id);
  if (!tensor) return tensor.status();
  return std::move(tensor->info);
}

TensorInfo Session::identify(const TensorId& id) {
  TensorInfo info;
  info.id = id;
  return info;
}

void Session::use_stats_store(std::shared_ptr<StatsStore> store) { stats_cache_->store = std::move(store); }

Result<OpenTensor> Session::open_elements(const TensorId& id) {
  Result<OpenTensor> tensor = open(id);
  if (tensor && !tensor->reader) return tensor->info.elements();
  return tensor;
}

Result<TensorPtr> Session::load(const TensorId& id, uint64_t mem_limit_bytes) {
  return answer([&]() -> Result<TensorPtr> {
    const auto fits = [&](uint64_t size) {
      if (size <= mem_limit_bytes) return Status();
      return Status(Code::kOutOfMemory, fmt::format("{} has {}, the limit is {}: raise --mem-limit or use only its statistics",
                                                    tensor_name(id), format_bytes(size), format_bytes(mem_limit_bytes)));
    };
    if (can_step()) {  // a live training sends all elements when it is opened
      const Result<TensorInfo> announced = describe(id);
      if (!announced) return announced.status();
      if (Status status = fits(announced->bytes); !status.ok()) return status;
    }
    Result<OpenTensor> tensor = open_elements(id);
    if (!tensor) return tensor.status();
    auto& [info, reader] = *tensor;
    if (Status status = fits(info.bytes); !status.ok()) return status;
    if (TensorPtr whole = reader->in_memory()) return whole;
    const size_t size = item_size(info.dtype);
    std::vector<std::byte> bytes(info.count * size);
    for (uint64_t first = 0; first < info.count; first += kElementsPerBlock) {
      if (interrupt_requested())
        return Status(Code::kInterrupted, fmt::format("interrupted while reading {}", tensor_name(id)));
      const uint64_t n = std::min(kElementsPerBlock, info.count - first);
      Status status = reader->read(first, std::span(bytes).subspan(first * size, n * size));
      if (!status.ok()) return status;
    }
    return TensorBuffer::create(info.dtype, std::move(info.shape), std::move(bytes));
  });
}

namespace {

/// Of a tensor for which `found` has no statistics: reads it and keeps them.
Result<StatsRow> read_row(Session& session, StatsCache& cache, const TensorId& id, const StatsCache::Found& found) {
  Result<OpenTensor> tensor = session.open(id);
  if (!tensor) return tensor.status();
  StatsRow made{std::move(tensor->info), std::nullopt};
  if (!tensor->reader) {
    if (!made.info.problem.ok()) return made;
    if (made.info.availability != Availability::kStatisticsOnly) made.info.problem = made.info.elements();
    else if (!(made.stats = session.given_statistics(id)))
      made.info.problem = Status(Code::kNoData, fmt::format("{} has no elements and no statistics", session.tensor_name(id)));
    return made;
  }
  PassBuffers buffers;
  Result<Stats> stats = run_pass(*tensor->reader, nullptr, {}, buffers, nullptr);
  if (!stats) {
    made.info.problem = stats.status();
    return made;
  }
  KeptStats kept;
  kept.info = made.info;
  kept.stats = *stats;
  cache.keep(std::make_shared<const KeptStats>(std::move(kept)), found.ticket, tensor->reader->file());
  made.stats = std::move(*stats);
  return made;
}

}  // namespace

Result<Stats> Session::stats(const TensorId& id) {
  return answer([&]() -> Result<Stats> {
    const StatsCache::Found found = stats_cache_->recall(*this, id);
    if (found.kept) return found.kept->stats;  // without its description, which takes longer to copy
    Result<StatsRow> row = read_row(*this, *stats_cache_, id, found);
    if (!row) return row.status();
    if (!row->stats) return row->info.problem;
    return std::move(*row->stats);
  });
}

Result<uint32_t> Session::counts_above_zero(const TensorId& id) {
  if (const auto known = stats_cache_->judged_counts(id)) return *known;
  const Result<Stats> found = stats(id);
  if (!found) return found.status();
  return msdbg::counts_above_zero(*found);
}

StatsRow Session::stats_row(const TensorId& id) {
  Result<StatsRow> row = answer([&]() -> Result<StatsRow> {
    const StatsCache::Found found = stats_cache_->recall(*this, id);
    if (found.kept) return StatsRow{found.kept->info, found.kept->stats};
    return read_row(*this, *stats_cache_, id, found);
  });
  if (row) return std::move(*row);
  StatsRow missing;
  missing.info.id = id;
  missing.info.problem = row.status();
  return missing;
}

Result<Stats> Session::stats(const TensorId& id, const TensorId& previous, const StatsRequest& request) {
  return answer([&]() -> Result<Stats> {
    PassBuffers buffers;
    // Counts come in the caller's order of ranges and tolerances, which kept statistics of a merged request do not have.
    bool history_missing = false;
    const Result<TensorId> before = this->previous(id, &history_missing);
    if (request.change && request.ranges.empty() && request.close.empty() && before && *before == previous) {
      WatchSet set;
      set.request = request;
      set.needs_previous = set.needs_stats = true;
      const Measured measured = measure(*this, *stats_cache_, id, set, buffers);
      if (measured.kept && measured.kept->previous == Previous::kPresent) return measured.kept->stats;
    }
    Result<OpenTensor> tensor = open_elements(id);
    if (!tensor) return tensor.status();
    Result<OpenTensor> other = open_elements(previous);
    if (!other) return other.status();
    if (tensor->info.count != other->info.count) {
      return Status(Code::kInvalidArgument,
                    fmt::format("{} has {} elements, {} has {}: they cannot be compared", tensor_name(id),
                                tensor->info.count, tensor_name(previous), other->info.count));
    }
    return run_pass(*tensor->reader, other->reader.get(), request, buffers, nullptr);
  });
}

void Session::forget_stats(const std::function<bool(const TensorId&)>& stale) { stats_cache_->forget(stale); }

std::vector<TensorId> Session::tensors_with_stats() const { return stats_cache_->ids(); }

std::optional<TensorInfo> Session::info_of_kept(const TensorId& id) const {
  const KeptStatsPtr kept = stats_cache_->find(id);
  if (!kept) return std::nullopt;
  return kept->info;
}

}  // namespace msdbg
