#include "session/kept_stats_bytes.h"

#include <array>
#include <limits>

namespace msdbg {
namespace {

constexpr uint8_t kFormat = 1;
/// No graph has more dimensions, and no check asks for more ranges, tolerances or expressions.
constexpr uint64_t kMostItems = 4096;

enum Flag : unsigned { kFirstBad = 1, kPreviousId = 2, kChange = 4, kDependsOnPrevious = 8, kBits = 16 };
enum ValueFlag : unsigned { kPresent = 1, kTruth = 2, kDecided = 4, kActual = 8, kThreshold = 16 };

void write(ByteWriter& out, const std::vector<uint64_t>& counts) {
  out.number(counts.size());
  for (const uint64_t count : counts) out.number(count);
}

void read(ByteReader& in, std::vector<uint64_t>& counts) {
  for (size_t n = in.items(kMostItems); n > 0; --n) counts.push_back(in.number());
}

void write(ByteWriter& out, const Stats& stats) {
  out.number(stats.known);
  for (const uint64_t count : {stats.nan_count, stats.pos_inf_count, stats.neg_inf_count, stats.zero_count, stats.pos_count,
                               stats.neg_count, stats.dtype_max_count}) {
    out.number(count);
  }
  if (stats.first_bad) out.number(*stats.first_bad);
  out.reals(std::array{stats.min, stats.max, stats.mean, stats.abs_mean, stats.std, stats.l2_norm});
  write(out, stats.range_counts);
  write(out, stats.close_counts);
  if (!stats.knows(kStatChange)) return;
  out.number(stats.pairs);
  out.number(stats.prev_nonfinite_count);
  out.real(stats.diff_abs_mean);
  out.real(stats.prev_abs_mean);
}

void read(ByteReader& in, Stats& stats, bool first_bad) {
  const uint64_t known = in.number();
  in.require(known <= kStatAll);
  stats.known = static_cast<uint32_t>(known);
  uint64_t left = stats.count;
  const auto count = [&](bool disjoint) {
    const uint64_t value = in.number();
    in.require(value <= (disjoint ? left : stats.count));
    if (disjoint && in.good()) left -= value;
    return value;
  };
  for (uint64_t* disjoint : {&stats.nan_count, &stats.pos_inf_count, &stats.neg_inf_count, &stats.zero_count, &stats.pos_count,
                             &stats.neg_count})
    *disjoint = count(true);
  stats.dtype_max_count = count(false);
  if (first_bad) {
    stats.first_bad = in.number();
    in.require(*stats.first_bad < stats.count);
  }
  for (double* value : {&stats.min, &stats.max, &stats.mean, &stats.abs_mean, &stats.std, &stats.l2_norm}) *value = in.real();
  read(in, stats.range_counts);
  read(in, stats.close_counts);
  if (!stats.knows(kStatChange)) return;
  stats.pairs = count(false);
  stats.prev_nonfinite_count = count(false);
  stats.diff_abs_mean = in.real();
  stats.prev_abs_mean = in.real();
}

void write(ByteWriter& out, const std::optional<ExpressionValue>& value) {
  if (!value) return out.byte(0);
  unsigned flags = kPresent;
  if (value->is_truth) flags |= kTruth;
  if (value->is_decided) flags |= kDecided;
  if (value->actual) flags |= kActual;
  if (value->threshold) flags |= kThreshold;
  out.byte(flags);
  out.real(value->number);
  if (value->actual) out.real(*value->actual);
  if (value->threshold) out.real(*value->threshold);
}

std::optional<ExpressionValue> read_value(ByteReader& in) {
  const unsigned flags = in.byte();
  if ((flags & kPresent) == 0) return std::nullopt;
  ExpressionValue value;
  value.is_truth = (flags & kTruth) != 0;
  value.is_decided = (flags & kDecided) != 0;
  value.number = in.real();
  if ((flags & kActual) != 0) value.actual = in.real();
  if ((flags & kThreshold) != 0) value.threshold = in.real();
  return value;
}

/// The type, shape, size and note.
void read_content(ByteReader& in, TensorInfo& info) {
  const auto dtype = static_cast<DType>(in.byte());
  in.require(is_evaluable(dtype));
  if (!in.good()) return;
  info.dtype = dtype;
  info.shape.clear();
  for (size_t n = in.items(kMostItems); n > 0; --n) info.shape.push_back(in.whole());
  const std::optional<uint64_t> count = element_count(info.shape);
  in.require(count && *count <= std::numeric_limits<uint64_t>::max() / item_size(dtype));
  if (!in.good()) return;
  info.count = *count;
  info.bytes = info.count * item_size(dtype);
  info.note = in.text();
}

}  // namespace

void write_counts(ByteWriter& out, const StatsRequest& request) {
  out.number(request.ranges.size());
  for (const RangeRequest& range : request.ranges) {
    out.real(range.low);
    out.real(range.high);
  }
  out.number(request.close.size());
  for (const CloseRequest& close : request.close) {
    out.real(close.rtol);
    out.real(close.atol);
  }
}

void read_counts(ByteReader& in, StatsRequest& request) {
  for (size_t n = in.items(kMostItems); n > 0 && in.good(); --n) {
    const double low = in.real(), high = in.real();
    request.ranges.push_back({low, high});
  }
  for (size_t n = in.items(kMostItems); n > 0 && in.good(); --n) {
    const double rtol = in.real(), atol = in.real();
    request.close.push_back({rtol, atol});
  }
}

std::string encode(const KeptStats& entry) {
  const TensorInfo& info = entry.info;
  MSDBG_CHECK(is_evaluable(info.dtype) && element_count(info.shape) == info.count && entry.stats.count == info.count);
  constexpr size_t kUsual = 256;
  ByteWriter out;
  out.reserve(kUsual);
  out.byte(kFormat);
  unsigned flags = 0;
  if (entry.stats.first_bad) flags |= kFirstBad;
  if (entry.previous_id) flags |= kPreviousId;
  if (entry.request.change) flags |= kChange;
  if (entry.previous != Previous::kNotNeeded) flags |= kDependsOnPrevious;
  if (entry.bits) flags |= kBits;
  out.byte(flags);
  out.byte(static_cast<unsigned>(info.dtype));
  out.number(info.shape.size());
  for (const int64_t length : info.shape) out.whole(length);
  out.text(info.note);
  write_counts(out, entry.request);
  write(out, entry.stats);
  if (entry.bits) {
    out.word(entry.bits->low);
    out.word(entry.bits->high);
  }
  out.byte(static_cast<unsigned>(entry.previous));
  out.text(entry.previous_reason);
  out.number(entry.previous_bytes);
  if (entry.previous_id) {
    TensorId same = *entry.previous_id;
    same.step = info.id.step;
    MSDBG_CHECK(same == info.id);
    out.whole(entry.previous_id->step);
  }
  out.number(entry.values.size());
  for (const auto& [text, value] : entry.values) {
    out.text(text);
    write(out, value);
  }
  return out.take();
}

bool depends_on_previous(std::string_view bytes) {
  return bytes.size() > 1 && (static_cast<unsigned char>(bytes[1]) & kDependsOnPrevious) != 0;
}

Result<std::shared_ptr<KeptStats>> decode(std::string_view bytes, TensorInfo info) {
  ByteReader in(bytes);
  const uint8_t format = in.byte();
  if (!in.good() || format != kFormat) return Status(Code::kCorrupt, "statistics in the format of another version");
  const unsigned flags = in.byte();
  auto made = std::make_shared<KeptStats>(std::move(info));
  KeptStats& entry = *made;
  entry.info.availability = Availability::kElements;
  entry.info.problem = {};
  read_content(in, entry.info);
  entry.stats.dtype = entry.info.dtype;
  entry.stats.count = entry.info.count;
  entry.request.change = (flags & kChange) != 0;
  read_counts(in, entry.request);
  read(in, entry.stats, (flags & kFirstBad) != 0);
  if ((flags & kBits) != 0) {
    const uint64_t low = in.word(), high = in.word();
    entry.bits = BitsPrint{low, high, entry.stats.nan_count > 0};
    entry.request.bits = true;
  }
  const uint8_t previous = in.byte();
  in.require(previous <= static_cast<uint8_t>(Previous::kPresent));
  entry.previous = in.good() ? static_cast<Previous>(previous) : Previous::kNotNeeded;
  entry.previous_reason = in.text();
  entry.previous_bytes = in.number();
  if ((flags & kPreviousId) != 0) {
    entry.previous_id = entry.info.id;
    entry.previous_id->step = in.whole();
  }
  for (size_t n = in.items(kMostItems); n > 0 && in.good(); --n) {
    std::string text(in.text());
    entry.values.insert_or_assign(std::move(text), read_value(in));
  }
  in.require(depends_on_previous(bytes) == (entry.previous != Previous::kNotNeeded));
  // A condition looks up its count by the place of its request.
  in.require(entry.stats.range_counts.size() == entry.request.ranges.size());
  in.require(entry.stats.close_counts.size() == entry.request.close.size() || entry.previous != Previous::kPresent);
  in.require(entry.previous_id.has_value() == (entry.previous == Previous::kPresent));
  if (!in.at_end()) return Status(Code::kCorrupt, "damaged statistics");
  return made;
}

}  // namespace msdbg
