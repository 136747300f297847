#include "analysis/elements.h"

#include <algorithm>

#include "analysis/evidence.h"

namespace msdbg {
namespace {

constexpr uint64_t kBlock = 16384;  // elements
constexpr size_t kMostFirstElements = 8;

/// True if the elements that are bad in one tensor are exactly those that are zero in the other.
bool same_places(ElementReader& bad, ElementReader& zeros, Predicate::Builtin which) {
  const size_t bad_size = item_size(bad.dtype()), zero_size = item_size(zeros.dtype());
  std::vector<std::byte> left(kBlock * bad_size), right(kBlock * zero_size);
  for (uint64_t at = 0; at < bad.count(); at += kBlock) {
    const uint64_t n = std::min(kBlock, bad.count() - at);
    if (interrupt_requested()) return false;
    if (!bad.read(at, std::span(left).first(n * bad_size)).ok()) return false;
    if (!zeros.read(at, std::span(right).first(n * zero_size)).ok()) return false;
    for (uint64_t i = 0; i < n; ++i) {
      const bool is_bad = is_bad_element(which, element_as_double(bad.dtype(), left.data() + i * bad_size));
      if (is_bad != (element_as_double(zeros.dtype(), right.data() + i * zero_size) == 0)) return false;
    }
  }
  return true;
}

}  // namespace

void locate_bad_elements(Session& session, Predicate::Builtin which, Origin& origin) {
  Result<OpenTensor> opened = session.open_elements(origin.tensor);
  if (!opened) return;
  const auto& [info, reader] = *opened;
  const DType dtype = info.dtype;
  const size_t size = item_size(dtype);
  const uint64_t count = info.count;
  const uint64_t rows = info.shape.size() >= 2 && info.shape[0] > 0 ? static_cast<uint64_t>(info.shape[0]) : 0;
  const uint64_t per_row = rows > 0 ? count / rows : 0;

  std::vector<uint64_t> first;
  uint64_t affected = 0, least = 0, most = 0, row = 0, in_row = 0;
  auto close_row = [&] {
    if (in_row > 0) {
      least = affected == 0 ? in_row : std::min(least, in_row);
      most = std::max(most, in_row);
      ++affected;
    }
    in_row = 0;
  };
  std::vector<std::byte> block(kBlock * size);
  for (uint64_t at = 0; at < count; at += kBlock) {
    const uint64_t n = std::min(kBlock, count - at);
    if (interrupt_requested()) return;
    if (!reader->read(at, std::span(block).first(n * size)).ok()) return;
    for (uint64_t i = 0; i < n; ++i) {
      if (!is_bad_element(which, element_as_double(dtype, block.data() + i * size))) continue;
      if (first.size() < kMostFirstElements) first.push_back(at + i);
      if (per_row == 0) continue;
      if ((at + i) / per_row != row) {
        close_row();
        row = (at + i) / per_row;
      }
      ++in_row;
    }
  }
  close_row();
  for (uint64_t flat : first) origin.first.push_back(coordinates(flat, info.shape));
  if (affected > 0) origin.rows = {static_cast<int64_t>(affected), {least, most}};
}

void compare_zeros(Session& session, Predicate::Builtin which, Origin& origin) {
  for (OriginInput& input : origin.inputs) {
    if (!input.value || !input.stats || input.state != InputState::kGood || origin.bad_count == 0) continue;
    if (input.stats->zero_count != origin.bad_count || input.stats->count != origin.stats.count) continue;
    Result<OpenTensor> bad = session.open_elements(origin.tensor);
    Result<OpenTensor> zeros = session.open_elements(*input.value);
    if (!bad || !zeros || bad->info.count != zeros->info.count) continue;
    input.zeros_at_bad = same_places(*bad->reader, *zeros->reader, which);
  }
}

}  // namespace msdbg
