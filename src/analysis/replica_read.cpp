#include "analysis/replica_read.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

namespace msdbg {
namespace {

constexpr size_t kMaxFirst = 8;

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
  for (uint64_t first = 0; first < actual.count(); first += kReplicaBlock) {
    if (interrupt_requested()) return Status(Code::kInterrupted, "replicas: interrupted");
    const uint64_t n = std::min(kReplicaBlock, actual.count() - first);
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

std::string checksum(Session& session, const TensorId& id) { return session.late_checksums() ? "" : session.checksum(id); }

/// For tensors without elements; nullopt where nothing is known of the values.
std::optional<ReplicaPrint> recorded_print(Session& session, const TensorId& id) {
  const Result<TensorInfo> info = session.describe(id);
  if (!info || info->problem.code() == Code::kCorrupt) return std::nullopt;
  ReplicaPrint print{ReplicaEvidence::kChecksum, info->dtype, info->shape, {}};
  BitsPrinter printer(DType::kUnknown);
  if (const std::string sum = checksum(session, id); !sum.empty()) {
    printer.add(std::as_bytes(std::span(sum)));
    print.bits = printer.print();
    return print;
  }
  const std::optional<Stats> stats = session.given_statistics(id);
  const bool told = stats && (stats->knows(kStatMin | kStatMax) || stats->nan_count + stats->inf_count() > 0);
  if (!told) return std::nullopt;
  print.by = ReplicaEvidence::kStatistics;
  std::vector<uint64_t> words;
  const std::pair<uint32_t, double> values[] = {{kStatMin, stats->min}, {kStatMax, stats->max}, {kStatMean, stats->mean},
                                                {kStatL2Norm, stats->l2_norm}};
  for (const auto& [field, value] : values) words.push_back(stats->knows(field) ? bits_of(value) : 1);
  for (const uint64_t count : {stats->nan_count, stats->pos_inf_count, stats->neg_inf_count}) words.push_back(count > 0 ? 1 : 0);
  printer.add(std::as_bytes(std::span(words)));
  print.bits = printer.print();
  print.bits.nan = stats->nan_count > 0;
  return print;
}

/// "xor 8318c24a0603bb9f": each bit of it is that of all elements at even places, or at odd ones, of 4 bytes.
bool is_one_bit_apart(std::string_view a, std::string_view b) {
  constexpr std::string_view kXor = "xor ";
  if (!a.starts_with(kXor) || !b.starts_with(kXor)) return false;
  uint64_t bits = 0;
  for (std::string_view* text : {&a, &b}) {
    text->remove_prefix(kXor.size());
    uint64_t number = 0;
    const auto end = std::from_chars(text->data(), text->data() + text->size(), number, 16);
    if (end.ec != std::errc() || end.ptr != text->data() + text->size()) return false;
    bits ^= number;
  }
  return std::has_single_bit(bits);
}

std::string_view no_elements(Session& session) {
  return session.info().kind == SessionKind::kDump ? "the dump has no elements" : "the elements are gone";
}

/// "max 3 instead of 2, norm 4 instead of 3; the dump has no elements"
std::string recorded_difference(Session& session, const TensorId& expected, const TensorId& actual) {
  const std::string sums[] = {checksum(session, expected), checksum(session, actual)};
  if (!sums[0].empty() && !sums[1].empty())
    return fmt::format("checksum {} instead of {}{}; {}", sums[1], sums[0],
                       is_one_bit_apart(sums[0], sums[1]) ? ", one bit apart: a flipped bit of one element gives that" : "", no_elements(session));
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
  return out.empty() ? out : fmt::format("{}; {}", out, no_elements(session));
}

}  // namespace

std::optional<TensorId> counterpart(Session& session, const TensorId& id, const TensorId& there) {
  const Node* const node = session.graph(there.rank, there.graph)->find(session.node(id).name);
  if (node == nullptr) return std::nullopt;
  TensorId out = id;
  out.rank = there.rank;
  out.graph = there.graph;
  out.node = node->id;
  return out;
}

Result<uint64_t> read_replicas(Session& session, unsigned threads, std::span<ReplicaRead> reads) {
  std::vector<BitsRead> bits;
  bits.reserve(reads.size());
  for (const ReplicaRead& read : reads) bits.push_back({read.tensor});
  const Result<uint64_t> bytes = read_bits(session, threads, bits);
  if (!bytes) return bytes.status();
  for (size_t i = 0; i < reads.size(); ++i) {
    if (std::optional<TensorBits>& known = bits[i].bits) {
      reads[i].print = {ReplicaEvidence::kElements, known->dtype, std::move(known->shape), known->print};
    } else {
      reads[i].print = recorded_print(session, reads[i].tensor);
      reads[i].reason = std::string_view(bits[i].problem.message());
    }
  }
  return *bytes;
}

void compare_replicas(Session& session, ReplicaBuffers& buffers, ReplicaDifference* difference) {
  difference->elements = difference->of = 0;
  difference->first.clear();
  difference->bits.clear();
  difference->single_flip = false;
  difference->problem.clear();
  Result<OpenTensor> expected = session.open_elements(difference->expected), actual = session.open_elements(difference->seen);
  if (!expected || !actual) {
    if (!expected && !actual) {
      difference->problem = recorded_difference(session, difference->expected, difference->seen);
      // A training keeps the statistics of weights longer than the values of operators.
      const auto other = difference->problem.empty() ? counterpart(session, difference->tensor, difference->expected) : std::nullopt;
      if (other) difference->problem = recorded_difference(session, *other, difference->tensor);
    }
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
