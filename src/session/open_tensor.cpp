// The result of opening a tensor: its description and a reader, which always agree.
#include <fmt/format.h>

#include <array>
#include <cstring>

#include "msdbg/session.h"

namespace msdbg {
namespace {

class MemoryReader final : public ElementReader {
 public:
  explicit MemoryReader(TensorPtr tensor) : ElementReader(tensor->dtype(), tensor->count()), tensor_(std::move(tensor)) {}
  TensorPtr in_memory() const override { return tensor_; }

 private:
  Status fill(uint64_t first, std::span<std::byte> out) override {
    if (!out.empty()) std::memcpy(out.data(), tensor_->bytes().data() + first * item_size(dtype()), out.size());
    return {};
  }

  TensorPtr tensor_;
};

constexpr std::array<std::string_view, 4> kKindNames = {"dump", "checkpoint", "live", "recording"};
static_assert(kKindNames.size() == static_cast<size_t>(SessionKind::kRecording) + 1);

}  // namespace

Status TensorInfo::elements() const {
  if (!problem.ok()) return problem;
  switch (availability) {
    case Availability::kElements: return {};
    case Availability::kStatisticsOnly: return {Code::kNoData, "no tensor data (statistics only)"};
    case Availability::kUnreadable: break;
  }
  return {Code::kCorrupt, "cannot be read"};
}

ElementReader::ElementReader(DType dtype, uint64_t count) : dtype_(dtype), count_(count) { MSDBG_CHECK(is_evaluable(dtype)); }

Status ElementReader::read(uint64_t first, std::span<std::byte> out) {
  const size_t size = item_size(dtype_);
  MSDBG_CHECK(out.size() % size == 0 && first <= count_ && out.size() / size <= count_ - first);
  return fill(first, out);
}

OpenTensor::OpenTensor(TensorInfo described, std::unique_ptr<ElementReader> elements)
    : info(std::move(described)), reader(std::move(elements)) {
  MSDBG_CHECK(info.elements().ok() == (reader != nullptr));
  if (reader == nullptr) return;
  MSDBG_CHECK(reader->dtype() == info.dtype && reader->count() == info.count && element_count(info.shape) == info.count);
}

OpenTensor OpenTensor::in_memory(TensorInfo info, TensorPtr tensor) {
  info.dtype = tensor->dtype();
  info.shape = tensor->shape();
  info.count = tensor->count();
  info.bytes = tensor->bytes().size();
  if (info.problem.ok() && !is_evaluable(info.dtype)) {
    info.problem = {Code::kUnsupported, info.dtype == DType::kUnknown
                                            ? "elements of an unknown type are not evaluated"
                                            : fmt::format("{} elements are not evaluated", dtype_name(info.dtype))};
  }
  if (!info.problem.ok()) info.availability = Availability::kUnreadable;
  const bool readable = info.elements().ok();
  return {std::move(info), readable ? std::make_unique<MemoryReader>(std::move(tensor)) : nullptr};
}

std::string_view session_kind_name(SessionKind kind) { return kKindNames[static_cast<size_t>(kind)]; }

std::optional<SessionKind> session_kind_from_name(std::string_view name) {
  for (size_t i = 0; i < kKindNames.size(); ++i) {
    if (kKindNames[i] == name) return static_cast<SessionKind>(i);
  }
  return std::nullopt;
}

bool shows_initial_values(SessionKind kind) { return kind == SessionKind::kLive || kind == SessionKind::kRecording; }

}  // namespace msdbg
