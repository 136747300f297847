// Elements and statistics of a held training, fetched when somebody asks.
#include <fmt/format.h>

#include "msdbg/simd.h"
#include "session/live/live_session.h"

namespace msdbg::live {
namespace {

/// 1.5 counts in 32 bits, which tensors of 2^31 elements overflow.
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

Result<TensorPtr> LiveSessionImpl::fetch(const TensorId& id, bool previous) {
  Result<Source> source = source_of(id);
  if (!source) return source.status();
  std::vector<std::string> names = view_names(*source->node);
  std::optional<uint64_t> promised;
  uint64_t memory = 0;
  // What a value without any slice is taken for.
  DType empty_dtype = source->slot < source->node->outputs.size() ? source->node->outputs[source->slot].dtype : DType::kUnknown;
  Shape shape;
  {
    std::lock_guard lock(cache_mutex_);
    const auto known = known_.find({id.rank, id.graph, source->node->id, source->slot});
    if (known != known_.end() && profile_.levels) {
      if (!known->second.info.problem.ok()) return known->second.info.problem;
      names = {known->second.name};
      promised = known->second.info.bytes;
      shape = known->second.info.shape;
      empty_dtype = known->second.info.dtype;
    }
    // What is kept makes room, so that both together stay within the limit.
    while (!values_.empty() && value_bytes_ + promised.value_or(0) > options_.mem_limit_bytes) {
      value_bytes_ -= values_.back().tensor->bytes().size();
      values_.pop_back();
    }
    memory = options_.mem_limit_bytes - std::min(options_.mem_limit_bytes, value_bytes_);
  }
  for (const std::string& name : names) {
    Result<std::shared_ptr<ValueUpload>> upload = talk_.value({name, source->slot, previous}, promised, memory);
    if (!upload) return upload.status();
    if (*upload == nullptr) continue;
    ValueUpload& value = **upload;
    if (value.slices > 0) shape.assign(value.dims.begin(), value.dims.end());
    else if (element_count(shape).value_or(1) != 0) shape = {0};
    const DType dtype = value.slices > 0 ? dtype_from_mindspore(value.data_type) : empty_dtype;
    Result<TensorPtr> tensor = TensorBuffer::create(dtype, shape, value.landing.bytes(), *upload);
    if (!tensor) return Status(Code::kCorrupt, fmt::format("{}: {}", tensor_name(id), tensor.status().message()));
    return tensor;
  }
  if (previous) return Status(Code::kNotFound, fmt::format("the training has no previous value of {}", tensor_name(id)));
  return unavailable(id);
}

void LiveSessionImpl::give_back(const TensorId& id) {
  Result<Source> source = source_of(id);
  if (!source || id.step != step_) return;
  const Key key{id.rank, id.graph, source->node->id, source->slot};
  std::lock_guard lock(cache_mutex_);
  if (keep_.count(key) > 0) return;  // the next step is compared with it
  values_.remove_if([&](const Value& value) {
    if (value.key == key) value_bytes_ -= value.tensor->bytes().size();
    return value.key == key;
  });
}

Result<TensorPtr> LiveSessionImpl::remembered(const TensorId& id) {
  Result<Source> source = source_of(id);
  if (!source) return source.status();
  const Key key{id.rank, id.graph, source->node->id, source->slot};
  {
    std::lock_guard lock(cache_mutex_);
    if (id.step != step_) {
      const auto before = before_.find(key);
      if (before != before_.end() && before->second.step == id.step) return before->second.tensor;
    } else {
      for (auto it = values_.begin(); it != values_.end(); ++it) {
        if (it->key != key) continue;
        values_.splice(values_.begin(), values_, it);
        return it->tensor;
      }
    }
  }
  if (id.step != step_) {
    if (id.step == step_ - 1 && profile_.keeps_previous && source->node->kind == NodeKind::kParameter) return fetch(id, true);
    return Status(Code::kNoData, fmt::format("{} of step {}: only its statistics are kept", tensor_name(id), id.step));
  }
  Result<TensorPtr> tensor = fetch(id, false);
  if (!tensor) return tensor.status();
  std::lock_guard lock(cache_mutex_);
  values_.push_front({key, step_, *tensor});
  value_bytes_ += (*tensor)->bytes().size();
  return tensor;
}

// The value that arrived is described, not the one that was announced. A type that only the graph declares, or none, does not
// bind the training; one that it has just announced does.
Result<OpenTensor> LiveSessionImpl::open(const TensorId& id) {
  Result<TensorInfo> announced = describe(id);
  if (!announced) return announced.status();
  if (!announced->elements().ok()) return OpenTensor(std::move(*announced), nullptr);
  Result<TensorPtr> tensor = remembered(id);
  if (!tensor) return tensor.status();
  const TensorBuffer& arrived = **tensor;
  if (profile_.levels && id.step == step_ && (arrived.dtype() != announced->dtype || arrived.count() != announced->count)) {
    return Status(Code::kCorrupt, fmt::format("{}: the training announced {}{} and sent {}{}", tensor_name(id), dtype_name(announced->dtype),
                                              shape_text(announced->shape), dtype_name(arrived.dtype()), shape_text(arrived.shape())));
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
  if (!source || id.step != step_ || !profile_.levels) return std::nullopt;
  std::string name;
  {
    std::lock_guard lock(cache_mutex_);
    const auto known = known_.find({id.rank, id.graph, source->node->id, source->slot});
    if (known == known_.end() || !known->second.exists) return std::nullopt;
    name = known->second.name;
  }
  const ViewItem item{name, source->slot, false};
  Result<std::vector<debugger::TensorSummary>> answer = talk_.summaries({&item, 1});
  if (!answer || answer->front().tensor_base().data_type() == 0) return std::nullopt;
  const debugger::Statistics& sent = answer->front().statistics();
  if (!plausible(sent)) {
    Result<TensorPtr> tensor = remembered(id);
    if (!tensor || !is_evaluable((*tensor)->dtype())) return std::nullopt;
    return compute_stats((*tensor)->view());
  }
  Stats stats;
  stats.dtype = dtype_from_mindspore(answer->front().tensor_base().data_type());
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
  if (stats.dtype == DType::kBool) {  // only its counters are sure to be filled in
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
