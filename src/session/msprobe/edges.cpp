#include "session/msprobe/edges.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <unordered_map>

namespace msdbg::msprobe {
namespace {

/// What equal tensors have in common, whatever their shape.
struct Likeness {
  DType dtype = DType::kUnknown;
  uint64_t count = 0;
  uint64_t high = 0, low = 0;  ///< bits of maximum and minimum, or a checksum
  bool operator==(const Likeness&) const = default;
};

struct HashLikeness {
  size_t operator()(const Likeness& key) const noexcept {
    size_t hash = static_cast<size_t>(key.dtype);
    for (const uint64_t part : {key.count, key.high, key.low}) hash = (hash ^ part) * 0x9e3779b97f4a7c15u;
    return hash ^ (hash >> 29);
  }
};

uint64_t bits_of(double value) { return std::bit_cast<uint64_t>(value == 0 ? 0.0 : value); }

bool comparable(const Record& record) { return record.problem.empty() && record.count >= 2; }

/// Booleans have only two possible extremes; NaN is equal to nothing; a constant may come from anywhere.
std::optional<Likeness> by_statistics(const Record& record) {
  constexpr uint8_t kExtremes = kGivenMax | kGivenMin;
  if (!comparable(record) || record.dtype == DType::kBool || (record.given & kExtremes) != kExtremes) return std::nullopt;
  if (std::isnan(record.max) || std::isnan(record.min) || record.max == record.min) return std::nullopt;
  if (std::isinf(record.max) && std::isinf(record.min)) return std::nullopt;
  return Likeness{record.dtype, record.count, bits_of(record.max), bits_of(record.min)};
}

std::optional<Likeness> by_checksum(const Record& record) {
  constexpr uint8_t kExtremes = kGivenMax | kGivenMin;
  const bool constant = (record.given & kExtremes) == kExtremes && record.max == record.min;
  if (!comparable(record) || record.checksum_bits == 0 || constant) return std::nullopt;
  return Likeness{record.dtype, record.count, record.checksum, ~uint64_t{0}};
}

/// Sums over another shape differ in the last digits.
bool close(double a, double b) {
  constexpr double kTolerance = 1e-6;
  if (!std::isfinite(a) || !std::isfinite(b)) return true;
  return std::fabs(a - b) <= kTolerance * std::max({std::fabs(a), std::fabs(b), 1e-30});
}

bool same_sums(const Record& a, const Record& b) {
  const auto both = [&](uint8_t bit) { return (a.given & b.given & bit) != 0; };
  // A mean near zero is what rounding left over; it is compared with the size of the elements.
  const double scale = std::max(std::fabs(a.max), std::fabs(a.min));
  const bool means = !both(kGivenMean) || !std::isfinite(a.mean) || !std::isfinite(b.mean) || std::fabs(a.mean - b.mean) <= 1e-6 * scale;
  return means && (!both(kGivenNorm) || close(std::fabs(a.norm), std::fabs(b.norm)));
}

class Search {
 public:
  Search(const std::vector<CallRecord>& calls, const std::vector<CallPlace>& places) : calls_(calls), places_(places) {}

  std::vector<std::vector<Maker>> run() {
    // A table lists parameters behind the calls that use them.
    for (uint32_t call = 0; call < calls_.size(); ++call) {
      for (uint32_t slot = 0; slot < calls_[call].parameters.size(); ++slot)
        add(calls_[call].parameters[slot], {call, slot, true}, parameters_);
    }
    std::vector<std::vector<Maker>> out(calls_.size());
    for (uint32_t call = 0; call < calls_.size(); ++call) {
      const std::vector<Record>& taken = places_[call].gradients ? calls_[call].outputs : calls_[call].inputs;
      for (const Record& record : taken) out[call].push_back(maker_of(record, call));
      if (places_[call].module) continue;
      for (uint32_t slot = 0; slot < calls_[call].outputs.size(); ++slot) add(calls_[call].outputs[slot], {call, slot, false}, outputs_);
    }
    return out;
  }

 private:
  using Index = std::unordered_map<Likeness, std::vector<Maker>, HashLikeness>;

  static void add(const Record& record, Maker maker, Index& index) {
    for (const auto& key : {by_statistics(record), by_checksum(record)}) {
      if (key) index[*key].push_back(maker);
    }
  }

  const Record& record_of(const Maker& maker) const {
    const CallRecord& call = calls_[maker.call];
    return maker.parameter ? call.parameters[maker.slot] : call.outputs[maker.slot];
  }

  Maker maker_of(const Record& record, uint32_t call) const {
    const std::optional<Likeness> sum = by_checksum(record);
    for (const Index* index : {&parameters_, &outputs_}) {
      if (sum) {
        if (const Maker found = latest(*index, *sum, record, call, false); found.call != kNoCall) return found;
        // Of a call that works in place, a CPU may record the checksum of the result as that of the input.
        if (!places_[call].in_place) continue;
      }
      if (const auto key = by_statistics(record)) {
        if (const Maker found = latest(*index, *key, record, call, true); found.call != kNoCall) return found;
      }
    }
    return {};
  }

  Maker latest(const Index& index, const Likeness& key, const Record& record, uint32_t call, bool compare_sums) const {
    const auto found = index.find(key);
    if (found == index.end()) return {};
    constexpr size_t kLooks = 16;  // equal extremes and other sums are rare
    size_t looks = 0;
    Maker maker;
    for (auto at = found->second.rbegin(); at != found->second.rend() && looks < kLooks; ++at) {
      if (!at->parameter && at->call >= places_[call].begin) continue;
      if (at->parameter && at->call == call) continue;
      ++looks;
      if (compare_sums && !same_sums(record, record_of(*at))) continue;
      if (!at->parameter || !places_[call].optimizer) return *at;
      if (maker.call != kNoCall && !same_parameter(maker, *at)) return {};
      maker = *at;
    }
    return maker;
  }

  bool same_parameter(const Maker& a, const Maker& b) const {
    return places_[a.call].path == places_[b.call].path && record_of(a).path == record_of(b).path;
  }

  const std::vector<CallRecord>& calls_;
  const std::vector<CallPlace>& places_;
  Index parameters_, outputs_;
};

}  // namespace

std::vector<std::vector<Maker>> find_makers(const std::vector<CallRecord>& calls, const std::vector<CallPlace>& places) {
  return Search(calls, places).run();
}

}  // namespace msdbg::msprobe
