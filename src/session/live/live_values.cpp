// Elements and statistics of a held training, fetched on demand.
#include <fmt/format.h>

#include "msdbg/simd.h"
#include "session/live/limits.h"
#include "session/live/live_session.h"

namespace msdbg::live {
namespace {

/// 1.5 counts in 32 bits, which overflows for tensors of 2^31 elements.
bool plausible(const debugger::Statistics& sent) {
  constexpr uint64_t kMost = uint64_t{1} << 48;
  uint64_t parts = 0;
  for (const uint64_t part : {sent.nan_count(), sent.pos_inf_count(), sent.neg_inf_count(), sent.zero_count()}) {
    if (part > kMost) return false;
    parts += part;
  }
  return sent.count() <= kMost && parts <= sent.count() && sent.neg_zero_count() <= sent.count() && sent.pos_zero_count() <= sent.count();
}

}  // namespace

Result<TensorPtr> LiveSessionImpl::arrived(const Asked& asked, const std::shared_ptr<ValueUpload>& upload, size_t place, bool copy) const {
  const UploadedValue& value = upload->values[place];
  if (!value.problem.empty()) return Status(Code::kCorrupt, value.problem);
  if (value.missing()) return Status(Code::kNotFound, fmt::format("{}: the training does not have it", tensor_name(asked.id)));
  Shape shape = asked.shape;
  if (value.slices > 0) shape.assign(value.dims.begin(), value.dims.end());
  else if (element_count(shape).value_or(1) != 0) shape = {0};
  const DType dtype = value.slices > 0 ? dtype_from_mindspore(value.data_type) : asked.dtype;
  const std::span<const std::byte> bytes = upload->elements(value);
  Result<TensorPtr> tensor = copy ? TensorBuffer::create(dtype, std::move(shape), std::vector(bytes.begin(), bytes.end()))
                                  : TensorBuffer::create(dtype, std::move(shape), bytes, upload);
  if (!tensor) return Status(Code::kCorrupt, fmt::format("{}: {}", tensor_name(asked.id), tensor.status().message()));
  return tensor;
}

Result<TensorPtr> LiveSessionImpl::fetch(const TensorId& id, const Source& source, bool previous) {
  Asked asked{{id.rank, id.graph, source.node->id, source.slot}, id, {{{}, source.slot, previous}, limits::kValueBytes}, {}, {}};
  std::vector<std::string> names = view_names(*source.node);
  if (source.slot < source.node->outputs.size()) asked.dtype = source.node->outputs[source.slot].dtype;
  uint64_t promised = 0, memory = 0;
  {
    std::lock_guard lock(cache_mutex_);
    const auto known = known_.find(asked.key);
    if (known != known_.end() && profile_.levels) {
      const TensorInfo& info = known->second.info;
      if (!info.problem.ok()) return info.problem;
      names = {known->second.name};
      promised = asked.item.most_bytes = info.bytes;
      asked.shape = info.shape;
      asked.dtype = info.dtype;
    }
    // Shrinks the cache to keep both together within the limit.
    values_.shrink(options_.mem_limit_bytes - std::min(options_.mem_limit_bytes, promised));
    memory = options_.mem_limit_bytes - std::min(options_.mem_limit_bytes, values_.bytes());
  }
  for (std::string& name : names) {
    asked.item.name = std::move(name);
    Result<std::shared_ptr<ValueUpload>> upload = talk_.values({&asked.item, 1}, promised, memory);
    if (!upload) return upload.status();
    if (!(*upload)->values[0].missing()) return arrived(asked, *upload, 0, false);
  }
  if (previous) return Status(Code::kNotFound, fmt::format("the training has no previous value of {}", tensor_name(id)));
  return unavailable(id);
}

void LiveSessionImpl::drop_elements(const TensorId& id) {
  Result<Source> source = source_of(id);
  if (!source || id.step != step_) return;
  const Key key{id.rank, id.graph, source->node->id, source->slot};
  std::lock_guard lock(cache_mutex_);
  if (keep_.count(key) == 0) values_.erase(key);  // otherwise the next step is compared with it
}

Result<TensorPtr> LiveSessionImpl::remembered(const TensorId& id) {
  Result<Source> source = source_of(id);
  if (!source) return source.status();
  const Key key{id.rank, id.graph, source->node->id, source->slot};
  if (id.step != step_) {
    {
      std::lock_guard lock(cache_mutex_);
      const auto before = before_.find(key);
      if (before != before_.end() && before->second.step == id.step) return before->second.tensor;
    }
    if (id.step == step_ - 1 && profile_.keeps_previous && source->node->kind == NodeKind::kParameter) return fetch(id, *source, true);
    return Status(Code::kNoData, fmt::format("{} of step {}: only its statistics are kept", tensor_name(id), id.step));
  }
  if (auto there = cached_value(key)) return std::move(*there);
  std::lock_guard fetching(fetch_mutex_);
  if (auto there = cached_value(key)) return std::move(*there);  // another thread has fetched it meanwhile
  if (const std::vector<Asked> row = values_from(key); row.size() > 1) {
    if (Status status = fetch_together(row); !status.ok()) return status;
    if (auto there = cached_value(key)) return std::move(*there);
  }
  Result<TensorPtr> tensor = fetch(id, *source, false);
  if (!tensor) return tensor.status();
  std::lock_guard lock(cache_mutex_);
  values_.put(key, *tensor);
  return tensor;
}

Status LiveSessionImpl::check_announced(const TensorId& id, DType dtype, const Shape& shape, const TensorBuffer& arrived) const {
  if (arrived.dtype() == dtype && arrived.count() == element_count(shape)) return {};
  return {Code::kCorrupt, fmt::format("{}: the training announced {}{} and sent {}{}", tensor_name(id), dtype_name(dtype),
                                      shape_text(shape), dtype_name(arrived.dtype()), shape_text(arrived.shape()))};
}

// Describes the value that arrived, not the one that was announced. A type that only the graph declares does not bind the training,
// nor does an unknown one; a type that the training has just announced does.
Result<OpenTensor> LiveSessionImpl::open(const TensorId& id) {
  Result<TensorInfo> announced = describe(id);
  if (!announced) return announced.status();
  if (!announced->elements().ok()) return OpenTensor(std::move(*announced), nullptr);
  Result<TensorPtr> tensor = remembered(id);
  if (!tensor) return tensor.status();
  if (profile_.levels && id.step == step_) {
    if (Status status = check_announced(id, announced->dtype, announced->shape, **tensor); !status.ok()) return status;
  }
  if (!profile_.levels) announced->note.clear();
  return OpenTensor::in_memory(std::move(*announced), std::move(*tensor));
}

Result<TensorId> LiveSessionImpl::previous(const TensorId& id, bool* history_missing) {
  if (history_missing != nullptr) *history_missing = false;
  Result<Source> source = source_of(id);
  if (!source) return source.status();
  TensorId before = id;
  {
    std::lock_guard lock(cache_mutex_);
    const auto kept = before_.find({id.rank, id.graph, source->node->id, source->slot});
    if (kept != before_.end() && id.step == step_ && kept->second.step < step_) {
      before.step = kept->second.step;
      return before;
    }
  }
  if (id.step == step_ && step_ > 0 && profile_.keeps_previous && source->node->kind == NodeKind::kParameter) {
    before.step = step_ - 1;
    return before;
  }
  return Status(Code::kNotFound, fmt::format("no previous value of {}", tensor_name(id)));
}

std::optional<Stats> LiveSessionImpl::given_statistics(const TensorId& id) {
  Result<Source> source = source_of(id);
  if (!source) return std::nullopt;
  if (is_past(id)) {
    std::lock_guard lock(cache_mutex_);
    const auto past = past_.find({id.rank, id.graph, id.step, 0, source->node->id, {Io::kOutput, source->slot}});
    return past == past_.end() ? std::nullopt : std::optional<Stats>(past->second.stats);
  }
  if (!profile_.levels) return std::nullopt;
  std::string name;
  {
    std::lock_guard lock(cache_mutex_);
    const auto known = known_.find({id.rank, id.graph, source->node->id, source->slot});
    if (known == known_.end() || !known->second.exists) return std::nullopt;
    name = known->second.name;
  }
  const Result<debugger::TensorSummary> answer = summary({id.rank, id.graph, source->node->id, source->slot}, name);
  if (!answer || answer->tensor_base().data_type() == 0) return std::nullopt;
  if (!plausible(answer->statistics())) {
    Result<TensorPtr> tensor = remembered(id);
    if (!tensor || !is_evaluable((*tensor)->dtype())) return std::nullopt;
    return compute_stats((*tensor)->view());
  }
  return stats_from(*answer);
}

/// The reliable statistics; nullopt if the training does not have the tensor, or its counts overflowed.
std::optional<Stats> LiveSessionImpl::stats_from(const debugger::TensorSummary& summary) const {
  const debugger::Statistics& sent = summary.statistics();
  if (summary.tensor_base().data_type() == 0 || !plausible(sent)) return std::nullopt;
  Stats stats;
  stats.dtype = dtype_from_mindspore(summary.tensor_base().data_type());
  stats.count = sent.count();
  stats.nan_count = sent.nan_count();
  stats.pos_inf_count = sent.pos_inf_count();
  stats.neg_inf_count = sent.neg_inf_count();
  stats.zero_count = sent.zero_count();
  stats.known = kStatCount | kStatNan | kStatPosInf | kStatNegInf | kStatZero;
  const bool finite = stats.nan_count + stats.inf_count() == 0;
  if (finite) {
    stats.pos_count = sent.pos_zero_count();
    stats.neg_count = sent.neg_zero_count();
    stats.known |= kStatPos | kStatNeg;
  }
  if (stats.dtype == DType::kBool) {  // only the counters are reliable
    stats.known |= kStatMin | kStatMax | kStatMean;
    if (stats.count > 0) {
      stats.min = stats.zero_count > 0 ? 0 : 1;
      stats.max = stats.pos_count > 0 ? 1 : 0;
      stats.mean = static_cast<double>(stats.pos_count) / static_cast<double>(stats.count);
    }
  } else if (finite || !profile_.nonfinite_in_extremes) {
    stats.known |= kStatMin | kStatMax;
    if (stats.finite_count() > 0) {
      stats.min = sent.min_value();
      stats.max = sent.max_value();
    }
    if (!profile_.wrong_means || stats.count < PeerProfile::kWrongMeansFrom) {
      stats.known |= kStatMean;
      stats.mean = sent.avg_value();
    }
  }
  return stats;
}

}  // namespace msdbg::live
