#include "analysis/replica_read.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace msdbg {
namespace {

constexpr uint64_t kAtATime = 65536;  // elements
constexpr size_t kMaxFirst = 8;

/// The bits of a float type without its sign, above which an element is NaN; 0 for other types.
uint64_t infinity_bits(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return 0x7c00;
    case DType::kBFloat16:
      return 0x7f80;
    case DType::kFloat32:
      return 0x7f800000;
    case DType::kFloat64:
      return 0x7ff0000000000000;
    default:
      return 0;
  }
}

/// Gives every NaN the same bits.
template <typename Word>
bool join_nan(std::span<std::byte> block, Word infinity) {
  constexpr Word kMagnitude = static_cast<Word>(~Word{0}) >> 1;
  bool any = false;
  for (size_t at = 0; at + sizeof(Word) <= block.size(); at += sizeof(Word)) {
    Word bits;
    std::memcpy(&bits, block.data() + at, sizeof bits);
    if ((bits & kMagnitude) <= infinity) continue;
    bits = kMagnitude;
    any = true;
    std::memcpy(block.data() + at, &bits, sizeof bits);
  }
  return any;
}

/// True if there was any.
bool join_nan(DType dtype, std::span<std::byte> block) {
  const uint64_t infinity = infinity_bits(dtype);
  if (infinity == 0) return false;
  if (item_size(dtype) == 2) return join_nan(block, static_cast<uint16_t>(infinity));
  if (item_size(dtype) == 4) return join_nan(block, static_cast<uint32_t>(infinity));
  return join_nan(block, infinity);
}

/// Two independent sums; each step is a bijection of the state, so a single changed word always changes the result.
void mix(uint64_t word, ReplicaPrint* print) {
  print->low = std::rotl((print->low ^ word) * 0x9e3779b97f4a7c15, 29);
  print->high = std::rotl((print->high + word) * 0xd6e8feb86659fd93, 37);
}

void add(std::span<const std::byte> block, ReplicaPrint* print) {
  size_t at = 0;
  for (; at + sizeof(uint64_t) <= block.size(); at += sizeof(uint64_t)) {
    uint64_t word;
    std::memcpy(&word, block.data() + at, sizeof word);
    mix(word, print);
  }
  if (at == block.size()) return;
  uint64_t word = 0;
  std::memcpy(&word, block.data() + at, block.size() - at);
  mix(word, print);
}

uint64_t element_bits(const std::byte* at, size_t size) {
  uint64_t bits = 0;
  std::memcpy(&bits, at, size);
  return bits;
}

bool is_nan(DType dtype, uint64_t bits) {
  const uint64_t infinity = infinity_bits(dtype);
  return infinity != 0 && (bits & ~(uint64_t{1} << (item_size(dtype) * 8 - 1))) > infinity;
}

Status compare_elements(ElementReader& expected, ElementReader& actual, const Shape& shape, ReplicaBuffers& buffers,
                        ReplicaDifference* out) {
  const DType dtype = actual.dtype();
  const size_t size = item_size(dtype);
  uint64_t bits = 0;
  std::vector<uint64_t> places;
  for (uint64_t first = 0; first < actual.count(); first += kAtATime) {
    if (interrupt_requested()) return Status(Code::kInterrupted, "replicas: interrupted");
    const uint64_t n = std::min(kAtATime, actual.count() - first);
    buffers.a.resize(n * size);
    buffers.b.resize(n * size);
    if (Status status = expected.read(first, buffers.a); !status.ok()) return status;
    if (Status status = actual.read(first, buffers.b); !status.ok()) return status;
    if (buffers.a == buffers.b) continue;
    for (uint64_t i = 0; i < n; ++i) {
      const std::byte *a = buffers.a.data() + i * size, *b = buffers.b.data() + i * size;
      const uint64_t before = element_bits(a, size), after = element_bits(b, size), changed = before ^ after;
      if (changed == 0 || (is_nan(dtype, before) && is_nan(dtype, after))) continue;
      bits |= changed;
      ++out->elements;
      if (out->first.size() >= kMaxFirst) continue;
      out->first.push_back({coordinates(first + i, shape), element_as_double(dtype, a), element_as_double(dtype, b)});
    }
  }
  for (int bit = 0; bit < 64; ++bit) {
    if ((bits >> bit & 1) != 0) out->bits.push_back(bit);
  }
  // A counter that is one behind differs in one bit, too.
  const bool counter = infinity_bits(dtype) == 0 && out->of == 1;
  out->single_flip = out->elements == 1 && out->bits.size() == 1 && !counter;
  return {};
}

uint64_t bits_of(double value) { return std::isnan(value) ? ~uint64_t{0} : std::bit_cast<uint64_t>(value == 0 ? 0.0 : value); }

/// For tensors without elements; nullopt where nothing is known of the values.
std::optional<ReplicaPrint> recorded_print(Session& session, const TensorId& id) {
  const Result<TensorInfo> info = session.describe(id);
  if (!info || info->problem.code() == Code::kCorrupt) return std::nullopt;
  ReplicaPrint print{ReplicaEvidence::kChecksum, info->dtype, info->shape, 0x243f6a8885a308d3, 0x13198a2e03707344};
  if (const std::string sum = session.checksum(id); !sum.empty()) {
    add(std::as_bytes(std::span(sum)), &print);
    return print;
  }
  const std::optional<Stats> stats = session.given_statistics(id);
  const bool told = stats && (stats->knows(kStatMin | kStatMax) || stats->nan_count + stats->inf_count() > 0);
  if (!told) return std::nullopt;
  print.by = ReplicaEvidence::kStatistics;
  print.nan = stats->nan_count > 0;
  const std::pair<uint32_t, double> values[] = {{kStatMin, stats->min}, {kStatMax, stats->max}, {kStatMean, stats->mean},
                                                {kStatL2Norm, stats->l2_norm}};
  for (const auto& [field, value] : values) mix(stats->knows(field) ? bits_of(value) : 1, &print);
  for (const uint64_t count : {stats->nan_count, stats->pos_inf_count, stats->neg_inf_count}) mix(count > 0 ? 1 : 0, &print);
  return print;
}

/// "max 3 instead of 2, norm 4 instead of 3; the dump has no elements"
std::string recorded_difference(Session& session, const TensorId& expected, const TensorId& actual) {
  const std::string sums[] = {session.checksum(expected), session.checksum(actual)};
  if (!sums[0].empty() && !sums[1].empty())
    return fmt::format("checksum {} instead of {}; the dump has no elements", sums[1], sums[0]);
  const std::optional<Stats> a = session.given_statistics(expected), b = session.given_statistics(actual);
  if (!a || !b) return "";
  std::string out;
  const auto add = [&](std::string_view name, uint32_t field, double x, double y) {
    if (!a->knows(field) || !b->knows(field) || bits_of(x) == bits_of(y)) return;
    out += fmt::format("{}{} {} instead of {}", out.empty() ? "" : ", ", name, format_short(y, 9), format_short(x, 9));
  };
  if (a->nan_count + a->inf_count() > 0 || b->nan_count + b->inf_count() > 0) {
    const auto kind = [](const Stats& stats) { return stats.nan_count > 0 ? "NaN" : stats.inf_count() > 0 ? "Inf" : "finite"; };
    if (kind(*a) != kind(*b)) out = fmt::format("{} instead of {}", kind(*b), kind(*a));
  }
  add("min", kStatMin, a->min, b->min);
  add("max", kStatMax, a->max, b->max);
  add("mean", kStatMean, a->mean, b->mean);
  add("norm", kStatL2Norm, a->l2_norm, b->l2_norm);
  return out.empty() ? out : out + "; the dump has no elements";
}

}  // namespace

Result<ReplicaPrint> fingerprint(Session& session, const TensorId& id, ReplicaBuffers& buffers, uint64_t* bytes) {
  Result<OpenTensor> opened = session.open_elements(id);
  if (!opened) {
    if (std::optional<ReplicaPrint> print = recorded_print(session, id)) return std::move(*print);
    return opened.status();
  }
  ElementReader& reader = *opened->reader;
  const size_t size = item_size(reader.dtype());
  ReplicaPrint print{ReplicaEvidence::kElements, reader.dtype(), opened->info.shape, 0x243f6a8885a308d3, 0x13198a2e03707344};
  for (uint64_t first = 0; first < reader.count(); first += kAtATime) {
    if (interrupt_requested()) return Status(Code::kInterrupted, "replicas: interrupted");
    const uint64_t n = std::min(kAtATime, reader.count() - first);
    buffers.a.resize(n * size);
    if (Status status = reader.read(first, buffers.a); !status.ok()) return status;
    if (join_nan(reader.dtype(), buffers.a)) print.nan = true;
    add(buffers.a, &print);
    *bytes += buffers.a.size();
  }
  return print;
}

void compare_replicas(Session& session, ReplicaBuffers& buffers, ReplicaDifference* difference) {
  Result<OpenTensor> expected = session.open_elements(difference->expected), actual = session.open_elements(difference->seen);
  if (!expected || !actual) {
    if (!expected && !actual) difference->problem = recorded_difference(session, difference->expected, difference->seen);
    if (const auto of = session.describe(difference->seen); of && !difference->problem.empty()) difference->of = of->count;
    if (difference->problem.empty()) difference->problem = (expected ? actual : expected).status().message();
    return;
  }
  difference->of = actual->info.count;
  if (expected->info.dtype != actual->info.dtype) {
    difference->problem = fmt::format("{} instead of {}", dtype_name(actual->info.dtype), dtype_name(expected->info.dtype));
  } else if (expected->info.shape != actual->info.shape) {
    difference->problem = fmt::format("shape {} instead of {}", shape_text(actual->info.shape), shape_text(expected->info.shape));
  } else if (Status status = compare_elements(*expected->reader, *actual->reader, actual->info.shape, buffers, difference); !status.ok()) {
    difference->problem = status.message();
  }
}

}  // namespace msdbg
