#include "agent/uploads.h"

#include <limits>

#include "agent/messages.h"
#include "msdbg/simd.h"

namespace msdbg::agent {
namespace {

// A message is limited to 2 GiB. MindSpore ends the training for a value close to that; this agent reports "not found".
constexpr uint64_t kMaxValueBytes = (uint64_t{2} << 30) - kSliceBytes;

std::optional<StoredTensor> look_up(TensorStore* store, const debugger::TensorProto& wanted, bool elements) {
  if (store == nullptr) return std::nullopt;
  std::string_view name = wanted.node_name();
  if (wanted.truncate()) name = name.substr(name.rfind('/') + 1);
  if (!wanted.iter().empty() && wanted.iter() != "prev") return std::nullopt;
  return store->find(name, wanted.slot(), !wanted.iter().empty(), elements);
}

void set_base(const StoredTensor& tensor, debugger::TensorBase& base) {
  base.set_data_type(mindspore_number(tensor.dtype));
  base.mutable_shape()->Assign(tensor.shape->begin(), tensor.shape->end());
  base.set_data_size(static_cast<int64_t>(tensor.bytes.size()));
}

void set_statistics(const StoredTensor& tensor, const ReleaseTraits& traits, debugger::Statistics& out) {
  const Stats stats = compute_stats(tensor.view());
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const bool finite = stats.finite_count() > 0;
  float max = finite ? static_cast<float>(stats.max) : -kInfinity;
  float min = finite ? static_cast<float>(stats.min) : kInfinity;
  float mean = finite ? static_cast<float>(stats.mean) : 0;
  uint64_t negative = stats.neg_count, positive = stats.pos_count;
  if (traits.nonfinite_in_extremes) {
    negative += stats.neg_inf_count;
    positive += stats.pos_inf_count;
    if (stats.pos_inf_count > 0) max = mean = kInfinity;
    if (stats.neg_inf_count > 0)
      min = -kInfinity, mean = max == kInfinity ? std::numeric_limits<float>::quiet_NaN() : -kInfinity;
    if (stats.nan_count > 0) max = min = mean = std::numeric_limits<float>::quiet_NaN();
  }
  out.set_is_bool(tensor.dtype == DType::kBool);
  out.set_max_value(max);
  out.set_min_value(min);
  out.set_avg_value(mean);
  out.set_count(stats.count);
  out.set_neg_zero_count(negative);
  out.set_pos_zero_count(positive);
  out.set_nan_count(stats.nan_count);
  out.set_neg_inf_count(stats.neg_inf_count);
  out.set_pos_inf_count(stats.pos_inf_count);
  out.set_zero_count(stats.zero_count);
}

/// Produces the messages of a SendTensors stream, one slice at a time.
class ValueSlices {
 public:
  ValueSlices(const debugger::ViewCMD& view, TensorStore* store) : view_(view), store_(store) {}

  bool next(BorrowedMemory& borrowed, grpc::ByteBuffer& message) {
    while (at_ < view_.tensors_size()) {
      const debugger::TensorProto& wanted = view_.tensors(at_);
      if (offset_ == 0) tensor_ = look_up(store_, wanted, true);
      if (tensor_ && tensor_->bytes.size() > kMaxValueBytes) tensor_.reset();
      TensorHeader header;
      header.node_name = wanted.node_name();
      header.slot = wanted.slot();
      header.iter = wanted.iter();
      header.truncate = wanted.truncate();
      if (!tensor_) {
        header.found = false;
        message = tensor_message(borrowed, header, {}, true);
        ++at_;
        return true;
      }
      if (tensor_->bytes.empty()) {  // a tensor without elements has no slices
        ++at_;
        continue;
      }
      header.dims = *tensor_->shape;
      header.dtype = tensor_->dtype;
      const auto rest = tensor_->bytes.subspan(offset_);
      const auto slice = rest.first(std::min(rest.size(), kSliceBytes));
      const bool last = slice.size() == rest.size();
      message = tensor_message(borrowed, header, slice, last);
      offset_ = last ? 0 : offset_ + slice.size();
      if (last) ++at_;
      return true;
    }
    return false;
  }

 private:
  const debugger::ViewCMD& view_;
  TensorStore* store_;
  int at_ = 0;
  size_t offset_ = 0;
  std::optional<StoredTensor> tensor_;
};

Reply send_values(Caller& caller, const debugger::ViewCMD& view, TensorStore* store) {
  BorrowedMemory borrowed;
  ValueSlices slices(view, store);
  Reply reply = caller.stream("SendTensors", [&](grpc::ByteBuffer& message) { return slices.next(borrowed, message); });
  if (!caller.wait_until_released(borrowed, kReturnTimeout) && reply.ok) {
    reply.ok = false;
    reply.problem = "the transport still holds parts of a tensor that was sent";
  }
  return reply;
}

}  // namespace

debugger::TensorSummary summary_of(TensorStore* store, const debugger::TensorProto& wanted, const ReleaseTraits& traits) {
  debugger::TensorSummary summary;
  summary.mutable_tensor_base();
  if (const std::optional<StoredTensor> tensor = look_up(store, wanted, true)) {
    set_base(*tensor, *summary.mutable_tensor_base());
    set_statistics(*tensor, traits, *summary.mutable_statistics());
  } else {
    summary.mutable_statistics()->set_max_value(-std::numeric_limits<float>::infinity());
    summary.mutable_statistics()->set_min_value(std::numeric_limits<float>::infinity());
  }
  return summary;
}

Reply answer_view(Caller& caller, const debugger::ViewCMD& view, TensorStore* store, const ReleaseTraits& traits) {
  int at = 0;
  const auto each = [&](auto message_of) {
    return [&, message_of](grpc::ByteBuffer& message) {
      if (at == view.tensors_size()) return false;
      message = to_buffer(message_of(view.tensors(at++)));
      return true;
    };
  };
  const int level = traits.levels ? static_cast<int>(view.level()) : static_cast<int>(debugger::ViewCMD::value);
  switch (level) {
    case debugger::ViewCMD::value:
      return send_values(caller, view, store);
    case debugger::ViewCMD::statistics:
      return caller.stream("SendTensorStats",
                           each([&](const debugger::TensorProto& wanted) { return summary_of(store, wanted, traits); }));
    case debugger::ViewCMD::base:
      return caller.stream("SendTensorBase", each([&](const debugger::TensorProto& wanted) {
                             debugger::TensorBase base;
                             if (const std::optional<StoredTensor> tensor = look_up(store, wanted, false)) {
                               set_base(*tensor, base);
                             } else {
                               base.add_shape(0);
                             }
                             return base;
                           }));
    default:
      break;
  }
  Reply reply;  // an unknown level gets an empty answer
  reply.ok = true;
  return reply;
}

}  // namespace msdbg::agent
